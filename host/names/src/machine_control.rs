//! Names of the commands of MIDI Machine Control (MMC), for all devices: `mmc play`.

/// Each command with its number, as the MMC specification has them.
const COMMANDS: &[(u8, &str)] = &[
    (0x01, "stop"),
    (0x02, "play"),
    (0x03, "deferred play"),
    (0x04, "fast forward"),
    (0x05, "rewind"),
    (0x06, "record"),
    (0x06, "record strobe"),
    (0x07, "record exit"),
    (0x08, "record pause"),
    (0x09, "pause"),
    (0x0A, "eject"),
    (0x0B, "chase"),
    (0x0D, "reset"),
];

/// The whole message of a command, for all devices (7F): `"mmc play"` is `F0 7F 7F 06 02 F7`. Case does not count, and
/// `_` and `-` are spaces. `None` if it is no such name.
pub fn message(name: &str) -> Option<[u8; 6]> {
    let name = super::plain(name);
    let command = name.strip_prefix("mmc ")?;
    let (number, _) = COMMANDS.iter().find(|(_, known)| *known == command)?;
    Some([0xF0, 0x7F, 0x7F, 0x06, *number, 0xF7])
}

/// The name of a message of MMC, to whichever device it is: `mmc play`.
pub fn name(message: &[u8]) -> Option<String> {
    let [0xF0, 0x7F, _, 0x06, number, 0xF7] = message else { return None };
    COMMANDS.iter().find(|(known, _)| known == number).map(|(_, name)| format!("mmc {name}"))
}

/// Every command's name, without `mmc`.
pub fn commands() -> impl Iterator<Item = &'static str> {
    COMMANDS.iter().map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_a_message() {
        assert_eq!(message("MMC Play"), Some([0xF0, 0x7F, 0x7F, 0x06, 0x02, 0xF7]));
        assert_eq!(name(&[0xF0, 0x7F, 0x01, 0x06, 0x05, 0xF7]).as_deref(), Some("mmc rewind"));
        assert_eq!(
            (message("play"), message("mmc"), message("mmc dance"), name(&[0xF0, 0xF7])),
            (None, None, None, None)
        );
        assert!(commands().all(|command| message(&format!("mmc {command}")).is_some()));
    }
}
