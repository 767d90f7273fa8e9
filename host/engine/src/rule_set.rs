//! The compiled rule set: immutable, and indexed so that an event only meets rules that may match it.
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
//! for patterns that begin with a wildcard. Art-Net's channels, of which there are too many for tables,
//! find theirs by universe and channel.
//!
//! So neither the number of rules nor that of modes and devices matters, only that of rules which share
//! device, kind, channel and number with the event and differ in the value range alone.

use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::condition::{Condition, Moment};
use crate::device::DeviceId;
use crate::event::{Event, GamepadEvent};
use crate::gesture::Encoding;
use crate::hash::{KeyState, StableHasher, StableState, key_of_pair};
use crate::held::parameter;
use crate::midi::MidiMessage;
use crate::rule::Rule;
use crate::trigger::{NumberRange, Readings, Trigger, ValueRange};

/// A mode, by its place in [`RuleSet::modes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModeIx(pub u16);

impl ModeIx {
    /// No mode: only global rules match.
    pub const NONE: Self = Self(u16::MAX);

    /// How many modes one set may have.
    pub const MAX_MODES: usize = u16::MAX as usize;
}

/// One rule that an event met.
pub struct Match<'a, A> {
    /// The rule.
    pub rule: &'a Rule<A>,
    /// How far into the trigger's number range the event is, from 0; 0 where there is no range.
    pub position: u16,
}

impl<A> Clone for Match<'_, A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A> Copy for Match<'_, A> {}

impl<A> fmt::Debug for Match<'_, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Match").field("rule", &self.rule.id).field("position", &self.position).finish()
    }
}

/// An immutable set of rules with its index. Made by [`compile`](crate::compile()).
///
/// Rules are asked in this order: higher priority first; among equals, rules for a device before rules
/// for every device; among those, the order of the file. Being for one mode or for all of them does not
/// change the order.
pub struct RuleSet<A> {
    modes: Vec<Arc<str>>,
    rules: Vec<Rule<A>>,
    fingerprint: u64,
    index: Index,
    /// Of the rules for gestures, by the events that they are begun or carried on by.
    gestures: Option<Box<Index>>,
    /// Whether any rule has a condition, or an action that decides by one.
    has_conditions: bool,
    /// Whether any rule asks what is held.
    remembers: bool,
}

impl<A> RuleSet<A> {
    /// Indexes rules that are checked, sorted and numbered.
    pub(crate) fn build(modes: Vec<Arc<str>>, rules: Vec<Rule<A>>) -> Self {
        let fingerprint = fingerprint(&modes, &rules);
        let index = Index::build(modes.len(), &rules, |rule| !rule.trigger.is_gesture());
        let has_gestures = rules.iter().any(|rule| rule.trigger.is_gesture());
        let gestures =
            has_gestures.then(|| Box::new(Index::build(modes.len(), &rules, |rule| rule.trigger.is_gesture())));
        let has_conditions = rules.iter().any(|rule| rule.condition.is_some() || rule.choices.is_some());
        let remembers = rules.iter().any(asks_what_is_held);
        Self { modes, rules, fingerprint, index, gestures, has_conditions, remembers }
    }

    /// Has the engine remember what is held even if no rule asks: somebody else does.
    #[must_use]
    pub fn remembering(mut self) -> Self {
        self.remembers = true;
        self
    }

    /// Whether there are rules for gestures.
    #[inline]
    pub fn has_gestures(&self) -> bool {
        self.gestures.is_some()
    }

    /// Whether there are rules with a condition, or with an action that decides by one.
    #[inline]
    pub fn has_conditions(&self) -> bool {
        self.has_conditions
    }

    /// Whether what is held has to be remembered.
    #[inline]
    pub fn remembers(&self) -> bool {
        self.remembers
    }

    /// Whether any rule for a gesture may care about the event.
    #[inline]
    pub(crate) fn has_gesture_for(&self, mode: ModeIx, device: &DeviceId, event: &Event) -> bool {
        let find = |index| self.search(index, mode, device, event, None).next().is_some();
        self.gestures.as_ref().is_some_and(|index| find(index))
    }

    /// The rules for gestures that the event may begin or carry on, in order; none of them consumes here.
    pub(crate) fn gestures_at<'a>(
        &'a self,
        mode: ModeIx,
        device: &'a DeviceId,
        event: &'a Event,
        moment: &'a Moment<'a>,
    ) -> Option<Matches<'a, A>> {
        self.gestures.as_ref().map(|index| self.search(index, mode, device, event, Some(moment)))
    }

    /// The rules that `event` from `device` meets in `mode`, in order, up to and including the first that
    /// consumes it. Conditions are taken to hold.
    ///
    /// Takes no lock and allocates nothing. A mode that is not in the set (as [`ModeIx::NONE`]) meets the
    /// global rules.
    #[inline]
    pub fn matches<'a>(&'a self, mode: ModeIx, device: &'a DeviceId, event: &'a Event) -> Matches<'a, A> {
        self.search(&self.index, mode, device, event, None)
    }

    /// The same, but for rules whose condition does not hold at this moment.
    #[inline]
    pub fn matches_at<'a>(
        &'a self,
        mode: ModeIx,
        device: &'a DeviceId,
        event: &'a Event,
        moment: &'a Moment<'a>,
    ) -> Matches<'a, A> {
        self.search(&self.index, mode, device, event, Some(moment))
    }

    /// Inlined by force, as what it leads to: it is called for matches and for gestures, and to hand over
    /// what was just written takes as long as to find it.
    #[inline(always)]
    fn search<'a>(
        &'a self,
        index: &'a Index,
        mode: ModeIx,
        device: &'a DeviceId,
        event: &'a Event,
        moment: Option<&'a Moment<'a>>,
    ) -> Matches<'a, A> {
        Matches {
            rules: &self.rules,
            index,
            event,
            moment,
            probe: Probe::new(event),
            mode,
            device,
            lanes: Lanes::default(),
            searched: false,
        }
    }

    /// The index of the mode with this name.
    pub fn mode_index(&self, name: &str) -> Option<ModeIx> {
        self.modes.iter().position(|mode| **mode == *name).map(|index| ModeIx(index as u16))
    }

    /// The names of the modes, in the order of the file.
    pub fn modes(&self) -> &[Arc<str>] {
        &self.modes
    }

    /// The rules, in the order in which they are asked: a rule's [`RuleId`](crate::RuleId) is its place
    /// here.
    pub fn rules(&self) -> &[Rule<A>] {
        &self.rules
    }

    /// A hash of the modes and of all rules but for their places and actions: the same for the same
    /// source in every run and on every platform.
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }
}

/// Two sets are equal when their modes and rules are; the index follows from them.
impl<A: PartialEq> PartialEq for RuleSet<A> {
    fn eq(&self, other: &Self) -> bool {
        self.fingerprint == other.fingerprint && self.modes == other.modes && self.rules == other.rules
    }
}

impl<A> fmt::Debug for RuleSet<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuleSet")
            .field("modes", &self.modes)
            .field("rules", &self.rules.len())
            .field("fingerprint", &format_args!("{:016x}", self.fingerprint))
            .finish_non_exhaustive()
    }
}

fn asks_what_is_held<A>(rule: &Rule<A>) -> bool {
    let mut asks = matches!(
        rule.trigger,
        Trigger::FineControl { .. }
            | Trigger::Parameter { .. }
            | Trigger::Turn { encoding: Encoding::Difference, .. }
            | Trigger::GamepadStick { readings: Readings::First, .. }
            | Trigger::GamepadTrigger { readings: Readings::First, .. }
    );
    for condition in rule.conditions() {
        condition.each(&mut |condition| {
            asks |= matches!(condition, Condition::NoteHeld { .. } | Condition::CcValueInRange { .. });
        });
    }
    asks
}

fn fingerprint<A>(modes: &[Arc<str>], rules: &[Rule<A>]) -> u64 {
    let mut hasher = StableHasher::default();
    modes.hash(&mut hasher);
    for rule in rules {
        rule.name.hash(&mut hasher);
        rule.device.hash(&mut hasher);
        rule.mode.hash(&mut hasher);
        rule.trigger.hash(&mut hasher);
        if let Some(condition) = &rule.condition {
            condition.hash(&mut hasher);
        }
        if let Some(choices) = &rule.choices {
            choices.hash(&mut hasher);
        }
        if rule.defer {
            rule.defer.hash(&mut hasher);
        }
        rule.priority.hash(&mut hasher);
        rule.consume.hash(&mut hasher);
    }
    hasher.finish()
}

/// The rules an event meets, in order. See [`RuleSet::matches`].
pub struct Matches<'a, A> {
    rules: &'a [Rule<A>],
    index: &'a Index,
    event: &'a Event,
    /// None if conditions are taken to hold.
    moment: Option<&'a Moment<'a>>,
    probe: Probe,
    mode: ModeIx,
    device: &'a DeviceId,
    lanes: Lanes,
    /// Whether the lanes have been looked for. That waits for the first `next`, when the iterator stands
    /// where it is used: to move what was written a moment ago takes as long as to find it.
    searched: bool,
}

impl<'a, A> Iterator for Matches<'a, A> {
    type Item = Match<'a, A>;

    #[inline(always)]
    fn next(&mut self) -> Option<Match<'a, A>> {
        if !self.searched {
            self.searched = true;
            let ids = self.index.buckets_of(self.mode, self.device);
            self.index.find(&ids, &self.probe, self.event, &mut self.lanes);
        }
        loop {
            let entry = self.lanes.next(&self.index.entries)?;
            if !(entry.min <= self.probe.value && self.probe.value <= entry.max) {
                continue;
            }
            let rule = &self.rules[entry.rank as usize];
            if entry.flags & (ASK_TRIGGER | ASK_CONDITION) != 0 && !self.agrees(entry, rule) {
                continue;
            }
            if entry.flags & CONSUME != 0 {
                self.lanes.clear();
            }
            let position = match entry.base {
                NO_NUMBER => 0,
                base => self.probe.number - base,
            };
            return Some(Match { rule, position });
        }
    }
}

impl<A> Matches<'_, A> {
    /// Asks the rule what its entry does not say.
    #[inline(never)]
    fn agrees(&self, entry: Entry, rule: &Rule<A>) -> bool {
        (entry.flags & ASK_TRIGGER == 0 || rule.trigger.matches(self.event).is_some())
            && match (&rule.condition, self.moment) {
                (Some(condition), Some(moment)) => condition.holds(moment),
                _ => true,
            }
    }
}

impl<A> fmt::Debug for Matches<'_, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Matches").field("event", self.event).finish_non_exhaustive()
    }
}

/// What the index asks of an event, as small integers.
struct Probe {
    kind: Kind,
    /// [`NO_NUMBER`] where the kind has none. What a gamepad has counts from 0 here.
    number: u16,
    /// 16 or more where there is none.
    channel: u8,
    value: u16,
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
    Osc,
    ButtonDown,
    ButtonUp,
    Stick,
    GamepadTrigger,
    ArtNet,
}

impl Kind {
    const COUNT: usize = 15;
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
const NO_NUMBER: u16 = 0xFFFF;
/// Where the numbers of a gamepad begin.
const GAMEPAD: u8 = 128;
/// Not a channel.
const NO_CHANNEL: u8 = 0xFF;

impl Probe {
    fn new(event: &Event) -> Self {
        let channelled = |kind, channel, number: u8, value| Self { kind, number: number.into(), channel, value };
        let on_channel = |kind, channel, value| Self { kind, number: NO_NUMBER, channel, value };
        let plain = |kind, number| Self { kind, number, channel: NO_CHANNEL, value: 0 };
        match event {
            Event::Osc(_) => plain(Kind::Osc, NO_NUMBER),
            Event::Gamepad(moved) => {
                let kind = match moved {
                    GamepadEvent::Button { pressed: true, .. } => Kind::ButtonDown,
                    GamepadEvent::Button { pressed: false, .. } => Kind::ButtonUp,
                    GamepadEvent::Stick { .. } => Kind::Stick,
                    GamepadEvent::Trigger { .. } => Kind::GamepadTrigger,
                };
                plain(kind, u16::from(moved.number().wrapping_sub(GAMEPAD)))
            }
            // Found, not sent: no rule waits for the event itself.
            Event::Gesture(_) => plain(Kind::System, NO_NUMBER),
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
struct Entry {
    rank: u32,
    min: u16,
    max: u16,
    /// The first number of the trigger's range, [`NO_NUMBER`] where it has none.
    base: u16,
    flags: u8,
}

/// The rule consumes.
const CONSUME: u8 = 1;
/// What the entry says is not all: ask the trigger itself.
const ASK_TRIGGER: u8 = 2;
/// The last entry of its lane.
const LAST: u8 = 4;
/// The rule has a condition.
const ASK_CONDITION: u8 = 8;

/// The most lanes one event can find: four buckets, with and without channel, its number and any.
const MAX_LANES: usize = 16;

/// The lanes found for one event: for each, which entry is next.
#[derive(Default)]
struct Lanes {
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

    fn clear(&mut self) {
        self.count = 0;
    }

    /// The unread entry of the lowest rank. A lane is dropped when it is read to its end.
    #[inline(always)]
    fn next(&mut self, entries: &[Entry]) -> Option<Entry> {
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
struct Index {
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
    entries: Vec<Entry>,
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
struct BucketIds {
    global: u32,
    mode: u32,
    device: u32,
    device_and_mode: u32,
}

impl Index {
    #[inline(always)]
    fn buckets_of(&self, mode: ModeIx, device: &DeviceId) -> BucketIds {
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
    fn find(&self, ids: &BucketIds, probe: &Probe, event: &Event, lanes: &mut Lanes) {
        match event {
            Event::Midi(_) | Event::Gamepad(_) => {
                // One by one: an array of ids would be written to memory only to be read back.
                self.find_numbered(ids.global, probe, lanes);
                self.find_numbered(ids.mode, probe, lanes);
                self.find_numbered(ids.device, probe, lanes);
                self.find_numbered(ids.device_and_mode, probe, lanes);
            }
            Event::Osc(message) => self.find_osc(ids, &message.address, lanes),
            Event::Gesture(_) => {}
            Event::ArtNet(change) => {
                let key = dmx_key(change.universe, change.channel);
                for id in [ids.global, ids.mode, ids.device, ids.device_and_mode] {
                    self.find_keyed(id, key, lanes);
                }
            }
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
    fn find_osc(&self, ids: &BucketIds, address: &str, lanes: &mut Lanes) {
        let name = |names: &HashMap<Box<str>, u32, StableState>, text: &str| {
            if names.is_empty() { None } else { names.get(text).copied() }
        };
        let names = [name(&self.osc_addresses, address), name(&self.osc_first_parts, first_part(address))];
        for id in [ids.global, ids.mode, ids.device, ids.device_and_mode] {
            let Some(bucket) = self.buckets.get(id as usize) else {
                continue;
            };
            self.find_number(bucket.kinds[Kind::Osc as usize].any, NO_NUMBER, lanes);
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

    fn build<A>(modes: usize, rules: &[Rule<A>], is_in: impl Fn(&Rule<A>) -> bool) -> Self {
        let mut builder = Builder::new(modes, rules.len());
        for rule in rules.iter().filter(|rule| is_in(rule)) {
            builder.add(rule);
        }
        builder.finish()
    }
}

/// The key of a DMX channel. OSC names are counted from 0 and never come near.
fn dmx_key(universe: u16, channel: u16) -> u32 {
    1 << 31 | u32::from(universe) << 10 | u32::from(channel)
}

/// What stands between the first and the second slash of an address.
fn first_part(address: &str) -> &str {
    let rest = address.strip_prefix('/').unwrap_or(address);
    rest.split_once('/').map_or(rest, |(part, _)| part)
}

/// Collects entries, each with the lanes it belongs to, and puts them there at the end.
struct Builder {
    index: Index,
    /// In order of rank, as rules are added in that order.
    pending: Vec<Pending>,
    /// The same for the lanes that have a key: bucket, key, entry.
    pending_keyed: Vec<(Pair, Entry)>,
    /// How many OSC names there are, addresses and first parts together.
    names: u32,
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
    /// None for every channel.
    channel: Option<u8>,
}

/// The lane for every number.
const ANY_NUMBER: u8 = 0;
/// How many lanes a table may have: one for each number, and the one beside them.
const LANES: usize = 129;

impl Builder {
    fn new(modes: usize, rules: usize) -> Self {
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
            flags: if rule.consume && !rule.trigger.is_gesture() { CONSUME } else { 0 }
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
            &Trigger::GamepadButton { buttons, edge } => {
                if edge.has_press() {
                    self.gamepad(bucket, Kind::ButtonDown, buttons, entry);
                }
                if edge.has_release() {
                    self.gamepad(bucket, Kind::ButtonUp, buttons, entry);
                }
            }
            &Trigger::GamepadStick { sticks, readings, .. } => {
                self.gamepad(bucket, Kind::Stick, sticks, asked_each_time(entry, readings));
            }
            &Trigger::GamepadTrigger { triggers, readings, .. } => {
                self.gamepad(bucket, Kind::GamepadTrigger, triggers, asked_each_time(entry, readings));
            }
            &Trigger::LongPress { keys, velocity, channel, .. }
            | &Trigger::DoubleTap { keys, velocity, channel, .. } => {
                if keys.first >= GAMEPAD {
                    self.gamepad(bucket, Kind::ButtonDown, keys, entry);
                } else {
                    self.numbers(bucket, Kind::NoteOn, channel, keys, with(velocity));
                }
            }
            Trigger::Chord { keys, channel, .. } => {
                for &key in keys {
                    match key.checked_sub(GAMEPAD) {
                        Some(button) => self.lane(bucket, Kind::ButtonDown, None, Some(button), entry),
                        None => self.lane(bucket, Kind::NoteOn, *channel, Some(key), entry),
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
        }
    }

    /// Adds an entry to the lanes of a range of numbers. A rule for all of them goes into the one lane
    /// beside these instead of into 128.
    fn numbers(&mut self, bucket: u32, kind: Kind, channel: Option<u8>, range: NumberRange, entry: Entry) {
        let lanes = match range {
            NumberRange::ALL => (ANY_NUMBER, ANY_NUMBER),
            NumberRange { first, last } => (first + 1, last + 1),
        };
        let table = TableKey { bucket, kind: kind as u8, channel };
        self.pending.push(Pending { table, lanes, entry: Entry { base: range.first.into(), ..entry } });
    }

    /// The same for what a gamepad has.
    fn gamepad(&mut self, bucket: u32, kind: Kind, range: NumberRange, entry: Entry) {
        let from_0 = NumberRange { first: range.first - GAMEPAD, last: range.last - GAMEPAD };
        self.numbers(bucket, kind, None, from_0, entry);
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

/// A gesture looks at every reading itself; for a match the trigger is asked.
fn asked_each_time(entry: Entry, readings: Readings) -> Entry {
    match readings {
        Readings::Each => Entry { flags: entry.flags | ASK_TRIGGER, ..entry },
        Readings::First => entry,
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
