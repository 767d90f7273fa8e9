//! Triggers: which event a mapping waits for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::clock::TransportChange;
use conductor_quantity::{
    Button, ButtonRange, Channel, CoarseRange, ControllerRange, DataBounds, DmxBounds, DmxRange, KeyNumber, KeyRange,
    Note, NoteRange, NumberRange, StickRange, TriggerRange, WideBounds,
};
use conductor_text_formats::{HexBytes, SysExPrefix};

/// An event that a mapping waits for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Trigger {
    /// Only events of this device: the alias of a binding, or the name of a port. Default: any device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1), extend("x-mentions" = "binding"))]
    pub device: Option<String>,

    /// Which event it has to be.
    #[serde(flatten)]
    pub event: TriggerEvent,
}

/// Which event a [`Trigger`] waits for, by `type`.
///
/// MIDI channels count from 0 where they are numbers, as on the wire, and from 1 where they are named: channel 0 is
/// `"ch1"`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type")]
#[schemars(transform = super::spelling::also_in_snake_case)]
pub enum TriggerEvent {
    /// A note is played.
    Note {
        /// The note or notes, 0 to 127, or by name: `"C2"`, `"F#2..Bb3"`; C4 is middle C, 60.
        note: NoteRange,
        /// The velocities that count, each 0 to 127. Default: `[0, 127]`.
        #[serde(default)]
        velocity_range: DataBounds,
        /// Which edge of the note counts. Default: `press`; `both` where the action forwards the
        /// note, since a note whose end is missing never ends.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        on: Option<Edge>,
        /// Only this MIDI channel, 0 to 15 or `"ch1"` to `"ch16"`. Default: any channel.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        channel: Option<Channel>,
    },

    /// A note between two others is played.
    #[schemars(extend("x-ascending" = ["note_min", "note_max"]))]
    NoteRange {
        /// The lowest note, 0 to 127.
        note_min: Note,
        /// The highest note, 0 to 127, not below `note_min`.
        note_max: Note,
        /// The velocities that count, each 0 to 127. Default: `[0, 127]`.
        #[serde(default)]
        velocity_range: DataBounds,
        /// Which edge of the note counts. Default: `press`; `both` where the action forwards the
        /// note, since a note whose end is missing never ends.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        on: Option<Edge>,
        /// Only this MIDI channel, 0 to 15 or `"ch1"` to `"ch16"`. Default: any channel.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        channel: Option<Channel>,
    },

    /// A note is pressed with a velocity between two others.
    #[schemars(extend("x-ascending" = ["min", "max"]))]
    VelocityRange {
        /// The note or notes, 0 to 127.
        note: NoteRange,
        /// The lowest velocity, 0 to 127.
        #[schemars(range(min = 0, max = 127))]
        min: u8,
        /// The highest velocity, 0 to 127, not below `min`.
        #[schemars(range(min = 0, max = 127))]
        max: u8,
        /// Only this MIDI channel, 0 to 15 or `"ch1"` to `"ch16"`. Default: any channel.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        channel: Option<Channel>,
    },

    /// A controller is moved (control change).
    CC {
        /// The controller or controllers, 0 to 127, or by name: `"modulation"`.
        cc: ControllerRange,
        /// The values that count, each 0 to 127. Default: `[0, 127]`.
        #[serde(default)]
        value_range: DataBounds,
        /// Only this MIDI channel, 0 to 15 or `"ch1"` to `"ch16"`. Default: any channel.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        channel: Option<Channel>,
    },

    /// The pressure on the whole channel changes.
    Aftertouch {
        /// The pressures that count, each 0 to 127. Default: `[0, 127]`.
        #[serde(default)]
        value_range: DataBounds,
        /// Only this MIDI channel, 0 to 15 or `"ch1"` to `"ch16"`. Default: any channel.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        channel: Option<Channel>,
    },

    /// The pressure on a held note changes.
    PolyAftertouch {
        /// The note or notes, 0 to 127.
        note: NoteRange,
        /// The pressures that count, each 0 to 127. Default: `[0, 127]`.
        #[serde(default)]
        value_range: DataBounds,
        /// Only this MIDI channel, 0 to 15 or `"ch1"` to `"ch16"`. Default: any channel.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        channel: Option<Channel>,
    },

    /// The pitch wheel is moved.
    PitchBend {
        /// The positions that count, each 0 to 16383; 8192 is the middle. Default: `[0, 16383]`.
        #[serde(default)]
        value_range: WideBounds,
        /// Only this MIDI channel, 0 to 15 or `"ch1"` to `"ch16"`. Default: any channel.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        channel: Option<Channel>,
    },

    /// A program is chosen (program change).
    ProgramChange {
        /// The program or programs, 0 to 127, counted from 0.
        program: NumberRange,
        /// Only this MIDI channel, 0 to 15 or `"ch1"` to `"ch16"`. Default: any channel.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        channel: Option<Channel>,
    },

    /// A SysEx message arrives that begins in a certain way.
    #[schemars(extend("x-same-length" = ["prefix", "mask"]))]
    SysEx {
        /// The first bytes in hex, from F0 on; `??` stands for any byte. Or a command of machine control: `"mmc play"`.
        prefix: SysExPrefix,
        /// Which bits of `prefix` count, in hex: as many bytes as `prefix` has. Default: all of them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mask: Option<HexBytes>,
    },

    /// Any MIDI message, for forwarding whole streams.
    MidiAny {
        /// Only this MIDI channel, 0 to 15 or `"ch1"` to `"ch16"`. Default: any channel, and messages without one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        channel: Option<Channel>,
    },

    /// An OSC message to one address, or to an address pattern of OSC 1.0 that matches it. What OSC 1.1 adds to
    /// patterns (`//`) is not known, and a message with a number that is none (NaN, infinity) is not taken.
    OscMessage {
        /// The address, from `/` on.
        #[schemars(extend("format" = "osc-address"))]
        address: String,
    },

    /// An OSC message to any address that a pattern matches.
    OscPattern {
        /// An OSC 1.0 address pattern, such as `/fader/*`.
        #[schemars(extend("format" = "osc-pattern"))]
        pattern: String,
    },

    /// An OSC message with a number between two others.
    #[schemars(extend("x-ascending" = ["min", "max"]))]
    OscArgRange {
        /// The address, or an OSC 1.0 address pattern.
        #[schemars(extend("format" = "osc-pattern"))]
        address: String,
        /// Which argument is looked at, counted from 0, up to 255. Default: 0.
        #[serde(default)]
        #[schemars(range(min = 0, max = 255))]
        arg: u8,
        /// The lowest number that counts, in the unit of the argument.
        min: f64,
        /// The highest number that counts, not below `min`.
        max: f64,
    },

    /// A gamepad's button is pressed.
    GamepadButton {
        /// The button or buttons, 128 to 144: south 128, east, west, north, dpad up 132, down, left,
        /// right, left bumper 136, right, left stick press 138, right, start 140, select, mode, left trigger
        /// press 143, right. By these names, or those of a family: `"south"`, `"xbox a"`, `"cross"`, `"nintendo b"`.
        button: ButtonRange,
        /// Which edge of the press counts. Default: `press`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        on: Option<Edge>,
    },

    /// A gamepad's stick is pushed.
    GamepadAnalogStick {
        /// The axis or axes, 128 to 131: `"left x"`, `"left y"`, `"right x"`, `"right y"`.
        axis: StickRange,
        /// The way it is pushed. Default: `any`.
        #[serde(default)]
        direction: Direction,
        /// How far it has to be pushed, 0 to 1. Default: 0.15.
        #[serde(default = "dead_zone")]
        #[schemars(range(min = 0.0, max = 1.0))]
        dead_zone: f32,
        /// How often it counts: with `move` each reading, and its return into the dead zone as a reading of 0.
        /// Default: `enter`; `move` where the direction is `any`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        on: Option<Readings>,
    },

    /// A gamepad's analog trigger is pulled.
    GamepadTrigger {
        /// The trigger or triggers: 132 or `"left trigger"`, 133 or `"right trigger"`.
        trigger: TriggerRange,
        /// How far it has to be pulled, 0 to 1. Default: 0.1.
        #[serde(default = "threshold")]
        #[schemars(range(min = 0.0, max = 1.0))]
        threshold: f32,
        /// How often it counts: with `move` each reading, and its return below the threshold as a reading of 0.
        /// Default: `enter`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        on: Option<Readings>,
    },

    /// A key of a computer keyboard or macro pad is pressed, or a button of a mouse; on Linux. A key that is held does
    /// not repeat.
    Key {
        /// The key or keys, by their place on a US keyboard: `"f13"`, `"a"`, `"left ctrl"`, `"keypad 1"`, `"volume up"`,
        /// `"mouse left"`; the steps of a wheel are `"wheel up"`, `"wheel down"`, `"wheel left"` and `"wheel right"`. Or
        /// 257 to 1023, which is 256 more than Linux's code for the key.
        key: KeyRange,
        /// Which edge of the press counts. Default: `press`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        on: Option<Edge>,
    },

    /// A channel of an Art-Net universe changes.
    ArtNetChannel {
        /// The 15-bit port address, 0 to 32767. Default: 0.
        #[serde(default)]
        #[schemars(range(min = 0, max = 32767))]
        universe: u16,
        /// The DMX channel or channels, 1 to 512.
        dmx_channel: DmxRange,
        /// The values that count, each 0 to 255. Default: `[0, 255]`.
        #[serde(default)]
        value_range: DmxBounds,
    },

    /// A variable of this configuration changes. `{value}` is what it becomes; `device` does not count.
    Variable {
        /// The name of the variable.
        #[schemars(length(min = 1), extend("x-refers-to" = "variable"))]
        variable: String,
    },

    /// A beat of the clock begins, a quarter note. `{number}` is which one of its bar, and `{value}` the bar, both from 1;
    /// `device` does not count.
    Beat {
        /// Each of how many beats fires, 1 to 256. Default: 1.
        #[serde(default = "one")]
        #[schemars(range(min = 1, max = 256))]
        every: u16,
        /// Which one of every `every` beats, from 0, and below `every`: 0 is the first beat. Default: 0.
        #[serde(default)]
        #[schemars(range(min = 0, max = 255))]
        offset: u16,
    },

    /// A bar of the clock begins. `{value}` is which one, from 1; `device` does not count.
    Bar {
        /// Each of how many bars fires, 1 to 256. Default: 1.
        #[serde(default = "one")]
        #[schemars(range(min = 1, max = 256))]
        every: u16,
        /// Which one of every `every` bars, from 0, and below `every`: 0 is the first bar. Default: 0.
        #[serde(default)]
        #[schemars(range(min = 0, max = 255))]
        offset: u16,
    },

    /// The transport of the clock starts, goes on or stops; `device` does not count.
    Transport {
        /// What it does: `start` from the beginning, `continue` from where it stands, or `stop`, also because its device is
        /// gone or silent for half a second.
        on: TransportChange,
    },

    /// A key stays down.
    LongPress {
        /// The note or notes, 0 to 127. This, `button` or `key`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<NoteRange>,
        /// The gamepad's button or buttons, 128 to 144. This, `note` or `key`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        button: Option<ButtonRange>,
        /// The keyboard's key or keys, 257 to 1023 or by name. This, `note` or `button`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<KeyRange>,
        /// The velocities that count, each 0 to 127. Default: `[0, 127]`.
        #[serde(default)]
        velocity_range: DataBounds,
        /// For how long, 1 to 3600000 milliseconds. Default: 2000.
        #[serde(default = "long_press_ms")]
        #[schemars(range(min = 1, max = 3_600_000))]
        duration_ms: u32,
        /// Only this MIDI channel, 0 to 15 or `"ch1"` to `"ch16"`. Default: any channel.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        channel: Option<Channel>,
    },

    /// A key is pressed twice, or more often.
    DoubleTap {
        /// The note or notes, 0 to 127. This, `button` or `key`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<NoteRange>,
        /// The gamepad's button or buttons, 128 to 144. This, `note` or `key`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        button: Option<ButtonRange>,
        /// The keyboard's key or keys, 257 to 1023 or by name. This, `note` or `button`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<KeyRange>,
        /// The velocities that count, each 0 to 127. Default: `[0, 127]`.
        #[serde(default)]
        velocity_range: DataBounds,
        /// How often, 2 to 10. Default: 2.
        #[serde(default = "two")]
        #[schemars(range(min = 2, max = 10))]
        taps: u8,
        /// Each press comes sooner than this after the one before, 1 to 3600000 milliseconds. Default: 300.
        #[serde(default = "double_tap_ms")]
        #[schemars(range(min = 1, max = 3_600_000))]
        timeout_ms: u32,
        /// Only this MIDI channel, 0 to 15 or `"ch1"` to `"ch16"`. Default: any channel.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        channel: Option<Channel>,
    },

    /// Several notes are played together, and none ends before the last begins. A chord that defers waits for
    /// the time of every larger chord that one of its notes could begin: up to twice `timeout_ms`.
    NoteChord {
        /// The notes, two to ten, each 0 to 127.
        #[schemars(length(min = 2, max = 10))]
        notes: Vec<Note>,
        /// The last begins sooner than this after the first, 1 to 3600000 milliseconds. Default: 50.
        #[serde(default = "chord_ms")]
        #[schemars(range(min = 1, max = 3_600_000))]
        timeout_ms: u32,
        /// Only this MIDI channel, 0 to 15 or `"ch1"` to `"ch16"`. Default: any channel.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        channel: Option<Channel>,
    },

    /// Several buttons of a gamepad are pressed together, and none comes up before the last is down.
    GamepadButtonChord {
        /// The buttons, two to ten, each 128 to 144.
        #[schemars(length(min = 2, max = 10))]
        buttons: Vec<Button>,
        /// The last goes down sooner than this after the first, 1 to 3600000 milliseconds. Default: 50.
        #[serde(default = "chord_ms")]
        #[schemars(range(min = 1, max = 3_600_000))]
        timeout_ms: u32,
    },

    /// Several keys of a keyboard are pressed together, and none comes up before the last is down.
    KeyChord {
        /// The keys, two to ten, each 257 to 1023 or by name: `["left ctrl", "a"]`.
        #[schemars(length(min = 2, max = 10))]
        keys: Vec<KeyNumber>,
        /// The last goes down sooner than this after the first, 1 to 3600000 milliseconds. Default: 50.
        #[serde(default = "chord_ms")]
        #[schemars(range(min = 1, max = 3_600_000))]
        timeout_ms: u32,
    },

    /// Several notes are played one after the other, and no other note or button of the device between them. Of two
    /// sequences that begin alike, the shorter one waits for the longer one if it has `defer`.
    NoteSequence {
        /// The notes in their order, two to ten, each 0 to 127. One may come several times.
        #[schemars(length(min = 2, max = 10))]
        notes: Vec<Note>,
        /// Each begins sooner than this after the one before, 1 to 3600000 milliseconds. Default: 1000.
        #[serde(default = "sequence_ms")]
        #[schemars(range(min = 1, max = 3_600_000))]
        timeout_ms: u32,
        /// Only this MIDI channel, 0 to 15 or `"ch1"` to `"ch16"`. Default: any channel.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        channel: Option<Channel>,
    },

    /// Several buttons of a gamepad are pressed one after the other, and no other between them.
    GamepadButtonSequence {
        /// The buttons in their order, two to ten, each 128 to 144. One may come several times.
        #[schemars(length(min = 2, max = 10))]
        buttons: Vec<Button>,
        /// Each goes down sooner than this after the one before, 1 to 3600000 milliseconds. Default: 1000.
        #[serde(default = "sequence_ms")]
        #[schemars(range(min = 1, max = 3_600_000))]
        timeout_ms: u32,
    },

    /// Several keys of a keyboard are pressed one after the other, and no other between them.
    KeySequence {
        /// The keys in their order, two to ten, each 257 to 1023 or by name. One may come several times.
        #[schemars(length(min = 2, max = 10))]
        keys: Vec<KeyNumber>,
        /// Each goes down sooner than this after the one before, 1 to 3600000 milliseconds. Default: 1000.
        #[serde(default = "sequence_ms")]
        #[schemars(range(min = 1, max = 3_600_000))]
        timeout_ms: u32,
    },

    /// An endless encoder is turned. `{value}` is how many steps, clockwise positive.
    EncoderTurn {
        /// The controller or controllers, 0 to 127, or by name: `"modulation"`.
        cc: ControllerRange,
        /// Which way. Default: `any`.
        #[serde(default)]
        direction: Turn,
        /// How the encoder says how far. `difference` is for knobs that say where they stand, `wrapping` for
        /// those of them that go on from 127 to 0. Default: `twos_complement`.
        #[serde(default)]
        mode: EncoderMode,
        /// Only this MIDI channel, 0 to 15 or `"ch1"` to `"ch16"`. Default: any channel.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        channel: Option<Channel>,
    },

    /// A controller of 14 bits moves: it says the coarse part as itself, then, within 3 ms, the fine part as the
    /// controller 32 above. For one that says the fine part first there is `fine_first`.
    CC14 {
        /// The controller or controllers of the coarse part, 0 to 31.
        cc: CoarseRange,
        /// The values that count, each 0 to 16383. Default: `[0, 16383]`.
        #[serde(default)]
        value_range: WideBounds,
        /// Only this MIDI channel, 0 to 15 or `"ch1"` to `"ch16"`. Default: any channel.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        channel: Option<Channel>,
        /// Whether the device says the fine part first, and the coarse one within 3 ms. Default: false.
        #[serde(default)]
        fine_first: bool,
    },

    /// A registered parameter is set.
    RPN {
        /// The parameter, 0 to 16383: 0 is the range of the pitch wheel.
        #[schemars(range(min = 0, max = 16383))]
        parameter: u16,
        /// The values that count, each 0 to 16383. Default: `[0, 16383]`.
        #[serde(default)]
        value_range: WideBounds,
        /// Only this MIDI channel, 0 to 15 or `"ch1"` to `"ch16"`. Default: any channel.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        channel: Option<Channel>,
    },

    /// An unregistered parameter is set.
    NRPN {
        /// The parameter, 0 to 16383.
        #[schemars(range(min = 0, max = 16383))]
        parameter: u16,
        /// The values that count, each 0 to 16383. Default: `[0, 16383]`.
        #[serde(default)]
        value_range: WideBounds,
        /// Only this MIDI channel, 0 to 15 or `"ch1"` to `"ch16"`. Default: any channel.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        channel: Option<Channel>,
    },
}

fn dead_zone() -> f32 {
    0.15
}

fn threshold() -> f32 {
    0.1
}

fn long_press_ms() -> u32 {
    2000
}

fn double_tap_ms() -> u32 {
    300
}

fn one() -> u16 {
    1
}

fn two() -> u8 {
    2
}

fn sequence_ms() -> u32 {
    1000
}

fn chord_ms() -> u32 {
    50
}

/// How often it counts that a stick is pushed or a trigger pulled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Readings {
    /// Once, until it has been back.
    Enter,
    /// Each time that it moves while it is, and once more, with 0, when it comes back to rest: in any mode,
    /// and also when the gamepad is unplugged.
    Move,
}

/// The way an encoder is turned.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Turn {
    /// To higher values.
    Clockwise,
    /// To lower values.
    CounterClockwise,
    /// Either.
    #[default]
    Any,
}

/// How an encoder says how far it was turned.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EncoderMode {
    /// 1 is one step clockwise, 127 one step back.
    #[default]
    TwosComplement,
    /// 1 is one step clockwise, 65 one step back.
    SignedBit,
    /// 65 is one step clockwise, 63 one step back.
    BinaryOffset,
    /// 1 to 63 is one step clockwise, 65 to 127 one step back.
    IncDec,
    /// It says where it stands, as a fader does; the difference counts.
    Difference,
    /// It says where it stands and goes on from 127 to 0 and back; the shorter way round counts.
    Wrapping,
}

/// The way a stick is pushed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Left or down.
    Negative,
    /// Right or up.
    Positive,
    /// Either.
    #[default]
    Any,
}

/// Which edge of a note counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Edge {
    /// The note begins.
    Press,
    /// The note ends.
    Release,
    /// The note begins or ends.
    Both,
}
