//! What a person calls the numbers of an event: `note-on 36 100 ch 9` is about C2 on channel 10.

use conductor_names::{channel, controller, gamepad, key, machine_control, note};

/// The names of the numbers in an event that is written in the [line language](crate::timeline), as a comment of that
/// language: `# C2, ch10`. `None` if nothing in it has a name that the text does not say.
pub fn comment(event: &str) -> Option<String> {
    let mut words = event.split(' ');
    let message = words.next()?;
    let number = || words.clone().next()?.parse::<u8>().ok();
    let named = match message {
        "note-on" | "note-off" | "poly-aftertouch" => number().map(note::name),
        "cc" => number().and_then(controller::name).map(str::to_owned),
        "gamepad-button" => number().and_then(gamepad::button_name).map(str::to_owned),
        "gamepad-stick" | "gamepad-trigger" => number().and_then(gamepad::axis_name).map(str::to_owned),
        "key" => words.clone().next().and_then(|number| number.parse().ok()).and_then(key::name).map(str::to_owned),
        "sysex" => {
            let bytes = words.clone().map(|byte| u8::from_str_radix(byte, 16)).collect::<Result<Vec<u8>, _>>();
            bytes.ok().and_then(|bytes| machine_control::name(&bytes))
        }
        _ => None,
    };
    let on = event.rsplit_once(" ch ").and_then(|(_, number)| number.parse().ok()).map(channel::name);
    match (named, on) {
        (None, None) => None,
        (named, on) => Some(format!("# {}", named.into_iter().chain(on).collect::<Vec<_>>().join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_have_names_are_called_by_them() {
        for (event, expected) in [
            ("note-on 36 100 ch 9", "# C2, ch10"),
            ("cc 64 127", "# sustain"),
            ("cc 3 1 ch 1", "# ch2"),
            ("gamepad-button 128 down", "# south"),
            ("gamepad-stick 129 0.5", "# left y"),
            ("key 439 down", "# f13"),
            ("sysex F0 7F 7F 06 02 F7", "# mmc play"),
        ] {
            assert_eq!(comment(event).as_deref(), Some(expected), "{event}");
        }
        for event in ["cc 3 1", "clock", "osc /a 1", "program 3", "sysex F0 F7", ""] {
            assert_eq!(comment(event), None, "{event}");
        }
    }

    #[test]
    fn a_comment_keeps_the_line_what_it_was() {
        let line = "0ms pads note-on 36 100 ch 9";
        let commented = format!("{line} {}", comment("note-on 36 100 ch 9").unwrap());
        let read = |text: &str| text.parse::<crate::Timeline>().map(|timeline| timeline.to_string());
        assert_eq!(read(&commented), read(line));
        assert_eq!(read("0ms pads note-on C2 100 ch10"), read(line));
    }
}
