//! The desktop of this machine, by enigo: X11 on Linux, Windows, macOS.

use enigo::{Coordinate, Direction, Enigo, InputResult, Keyboard as _, Mouse as _, Settings};

use super::Desktop;
use super::gamepad::Gamepad;
use conductor_config::{Axis, Key, MouseButton, NamedKey};
use conductor_ports::gamepad::VIRTUAL_GAMEPAD;

/// Why this build can't act on the system's desktop; `None`, since it can.
pub const UNAVAILABLE: Option<&str> = None;

/// The desktop of this machine, to which nothing is connected yet: that comes with the first action.
///
/// # Errors
/// None; a build without a desktop has one.
pub fn connect() -> Result<Box<dyn Desktop>, String> {
    Ok(Box::new(System { enigo: None, gamepad: None }))
}

#[cfg(all(unix, not(target_os = "macos")))]
const HINT: &str = "; it is found by the environment variable DISPLAY";
#[cfg(target_os = "macos")]
const HINT: &str = "; allow it under Privacy & Security, Accessibility";
#[cfg(windows)]
const HINT: &str = "";

struct System {
    enigo: Option<Enigo>,
    gamepad: Option<Gamepad>,
}

impl System {
    /// Does something with keys and mouse. After a failure the connection is dropped: its display may be gone.
    fn input(&mut self, act: impl FnOnce(&mut Enigo) -> InputResult<()>) -> Result<(), String> {
        let mut enigo = match self.enigo.take() {
            Some(enigo) => enigo,
            None => open()?,
        };
        act(&mut enigo).map_err(|error| error.to_string())?;
        self.enigo = Some(enigo);
        Ok(())
    }

    /// Does something with the gamepad, which is plugged in for it. After a failure it is unplugged.
    fn play(&mut self, act: impl FnOnce(&mut Gamepad) -> Result<(), String>) -> Result<(), String> {
        let mut gamepad = match self.gamepad.take() {
            Some(gamepad) => gamepad,
            None => Gamepad::plug(VIRTUAL_GAMEPAD)?,
        };
        act(&mut gamepad)?;
        self.gamepad = Some(gamepad);
        Ok(())
    }
}

fn open() -> Result<Enigo, String> {
    // A host that asks for permissions in a dialogue would do so in the middle of a performance.
    let settings = Settings { open_prompt_to_get_permissions: false, ..Settings::default() };
    Enigo::new(&settings).map_err(|error| format!("there is no desktop to act on: {error}{HINT}"))
}

impl Desktop for System {
    fn key(&mut self, key: Key, down: bool) -> Result<(), String> {
        let known = key_of(key).ok_or_else(|| format!("this system has no key {key}"))?;
        self.input(|enigo| enigo.key(known, direction(down)))
    }

    fn text(&mut self, text: &str) -> Result<(), String> {
        self.input(|enigo| enigo.text(text))
    }

    fn button(&mut self, button: MouseButton, down: bool) -> Result<(), String> {
        let button = match button {
            MouseButton::Left => enigo::Button::Left,
            MouseButton::Right => enigo::Button::Right,
            MouseButton::Middle => enigo::Button::Middle,
            #[cfg(not(target_os = "macos"))]
            MouseButton::Back => enigo::Button::Back,
            #[cfg(not(target_os = "macos"))]
            MouseButton::Forward => enigo::Button::Forward,
            #[cfg(target_os = "macos")]
            MouseButton::Back | MouseButton::Forward => return Err(format!("this system has no button {button:?}")),
        };
        self.input(|enigo| enigo.button(button, direction(down)))
    }

    fn point(&mut self, x: u16, y: u16) -> Result<(), String> {
        self.input(|enigo| enigo.move_mouse(x.into(), y.into(), Coordinate::Abs))
    }

    fn move_by(&mut self, x: i32, y: i32) -> Result<(), String> {
        self.input(|enigo| enigo.move_mouse(x, y, Coordinate::Rel))
    }

    fn step(&mut self, x: i32, y: i32) -> Result<(), String> {
        self.move_by(x, y)
    }

    fn scroll(&mut self, clicks: i32, axis: Axis) -> Result<(), String> {
        let axis = match axis {
            Axis::Vertical => enigo::Axis::Vertical,
            Axis::Horizontal => enigo::Axis::Horizontal,
        };
        self.input(|enigo| enigo.scroll(clicks, axis))
    }

    fn plug_gamepad(&mut self) -> Result<(), String> {
        self.play(|_| Ok(()))
    }

    fn gamepad_button(&mut self, button: u8, down: bool) -> Result<(), String> {
        self.play(|gamepad| gamepad.button(button, down))
    }

    fn gamepad_axis(&mut self, axis: u8, value: i16) -> Result<(), String> {
        self.play(|gamepad| gamepad.axis(axis, value))
    }
}

fn direction(down: bool) -> Direction {
    if down { Direction::Press } else { Direction::Release }
}

/// The key as enigo knows it; `None` if this system has no such key.
fn key_of(key: Key) -> Option<enigo::Key> {
    use enigo::Key as Its;
    let named = match key {
        Key::Char(character) => return Some(Its::Unicode(character)),
        Key::Named(named) => named,
    };
    Some(match named {
        NamedKey::Space => Its::Space,
        NamedKey::Enter => Its::Return,
        NamedKey::Tab => Its::Tab,
        NamedKey::Escape => Its::Escape,
        NamedKey::Backspace => Its::Backspace,
        NamedKey::Delete => Its::Delete,
        NamedKey::Home => Its::Home,
        NamedKey::End => Its::End,
        NamedKey::PageUp => Its::PageUp,
        NamedKey::PageDown => Its::PageDown,
        NamedKey::Up => Its::UpArrow,
        NamedKey::Down => Its::DownArrow,
        NamedKey::Left => Its::LeftArrow,
        NamedKey::Right => Its::RightArrow,
        NamedKey::Shift => Its::Shift,
        NamedKey::Control => Its::Control,
        NamedKey::Alt => Its::Alt,
        NamedKey::Meta => Its::Meta,
        NamedKey::CapsLock => Its::CapsLock,
        #[cfg(not(target_os = "macos"))]
        NamedKey::Insert => Its::Insert,
        #[cfg(not(target_os = "macos"))]
        NamedKey::NumLock => Its::Numlock,
        #[cfg(not(target_os = "macos"))]
        NamedKey::Pause => Its::Pause,
        #[cfg(not(target_os = "macos"))]
        NamedKey::PrintScreen => Its::PrintScr,
        #[cfg(not(target_os = "macos"))]
        NamedKey::StopPlaying => Its::MediaStop,
        #[cfg(target_os = "macos")]
        NamedKey::Insert | NamedKey::NumLock | NamedKey::Pause | NamedKey::PrintScreen | NamedKey::StopPlaying => {
            return None;
        }
        NamedKey::PlayPause => Its::MediaPlayPause,
        NamedKey::NextTrack => Its::MediaNextTrack,
        NamedKey::PreviousTrack => Its::MediaPrevTrack,
        NamedKey::VolumeUp => Its::VolumeUp,
        NamedKey::VolumeDown => Its::VolumeDown,
        NamedKey::VolumeMute => Its::VolumeMute,
        NamedKey::F1 => Its::F1,
        NamedKey::F2 => Its::F2,
        NamedKey::F3 => Its::F3,
        NamedKey::F4 => Its::F4,
        NamedKey::F5 => Its::F5,
        NamedKey::F6 => Its::F6,
        NamedKey::F7 => Its::F7,
        NamedKey::F8 => Its::F8,
        NamedKey::F9 => Its::F9,
        NamedKey::F10 => Its::F10,
        NamedKey::F11 => Its::F11,
        NamedKey::F12 => Its::F12,
        NamedKey::F13 => Its::F13,
        NamedKey::F14 => Its::F14,
        NamedKey::F15 => Its::F15,
        NamedKey::F16 => Its::F16,
        NamedKey::F17 => Its::F17,
        NamedKey::F18 => Its::F18,
        NamedKey::F19 => Its::F19,
        NamedKey::F20 => Its::F20,
    })
}
