//! The rules that both engines get, and the events that both are asked about.
//!
//! A table is every note on every channel, 2 048 rules. Larger sets have one for each mode and device.

use conductor_engine::{Edge, NumberRange, RuleSource, RuleSpec, Scope, Trigger, ValueRange};

/// Rules for one mode and device.
pub const TABLE: usize = 128 * 16;
/// Modes that a set has, where it has rules for several tables.
const MODES: usize = 7;
/// How hard a key must be hit.
pub const SOFTEST: u8 = 20;

/// The key that a rule waits for.
#[derive(Clone, Copy, Debug)]
pub struct Spot {
    pub mode: u16,
    pub device: usize,
    pub channel: u8,
    pub note: u8,
}

/// A key that is played.
#[derive(Clone, Copy, Debug)]
pub struct Played {
    pub spot: Spot,
    pub velocity: u8,
}

/// How hard a key is hit.
#[derive(Clone, Copy, Debug)]
pub enum Velocity {
    /// The rule fires.
    Enough,
    /// Everything about the rule fits but this, so an engine has to look all the way.
    TooLow,
}

/// The spots of so many rules, with all that is left of them for each next device.
pub fn usual(size: usize) -> Vec<Spot> {
    (0..size).map(Spot::of).collect()
}

/// The spots of so many rules, dealt to so many devices in turn.
pub fn dealt(size: usize, devices: usize) -> Vec<Spot> {
    let spot = |index: usize| {
        let of_device = index / devices;
        Spot { mode: (of_device / TABLE) as u16, device: index % devices, ..Spot::of(of_device % TABLE) }
    };
    (0..size).map(spot).collect()
}

/// How many modes rules for these spots need.
pub fn modes(spots: &[Spot]) -> usize {
    spots.iter().map(|spot| usize::from(spot.mode) + 1).max().unwrap_or(1)
}

impl Spot {
    /// The key of the rule with this number.
    pub fn of(index: usize) -> Self {
        let table = index / TABLE;
        Self {
            mode: (table % MODES) as u16,
            device: table / MODES,
            channel: (index / 128 % 16) as u8,
            note: (index % 128) as u8,
        }
    }

    /// The key is played.
    pub fn event(self, velocity: Velocity) -> Played {
        let velocity = match velocity {
            Velocity::Enough => 100,
            Velocity::TooLow => SOFTEST - 1,
        };
        Played { spot: self, velocity }
    }
}

/// What a device is called.
pub fn device(device: usize) -> String {
    format!("device {device}")
}

/// What a mode is called.
pub fn mode(mode: usize) -> String {
    format!("mode {mode}")
}

/// A rule for each spot, for the engine.
pub fn source(spots: &[Spot]) -> RuleSource<usize> {
    let rule = |(index, spot): (usize, &Spot)| {
        let trigger = Trigger::Note {
            notes: NumberRange::one(spot.note.into()),
            velocity: ValueRange { min: SOFTEST.into(), max: 127 },
            edge: Edge::Press,
            channel: Some(spot.channel),
        };
        RuleSpec {
            scope: Scope::Mode(mode(spot.mode.into())),
            device: Some(device(spot.device)),
            ..RuleSpec::new(trigger, index)
        }
    };
    RuleSource { modes: (0..modes(spots)).map(mode).collect(), rules: spots.iter().enumerate().map(rule).collect() }
}

/// Events for rules drawn from these; the same ones in every run.
pub fn events(spots: &[Spot], count: usize, velocity: Velocity) -> Vec<Played> {
    // Knuth's MMIX generator; its high bits are random enough.
    let mut state = 1_u64;
    let mut draw = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % spots.len()
    };
    (0..count).map(|_| spots[draw()].event(velocity)).collect()
}
