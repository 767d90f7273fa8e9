//! The index, made of rules that are checked, sorted and numbered.

use std::collections::{BTreeSet, HashMap};

use conductor_event::hash::StableState;
use conductor_event::{DeviceId, HidEvent, ModeIx};

use super::{
    ASK_CONDITION, ASK_TRIGGER, Bucket, CONSUME, DeviceRow, Entry, GAMEPAD, Index, Kind, LAST, MUSICAL_KEY, NO_NUMBER,
    NONE, Pair, Table, dmx_key, key_key, variable_key,
};
use crate::input_state::parameter;
use crate::rule::Rule;
use crate::trigger::{NumberRange, Trigger, ValueRange};

/// Collects entries, each with the lanes it belongs to, and puts them there at the end.
struct Builder {
    index: Index,
    /// In order of rank, as rules are added in that order.
    pending: Vec<Pending>,
    /// The same for the lanes that have a key: bucket, key, entry.
    pending_keyed: Vec<(Pair, Entry)>,
    /// How many OSC names there are, addresses and first parts together.
    names: u32,
    /// Whether the index is for what takes memory: then an entry says which events concern a rule, and the
    /// rest is found out by triggers with memory.
    with_memory: bool,
}

/// An entry for some lanes of one table.
#[derive(Clone, Copy)]
struct Pending {
    table: TableKey,
    /// The first and the last lane: [`ANY_NUMBER`], or one more than the number.
    lanes: (u8, u8),
    entry: Entry,
}

/// The bucket, kind and channel of a table, in this order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct TableKey {
    bucket: u32,
    kind: u8,
    /// `None` if it is every channel.
    channel: Option<u8>,
}

/// The lane for every number.
const ANY_NUMBER: u8 = 0;
/// How many lanes a table may have: one for each number, and the one beside them.
const LANES: usize = 129;

impl Builder {
    fn new(modes: usize, rules: usize, with_memory: bool) -> Self {
        Self {
            index: Index {
                global: NONE,
                by_mode: vec![NONE; modes],
                devices: HashMap::default(),
                by_device_and_mode: HashMap::default(),
                buckets: Vec::new(),
                by_channel: Vec::new(),
                offsets: Vec::new(),
                entries: Vec::new(),
                osc_addresses: HashMap::default(),
                osc_first_parts: HashMap::default(),
                keyed_lanes: HashMap::default(),
            },
            pending: Vec::with_capacity(rules),
            pending_keyed: Vec::new(),
            names: 0,
            with_memory,
        }
    }

    /// The bucket of a device and mode, made when it is first asked for.
    fn bucket(&mut self, device: Option<&DeviceId>, mode: Option<ModeIx>) -> u32 {
        let Index { global, by_mode, devices, by_device_and_mode, buckets, .. } = &mut self.index;
        let slot = match (device, mode) {
            (None, None) => global,
            (None, Some(mode)) => &mut by_mode[usize::from(mode.0)],
            (Some(device), mode) => {
                let row = devices.len() as u32;
                let device = devices.entry(device.clone()).or_insert(DeviceRow { row, global: NONE, has_modes: false });
                match mode {
                    None => &mut device.global,
                    Some(mode) => {
                        device.has_modes = true;
                        let key = Pair(device.row, mode.0.into());
                        by_device_and_mode.entry(key).or_insert(NONE)
                    }
                }
            }
        };
        if *slot == NONE {
            *slot = buckets.len() as u32;
            buckets.push(Bucket::EMPTY);
        }
        *slot
    }

    fn add<A>(&mut self, rule: &Rule<A>) {
        let bucket = self.bucket(rule.device.as_ref(), rule.mode);
        let entry = Entry {
            rank: rule.id.0,
            min: 0,
            max: u16::MAX,
            base: NO_NUMBER,
            // What a gesture consumes is known when it is found.
            flags: if rule.consume && !self.with_memory { CONSUME } else { 0 }
                | if rule.condition.is_some() { ASK_CONDITION } else { 0 },
        };
        let with = |range: ValueRange| Entry { min: range.min, max: range.max, ..entry };
        match &rule.trigger {
            &Trigger::Note { notes, velocity, edge, channel } => {
                if edge.has_press() {
                    self.numbers(bucket, Kind::NoteOn, channel, notes, with(velocity));
                }
                if edge.has_release() {
                    self.numbers(bucket, Kind::NoteOff, channel, notes, entry);
                }
            }
            &Trigger::ControlChange { controllers, value, channel } => {
                self.numbers(bucket, Kind::ControlChange, channel, controllers, with(value));
            }
            &Trigger::PolyAftertouch { notes, value, channel } => {
                self.numbers(bucket, Kind::PolyAftertouch, channel, notes, with(value));
            }
            &Trigger::ProgramChange { programs, channel } => {
                self.numbers(bucket, Kind::ProgramChange, channel, programs, entry);
            }
            &Trigger::Aftertouch { value, channel } => {
                self.lane(bucket, Kind::Aftertouch, channel, None, with(value));
            }
            &Trigger::PitchBend { value, channel } => {
                self.lane(bucket, Kind::PitchBend, channel, None, with(value));
            }
            Trigger::SysEx { pattern } => {
                let entry = Entry { flags: entry.flags | ASK_TRIGGER, ..entry };
                self.lane(bucket, Kind::SysEx, None, pattern.manufacturer(), entry);
            }
            &Trigger::MidiAny { channel } => {
                for kind in Kind::WITH_CHANNEL {
                    self.lane(bucket, kind, channel, None, entry);
                }
                if channel.is_none() {
                    self.lane(bucket, Kind::SysEx, None, None, entry);
                    self.lane(bucket, Kind::System, None, None, entry);
                }
            }
            Trigger::Osc { address, arg } => {
                // Two addresses never share a lane, so only an argument is left to ask for.
                let ask = if arg.is_some() { ASK_TRIGGER } else { 0 };
                let entry = Entry { flags: entry.flags | ask, ..entry };
                let name = name_of(&mut self.index.osc_addresses, address, &mut self.names);
                self.pending_keyed.push((Pair(bucket, name), entry));
                let entry = Entry { flags: entry.flags | ASK_TRIGGER, ..entry };
                self.lane(bucket, Kind::OscAddress, None, None, entry);
            }
            Trigger::OscPattern { pattern, .. } => {
                let entry = Entry { flags: entry.flags | ASK_TRIGGER, ..entry };
                match pattern.literal_first_segment() {
                    Some(part) => {
                        let names = &mut self.index.osc_first_parts;
                        let name = name_of(names, part, &mut self.names);
                        self.pending_keyed.push((Pair(bucket, name), entry));
                    }
                    None => self.lane(bucket, Kind::Osc, None, None, entry),
                }
            }
            &Trigger::Button { buttons, edge } => {
                if edge.has_press() {
                    self.hid(bucket, Kind::ButtonDown, buttons, entry);
                }
                if edge.has_release() {
                    self.hid(bucket, Kind::ButtonUp, buttons, entry);
                }
            }
            &Trigger::GamepadStick { sticks, .. } => {
                self.hid(bucket, Kind::Stick, sticks, self.asked(entry));
            }
            &Trigger::GamepadTrigger { triggers, .. } => {
                self.hid(bucket, Kind::GamepadTrigger, triggers, self.asked(entry));
            }
            &Trigger::LongPress { keys, velocity, channel, .. }
            | &Trigger::DoubleTap { keys, velocity, channel, .. } => {
                if keys.first >= GAMEPAD {
                    self.hid(bucket, Kind::ButtonDown, keys, entry);
                } else {
                    self.numbers(bucket, Kind::NoteOn, channel, keys, with(velocity));
                }
            }
            Trigger::Chord { keys, channel, .. } | Trigger::Sequence { keys, channel, .. } => {
                // A key may come several times in a sequence.
                for key in keys.iter().copied().collect::<BTreeSet<_>>() {
                    match u8::try_from(key) {
                        Ok(note) if key < GAMEPAD => self.lane(bucket, Kind::NoteOn, *channel, Some(note), entry),
                        _ => self.hid(bucket, Kind::ButtonDown, NumberRange::one(key), entry),
                    }
                }
            }
            &Trigger::Turn { controllers, channel, .. } => {
                self.numbers(bucket, Kind::ControlChange, channel, controllers, entry);
            }
            &Trigger::FineControl { controllers: NumberRange { first, last }, channel, .. } => {
                self.numbers(bucket, Kind::ControlChange, channel, NumberRange { first, last }, entry);
                let fine = NumberRange { first: first + 32, last: last + 32 };
                self.numbers(bucket, Kind::ControlChange, channel, fine, entry);
            }
            &Trigger::Parameter { channel, .. } => {
                for controller in parameter::DATA {
                    self.lane(bucket, Kind::ControlChange, channel, Some(controller), entry);
                }
            }
            &Trigger::ArtNet { universe, channels, value } => {
                let entry = Entry { base: channels.first, ..with(value) };
                for channel in channels.first..=channels.last {
                    self.pending_keyed.push((Pair(bucket, dmx_key(universe, channel)), entry));
                }
            }
            &Trigger::Variable { variable } => self.pending_keyed.push((Pair(bucket, variable_key(variable)), entry)),
            Trigger::Beat { .. } | Trigger::Transport { .. } => {
                let entry = Entry { flags: entry.flags | ASK_TRIGGER, ..entry };
                self.pending_keyed.push((Pair(bucket, MUSICAL_KEY), entry));
            }
        }
    }

    /// An entry whose trigger has to be asked about each reading; with memory, by triggers with memory.
    fn asked(&self, entry: Entry) -> Entry {
        if self.with_memory { entry } else { Entry { flags: entry.flags | ASK_TRIGGER, ..entry } }
    }

    /// Adds an entry to the lanes of a range of numbers. A rule for all of them goes into the one lane
    /// beside these instead of into 128.
    fn numbers(&mut self, bucket: u32, kind: Kind, channel: Option<u8>, range: NumberRange, entry: Entry) {
        let lanes = match range {
            NumberRange::ALL => (ANY_NUMBER, ANY_NUMBER),
            // Compiled, they are 0 to 127.
            NumberRange { first, last } => (first as u8 + 1, last as u8 + 1),
        };
        let table = TableKey { bucket, kind: kind as u8, channel };
        self.pending.push(Pending { table, lanes, entry: Entry { base: range.first, ..entry } });
    }

    /// The same for what a gamepad or a keyboard has.
    fn hid(&mut self, bucket: u32, kind: Kind, range: NumberRange, entry: Entry) {
        let from_0 = NumberRange { first: range.first - GAMEPAD, last: range.last - GAMEPAD };
        if !HidEvent::KEYS.contains(&range.first) {
            return self.numbers(bucket, kind, None, from_0, entry);
        }
        let entry = Entry { base: from_0.first, ..entry };
        let keys = (range.first..=range.last).map(|key| Pair(bucket, key_key(key, kind == Kind::ButtonDown)));
        self.pending_keyed.extend(keys.map(|key| (key, entry)));
    }

    /// Adds an entry to the lane of one number, or the one for every number.
    fn lane(&mut self, bucket: u32, kind: Kind, channel: Option<u8>, number: Option<u8>, entry: Entry) {
        let lane = number.map_or(ANY_NUMBER, |number| number + 1);
        let table = TableKey { bucket, kind: kind as u8, channel };
        self.pending.push(Pending { table, lanes: (lane, lane), entry });
    }

    fn finish(self) -> Index {
        let Self { mut index, mut pending, mut pending_keyed, .. } = self;
        // Both sorts are stable: inside of a table or lane, entries stay in the order of rank.
        pending.sort_by_key(|pending| pending.table);
        for table in pending.chunk_by(|a, b| a.table == b.table) {
            index.add_table(table[0].table, table);
        }
        pending_keyed.sort_by_key(|&(Pair(bucket, name), _)| (bucket, name));
        for lane in pending_keyed.chunk_by(|(a, _), (b, _)| a == b) {
            index.add_keyed_lane(lane[0].0, lane);
        }
        index
    }
}

impl Index {
    /// The index of the rules that answer to an event by itself.
    pub(in crate::rule_set) fn of_events<A>(modes: usize, rules: &[Rule<A>]) -> Self {
        Self::build(modes, rules, false, |rule| !rule.trigger.is_gesture())
    }

    /// The index of the rules for which what was before matters: those for gestures, and those that follow a
    /// stick or trigger. `None` if there are none.
    pub(in crate::rule_set) fn with_memory<A>(modes: usize, rules: &[Rule<A>]) -> Option<Self> {
        let is_in = |rule: &Rule<A>| rule.trigger.is_gesture() || rule.trigger.reports_rest();
        rules.iter().any(is_in).then(|| Self::build(modes, rules, true, is_in))
    }

    fn build<A>(modes: usize, rules: &[Rule<A>], with_memory: bool, is_in: impl Fn(&Rule<A>) -> bool) -> Self {
        let mut builder = Builder::new(modes, rules.len(), with_memory);
        for rule in rules.iter().filter(|rule| is_in(rule)) {
            builder.add(rule);
        }
        builder.finish()
    }

    /// Adds the table of one bucket, kind and channel, with its entries.
    fn add_table(&mut self, key: TableKey, pending: &[Pending]) {
        let lanes_of = |pending: &Pending| usize::from(pending.lanes.0)..=usize::from(pending.lanes.1);
        // Counting first, every entry can be written straight to its place: a rule for a wide range of
        // numbers has many.
        let mut counts = [0; LANES];
        pending.iter().flat_map(lanes_of).for_each(|lane| counts[lane] += 1);
        let mut next = [0; LANES];
        let mut end = self.entries.len() as u32;
        for (next, count) in next.iter_mut().zip(counts) {
            *next = end;
            end += count;
        }
        let starts = next;
        self.entries.resize(end as usize, pending[0].entry);
        for pending in pending {
            for lane in lanes_of(pending) {
                self.entries[next[lane] as usize] = pending.entry;
                next[lane] += 1;
            }
        }
        for (next, _) in next.iter().zip(counts).filter(|&(_, count)| count > 0) {
            self.entries[*next as usize - 1].flags |= LAST;
        }

        let used = |lane: &usize| counts[*lane] > 0;
        let low = (1..LANES).find(used).unwrap_or(LANES);
        let high = (1..LANES).rfind(used).map_or(low, |high| high + 1);
        let base = self.offsets.len() as u32;
        self.offsets.push(starts[usize::from(ANY_NUMBER)]);
        self.offsets.extend_from_slice(&starts[low..high]);
        self.offsets.push(end);
        let table = Table { base, first: low as u8 - 1, span: (high - low) as u8 };

        let tables = &mut self.buckets[key.bucket as usize].kinds[usize::from(key.kind)];
        match key.channel {
            None => tables.any = table,
            Some(channel) => {
                if tables.channels == NONE {
                    tables.channels = self.by_channel.len() as u32;
                    self.by_channel.push([Table::EMPTY; 16]);
                }
                self.by_channel[tables.channels as usize][usize::from(channel)] = table;
            }
        }
    }

    /// Adds the lane of one key in one bucket, with its entries.
    fn add_keyed_lane(&mut self, key: Pair, pending: &[(Pair, Entry)]) {
        let start = self.entries.len() as u32;
        self.entries.extend(pending.iter().map(|&(_, entry)| entry));
        if let Some(last) = self.entries.last_mut() {
            last.flags |= LAST;
        }
        self.buckets[key.0 as usize].has_keyed_lanes = true;
        self.keyed_lanes.insert(key, (start, self.entries.len() as u32));
    }
}

/// The number of an OSC name, given when it is first asked for.
fn name_of(names: &mut HashMap<Box<str>, u32, StableState>, name: &str, count: &mut u32) -> u32 {
    if let Some(&number) = names.get(name) {
        return number;
    }
    let number = *count;
    *count += 1;
    names.insert(name.into(), number);
    number
}
