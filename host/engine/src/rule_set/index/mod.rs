//! The index of a rule set: looks up the rules that may match an event.
//!
//! # How a match works
//!
//! Rules are numbered in the order in which they are asked (their *rank*). The index has four levels,
//! and an event takes one step down each:
//!
//! 1. **Bucket**: the rules of one mode (or of all modes) for one device (or for every device). An event
//!    meets at most four: mode and device, mode, device, neither.
//! 2. **Table**: the rules of a bucket for one kind of message on one channel (or on every channel).
//! 3. **Lane**: the rules of a table for one number (note, controller, program, SysEx manufacturer), and
//!    one lane beside them for rules that take every number.
//! 4. **Entry**: twelve bytes with a rule's rank and value range, in the order of rank.
//!
//! The lanes found, at most sixteen and most often one, are then merged by rank. OSC messages find their
//! lanes by address: one for the exact address, one for patterns that begin with its first part, one
//! for patterns that begin with a wildcard. A message whose address is a pattern itself has to be compared
//! with every address of a bucket, for which there is a lane, too. Art-Net's channels and the keys of keyboards, of
//! which there are too many for tables, find theirs by a key of their own.
//!
//! So neither the number of rules nor that of modes and devices matters, only that of rules which share
//! device, kind, channel and number with the event and differ in the value range alone.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};

use conductor_event::hash::{KeyState, StableState, key_of_pair};
use conductor_event::{ArtNetChange, DeviceId, Event, HidEvent, MidiMessage, ModeIx, OscMessage};

mod build;

/// What the index asks of an event, as small integers.
pub(super) struct Probe {
    kind: Kind,
    /// [`NO_NUMBER`] where the kind has none. What a gamepad or a keyboard has counts from 0 here.
    pub(super) number: u16,
    /// 16 or more if there is none.
    channel: u8,
    pub(super) value: u16,
}

/// The kinds of message that the index tells apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Kind {
    NoteOn,
    NoteOff,
    PolyAftertouch,
    ControlChange,
    ProgramChange,
    Aftertouch,
    PitchBend,
    SysEx,
    /// System common and realtime: only met by rules for any MIDI message.
    System,
    /// Rules for OSC patterns that begin with a wildcard.
    Osc,
    /// Every rule for one OSC address, for messages whose address is a pattern.
    OscAddress,
    ButtonDown,
    ButtonUp,
    Stick,
    GamepadTrigger,
    ArtNet,
}

impl Kind {
    const COUNT: usize = 16;
    const WITH_CHANNEL: [Self; 7] = [
        Self::NoteOn,
        Self::NoteOff,
        Self::PolyAftertouch,
        Self::ControlChange,
        Self::ProgramChange,
        Self::Aftertouch,
        Self::PitchBend,
    ];
}

/// Not a number that any event has.
pub(super) const NO_NUMBER: u16 = 0xFFFF;
/// Where the numbers of a gamepad begin.
const GAMEPAD: u16 = 128;
/// Not a channel.
const NO_CHANNEL: u8 = 0xFF;

impl Probe {
    pub(super) fn new(event: &Event) -> Self {
        let channelled = |kind, channel, number: u8, value| Self { kind, number: number.into(), channel, value };
        let on_channel = |kind, channel, value| Self { kind, number: NO_NUMBER, channel, value };
        let plain = |kind, number| Self { kind, number, channel: NO_CHANNEL, value: 0 };
        match event {
            Event::Osc(_) => plain(Kind::Osc, NO_NUMBER),
            Event::Hid(moved) => {
                let kind = match moved {
                    HidEvent::Button { pressed: true, .. } => Kind::ButtonDown,
                    HidEvent::Button { pressed: false, .. } => Kind::ButtonUp,
                    HidEvent::Stick { .. } => Kind::Stick,
                    HidEvent::Trigger { .. } => Kind::GamepadTrigger,
                };
                plain(kind, moved.number().wrapping_sub(GAMEPAD))
            }
            // Found, not sent: no rule waits for the event itself.
            Event::Gesture(_) | Event::Variable(_) | Event::Musical(_) => plain(Kind::System, NO_NUMBER),
            Event::ArtNet(change) => Self { value: change.value.into(), ..plain(Kind::ArtNet, change.channel) },
            Event::Midi(message) => match *message {
                MidiMessage::NoteOn { channel, note, velocity } => {
                    channelled(Kind::NoteOn, channel, note, velocity.into())
                }
                MidiMessage::NoteOff { channel, note, velocity } => {
                    channelled(Kind::NoteOff, channel, note, velocity.into())
                }
                MidiMessage::PolyAftertouch { channel, note, pressure } => {
                    channelled(Kind::PolyAftertouch, channel, note, pressure.into())
                }
                MidiMessage::ControlChange { channel, controller, value } => {
                    channelled(Kind::ControlChange, channel, controller, value.into())
                }
                MidiMessage::ProgramChange { channel, program } => channelled(Kind::ProgramChange, channel, program, 0),
                MidiMessage::Aftertouch { channel, pressure } => on_channel(Kind::Aftertouch, channel, pressure.into()),
                MidiMessage::PitchBend { channel, value } => on_channel(Kind::PitchBend, channel, value),
                MidiMessage::SysEx(ref bytes) => {
                    plain(Kind::SysEx, bytes.get(1).map_or(NO_NUMBER, |&byte| byte.into()))
                }
                _ => plain(Kind::System, NO_NUMBER),
            },
        }
    }
}

/// One rule in one lane.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) rank: u32,
    pub(super) min: u16,
    pub(super) max: u16,
    /// The first number of the trigger's range, [`NO_NUMBER`] where it has none.
    pub(super) base: u16,
    pub(super) flags: u8,
}

/// The rule consumes.
pub(super) const CONSUME: u8 = 1;
/// What the entry says is not all: ask the trigger itself.
pub(super) const ASK_TRIGGER: u8 = 2;
/// The last entry of its lane.
const LAST: u8 = 4;
/// The rule has a condition.
pub(super) const ASK_CONDITION: u8 = 8;

/// The most lanes one event can find: four buckets, with and without channel, its number and any.
const MAX_LANES: usize = 16;

/// The lanes found for one event: for each, which entry is next.
#[derive(Default)]
pub(super) struct Lanes {
    heads: [u32; MAX_LANES],
    count: usize,
}

impl Lanes {
    /// Adds a lane unless it is empty.
    #[inline(always)]
    fn push(&mut self, start: u32, end: u32) {
        // The second half of the test is never false; it tells the compiler that the index is in bounds.
        if start < end && self.count < MAX_LANES {
            self.heads[self.count] = start;
            self.count += 1;
        }
    }

    pub(super) fn clear(&mut self) {
        self.count = 0;
    }

    /// The unread entry of the lowest rank. A lane is dropped when it is read to its end.
    #[inline(always)]
    pub(super) fn next(&mut self, entries: &[Entry]) -> Option<Entry> {
        let heads = self.heads.get_mut(..self.count)?;
        let (first, more) = heads.split_first()?;
        let (mut best, mut found) = (0, *entries.get(*first as usize)?);
        for (lane, &head) in more.iter().enumerate() {
            let entry = entries[head as usize];
            if entry.rank < found.rank {
                (best, found) = (lane + 1, entry);
            }
        }
        if found.flags & LAST != 0 {
            self.count -= 1;
            heads[best] = heads[self.count];
        } else {
            heads[best] += 1;
        }
        Some(found)
    }
}

/// Where the rules of one kind and channel in one bucket are.
///
/// `offsets[base]` starts the lane for every number, `offsets[base + 1 + i]` the one for number
/// `first + i`; each ends where the next starts.
#[derive(Clone, Copy, Debug)]
struct Table {
    base: u32,
    first: u8,
    /// How many numbers have a lane, up to 128. Numbers outside have no rules.
    span: u8,
}

/// No index.
const NONE: u32 = u32::MAX;

impl Table {
    const EMPTY: Self = Self { base: NONE, first: 0, span: 0 };
}

/// The tables of one kind in one bucket.
#[derive(Clone, Copy, Debug)]
struct KindTables {
    /// Rules for any channel.
    any: Table,
    /// Where in [`Index::by_channel`] the sixteen tables for one channel each begin, or [`NONE`].
    channels: u32,
}

/// The rules of one mode (or all) for one device (or all).
#[derive(Clone, Debug)]
struct Bucket {
    kinds: [KindTables; Kind::COUNT],
    /// Whether [`Index::keyed_lanes`] has any lane of this bucket.
    has_keyed_lanes: bool,
}

impl Bucket {
    const EMPTY: Self =
        Self { kinds: [KindTables { any: Table::EMPTY, channels: NONE }; Kind::COUNT], has_keyed_lanes: false };
}

/// The buckets of one device.
#[derive(Clone, Copy, Debug)]
struct DeviceRow {
    row: u32,
    /// The bucket for all modes, or [`NONE`].
    global: u32,
    /// Whether it has any bucket for one mode.
    has_modes: bool,
}

/// Everything [`RuleSet::matches`] reads before it reaches a rule.
#[derive(Debug)]
pub(super) struct Index {
    /// The bucket for every device and all modes, or [`NONE`].
    global: u32,
    /// The bucket for every device in each mode, or [`NONE`].
    by_mode: Vec<u32>,
    devices: HashMap<DeviceId, DeviceRow, KeyState>,
    /// The bucket of a device (its row) in a mode.
    by_device_and_mode: HashMap<Pair, u32, KeyState>,
    buckets: Vec<Bucket>,
    by_channel: Vec<[Table; 16]>,
    offsets: Vec<u32>,
    pub(super) entries: Vec<Entry>,
    /// OSC addresses and first parts of patterns that occur in rules.
    osc_addresses: HashMap<Box<str>, u32, StableState>,
    osc_first_parts: HashMap<Box<str>, u32, StableState>,
    /// The lane of an OSC address or first part, or of a universe's channel, in a bucket.
    keyed_lanes: HashMap<Pair, (u32, u32), KeyState>,
}

/// A key of two indices that hashes itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pair(u32, u32);

impl Hash for Pair {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(key_of_pair(self.0, self.1));
    }
}

/// The buckets an event meets, each an index or [`NONE`].
pub(super) struct BucketIds {
    global: u32,
    mode: u32,
    device: u32,
    device_and_mode: u32,
}

impl BucketIds {
    /// Those of the mode alone.
    pub(super) fn of_the_mode(self) -> Self {
        Self { global: NONE, device: NONE, ..self }
    }
}

impl Index {
    #[inline(always)]
    pub(super) fn buckets_of(&self, mode: ModeIx, device: &DeviceId) -> BucketIds {
        let mut ids = BucketIds {
            global: self.global,
            mode: self.by_mode.get(usize::from(mode.0)).copied().unwrap_or(NONE),
            device: NONE,
            device_and_mode: NONE,
        };
        if !self.devices.is_empty()
            && let Some(device) = self.devices.get(device)
        {
            ids.device = device.global;
            if device.has_modes {
                let key = Pair(device.row, mode.0.into());
                ids.device_and_mode = self.by_device_and_mode.get(&key).copied().unwrap_or(NONE);
            }
        }
        ids
    }

    /// Adds the lanes that may hold rules for the event.
    #[inline(always)]
    pub(super) fn find(&self, ids: &BucketIds, probe: &Probe, event: &Event, lanes: &mut Lanes) {
        match event {
            &Event::Hid(HidEvent::Button { button, pressed }) if HidEvent::KEYS.contains(&button) => {
                self.find_key(ids, key_key(button, pressed), lanes);
            }
            Event::Midi(_) | Event::Hid(_) => {
                // One by one: an array of ids would be written to memory only to be read back.
                self.find_numbered(ids.global, probe, lanes);
                self.find_numbered(ids.mode, probe, lanes);
                self.find_numbered(ids.device, probe, lanes);
                self.find_numbered(ids.device_and_mode, probe, lanes);
            }
            Event::Osc(message) => self.find_osc(ids, message, lanes),
            Event::Gesture(_) => {}
            Event::ArtNet(change) => self.find_key(ids, dmx_key(change.universe, change.channel), lanes),
            Event::Variable(change) => self.find_key(ids, variable_key(change.variable), lanes),
            Event::Musical(_) => self.find_key(ids, MUSICAL_KEY, lanes),
        }
    }

    fn find_key(&self, ids: &BucketIds, key: u32, lanes: &mut Lanes) {
        for id in [ids.global, ids.mode, ids.device, ids.device_and_mode] {
            self.find_keyed(id, key, lanes);
        }
    }

    #[inline(always)]
    fn find_numbered(&self, bucket: u32, probe: &Probe, lanes: &mut Lanes) {
        // NONE is no index, so there is nothing there to get.
        let Some(bucket) = self.buckets.get(bucket as usize) else {
            return;
        };
        let tables = &bucket.kinds[probe.kind as usize];
        self.find_number(tables.any, probe.number, lanes);
        if let Some(channels) = self.by_channel.get(tables.channels as usize)
            && let Some(&table) = channels.get(usize::from(probe.channel))
        {
            self.find_number(table, probe.number, lanes);
        }
    }

    #[inline(always)]
    fn find_number(&self, table: Table, number: u16, lanes: &mut Lanes) {
        let Some(offsets) = self.offsets.get(table.base as usize..) else { return };
        if let [start, end, ..] = *offsets {
            lanes.push(start, end);
        }
        // A number below the first wraps around to far above every span.
        let index = number.wrapping_sub(table.first.into());
        if index < u16::from(table.span)
            && let [start, end, ..] = offsets[1 + usize::from(index)..]
        {
            lanes.push(start, end);
        }
    }

    #[inline(never)]
    fn find_osc(&self, ids: &BucketIds, message: &OscMessage, lanes: &mut Lanes) {
        let address: &str = message.address();
        let name = |names: &HashMap<Box<str>, u32, StableState>, text: &str| {
            if names.is_empty() { None } else { names.get(text).copied() }
        };
        let names = [name(&self.osc_addresses, address), name(&self.osc_first_parts, first_part(address))];
        for id in [ids.global, ids.mode, ids.device, ids.device_and_mode] {
            let Some(bucket) = self.buckets.get(id as usize) else {
                continue;
            };
            self.find_number(bucket.kinds[Kind::Osc as usize].any, NO_NUMBER, lanes);
            if message.is_pattern() {
                self.find_number(bucket.kinds[Kind::OscAddress as usize].any, NO_NUMBER, lanes);
            }
            for name in names.into_iter().flatten() {
                self.find_keyed(id, name, lanes);
            }
        }
    }

    /// Adds the lane of a key in a bucket.
    fn find_keyed(&self, id: u32, key: u32, lanes: &mut Lanes) {
        if let Some(bucket) = self.buckets.get(id as usize)
            && bucket.has_keyed_lanes
            && let Some(&(start, end)) = self.keyed_lanes.get(&Pair(id, key))
        {
            lanes.push(start, end);
        }
    }
}

/// The key of a DMX channel. OSC names are counted from 0 and never come near.
fn dmx_key(universe: u16, channel: u16) -> u32 {
    1 << 31 | u32::from(universe) << 10 | u32::from(channel)
}

/// A universe that does not exist.
fn variable_key(variable: u16) -> u32 {
    dmx_key(ArtNetChange::LAST_UNIVERSE + 1, variable)
}

/// Every rule for beats or the transport, in another universe that does not exist.
const MUSICAL_KEY: u32 = 1 << 31 | (ArtNetChange::LAST_UNIVERSE as u32 + 2) << 10;

/// The key of a key that goes down or comes up, in two more of these.
fn key_key(key: u16, pressed: bool) -> u32 {
    dmx_key(ArtNetChange::LAST_UNIVERSE + 3 + u16::from(pressed), key)
}

/// What stands between the first and the second slash of an address.
fn first_part(address: &str) -> &str {
    let rest = address.strip_prefix('/').unwrap_or(address);
    rest.split_once('/').map_or(rest, |(part, _)| part)
}
