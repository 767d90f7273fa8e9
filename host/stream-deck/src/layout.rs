//! Which MIDI message is which key, dial or touch, and the other way round which message sets what.
//!
//! | part | sends | takes |
//! | --- | --- | --- |
//! | keys, row by row | note on and off, from 36 | note on: the velocity is the [`colour`]; off: dark |
//! | dials, turned | control change from 16, relative: 1 and more to the right, 127 and less to the left | |
//! | dials, pressed | note on and off, from 24 | |
//! | touch points of a Neo | note on and off, 32 and 33 | note on: the velocity is the colour |
//! | touch strip, tapped or held | control change 24 or 25: the place, 0 at the left to 127 | |
//! | touch strip, swiped | note 22 to the left, 23 to the right, on and off at once | |
//! | brightness | | control change 7, 0 to 127 |
//! | everything dark | | control change 120 or 123 |
//!
//! Everything is sent on channel 0, and taken on any.

use elgato_streamdeck::DeviceStateUpdate as Update;
use elgato_streamdeck::info::Kind;

use crate::colour::{self, Rgb};

/// The note of the first key.
pub const FIRST_KEY: u8 = 36;
/// The note of the first touch point.
pub const FIRST_TOUCH_POINT: u8 = 32;
/// The note of the first dial, when it is pressed.
pub const FIRST_DIAL: u8 = 24;
/// The controller of the first dial, when it is turned.
pub const FIRST_DIAL_CONTROLLER: u8 = 16;
/// The notes of a swipe to the left and to the right.
pub const SWIPES: [u8; 2] = [22, 23];
/// The controllers of a touch strip that is tapped, and held.
pub const STRIP_CONTROLLERS: [u8; 2] = [24, 25];
/// The controller that sets the brightness.
pub const BRIGHTNESS: u8 = 7;
/// The controllers that end all there is: all sound off, all notes off (MIDI 1.0).
const ALL_OFF: [u8; 2] = [120, 123];
/// The velocity of what is pressed.
const PRESSED: u8 = 127;

/// What a message sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setting {
    /// The colour of a key, from 0, and the velocity that it is of.
    Key(u8, u8),
    /// The colour of a touch point, from 0.
    TouchPoint(u8, Rgb),
    /// How bright it is, in percent.
    Brightness(u8),
    /// No key shows anything.
    Dark,
}

/// What a deck of this kind is called.
pub fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Original | Kind::OriginalV2 => "Stream Deck",
        Kind::Mini | Kind::MiniMk2 | Kind::MiniDiscord | Kind::MiniMk2Module => "Stream Deck Mini",
        Kind::Xl | Kind::XlV2 | Kind::XlV2Module => "Stream Deck XL",
        Kind::Mk2 | Kind::Mk2Scissor | Kind::Mk2Module => "Stream Deck MK.2",
        Kind::Neo => "Stream Deck Neo",
        Kind::Pedal => "Stream Deck Pedal",
        Kind::Plus => "Stream Deck +",
        Kind::PlusXl => "Stream Deck + XL",
    }
}

/// Hands over the messages that say what was done with a deck.
pub fn messages(kind: Kind, update: Update, send: &mut impl FnMut([u8; 3])) {
    let mut note = |note: u8, is_down: bool| {
        send(if is_down { [0x90, note, PRESSED] } else { [0x80, note, 0] });
    };
    match update {
        Update::ButtonDown(key) if key < kind.key_count() => note(FIRST_KEY + key, true),
        Update::ButtonUp(key) if key < kind.key_count() => note(FIRST_KEY + key, false),
        Update::TouchPointDown(point) if point < kind.touchpoint_count() => note(FIRST_TOUCH_POINT + point, true),
        Update::TouchPointUp(point) if point < kind.touchpoint_count() => note(FIRST_TOUCH_POINT + point, false),
        Update::EncoderDown(dial) if dial < kind.encoder_count() => note(FIRST_DIAL + dial, true),
        Update::EncoderUp(dial) if dial < kind.encoder_count() => note(FIRST_DIAL + dial, false),
        Update::EncoderTwist(dial, steps) if dial < kind.encoder_count() && steps != 0 => {
            // Two's complement in seven bits.
            let steps = steps.clamp(-63, 63).cast_unsigned() & 0x7F;
            send([0xB0, FIRST_DIAL_CONTROLLER + dial, steps]);
        }
        Update::TouchScreenPress(x, _) => send([0xB0, STRIP_CONTROLLERS[0], place(kind, x)]),
        Update::TouchScreenLongPress(x, _) => send([0xB0, STRIP_CONTROLLERS[1], place(kind, x)]),
        Update::TouchScreenSwipe((from, _), (to, _)) if from != to => {
            let swipe = SWIPES[usize::from(to > from)];
            note(swipe, true);
            note(swipe, false);
        }
        // Of parts that this kind has not, and swipes that lead nowhere.
        _ => {}
    }
}

/// Where a touch strip was touched, 0 to 127.
fn place(kind: Kind, x: u16) -> u8 {
    let long = kind.lcd_strip_size().map_or(1, |(width, height)| width.max(height).max(2) - 1);
    // At most 127.
    (usize::from(x).min(long) * 127 / long) as u8
}

/// What a MIDI message sets. `None` for one that a deck of this kind does not take.
pub fn setting(kind: Kind, message: &[u8]) -> Option<Setting> {
    let &[status, number, value] = message else { return None };
    let value = value & 0x7F;
    match status & 0xF0 {
        0x80 => lit(kind, number, 0),
        0x90 => lit(kind, number, value),
        0xB0 if number == BRIGHTNESS => Some(Setting::Brightness((u16::from(value) * 100 / 127) as u8)),
        0xB0 if ALL_OFF.contains(&number) => Some(Setting::Dark),
        _ => None,
    }
}

/// The key of a note, from 0. `None` if it is no key's.
pub fn key(kind: Kind, note: u8) -> Option<u8> {
    note.checked_sub(FIRST_KEY).filter(|index| *index < kind.key_count())
}

fn lit(kind: Kind, note: u8, velocity: u8) -> Option<Setting> {
    if let Some(key) = key(kind, note) {
        return Some(Setting::Key(key, velocity));
    }
    let point = note.checked_sub(FIRST_TOUCH_POINT).filter(|index| *index < kind.touchpoint_count())?;
    Some(Setting::TouchPoint(point, colour::of_velocity(velocity)))
}

/// What a deck of this kind takes, in words.
pub fn taken(kind: Kind) -> String {
    let last = FIRST_KEY + kind.key_count() - 1;
    format!(
        "a {} takes notes {FIRST_KEY} to {last}, whose velocity is the key's colour, and controller {BRIGHTNESS}, its brightness",
        name(kind)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(kind: Kind, update: Update) -> Vec<[u8; 3]> {
        let mut all = Vec::new();
        messages(kind, update, &mut |message| all.push(message));
        all
    }

    #[test]
    fn keys_are_notes_row_by_row() {
        assert_eq!(sent(Kind::Mk2, Update::ButtonDown(0)), [[0x90, 36, 127]]);
        assert_eq!(sent(Kind::Xl, Update::ButtonUp(31)), [[0x80, 67, 0]]);
        assert_eq!(sent(Kind::Mk2, Update::ButtonDown(15)), [[0; 3]; 0], "an MK.2 has fifteen");
        assert_eq!(sent(Kind::Neo, Update::TouchPointDown(1)), [[0x90, 33, 127]]);
    }

    #[test]
    fn dials_turn_by_steps_and_the_strip_has_places() {
        let plus = |update| sent(Kind::Plus, update);
        assert_eq!(plus(Update::EncoderTwist(0, 1)), [[0xB0, 16, 1]]);
        assert_eq!(plus(Update::EncoderTwist(3, -2)), [[0xB0, 19, 126]]);
        assert_eq!(plus(Update::EncoderTwist(3, i8::MIN)), [[0xB0, 19, 65]], "as far as one message can say");
        assert_eq!(plus(Update::EncoderTwist(1, 0)), [[0; 3]; 0]);
        assert_eq!(plus(Update::EncoderDown(3)), [[0x90, 27, 127]]);
        assert_eq!(plus(Update::TouchScreenPress(0, 50)), [[0xB0, 24, 0]]);
        assert_eq!(plus(Update::TouchScreenLongPress(799, 50)), [[0xB0, 25, 127]]);
        assert_eq!(plus(Update::TouchScreenPress(u16::MAX, 0)), [[0xB0, 24, 127]], "from beyond its edge");
        assert_eq!(plus(Update::TouchScreenSwipe((700, 0), (10, 0))), [[0x90, 22, 127], [0x80, 22, 0]]);
        assert_eq!(plus(Update::TouchScreenSwipe((10, 0), (700, 0))), [[0x90, 23, 127], [0x80, 23, 0]]);
    }

    #[test]
    fn a_key_is_lit_by_its_own_note() {
        for (message, expected) in [
            (&[0x90, 36, 96][..], Some(Setting::Key(0, 96))),
            (&[0x95, 50, 3], Some(Setting::Key(14, 3))),
            (&[0x80, 36, 64], Some(Setting::Key(0, 0))),
            (&[0x90, 36, 0], Some(Setting::Key(0, 0))),
            (&[0xB0, 7, 127], Some(Setting::Brightness(100))),
            (&[0xB0, 7, 0], Some(Setting::Brightness(0))),
            (&[0xBF, 123, 0], Some(Setting::Dark)),
            (&[0x90, 51, 1], None),
            (&[0x90, 35, 1], None),
            (&[0x90, 32, 1], None),
            (&[0xF0, 0x7D, 0xF7], None),
            (&[0xF8], None),
            (&[], None),
        ] {
            assert_eq!(setting(Kind::Mk2, message), expected, "{message:02x?}");
        }
        assert_eq!(setting(Kind::Neo, &[0x90, 33, 127]), Some(Setting::TouchPoint(1, [255; 3])));
        assert!(taken(Kind::Mk2).contains("notes 36 to 50"), "{}", taken(Kind::Mk2));
    }
}
