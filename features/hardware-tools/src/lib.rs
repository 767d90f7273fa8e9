//! Tools that send to devices. A person confirms each call, after seeing its bytes.

use conductor_feature::host_state::{Direction, PortState};
use conductor_feature::json::{answer, register};
use conductor_feature::{Access, Context, Error, HardwareIoTools, Invocation, Lifecycle, Reader, tool_registrar};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

struct HardwareTools;

impl Lifecycle for HardwareTools {
    fn install(ctx: &Context) -> Result<(), Error> {
        let tools = tool_registrar::Registrar::open(ctx)?;
        register::<Send, Sent>(&tools, "conductor_send_midi")?;
        register::<Send, Sent>(&tools, "conductor_send_sysex")?;
        register::<Device, Sent>(&tools, "conductor_device_reset")?;
        register::<Device, Probed>(&tools, "conductor_probe_device_identity")
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Send {
    /// An output: an alias, or a port's name.
    target: String,
    /// Hex: "90 3C 64".
    bytes: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Device {
    /// An output: an alias, or a port's name.
    target: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Sent {
    target: String,
    messages: usize,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Probed {
    /// None: no answer within a second.
    identity: Option<Identity>,
    next: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Identity {
    manufacturer: [u8; 3],
    family: u16,
    model: u16,
}

/// Bytes from hex digits, with blanks or without.
fn bytes(text: &str) -> Result<Vec<u8>, Error> {
    let wrong = || Error::Invalid(format!("{text:?} is not hex; write two digits a byte, such as \"90 3C 64\""));
    let digits: Option<Vec<u8>> = text
        .chars()
        .filter(|c| !c.is_whitespace())
        .map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok()))
        .collect();
    let digits = digits.filter(|digits| !digits.is_empty() && digits.len() % 2 == 0).ok_or_else(wrong)?;
    Ok(digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

/// What to say where an output is not there: which there are.
fn with_outputs(error: Error, reader: &Reader) -> Error {
    let Error::Unavailable(text) = error else { return error };
    let ports = reader.ports().unwrap_or_default();
    let open = ports.iter().filter(|port| port.direction == Direction::Output && matches!(port.state, PortState::Open));
    let open: Vec<&str> = open.map(|port| port.device.as_str()).collect();
    let there = if open.is_empty() { "no output is open".to_owned() } else { format!("open are {}", open.join(", ")) };
    Error::Unavailable(format!("{text}; {there}"))
}

/// The messages that end everything on every channel: sound off, notes off, controllers to their rest.
fn reset() -> impl Iterator<Item = [u8; 3]> {
    (0..16).flat_map(|channel| [120, 123, 121].map(|controller| [0xB0 | channel, controller, 0]))
}

impl HardwareIoTools for HardwareTools {
    fn call(name: String, args: String, _: &Invocation, reader: &Reader, devices: &Access) -> Result<String, Error> {
        let send = |target: String, messages: &[&[u8]]| -> Result<Sent, Error> {
            for message in messages {
                devices.send_midi(&target, message).map_err(|error| with_outputs(error, reader))?;
            }
            Ok(Sent { target, messages: messages.len() })
        };
        match name.as_str() {
            "conductor_send_midi" => answer(&args, |Send { target, bytes: text }| {
                let message = bytes(&text)?;
                if message[0] == 0xF0 {
                    return Err(Error::Invalid("this is SysEx; conductor_send_sysex sends it".into()));
                }
                send(target, &[&message])
            }),
            "conductor_send_sysex" => answer(&args, |Send { target, bytes: text }| {
                let message = bytes(&text)?;
                if message[0] != 0xF0 || message.last() != Some(&0xF7) {
                    return Err(Error::Invalid(format!("{text:?} is no SysEx; it begins with F0 and ends with F7")));
                }
                send(target, &[&message])
            }),
            "conductor_device_reset" => answer(&args, |Device { target }| {
                let messages: Vec<[u8; 3]> = reset().collect();
                send(target, &messages.iter().map(<[u8; 3]>::as_slice).collect::<Vec<_>>())
            }),
            "conductor_probe_device_identity" => answer(&args, |Device { target }| {
                let found = devices.probe_identity(&target).map_err(|error| with_outputs(error, reader))?;
                let next = match found {
                    Some(_) => "a sys_ex_identity matcher with these numbers matches this device",
                    None => "it does not identify itself; conductor_suggest_binding matches it by its port",
                };
                let identity = found.map(|found| {
                    let (one, two, three) = found.manufacturer;
                    Identity { manufacturer: [one, two, three], family: found.family, model: found.model }
                });
                Ok(Probed { identity, next: next.to_owned() })
            }),
            _ => Err(Error::Invalid(format!("there is no tool {name}"))),
        }
    }
}

conductor_feature::feature!(HardwareTools, "../feature.toml", [hardware_io_tools]);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_pairs_of_digits() {
        assert_eq!(bytes("90 3C 64").ok(), Some(vec![0x90, 0x3c, 0x64]));
        assert_eq!(bytes("F07e7f0601f7").ok(), Some(vec![0xf0, 0x7e, 0x7f, 6, 1, 0xf7]));
        for wrong in ["", "9", "90 3", "xy", "90,3C"] {
            assert!(matches!(bytes(wrong), Err(Error::Invalid(_))), "{wrong}");
        }
    }

    #[test]
    fn a_reset_reaches_every_channel() {
        let messages: Vec<_> = reset().collect();
        assert_eq!(messages.len(), 48);
        assert_eq!((messages[0], messages[47]), ([0xB0, 120, 0], [0xBF, 121, 0]));
    }
}
