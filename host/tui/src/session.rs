//! The terminal while the shell has it: entered, drawn on, and restored on every way out.
//!
//! This is the one place beside `conductor_terminal` that writes to a terminal, and what it writes are frames of
//! [`crate::view`], whose text is escaped, and the sequences that enter and leave.

#![expect(clippy::disallowed_methods, reason = "frames are sent to the terminal here")]

use std::io::{self, BufWriter, IsTerminal as _, Stdout, Write as _};
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crossbeam_channel::Sender;
use parking_lot::Mutex;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{
    DisableBracketedPaste, EnableBracketedPaste, Event, KeyEventKind, MouseButton, MouseEventKind, read,
};
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode, size,
};
use ratatui::crossterm::{Command, cursor, execute};

use crate::input::Key;
use crate::state::{Extent, Input, State};
use crate::view::render;

/// Bytes of a frame that are sent at once.
const BUFFER_BYTES: usize = 64 * 1024;
/// How long a thread that panics waits for a frame that is being sent.
const FRAME_TIMEOUT: Duration = Duration::from_secs(1);

/// Whether the terminal is ours.
static IS_ENTERED: AtomicBool = AtomicBool::new(false);
/// Held while a frame is sent.
static DRAWING: Mutex<()> = Mutex::new(());

/// The terminal, until it is dropped.
#[derive(Debug)]
pub(crate) struct Session {
    terminal: Terminal<CrosstermBackend<BufWriter<Stdout>>>,
}

/// Whether a person sits at standard input and standard output.
pub(crate) fn is_there() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Whether colours are shown: unless `NO_COLOR` is set and not empty.
pub(crate) fn has_colour() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

impl Session {
    /// Takes the terminal, and sees to it that a panic gives it back.
    ///
    /// # Errors
    /// If it can't be switched.
    pub(crate) fn enter() -> io::Result<Self> {
        restore_on_panic();
        let terminal = Terminal::new(CrosstermBackend::new(BufWriter::with_capacity(BUFFER_BYTES, io::stdout())))?;
        IS_ENTERED.store(true, Ordering::SeqCst);
        // From here on dropping it restores the terminal.
        let session = Self { terminal };
        enable_raw_mode()?;
        execute!(io::stdout(), EnterAlternateScreen, Clicks(true), EnableBracketedPaste, cursor::Hide)?;
        Ok(session)
    }

    /// Columns and rows.
    ///
    /// # Errors
    /// If the terminal does not say.
    pub(crate) fn size() -> io::Result<(u16, u16)> {
        size()
    }

    /// Draws the state. Only what is another than in the frame before is sent.
    ///
    /// # Errors
    /// If the terminal is gone.
    pub(crate) fn draw(&mut self, state: &State) -> io::Result<Extent> {
        let _drawing = DRAWING.lock();
        let mut extent = Extent::default();
        self.terminal.draw(|frame| extent = render(state, frame))?;
        Ok(extent)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        restore();
    }
}

/// Gives the terminal back, once. A terminal that is gone needs nothing.
fn restore() {
    if IS_ENTERED.swap(false, Ordering::SeqCst) {
        let mut out = io::stdout();
        let _ = execute!(out, DisableBracketedPaste, Clicks(false), LeaveAlternateScreen, cursor::Show);
        let _ = out.flush();
        let _ = disable_raw_mode();
    }
}

/// Has a panic of any thread give the terminal back before it is reported, and end the program.
fn restore_on_panic() {
    let report = panic::take_hook();
    let drawing = thread::current().id();
    panic::set_hook(Box::new(move |panic| {
        let is_drawing = thread::current().id() == drawing;
        let _held = if is_drawing { None } else { DRAWING.try_lock_for(FRAME_TIMEOUT) };
        restore();
        report(panic);
        if !is_drawing {
            std::process::exit(101);
        }
    }));
}

/// Reports of clicks and of the wheel, without those of each movement.
struct Clicks(bool);

impl Command for Clicks {
    fn write_ansi(&self, f: &mut impl std::fmt::Write) -> std::fmt::Result {
        f.write_str(if self.0 { "\u{1b}[?1000h\u{1b}[?1006h" } else { "\u{1b}[?1006l\u{1b}[?1000l" })
    }

    #[cfg(windows)]
    fn execute_winapi(&self) -> io::Result<()> {
        use ratatui::crossterm::event::{DisableMouseCapture, EnableMouseCapture};
        if self.0 { EnableMouseCapture.execute_winapi() } else { DisableMouseCapture.execute_winapi() }
    }
}

/// What comes from the terminal.
#[derive(Debug)]
pub(crate) enum FromTerminal {
    Input(Input),
    /// It is gone.
    Gone,
}

/// Reads keys and clicks, and notices when the terminal is gone.
///
/// # Errors
/// If a thread can't be started.
pub(crate) fn listen(sender: &Sender<FromTerminal>) -> io::Result<()> {
    let inputs = sender.clone();
    thread::Builder::new().name("keys".into()).spawn(move || {
        while let Ok(event) = read() {
            if let Some(input) = input(event)
                && inputs.send(FromTerminal::Input(input)).is_err()
            {
                return;
            }
        }
        let _ = inputs.send(FromTerminal::Gone);
    })?;
    #[cfg(unix)]
    {
        let gone = sender.clone();
        thread::Builder::new().name("terminal".into()).spawn(move || {
            if has_hung_up() {
                let _ = gone.send(FromTerminal::Gone);
            }
        })?;
    }
    Ok(())
}

/// Waits until the other side of the terminal is closed: keys are not read any more then, and reading does not say so.
#[cfg(unix)]
fn has_hung_up() -> bool {
    use rustix::event::{PollFd, PollFlags, poll};
    let stdin = io::stdin();
    loop {
        let mut side = [PollFd::new(&stdin, PollFlags::empty())];
        match poll(&mut side, None) {
            Ok(_) if side[0].revents().intersects(PollFlags::HUP | PollFlags::ERR) => return true,
            Err(rustix::io::Errno::INTR) => {}
            // A system that can't tell.
            Ok(_) | Err(_) => return false,
        }
    }
}

fn input(event: Event) -> Option<Input> {
    Some(match event {
        Event::Key(key) if key.kind != KeyEventKind::Release => Input::Key(Key::new(key)?),
        Event::Paste(text) => Input::Paste(text),
        Event::Resize(width, height) => Input::Resize(width, height),
        Event::Mouse(mouse) => match mouse.kind {
            MouseEventKind::Down(MouseButton::Left) => Input::Click(mouse.column, mouse.row),
            MouseEventKind::ScrollUp => Input::Wheel(mouse.row, -1),
            MouseEventKind::ScrollDown => Input::Wheel(mouse.row, 1),
            _ => return None,
        },
        _ => return None,
    })
}

#[cfg(all(test, unix))]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::pty::Terminal as PseudoTerminal;

    /// Says which thread of the program below panics.
    const PANICS: &str = "CONDUCTOR_TUI_PANICS";

    /// The program that is started by the test below; by itself it does nothing.
    #[test]
    fn a_program_that_panics() {
        let Ok(which) = std::env::var(PANICS) else { return };
        let mut session = Session::enter().unwrap();
        session.draw(&State::new(80, 24, true)).unwrap();
        if which == "drawing" {
            panic!("a mistake while drawing");
        }
        let _ = thread::spawn(|| panic!("a mistake beside it")).join();
        unreachable!("the program has ended");
    }

    #[test]
    fn a_panic_of_any_thread_gives_the_terminal_back_before_it_is_reported() {
        for (which, message) in [("drawing", "a mistake while drawing"), ("beside", "a mistake beside it")] {
            let mut program = Command::new(std::env::current_exe().unwrap());
            program.args(["--exact", "session::tests::a_program_that_panics", "--nocapture"]).env(PANICS, which);
            let mut terminal = PseudoTerminal::sized(program, 80, 24);
            let before = terminal.modes_before;
            assert_eq!(terminal.code(), Some(101), "{which}: {:?}", terminal.screen.lines());
            assert_eq!(terminal.modes(), before, "{which}");
            let sent = String::from_utf8(terminal.sent).unwrap();
            let (shown, reported) = (sent.rfind("?1049h").unwrap(), sent.find(message).unwrap());
            for end in ["?1049l", "?25h", "?1000l", "?2004l"] {
                assert!(sent[shown..reported].contains(end), "{which} {end}: {sent:?}");
            }
        }
    }
}
