//! What the arguments of a call say about devices: which ones, and which bytes.
//!
//! The host reads the arguments itself: a person agrees to what stands here, and the tool is then held to it.

use serde_json::Value;

use conductor_terminal::excerpt;

/// The arguments that name a device.
const DEVICE: [&str; 6] = ["target", "device", "binding", "port", "alias", "output"];
/// The arguments that are bytes: hex digits, or numbers from 0 to 255.
const BYTES: [&str; 4] = ["bytes", "message", "messages", "sysex"];

/// What a call would do that a person did not agree to, with what was agreed to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAgreed {
    /// It reaches another device.
    #[error("a person agreed to a call for {agreed}, which does not reach {device:?}")]
    Device {
        /// The devices that the arguments name.
        agreed: String,
        /// The other one.
        device: String,
    },
    /// It sends other bytes.
    #[error("a person agreed to the bytes {agreed}, and these are others: {sent}")]
    Bytes {
        /// The messages that the arguments have, in hex.
        agreed: String,
        /// The beginning of the other one.
        sent: String,
    },
}

/// The devices and the bytes that a call's arguments name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Named {
    /// Devices; empty if the arguments name none.
    pub devices: Vec<String>,
    /// Messages; empty if the arguments have none.
    pub messages: Vec<Vec<u8>>,
}

impl Named {
    /// What the arguments of a call, an object, name.
    pub fn of(args: &Value) -> Self {
        let mut named = Self::default();
        for key in DEVICE {
            match &args[key] {
                Value::String(name) if !name.trim().is_empty() => named.devices.push(name.clone()),
                Value::Array(names) => {
                    named.devices.extend(names.iter().filter_map(Value::as_str).map(str::to_owned));
                }
                _ => {}
            }
        }
        for key in BYTES {
            match (&args[key], bytes(&args[key])) {
                (_, Some(message)) => named.messages.push(message),
                (Value::Array(list), None) => named.messages.extend(list.iter().filter_map(bytes)),
                _ => {}
            }
        }
        named
    }

    /// Whether a call with these arguments may reach the device, and send the message there.
    ///
    /// # Errors
    /// [`NotAgreed`]. What the arguments don't name is not limited by them.
    pub fn allows(&self, device: &str, message: Option<&[u8]>) -> Result<(), NotAgreed> {
        if !self.devices.is_empty() && !self.devices.iter().any(|named| named == device) {
            return Err(NotAgreed::Device { agreed: self.devices.join(", "), device: excerpt(device, 64) });
        }
        match message {
            Some(message) if !self.messages.is_empty() && !self.messages.iter().any(|named| named == message) => {
                let (sent, agreed) = (hex(&message[..message.len().min(16)]), self.messages.iter().map(|one| hex(one)));
                let agreed = excerpt(&agreed.collect::<Vec<_>>().join(", "), 256);
                Err(NotAgreed::Bytes { agreed, sent })
            }
            _ => Ok(()),
        }
    }
}

/// The bytes that a value stands for; `None` if it stands for none.
fn bytes(value: &Value) -> Option<Vec<u8>> {
    let found: Option<Vec<u8>> = match value {
        Value::String(text) => {
            let digits: Option<Vec<u8>> = text
                .chars()
                .filter(|c| !c.is_whitespace())
                .map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok()))
                .collect();
            let digits = digits.filter(|digits| digits.len() % 2 == 0)?;
            Some(digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
        }
        Value::Array(list) => list.iter().map(|one| one.as_u64().and_then(|byte| u8::try_from(byte).ok())).collect(),
        _ => None,
    };
    found.filter(|bytes| !bytes.is_empty())
}

/// Bytes for people: `F0 7E F7`.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn devices_and_bytes_are_found_in_every_spelling() {
        for args in [
            json!({ "target": "synth", "bytes": "90 3C 64" }),
            json!({ "device": "synth", "bytes": "903c64" }),
            json!({ "port": "synth", "message": [144, 60, 100] }),
            json!({ "alias": ["synth"], "messages": [[144, 60, 100]] }),
            json!({ "binding": "synth", "messages": ["90 3c64"] }),
        ] {
            let named = Named::of(&args);
            assert_eq!(named.devices, ["synth"], "{args}");
            assert_eq!(named.messages, [vec![0x90, 0x3c, 0x64]], "{args}");
        }
        assert_eq!(
            Named::of(&json!({ "target": " ", "bytes": "xy", "message": [256], "how": "midi" })),
            Named::default()
        );
        assert_eq!(hex(&[0xf0, 0x7e, 0xf7]), "F0 7E F7");
    }

    #[test]
    fn a_call_reaches_what_it_names_and_nothing_else() {
        let named = Named::of(&json!({ "target": "synth", "bytes": "90 3C 64" }));
        assert!(named.allows("synth", Some(&[0x90, 0x3c, 0x64])).is_ok());
        assert!(named.allows("lights", Some(&[0x90, 0x3c, 0x64])).is_err());
        assert!(named.allows("synth", Some(&[0x90, 0x3c, 0x65])).is_err());
        assert!(named.allows("synth", None).is_ok() && named.allows("lights", None).is_err());
        assert!(Named::default().allows("any", Some(&[1])).is_ok());
    }
}
