//! Bindings in a configuration: names (aliases) for devices, and matchers that recognize a device.
//!
//! As in `model`, the attributes are the rules and the doc comments are read by users.

use schemars::{JsonSchema, Schema};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

use conductor_text_formats::IpNetwork;

/// A name for a device, by which mappings and actions refer to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Binding {
    /// The name. Not empty, and of this binding alone.
    #[schemars(length(min = 1), extend("x-names" = "binding"))]
    pub alias: String,

    /// What a person wants to remember about the device. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,

    /// Whether the binding is used; `false` mutes its device for good. Default: true.
    #[serde(default = "yes")]
    pub enabled: bool,

    /// The most events that the device may send in a second, 1 to 1000000. Beyond that, values of knobs,
    /// faders and sticks are merged, so that only the latest counts; notes and buttons are never left out.
    /// Default: 10000.
    #[serde(default = "usual_rate")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_events_per_sec: u32,

    /// How the device is reached.
    #[serde(flatten)]
    pub connection: Connection,
}

/// How a bound device is reached, by `protocol`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "protocol", rename_all = "lowercase")]
#[schemars(transform = midi_unless_said)]
pub enum Connection {
    /// MIDI ports of this machine.
    Midi {
        /// What tells the device's ports, in both directions; any one of these is enough. Default: none.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        matchers: Vec<Matcher>,

        /// A short form: without `matchers`, the port's name has to contain this text. Default: none.
        /// Reading adds the matcher that it stands for, so that only `matchers` need be looked at.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(length(min = 1))]
        name: Option<String>,

        /// What tells the port that is listened to, beside `matchers`. Default: nothing more.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<Side>,

        /// What tells the port that is sent to, beside `matchers`. Default: nothing more.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<Side>,

        /// The MIDI channels that the device sends on, each 0 to 15, where it shares a port with others:
        /// only they belong to this binding. Default: all, and messages that have no channel.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(length(min = 1, max = 16), inner(range(min = 0, max = 15)))]
        channels: Option<Vec<u8>>,

        /// Makes a port of Conductor's own, called by the alias, that other programs connect to: one that
        /// they send to (`input`), one that they listen to (`output`), or `both`. Not on Windows.
        /// Default: none; the device's own ports are looked for.
        #[serde(rename = "virtual", default, skip_serializing_if = "Option::is_none")]
        virtual_port: Option<VirtualPort>,

        /// The most bytes that are sent to the device in a second, 100 to 10000000: 3125 is what a DIN cable carries. What
        /// comes faster waits; of a controller that moves meanwhile the latest value counts. Default: as fast as they come.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 100, max = 10_000_000))]
        max_bytes_per_sec: Option<u32>,

        /// How long the device needs after a SysEx message, in milliseconds, 0 to 10000. Default: 0.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 0, max = 10_000))]
        after_sysex_ms: Option<u16>,
    },

    /// A gamepad.
    Hid {
        /// What tells the gamepad; any one of these is enough. Default: none.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        matchers: Vec<Matcher>,

        /// A short form, as in MIDI bindings. Default: none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(length(min = 1))]
        name: Option<String>,

        /// What tells the gamepad, beside `matchers`. Default: nothing more.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<Side>,

        /// How far a stick has to leave its middle before it counts, and a trigger its rest, of the whole
        /// way: 0 to 0.9. What is beyond is stretched over the whole range. Default: 0.1.
        #[serde(default = "usual_dead_zone")]
        #[schemars(range(min = 0.0, max = 0.9))]
        dead_zone: f32,
    },

    /// A computer keyboard or a macro pad; on Linux. It is opened for this binding alone: `listen_mode = "all"` and
    /// learning open none that no binding asks for.
    Keyboard {
        /// What tells the keyboard; any one of these is enough. Default: none.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        matchers: Vec<Matcher>,

        /// A short form, as in MIDI bindings. Default: none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(length(min = 1))]
        name: Option<String>,

        /// Whether its keys come here alone, and type nothing elsewhere. Escape, Backspace and Enter held together let
        /// go of it; so do muting it, a configuration with mistakes, and the end of Conductor. Default: false.
        #[serde(default)]
        grab: bool,
    },

    /// A mouse, of which buttons and wheel count; on Linux. It is opened for this binding alone, as a keyboard is.
    Mouse {
        /// What tells the mouse; any one of these is enough. Default: none.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        matchers: Vec<Matcher>,

        /// A short form, as in MIDI bindings. Default: none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(length(min = 1))]
        name: Option<String>,

        /// Whether it is for Conductor alone, and moves no pointer. It is let go as a keyboard is. Default: false.
        #[serde(default)]
        grab: bool,
    },

    /// An OSC endpoint.
    Osc {
        /// Where OSC packets are received. Default: nowhere.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<OscInput>,

        /// Where OSC packets for the device go to: `OscSend` takes the alias as its `target`. Default: nowhere.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<Destination>,
    },

    /// An Art-Net endpoint: DMX512 over the network.
    ArtNet {
        /// Where Art-Net packets are received. Default: nowhere.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<ArtNetInput>,

        /// Where Art-Net packets for the device go to: `ArtNetSend` takes the alias as its `target`.
        /// Default: nowhere.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<Destination>,
    },
}

impl<'de> Deserialize<'de> for Connection {
    /// Serde knows no default for the tag of an enum, so the fields of all protocols are read side by side.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "lowercase")]
        enum Protocol {
            Midi,
            Hid,
            Keyboard,
            Mouse,
            Osc,
            ArtNet,
        }

        #[derive(Deserialize)]
        struct Fields {
            protocol: Option<Protocol>,
            #[serde(default)]
            matchers: Vec<Matcher>,
            name: Option<String>,
            input: Option<AnyEnd>,
            output: Option<AnyEnd>,
            channels: Option<Vec<u8>>,
            #[serde(rename = "virtual")]
            virtual_port: Option<VirtualPort>,
            max_bytes_per_sec: Option<u32>,
            after_sysex_ms: Option<u16>,
            dead_zone: Option<f32>,
            #[serde(default)]
            grab: bool,
        }

        /// The input and the output of any protocol: its fields say which.
        #[derive(Deserialize)]
        struct AnyEnd {
            matchers: Option<Vec<Matcher>>,
            host: Option<String>,
            port: Option<u16>,
            #[serde(default)]
            transport: OscTransport,
            #[serde(default)]
            allow: Vec<IpNetwork>,
        }

        impl AnyEnd {
            fn side(self) -> Side {
                Side { matchers: self.matchers.unwrap_or_default() }
            }

            fn host(&self) -> String {
                self.host.clone().unwrap_or_else(loopback)
            }

            fn required_port<E: Error>(&self) -> Result<u16, E> {
                self.port.ok_or_else(|| E::missing_field("port"))
            }

            fn osc<E: Error>(self) -> Result<OscInput, E> {
                let (host, port) = (self.host(), self.required_port()?);
                Ok(OscInput { host, port, transport: self.transport, allow: self.allow })
            }

            fn artnet(self) -> ArtNetInput {
                let (host, port) = (self.host(), self.port.unwrap_or_else(artnet_port));
                ArtNetInput { host, port, allow: self.allow }
            }

            fn destination<E: Error>(self) -> Result<Destination, E> {
                Ok(Destination { host: self.host(), port: self.required_port()? })
            }
        }

        let fields = Fields::deserialize(deserializer)?;
        let (mut matchers, name) = (fields.matchers, fields.name);
        if let (true, Some(name)) = (matchers.is_empty(), &name) {
            matchers.push(Matcher::NameContains { value: name.clone() });
        }
        let (input, output) = (fields.input, fields.output);
        Ok(match fields.protocol.unwrap_or(Protocol::Midi) {
            Protocol::Midi => Self::Midi {
                matchers,
                name,
                input: input.map(AnyEnd::side),
                output: output.map(AnyEnd::side),
                channels: fields.channels,
                virtual_port: fields.virtual_port,
                max_bytes_per_sec: fields.max_bytes_per_sec,
                after_sysex_ms: fields.after_sysex_ms,
            },
            Protocol::Hid => {
                let dead_zone = fields.dead_zone.unwrap_or_else(usual_dead_zone);
                Self::Hid { matchers, name, input: input.map(AnyEnd::side), dead_zone }
            }
            Protocol::Keyboard => Self::Keyboard { matchers, name, grab: fields.grab },
            Protocol::Mouse => Self::Mouse { matchers, name, grab: fields.grab },
            Protocol::Osc => Self::Osc {
                input: input.map(AnyEnd::osc).transpose()?,
                output: output.map(AnyEnd::destination).transpose()?,
            },
            Protocol::ArtNet => {
                Self::ArtNet { input: input.map(AnyEnd::artnet), output: output.map(AnyEnd::destination).transpose()? }
            }
        })
    }
}

/// Says in the schema that a binding without `protocol` is a MIDI one.
fn midi_unless_said(schema: &mut Schema) {
    let midi = schema.get_mut("oneOf").and_then(|protocols| protocols.get_mut(0));
    if let Some(midi) = midi {
        if let Some(required) = midi.get_mut("required").and_then(|keys| keys.as_array_mut()) {
            required.retain(|key| key != "protocol");
        }
        if let Some(tag) = midi.pointer_mut("/properties/protocol") {
            tag["default"] = "midi".into();
        }
    }
}

/// What tells a device's port of one direction.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Side {
    /// Any one of these is enough.
    pub matchers: Vec<Matcher>,
}

/// Which virtual ports are made, seen from Conductor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum VirtualPort {
    /// One that other programs send to.
    Input,
    /// One that other programs listen to.
    Output,
    /// Both.
    Both,
}

/// A condition on a port. Where a port matches several bindings, the most specific condition decides; the
/// types stand here in this order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
#[schemars(transform = super::spelling::also_in_pascal_case)]
pub enum Matcher {
    /// CoreMIDI (macOS) gave the port this number, which it keeps.
    CoreMidiUniqueId {
        /// The number.
        #[schemars(range(min = i32::MIN, max = i32::MAX))]
        value: i32,
    },
    /// The device answers so to a SysEx identity request; see `probe_identity`.
    SysExIdentity {
        /// The maker's three bytes; a one-byte id has two zeros behind it.
        #[schemars(inner(range(min = 0, max = 127)))]
        manufacturer: [u8; 3],
        /// The family code, 0 to 16383.
        #[schemars(range(min = 0, max = 16_383))]
        family: u16,
        /// The model (family member) code, 0 to 16383.
        #[schemars(range(min = 0, max = 16_383))]
        model: u16,
    },
    /// The port is of this USB device.
    UsbIdentifier {
        /// The vendor's id, 0 to 65535: `0x17cc`.
        vendor_id: u16,
        /// The product's id, 0 to 65535.
        product_id: u16,
        /// The serial number, where the product has one. Default: any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        serial: Option<String>,
    },
    /// The port is of the USB device in this socket, of any kind.
    UsbPath {
        /// The bus and the hubs' ports, as `conductor ports --json` shows them: `"1-2.4"`.
        #[schemars(length(min = 1))]
        value: String,
    },
    /// The port is of the USB device at this place. The address changes with every plugging: `usb_path` lasts.
    UsbTopology {
        /// The bus, 0 to 255.
        bus: u8,
        /// The address on the bus, 0 to 255.
        address: u8,
    },
    /// The whole name is `value`, with the same case.
    ExactName {
        /// The name, not empty.
        #[schemars(length(min = 1))]
        value: String,
    },
    /// The system's own key for the port is `value`, as `conductor ports --json` shows it.
    PlatformId {
        /// The key, not empty.
        #[schemars(length(min = 1))]
        value: String,
    },
    /// The name contains `value`; letter case does not count.
    NameContains {
        /// A part of the name, not empty.
        #[schemars(length(min = 1))]
        value: String,
    },
    /// The name matches the regular expression `value`, which may match anywhere in it.
    NameRegex {
        /// The expression, in the syntax of the Rust crate `regex`, 1 to 256 characters.
        #[schemars(length(min = 1, max = 256))]
        value: String,
    },
}

/// Where OSC packets are received.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OscInput {
    /// The local address to listen on; `0.0.0.0` lets other machines in. Default: `127.0.0.1`.
    #[serde(default = "loopback")]
    #[schemars(length(min = 1))]
    pub host: String,

    /// The port to listen on, 1 to 65535.
    #[schemars(range(min = 1, max = 65535))]
    pub port: u16,

    /// How packets come: `udp`, or `tcp` with SLIP framing as in OSC 1.1. Default: `udp`.
    #[serde(default)]
    pub transport: OscTransport,

    /// The only senders that are heard: addresses (`"192.168.1.20"`) and networks (`"192.168.1.0/24"`).
    /// Default: none, which allows all senders.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<IpNetwork>,
}

/// How OSC packets come through the network.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OscTransport {
    /// One packet in each datagram.
    #[default]
    Udp,
    /// A stream of packets, framed by SLIP.
    Tcp,
}

/// Where Art-Net packets are received.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ArtNetInput {
    /// The local address to listen on; `0.0.0.0` lets other machines in. Default: `127.0.0.1`.
    #[serde(default = "loopback")]
    #[schemars(length(min = 1))]
    pub host: String,

    /// The UDP port to listen on, 1 to 65535; Art-Net's own is 6454. Default: 6454.
    #[serde(default = "artnet_port")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: u16,

    /// The only senders that are heard: addresses (`"192.168.1.20"`) and networks (`"192.168.1.0/24"`).
    /// Default: none, which allows all senders.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<IpNetwork>,
}

/// Where packets go to, by UDP.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Destination {
    /// A name or an address. Default: `127.0.0.1`.
    #[serde(default = "loopback")]
    #[schemars(length(min = 1))]
    pub host: String,

    /// The UDP port, 1 to 65535.
    #[schemars(range(min = 1, max = 65535))]
    pub port: u16,
}

fn yes() -> bool {
    true
}

fn usual_rate() -> u32 {
    conductor_stdx::device_defaults::USUAL_RATE
}

fn usual_dead_zone() -> f32 {
    conductor_stdx::device_defaults::USUAL_DEAD_ZONE
}

fn loopback() -> String {
    "127.0.0.1".to_owned()
}

fn artnet_port() -> u16 {
    6454
}
