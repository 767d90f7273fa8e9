//! Controllers, program changes and pitch bend: faders, knobs, encoders, switches, pedals, breath.

use std::collections::{BTreeMap, BTreeSet};

use conductor_feature::kind;

use crate::Kind;
use crate::notes::Group;
use crate::points::Tally;
use crate::relative::{self, Coding};
use crate::window::Moment;

/// Where the controllers of parameters begin in the numbers of [`Control`].
const FIRST_PARAMETER: u16 = 1000;
/// The controllers of transport buttons as several controllers are shipped.
const TRANSPORT: [std::ops::RangeInclusive<u16>; 3] = [41..=46, 58..=62, 113..=119];
/// Nanoseconds without a value after which a movement is over.
const REST_TIMEOUT_NANOS: u64 = 200_000_000;
/// Nanoseconds that two movements have to share.
const MIN_OVERLAP_NANOS: u64 = 60_000_000;
/// Values a second within a movement from which a stream is as dense as breath.
const MIN_DENSE_RATE: u64 = 40;

/// What a controller's values are like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Nature {
    /// It is down or up.
    Switch,
    /// It says how far it was turned; whether both ways were seen.
    Relative(Coding, bool),
    /// It says where it stands.
    Absolute,
}

/// A way from one place to another, without a rest.
#[derive(Debug, Clone, Copy)]
struct Movement {
    from: u64,
    to: u64,
    first: i32,
    last: i32,
    values: u64,
    highest: i32,
    lowest: i32,
}

/// The values of one controller.
#[derive(Debug, Clone)]
struct Control {
    channel: u8,
    number: u16,
    values: Vec<(u64, i32)>,
    nature: Nature,
    /// Whether a second controller has its low bits.
    fine: bool,
}

impl Control {
    fn new(channel: u8, number: u16, values: Vec<(u64, i32)>) -> Self {
        let nature = nature(&values);
        Self { channel, number, values, nature, fine: false }
    }

    fn movements(&self) -> Vec<Movement> {
        let chunks = self.values.chunk_by(|one, next| next.0.saturating_sub(one.0) <= REST_TIMEOUT_NANOS);
        let movement = |chunk: &[(u64, i32)]| {
            let (&(from, first), &(to, last)) = (chunk.first()?, chunk.last()?);
            let values = || chunk.iter().map(|(_, value)| *value);
            let (lowest, highest) = (values().min()?, values().max()?);
            Some(Movement { from, to, first, last, values: chunk.len() as u64, highest, lowest })
        };
        chunks.filter_map(movement).collect()
    }

    /// Whether it is breath: many values, and again and again from nothing to nothing.
    fn is_breath(&self) -> bool {
        if self.nature != Nature::Absolute || self.number >= FIRST_PARAMETER {
            return false;
        }
        let movements = self.movements();
        let long = |movement: &&Movement| movement.values >= 8;
        let dense = |movement: &&Movement| {
            movement.values * 1_000_000_000 >= MIN_DENSE_RATE * movement.to.saturating_sub(movement.from)
        };
        let blown = |movement: &&Movement| movement.first <= 8 && movement.last == 0;
        let all = movements.iter().filter(long).count();
        let of = movements.iter().filter(long).filter(dense).filter(blown).count();
        all > 0 && of * 3 >= all * 2
    }
}

fn nature(values: &[(u64, i32)]) -> Nature {
    let distinct: BTreeSet<i32> = values.iter().map(|(_, value)| *value).collect();
    let pressed: Vec<i32> = distinct.iter().copied().filter(|value| *value != 0).collect();
    let apart = |pair: &[(u64, i32)]| pair[1].0.saturating_sub(pair[0].0);
    let slow = || {
        let mut between: Vec<u64> = values.windows(2).map(apart).collect();
        between.sort_unstable();
        between.get(between.len() / 2).is_none_or(|middle| *middle >= 150_000_000)
    };
    match &pressed[..] {
        [127] if distinct.len() == 2 || slow() => return Nature::Switch,
        [one] if distinct.len() == 2 && *one >= 64 => return Nature::Switch,
        _ => {}
    }
    let steps: Vec<i32> = values.iter().map(|(_, value)| *value).collect();
    match relative::coding(&steps) {
        Some((coding, both)) => Nature::Relative(coding, both),
        None => Nature::Absolute,
    }
}

/// All controllers of a device.
#[derive(Debug, Clone, Default)]
pub struct Surface {
    controls: Vec<Control>,
    /// Pitch bend by channel.
    bends: BTreeMap<u8, Vec<(u64, i32)>>,
    /// Program changes by channel.
    programs: BTreeMap<u8, Vec<(u64, i32)>>,
    /// Data increments and decrements by channel.
    nudges: BTreeMap<u8, usize>,
}

impl Surface {
    /// The controllers among the events.
    pub fn new(moments: &[Moment], played: &[Group]) -> Self {
        let mut surface = Self::default();
        let mut values: BTreeMap<(u8, u16), Vec<(u64, i32)>> = BTreeMap::new();
        let mut parameters: BTreeMap<u8, u16> = BTreeMap::new();
        for moment in moments.iter().filter(|moment| moment.channel < 16) {
            let (channel, value) = (moment.channel, (moment.at, moment.steps()));
            match moment.kind {
                kind::PITCH_BEND => surface.bends.entry(channel).or_default().push(value),
                kind::PROGRAM_CHANGE => {
                    surface.programs.entry(channel).or_default().push((moment.at, i32::from(moment.number)));
                }
                kind::CONTROL_CHANGE => match moment.number {
                    98 | 100 => {
                        let low = u16::try_from(value.1).unwrap_or_default();
                        let parameter = parameters.entry(channel).or_default();
                        *parameter = (*parameter & !0x7F) | (low & 0x7F);
                    }
                    99 | 101 => {
                        let high = u16::try_from(value.1).unwrap_or_default() & 0x7F;
                        parameters.insert(channel, high << 7);
                    }
                    6 if parameters.contains_key(&channel) => {
                        let number = FIRST_PARAMETER + parameters.get(&channel).copied().unwrap_or_default();
                        values.entry((channel, number)).or_default().push(value);
                    }
                    38 if parameters.contains_key(&channel) => {}
                    96 | 97 => *surface.nudges.entry(channel).or_default() += 1,
                    0 | 32 if programs_follow(moments, moment) => {}
                    number if number < 120 => values.entry((channel, number)).or_default().push(value),
                    _ => {}
                },
                _ => {}
            }
        }
        surface.controls =
            values.into_iter().map(|((channel, number), values)| Control::new(channel, number, values)).collect();
        surface.join_low_bits();
        if let [mpe] = played
            && mpe.is_mpe()
        {
            // What each note has for itself is part of it.
            surface.controls.retain(|control| !(mpe.is_on(control.channel) && matches!(control.number, 1 | 64 | 74)));
        }
        surface
    }

    /// Joins controllers 0-31 with their low bits in 32-63, where each was sent as often as the other.
    fn join_low_bits(&mut self) {
        let counts: BTreeMap<(u8, u16), usize> =
            self.controls.iter().map(|control| ((control.channel, control.number), control.values.len())).collect();
        let pairs = |channel: u8, number: u16| {
            let (high, low) = (counts.get(&(channel, number)), counts.get(&(channel, number + 32)));
            high.zip(low).is_some_and(|(high, low)| *high >= 4 && high.abs_diff(*low) * 5 <= *high)
        };
        for control in &mut self.controls {
            control.fine = control.number < 32 && pairs(control.channel, control.number);
            if control.fine {
                control.nature = Nature::Absolute;
            }
        }
        self.controls
            .retain(|control| !((32..64).contains(&control.number) && pairs(control.channel, control.number - 32)));
    }

    fn get(&self, channel: u8, number: u16) -> Option<&Control> {
        self.controls.iter().find(|control| (control.channel, control.number) == (channel, number))
    }

    /// Whether a channel has the pedals that go with keys.
    pub fn has_sustain(&self, channel: u8) -> bool {
        [64, 66, 67].iter().any(|number| self.get(channel, *number).is_some())
    }

    /// Whether a channel has a wheel that goes back to its middle.
    pub fn has_wheel(&self, channel: u8) -> bool {
        self.bends.get(&channel).is_some_and(|bends| bends.iter().any(|(_, value)| *value == 8192))
    }

    /// Whether a channel has a modulation wheel that is not one of a row.
    pub fn has_modulation(&self, channel: u8) -> bool {
        let moved = self.get(channel, 1).is_some_and(|control| control.nature == Nature::Absolute);
        moved && self.get(channel, 2).is_none() && self.get(channel, 3).is_none()
    }

    /// Whether a channel has the pedal of a hi-hat, and neither of its neighbours.
    pub fn has_hi_hat(&self, channel: u8) -> bool {
        let moved = self.get(channel, 4).is_some_and(|control| control.values.len() >= 3);
        moved && self.get(channel, 3).is_none() && self.get(channel, 5).is_none()
    }

    /// Whether a channel has breath.
    pub fn is_blown(&self, channel: u8) -> bool {
        self.controls.iter().any(|control| control.channel == channel && control.is_breath())
    }

    /// What controllers, program changes and bends may be.
    pub fn tallies(&self, played: &[Group]) -> Vec<Tally> {
        let has_notes = |channel: u8| played.iter().any(|group| group.is_on(channel));
        let mut found = Vec::new();
        let mut rest: Vec<&Control> = Vec::new();
        for control in &self.controls {
            match control.nature {
                _ if control.is_breath() => found.push(breath(control)),
                // Pedals and wheels of an instrument count with its notes.
                _ if has_notes(control.channel) && self.is_companion(control) => {}
                _ => rest.push(control),
            }
        }
        found.extend(self.encoders(&rest));
        let absolute: Vec<&Control> =
            rest.iter().copied().filter(|control| control.nature == Nature::Absolute).collect();
        let mut panels: BTreeSet<u8> = BTreeSet::new();
        let mut pedals: BTreeMap<u8, &Control> = BTreeMap::new();
        for row in rows(&absolute) {
            match row[..] {
                [one] if matches!(one.number, 1 | 4 | 7 | 11) && !one.fine => {
                    pedals.insert(one.channel, one);
                }
                _ => {
                    panels.extend(row.iter().map(|control| control.channel));
                    found.push(panel(&row));
                }
            }
        }
        panels
            .extend(rest.iter().filter(|it| matches!(it.nature, Nature::Relative(..))).map(|control| control.channel));
        let switches: Vec<&Control> = rest.iter().copied().filter(|control| control.nature == Nature::Switch).collect();
        found.extend(self.switches(&switches, &pedals, &panels, &has_notes));
        found.extend(self.bent(&has_notes));
        found
    }

    /// Whether a controller belongs to the notes of its channel.
    fn is_companion(&self, control: &Control) -> bool {
        match control.number {
            64..=69 => control.nature == Nature::Switch || (self.get(control.channel, 70).is_none()),
            1 => self.has_modulation(control.channel),
            4 => self.has_hi_hat(control.channel),
            11 => self.get(control.channel, 10).is_none() && self.get(control.channel, 12).is_none(),
            _ => false,
        }
    }

    fn encoders(&self, rest: &[&Control]) -> Option<Tally> {
        let turned: Vec<(&Control, Coding, bool)> = rest
            .iter()
            .filter_map(|control| match control.nature {
                Nature::Relative(coding, both) => Some((*control, coding, both)),
                _ => None,
            })
            .collect();
        let nudged: usize = self.nudges.values().sum();
        let events = nudged + turned.iter().map(|(control, ..)| control.values.len()).sum::<usize>();
        if events == 0 {
            return None;
        }
        let channels: BTreeSet<u8> =
            turned.iter().map(|(control, ..)| control.channel).chain(self.nudges.keys().copied()).collect();
        let mut tally = Tally::new(events, events, channels.into_iter().collect());
        let Some((_, coding, _)) = turned.iter().max_by_key(|(control, ..)| control.values.len()) else {
            tally.give(Kind::Encoders, 6, || format!("{nudged} data increments and decrements"));
            return Some(tally);
        };
        let both = turned.iter().filter(|(.., both)| *both).count();
        tally.give(Kind::Encoders, 5, || format!("{} controllers say steps: {}", turned.len(), coding.as_str()));
        tally.give_if(both > 0, Kind::Encoders, 4, || format!("{both} of them were turned both ways"));
        // One way alone may be a knob that was hardly moved, or a button.
        tally.give_if(both == 0, Kind::Knobs, 2, || "turned one way alone".to_owned());
        Some(tally)
    }

    fn switches(
        &self,
        switches: &[&Control],
        pedals: &BTreeMap<u8, &Control>,
        panels: &BTreeSet<u8>,
        has_notes: &dyn Fn(u8) -> bool,
    ) -> Vec<Tally> {
        let channels: BTreeSet<u8> = switches
            .iter()
            .map(|control| control.channel)
            .chain(pedals.keys().copied())
            .chain(self.programs.keys().copied())
            .collect();
        let is_transport = |control: &Control| TRANSPORT.iter().any(|numbers| numbers.contains(&control.number));
        let mut found = Vec::new();
        for channel in channels {
            let own: Vec<&Control> = switches.iter().copied().filter(|control| control.channel == channel).collect();
            let wound = own.iter().filter(|control| is_transport(control)).count();
            let programs = self.programs.get(&channel).filter(|_| !has_notes(channel));
            let pedal = pedals.get(&channel);
            // Buttons beside faders and knobs are theirs, but for the transport.
            let on_panel = panels.contains(&channel);
            if own.is_empty() && programs.is_none() && pedal.is_none() || on_panel && wound < 2 && programs.is_none() {
                continue;
            }
            let presses = |control: &&Control| control.values.iter().filter(|(_, value)| *value != 0).count();
            let mut times: Vec<u64> = own
                .iter()
                .flat_map(|control| control.values.iter().filter(|(_, value)| *value != 0).map(|(at, _)| *at))
                .chain(programs.into_iter().flatten().map(|(at, _)| *at))
                .collect();
            times.sort_unstable();
            let pressed = own.iter().map(presses).sum::<usize>() + programs.map_or(0, Vec::len);
            let moved = pedal.map_or(0, |pedal| pedal.movements().len());
            let events = own.iter().map(|control| control.values.len()).sum::<usize>()
                + programs.map_or(0, Vec::len)
                + pedal.map_or(0, |pedal| pedal.values.len());
            let mut tally = Tally::new(events, 2 * (pressed + moved), vec![channel]);
            if wound > 0 && wound * 2 >= own.len() {
                tally.give(Kind::Transport, 6, || {
                    format!("{wound} buttons on controllers that are transport buttons as devices are shipped")
                });
            }
            tally.give_if(programs.is_some_and(|programs| programs.len() >= 2), Kind::FootController, 5, || {
                format!("{} program changes, and no notes", programs.map_or(0, Vec::len))
            });
            let low = own.iter().filter(|control| matches!(control.number, 64..=69 | 80..=83)).count();
            tally.give_if(low > 0, Kind::FootController, 3, || {
                format!("{low} switches on pedals or general-purpose buttons of MIDI")
            });
            let mut between: Vec<u64> = times.windows(2).map(|pair| (pair[1] - pair[0]) / 1_000_000).collect();
            between.sort_unstable();
            let pace = between.get(between.len() / 2).copied().unwrap_or_default();
            tally.give_if(pace >= 300 && !on_panel, Kind::FootController, 2, || {
                format!("one switch at a time, {pace} ms apart (median)")
            });
            tally.give_if(!on_panel && wound * 2 < own.len(), Kind::FootController, 2, || {
                format!("{} switches, and no knob or fader", own.len())
            });
            if let Some(pedal) = pedal {
                let alone = own.is_empty() && programs.is_none();
                if alone && matches!(pedal.number, 1 | 7) {
                    movement_points(&mut tally, &[pedal]);
                }
                let points = if matches!(pedal.number, 4 | 11) { 5 } else { 3 };
                tally.give(Kind::FootController, points, || {
                    format!("controller {} moves alone, as an expression pedal", pedal.number)
                });
            }
            found.push(tally);
        }
        found
    }

    /// Pitch bend without notes: the faders of a Mackie-style surface, or a wheel that nothing was played with.
    fn bent(&self, has_notes: &dyn Fn(u8) -> bool) -> Option<Tally> {
        let bent: Vec<(u8, &Vec<(u64, i32)>)> = self
            .bends
            .iter()
            .filter(|(channel, values)| {
                !has_notes(**channel) || (self.bends.len() > 1 && !values.iter().any(|(_, value)| *value == 8192))
            })
            .map(|(channel, values)| (*channel, values))
            .collect();
        let events = bent.iter().map(|(_, values)| values.len()).sum::<usize>();
        if events == 0 {
            return None;
        }
        let mut tally = Tally::new(events, events, bent.iter().map(|(channel, _)| *channel).collect());
        let returns = bent.iter().filter(|(_, values)| values.last().is_some_and(|(_, value)| *value == 8192)).count();
        if bent.len() > 1 {
            tally.give(Kind::Faders, 8, || {
                format!("pitch bend on {} channels and no notes with it: faders of the Mackie protocol", bent.len())
            });
        } else if returns > 0 {
            tally.give(Kind::Keyboard, 4, || "a wheel that goes back to its middle".to_owned());
            tally.give(Kind::Faders, 2, || "pitch bend on one channel".to_owned());
        } else {
            tally.give(Kind::Faders, 4, || "pitch bend that stays where it was moved to".to_owned());
            tally.give(Kind::Keyboard, 2, || "pitch bend on one channel".to_owned());
        }
        Some(tally)
    }
}

/// Whether a bank select is followed by its program change, and so is no fader.
fn programs_follow(moments: &[Moment], bank: &Moment) -> bool {
    moments.iter().any(|moment| {
        moment.kind == kind::PROGRAM_CHANGE
            && moment.channel == bank.channel
            && moment.at >= bank.at
            && moment.at - bank.at <= 50_000_000
    })
}

fn breath(control: &Control) -> Tally {
    let movements = control.movements();
    let mut tally = Tally::new(control.values.len(), control.values.len() / 4, vec![control.channel]);
    tally.give_if(control.number == 2, Kind::Breath, 5, || "controller 2, which is breath".to_owned());
    tally.give(Kind::Breath, 5, || {
        let each = control.values.len() / movements.len().max(1);
        format!("controller {} rises from nothing and falls back, {each} values each time", control.number)
    });
    tally.give_if(matches!(control.number, 4 | 11), Kind::FootController, 3, || "it may be a pedal".to_owned());
    tally
}

/// Controllers that stand beside each other: consecutive numbers on a channel, one number on several channels, and of
/// each channel those that stand alone.
fn rows<'a>(controls: &[&'a Control]) -> Vec<Vec<&'a Control>> {
    let mut rows: Vec<Vec<&Control>> = Vec::new();
    let strips = |number: u16| controls.iter().filter(|control| control.number == number).count();
    let (strip, others): (Vec<&Control>, Vec<&Control>) =
        controls.iter().copied().partition(|control| strips(control.number) >= 3);
    let mut by_number: BTreeMap<u16, Vec<&Control>> = BTreeMap::new();
    strip.into_iter().for_each(|control| by_number.entry(control.number).or_default().push(control));
    rows.extend(by_number.into_values());
    let mut alone: BTreeMap<u8, Vec<&Control>> = BTreeMap::new();
    // They are in the order of channels and numbers.
    for row in others.chunk_by(|one, next| one.channel == next.channel && next.number - one.number <= 2) {
        match row {
            [] => {}
            // A pedal beside a panel is none of its controls.
            [one] if matches!(one.number, 4 | 11) => rows.push(vec![*one]),
            [one] => alone.entry(one.channel).or_default().push(*one),
            row => rows.push(row.to_vec()),
        }
    }
    rows.extend(alone.into_values());
    rows
}

/// A row of absolute controllers: faders, or knobs.
fn panel(row: &[&Control]) -> Tally {
    let events = row.iter().map(|control| control.values.len()).sum();
    let movements: usize = row.iter().map(|control| control.movements().len()).sum();
    let channels: BTreeSet<u8> = row.iter().map(|control| control.channel).collect();
    let mut tally = Tally::new(events, movements * 2, channels.into_iter().collect());
    let fine = row.iter().filter(|control| control.fine).count();
    tally.give_if(fine > 0, Kind::Faders, 1, || format!("{fine} controllers of 14 bits"));
    movement_points(&mut tally, row);
    tally
}

/// What the movements of controllers speak for.
fn movement_points(tally: &mut Tally, row: &[&Control]) {
    use Kind::{Faders, Knobs};
    let of: Vec<(usize, Movement)> = row
        .iter()
        .enumerate()
        .flat_map(|(place, control)| control.movements().into_iter().map(move |movement| (place, movement)))
        .filter(|(_, movement)| movement.values >= 3)
        .collect();
    let all = of.len();
    let shares = |one: &Movement, other: &Movement| {
        one.to.min(other.to).saturating_sub(one.from.max(other.from)) >= MIN_OVERLAP_NANOS
    };
    let at_once =
        of.iter().filter(|(place, one)| of.iter().any(|(where_, other)| where_ != place && shares(one, other))).count();
    let at_once = 100 * at_once / all.max(1);
    tally.give_if(at_once >= 25, Faders, 3, || format!("{at_once} % of the movements are of several at once"));
    tally.give_if(at_once < 12 && all >= 4 && row.len() > 1, Knobs, 2, || "one at a time".to_owned());
    let mut speeds: Vec<i64> = of.iter().map(|(_, movement)| speed(movement)).collect();
    speeds.sort_unstable();
    let speed = speeds.get(all / 2).copied().unwrap_or_default();
    tally.give_if(speed >= 180, Faders, 3, || format!("moved fast, {speed} steps a second (median)"));
    tally.give_if((1..110).contains(&speed), Knobs, 3, || format!("moved slowly, {speed} steps a second (median)"));
    let ended = of.iter().filter(|(_, movement)| matches!(movement.last, 0 | 127)).count() * 100 / all.max(1);
    tally.give_if(ended >= 35, Faders, 1, || format!("{ended} % of the movements go to an end"));
    tally.give_if(ended < 15, Knobs, 1, || format!("{ended} % of the movements go to an end"));
    let mut ways: Vec<i32> = of.iter().map(|(_, movement)| movement.highest - movement.lowest).collect();
    ways.sort_unstable();
    let way = ways.get(all / 2).copied().unwrap_or_default();
    tally.give_if(way >= 60, Faders, 1, || format!("long ways, {way} steps (median)"));
    tally.give_if(way < 40, Knobs, 1, || format!("short ways, {way} steps (median)"));
    let volume = row.iter().all(|control| control.number == 7);
    tally.give_if(volume, Faders, 2, || "controller 7, volume".to_owned());
    let sound = row.iter().filter(|control| matches!(control.number, 10 | 70..=79 | 91..=95)).count();
    tally.give_if(sound * 2 > row.len(), Knobs, 2, || "controllers of sound, pan and effects".to_owned());
}

/// Steps a second.
fn speed(movement: &Movement) -> i64 {
    let way = i64::from((movement.last - movement.first).abs().max((movement.highest - movement.lowest) / 2));
    let took = i64::try_from(movement.to.saturating_sub(movement.from) / 1_000_000).unwrap_or(i64::MAX);
    way.saturating_mul(1000) / took.max(1)
}
