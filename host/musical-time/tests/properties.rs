//! What holds for any messages and times, however a device or a person behaves.

use conductor_musical_time::{
    CLOCK_TIMEOUT, Change, Clock, MAX_TEMPO, MIN_TEMPO, Message, Nanos, Settings, TapTempo, TempoMeter,
};
use proptest::prelude::*;

/// Something that happens to a clock.
#[derive(Clone, Copy, Debug)]
enum Act {
    Receive(Message<'static>),
    Advance,
    CatchUp,
    Start,
    Stop,
    Lose,
    Tempo(f64),
}

fn message() -> impl Strategy<Value = Message<'static>> {
    prop_oneof![
        8 => Just(Message::Pulse),
        1 => Just(Message::Start),
        1 => Just(Message::Continue),
        1 => Just(Message::Stop),
        1 => (0_u16..16_384).prop_map(Message::SongPosition),
        2 => (0_u8..128).prop_map(Message::QuarterFrame),
        1 => Just(Message::SysEx(&[0xF0, 0x7F, 0x7F, 1, 1, 0x17, 59, 59, 23, 0xF7])),
        1 => Just(Message::SysEx(&[0xF0, 0xF7])),
    ]
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        8 => message().prop_map(Act::Receive),
        8 => Just(Act::Advance),
        1 => Just(Act::CatchUp),
        1 => Just(Act::Start),
        1 => Just(Act::Stop),
        1 => Just(Act::Lose),
        1 => any::<f64>().prop_map(Act::Tempo),
        1 => (1.0_f64..2000.0).prop_map(Act::Tempo),
    ]
}

/// Times that mostly go on as music does, and sometimes jump.
fn time() -> impl Strategy<Value = Nanos> {
    prop_oneof![20 => 0_u64..40_000_000, 2 => 0_u64..4_000_000_000, 1 => any::<u64>()]
}

proptest! {
    /// ENG-14, bad input: no panic, a tempo within its limits, a position that goes on while it plays, and a clock that
    /// stands when nothing comes.
    #[test]
    fn a_clock_stays_within_what_it_promises(
        internal: bool, tempo: f64, beats_per_bar: u8,
        acts in proptest::collection::vec((time(), act()), 0..300),
    ) {
        let mut clock = Clock::new(Settings { internal, tempo, beats_per_bar });
        let (mut now, mut last) = (0_u64, None);
        for (after, act) in acts {
            now = now.wrapping_add(after);
            let change = match act {
                Act::Receive(message) => clock.receive(now, message),
                Act::Advance => clock.advance(now),
                Act::CatchUp => { clock.catch_up(now); None }
                Act::Start => Some(clock.start_at(now)),
                Act::Stop => clock.stop(),
                Act::Lose => clock.lose(),
                Act::Tempo(tempo) => clock.set_tempo(now, tempo),
            };
            let time = clock.time();
            prop_assert!((MIN_TEMPO..=MAX_TEMPO).contains(&time.tempo), "{}", time.tempo);
            prop_assert!(time.bar >= 1 && time.beat >= 1 && time.beat <= beats_per_bar.max(1));
            prop_assert!(time.plays || clock.deadline() == Nanos::MAX, "what stands has nothing to do");
            match change {
                Some(Change::Pulse(pulse)) => {
                    prop_assert!(time.plays);
                    prop_assert!(last.is_none_or(|last| pulse == last + 1), "{last:?} {pulse}");
                    last = Some(pulse);
                }
                Some(Change::Started | Change::Continued) => {
                    prop_assert!(time.plays);
                    last = None;
                }
                Some(Change::Stopped | Change::Lost) => prop_assert!(!time.plays),
                // A song position may have moved it.
                Some(Change::Moved) => last = None,
                None => {}
            }
        }
        if !internal {
            let end = clock.deadline();
            prop_assert!(clock.advance(end).is_none_or(|change| change == Change::Lost));
            prop_assert!(!clock.time().plays || end == Nanos::MAX);
        }
    }

    /// The tempo that is measured is that of the pulses: by no more than the jitter of the first and the last pulse of a beat.
    #[test]
    fn a_tempo_is_measured_despite_of_jitter(
        tempo in MIN_TEMPO..MAX_TEMPO,
        late in proptest::collection::vec(0_u64..1_000_000, 25..100),
    ) {
        let pulse = 60e9 / tempo / 24.0;
        let mut meter = TempoMeter::new();
        for (number, late) in late.iter().enumerate() {
            meter.pulse((number as f64 * pulse) as u64 + late);
        }
        let found = meter.tempo().expect("there are more than six pulses");
        let (low, high) = (60e9 / (24.0 * pulse + 1.1e6), 60e9 / (24.0 * pulse - 1.1e6));
        prop_assert!((low..=high.min(MAX_TEMPO)).contains(&found), "{found} for {tempo}");
        prop_assert!(meter.jitter().largest <= 2.2e6);
        prop_assert!(meter.jitter().mean <= meter.jitter().largest);
    }

    #[test]
    fn taps_give_a_tempo_within_the_limits(taps in proptest::collection::vec(time(), 0..50)) {
        let (mut tap_tempo, mut now) = (TapTempo::new(), 0_u64);
        for after in taps {
            now = now.wrapping_add(after);
            if let Some(tempo) = tap_tempo.tap(now) {
                prop_assert!((MIN_TEMPO..=MAX_TEMPO).contains(&tempo), "{tempo}");
            }
        }
    }

    /// The same pulses give the same changes, however often the time is said in between.
    #[test]
    fn how_often_time_is_said_makes_no_difference(
        tempo in MIN_TEMPO..MAX_TEMPO, steps in proptest::collection::vec(1_u64..100_000_000, 1..50),
    ) {
        let run = |often: bool| {
            let mut clock = Clock::new(Settings { internal: true, tempo, beats_per_bar: 4 });
            clock.start_at(0);
            let (mut now, mut found) = (0, Vec::new());
            for (number, step) in steps.iter().enumerate() {
                now += step;
                if often || number + 1 == steps.len() {
                    while let Some(change) = clock.advance(now) {
                        found.push(change);
                    }
                }
            }
            (found, clock.deadline())
        };
        prop_assert_eq!(run(true), run(false));
    }
}

/// A clock that comes back after it was lost is measured anew.
#[test]
fn a_gap_is_no_tempo() {
    let mut clock = Clock::new(Settings { internal: false, tempo: 90.0, beats_per_bar: 4 });
    for pulse in 0..48 {
        clock.receive(pulse * 20_833_333, Message::Pulse);
    }
    let later = 48 * 20_833_333 + 10 * CLOCK_TIMEOUT;
    for pulse in 0..24 {
        clock.receive(later + pulse * 20_833_333, Message::Pulse);
    }
    assert!((clock.time().tempo - 120.0).abs() < 0.01);
}
