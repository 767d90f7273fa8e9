//! What has no channel: clocks, time code, and the messages that start and stop.

use conductor_feature::kind;

use crate::Kind;
use crate::points::Tally;
use crate::window::Moment;

/// Ticks of a quarter note at which a clock counts as one, as MIDI 1.0 has it.
const TICKS: usize = 24;
/// Milliseconds between ticks: a quarter of 20 to 400 beats a minute.
const TICK_MS: std::ops::RangeInclusive<u64> = 6..=125;

/// The clock and the transport among the events.
pub fn tallies(moments: &[Moment]) -> Vec<Tally> {
    let of = |wanted: &[u8]| moments.iter().filter(|moment| wanted.contains(&moment.kind)).count();
    let (ticks, code) = (of(&[kind::CLOCK]), of(&[kind::TIME_CODE]));
    let (starts, position) = (of(&[kind::START, kind::CONTINUE, kind::STOP]), of(&[kind::SONG_POSITION]));
    let commands = moments.iter().filter(|moment| moment.machine_control).count();
    let mut found = Vec::new();
    if ticks >= TICKS || code >= 8 {
        let mut clock = Tally::new(ticks + code + starts + position, ticks + code, Vec::new());
        if ticks >= TICKS {
            let (median, regular) = regularity(moments);
            clock.give_if(TICK_MS.contains(&(median / 1_000_000)), Kind::DawClock, 6, || {
                let bpm = 60_000_000_000 / (median.max(1) * TICKS as u64);
                format!("{ticks} clock ticks, 24 to a beat at about {bpm} a minute")
            });
            clock.give_if(regular >= 90, Kind::DawClock, 2, || format!("{regular} % of them come evenly"));
        }
        clock.give_if(code >= 8, Kind::DawClock, 6, || format!("{code} quarter frames of time code"));
        clock.give_if(position > 0, Kind::DawClock, 2, || "song position".to_owned());
        clock.give_if(starts > 0, Kind::DawClock, 1, || "start and stop go with the clock".to_owned());
        found.push(clock);
    } else if starts > 0 {
        let mut buttons = Tally::new((starts + position).max(3), starts * 3, Vec::new());
        buttons.give(Kind::Transport, 6, || format!("start, stop or continue {starts} times, and no clock"));
        found.push(buttons);
    }
    if commands > 0 {
        let mut machine = Tally::new(commands.max(3), commands * 4, Vec::new());
        machine.give(Kind::Transport, 8, || format!("{commands} commands of MIDI machine control"));
        found.push(machine);
    }
    found
}

/// The median time between ticks in nanoseconds, and how many percent lie within a quarter of it.
fn regularity(moments: &[Moment]) -> (u64, usize) {
    let ticks: Vec<u64> = moments.iter().filter(|moment| moment.kind == kind::CLOCK).map(|moment| moment.at).collect();
    let mut between: Vec<u64> = ticks.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect();
    between.sort_unstable();
    let median = between.get(between.len() / 2).copied().unwrap_or_default();
    let near = between.iter().filter(|one| one.abs_diff(median) <= median / 4).count();
    (median, 100 * near / between.len().max(1))
}
