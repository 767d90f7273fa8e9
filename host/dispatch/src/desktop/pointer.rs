//! The speed of the pointer: the sum of the speeds that rules make, and the pixels that are due by it.

use std::time::{Duration, Instant};

use crate::ledger::{Owner, Release};

/// How long the pointer stands between two steps: twice as many a second as most screens have pictures.
const STEP_INTERVAL: Duration = Duration::from_millis(8);
/// A step is at most what so long a time makes due: a worker that was held up has the pointer not jump.
const MAX_STEP_TIME: Duration = Duration::from_millis(50);

/// How fast the pointer moves, in pixels a second, right and down where positive.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Speed {
    /// From left to right.
    pub x: i32,
    /// From top to bottom.
    pub y: i32,
}

/// What the rules make of the pointer's speed.
#[derive(Debug, Default)]
pub(super) struct Pointer {
    /// None of them is zero.
    speeds: Vec<(Owner, Speed)>,
    /// When the last step was due, while it moves.
    stepped: Option<Instant>,
    /// What was due and is not a whole pixel, in billionths.
    rest: (i64, i64),
}

impl Pointer {
    /// The speed that is due to all rules together.
    pub(super) fn speed(&self) -> Speed {
        self.speeds.iter().fold(Speed::default(), |sum, (_, speed)| Speed {
            x: sum.x.saturating_add(speed.x),
            y: sum.y.saturating_add(speed.y),
        })
    }

    /// This is the owner's speed from now on.
    pub(super) fn set(&mut self, owner: Owner, speed: Speed, now: Instant) {
        self.speeds.retain(|(other, _)| *other != owner);
        if speed != Speed::default() {
            self.speeds.push((owner, speed));
        }
        self.changed(now);
    }

    /// Takes the speeds of the owners that go.
    pub(super) fn release(&mut self, release: &Release, now: Instant) {
        self.speeds.retain(|(owner, _)| !release.takes(owner));
        self.changed(now);
    }

    /// The pointer stands.
    pub(super) fn stop(&mut self) {
        *self = Self::default();
    }

    fn changed(&mut self, now: Instant) {
        if self.speeds.is_empty() {
            self.stop();
        } else if self.stepped.is_none() {
            self.stepped = Some(now);
        }
    }

    /// When the next step is due; `None` if the pointer stands.
    pub(super) fn due(&self) -> Option<Instant> {
        self.stepped.map(|stepped| stepped + STEP_INTERVAL)
    }

    /// The whole pixels that are due at `now`, if a step is.
    pub(super) fn step(&mut self, now: Instant) -> Option<(i32, i32)> {
        let stepped = self.stepped.filter(|stepped| *stepped + STEP_INTERVAL <= now)?;
        self.stepped = Some(now);
        let (time, speed) = (now.duration_since(stepped).min(MAX_STEP_TIME), self.speed());
        let pixels = (whole(&mut self.rest.0, speed.x, time), whole(&mut self.rest.1, speed.y, time));
        (pixels != (0, 0)).then_some(pixels)
    }
}

/// Nanoseconds in a second, and so the parts of a pixel that are due in a nanosecond at one pixel a second.
const NANOS: i64 = 1_000_000_000;

/// The whole pixels of what is due after a `time` of at most [`MAX_STEP_TIME`].
fn whole(rest: &mut i64, speed: i32, time: Duration) -> i32 {
    let due = *rest + i64::from(speed) * i64::from(time.subsec_nanos());
    *rest = due % NANOS;
    i32::try_from(due / NANOS).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use conductor_event::{DeviceId, ModeIx};

    const fn at(x: i32, y: i32) -> Speed {
        Speed { x, y }
    }

    fn owner(device: &str) -> Owner {
        Owner::of(device, 1, None)
    }

    /// Steps through a time, a millisecond at once, and adds up the pixels.
    fn moved(pointer: &mut Pointer, from: Instant, time: Duration) -> (i32, i32) {
        let steps = (1..=time.as_millis() as u64).filter_map(|ms| pointer.step(from + Duration::from_millis(ms)));
        steps.fold((0, 0), |sum, step| (sum.0 + step.0, sum.1 + step.1))
    }

    #[test]
    fn slow_speeds_add_up_to_whole_pixels() {
        let (mut pointer, now) = (Pointer::default(), Instant::now());
        pointer.set(owner("pad"), at(30, -7), now);
        let seconds = |count| Duration::from_secs(count);
        assert_eq!(moved(&mut pointer, now, seconds(10)), (300, -70));
    }

    #[test]
    fn the_speeds_of_rules_are_added_and_each_ends_its_own() {
        let (mut pointer, now) = (Pointer::default(), Instant::now());
        pointer.set(owner("left"), at(100, 0), now);
        pointer.set(owner("right"), at(0, 50), now);
        assert_eq!(pointer.speed(), at(100, 50));
        pointer.set(owner("left"), at(-20, 0), now);
        assert_eq!(pointer.speed(), at(-20, 50));
        pointer.set(owner("left"), at(0, 0), now);
        assert_eq!(pointer.speed(), at(0, 50));
        pointer.release(&Release::Device(DeviceId::new("right")), now);
        assert_eq!((pointer.speed(), pointer.due()), (at(0, 0), None), "it stands");
        pointer.set(Owner::of("pad", 1, Some(0)), at(9, 9), now);
        pointer.release(&Release::Mode(ModeIx(1)), now);
        assert_eq!(pointer.due(), None, "its mode was left");
    }

    #[test]
    fn a_worker_that_was_held_up_has_it_not_jump() {
        let (mut pointer, now) = (Pointer::default(), Instant::now());
        pointer.set(owner("pad"), at(1000, 0), now);
        assert_eq!(pointer.step(now + Duration::from_millis(7)), None, "no step is due yet");
        assert_eq!(pointer.step(now + Duration::from_secs(60)), Some((50, 0)));
    }

    #[test]
    fn no_sum_of_speeds_is_too_much() {
        let (mut pointer, now) = (Pointer::default(), Instant::now());
        for device in ["a", "b"] {
            pointer.set(owner(device), at(i32::MAX, i32::MIN), now);
        }
        assert_eq!(pointer.speed(), at(i32::MAX, i32::MIN));
        assert!(pointer.step(now + Duration::from_millis(8)).is_some());
    }
}
