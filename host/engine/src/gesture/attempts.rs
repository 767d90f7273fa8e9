//! The state machine of gesture recognition on one device: attempts with deadlines, and rules that wait for the end of
//! some.

use conductor_event::{ChordEvent, DeviceId, Event, ModeIx, Nanos};

use crate::key::Key;

/// Rule sets that are kept for what is under way in them.
pub(crate) const MAX_RULE_SETS: usize = 4;

/// What an attempt waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Goal {
    /// That the key stays down until the deadline.
    LongPress,
    /// That the key is pressed once more before the deadline. Each press so far has an attempt.
    NextTap,
    /// That the next key of a sequence is pressed before the deadline. Each press so far has an attempt.
    NextKey,
    /// That the other keys go down before the deadline.
    Chord,
    /// For the fine part of a control, until the deadline; then the coarse part was all.
    FinePart {
        /// The value to report then.
        value: u16,
        /// The parameter and whether it is registered; `None` if it is a plain controller.
        parameter: Option<(bool, u16)>,
    },
    /// That a stick or trigger comes back from where the rule wants it, so that it can count again. Has no
    /// deadline, and nothing waits for it.
    Return,
    /// That a stick or trigger that the rule follows comes back to rest, which the rule then fires for. Has
    /// no deadline, and nothing waits for it.
    Rest,
}

/// One rule's attempt at a gesture.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attempt {
    /// Which of the rule sets that are kept the rule is in.
    pub(crate) set: u8,
    /// The rule's place in its set.
    pub(crate) rank: u32,
    pub(crate) goal: Goal,
    pub(crate) key: Key,
    /// The number of the press, from 1; 0 if it is no press.
    pub(crate) serial: u32,
    /// The number of the latest press of the row that it is part of.
    pub(crate) latest: u32,
    pub(crate) velocity: u8,
    /// Where in the rule's range the key is.
    pub(crate) position: u16,
    /// The mode of the press.
    pub(crate) mode: ModeIx,
    pub(crate) began: Nanos,
    pub(crate) deadline: Nanos,
    /// Whether the rule defers, and so gives up when a gesture is found in the press.
    pub(crate) defers: bool,
}

/// The presses that something is made of, by their numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Presses {
    serials: [u32; ChordEvent::MAX_KEYS],
    count: u8,
}

impl Presses {
    pub(crate) fn push(&mut self, serial: u32) {
        if let Some(slot) = self.serials.get_mut(usize::from(self.count)) {
            *slot = serial;
            self.count += 1;
        }
    }

    pub(crate) fn has(&self, serial: u32) -> bool {
        serial != 0 && self.serials[..usize::from(self.count)].contains(&serial)
    }

    fn shares_one_with(&self, other: &Self) -> bool {
        other.serials[..usize::from(other.count)].iter().any(|&serial| self.has(serial))
    }
}

impl FromIterator<u32> for Presses {
    fn from_iter<I: IntoIterator<Item = u32>>(serials: I) -> Self {
        let mut presses = Self::default();
        serials.into_iter().for_each(|serial| presses.push(serial));
        presses
    }
}

/// A rule that fires once no attempt on its presses is under way any more.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    pub(crate) set: u8,
    pub(crate) rank: u32,
    pub(crate) presses: Presses,
    pub(crate) event: Event,
    pub(crate) position: u16,
    pub(crate) mode: ModeIx,
}

/// What is under way on one device.
#[derive(Debug)]
pub(crate) struct Attempts {
    pub(crate) device: DeviceId,
    attempts: Vec<Attempt>,
    /// The serial of each attempt once more: they are looked through for each rule that waits.
    serials: Vec<u32>,
    waiting: Vec<Waiting>,
    /// How many attempts and waiting rules each rule set has.
    by_set: [u16; MAX_RULE_SETS],
    /// Whether something has changed that rules may have waited for.
    is_unsettled: bool,
    /// The number of the last press.
    serial: u32,
}

impl Attempts {
    /// Attempts that are under way at once on one device.
    pub(crate) const MAX_ATTEMPTS: usize = 128;
    /// Rules that wait at once on one device.
    pub(crate) const MAX_WAITING: usize = 64;

    /// Takes all the memory that it will ever need.
    pub(crate) fn new(device: DeviceId) -> Self {
        Self {
            device,
            attempts: Vec::with_capacity(Self::MAX_ATTEMPTS),
            serials: Vec::with_capacity(Self::MAX_ATTEMPTS),
            by_set: [0; MAX_RULE_SETS],
            is_unsettled: false,
            waiting: Vec::with_capacity(Self::MAX_WAITING),
            serial: 0,
        }
    }

    /// When something of this device is due; never is [`Nanos::MAX`].
    pub(crate) fn deadline(&self) -> Nanos {
        self.attempts.iter().map(|attempt| attempt.deadline).min().unwrap_or(Nanos::MAX)
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.attempts.is_empty() && self.waiting.is_empty()
    }

    /// How many attempts and waiting rules each rule set has.
    pub(crate) fn by_set(&self) -> [u16; MAX_RULE_SETS] {
        self.by_set
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.attempts.clear();
        self.serials.clear();
        self.waiting.clear();
        self.by_set = [0; MAX_RULE_SETS];
    }

    /// The number of a press that happens now.
    pub(crate) fn next_serial(&mut self) -> u32 {
        // After four thousand million presses the numbers begin again; 0 is no press.
        self.serial = self.serial.checked_add(1).unwrap_or(1);
        self.serial
    }

    /// Adds an attempt. False if there is no room.
    pub(crate) fn begin(&mut self, attempt: Attempt) -> bool {
        let room = self.attempts.len() < Self::MAX_ATTEMPTS;
        if room {
            self.attempts.push(attempt);
            self.serials.push(attempt.serial);
            self.count(attempt.set, 1);
        }
        room
    }

    pub(crate) fn attempts(&self) -> &[Attempt] {
        &self.attempts
    }

    /// Has the attempts that `is_one` picks go on for as long as the last one, as one row.
    pub(crate) fn go_on(&mut self, last: &Attempt, is_one: impl Fn(&Attempt) -> bool) {
        for attempt in self.attempts.iter_mut().filter(|attempt| is_one(attempt)) {
            (attempt.deadline, attempt.latest) = (last.deadline, last.serial);
        }
    }

    /// Ends the attempts that `ends` picks.
    pub(crate) fn end(&mut self, mut ends: impl FnMut(&Attempt) -> bool) {
        let mut kept = 0;
        for index in 0..self.attempts.len() {
            let attempt = self.attempts[index];
            if ends(&attempt) {
                self.count(attempt.set, -1);
                self.is_unsettled = true;
            } else {
                if kept != index {
                    self.attempts[kept] = attempt;
                    self.serials[kept] = attempt.serial;
                }
                kept += 1;
            }
        }
        self.attempts.truncate(kept);
        self.serials.truncate(kept);
    }

    fn count(&mut self, set: u8, change: i16) {
        if let Some(count) = self.by_set.get_mut(usize::from(set)) {
            *count = count.saturating_add_signed(change);
        }
    }

    /// The attempt of a rule at a goal on a key.
    pub(crate) fn find(&self, set: u8, rank: u32, goal: Goal, key: Key) -> Option<Attempt> {
        let same = |attempt: &&Attempt| {
            attempt.set == set && attempt.rank == rank && attempt.goal == goal && attempt.key == key
        };
        self.attempts.iter().find(same).copied()
    }

    /// The first in the order of rules of those whose deadline has come. Attempts that just fail then have
    /// ended before.
    pub(crate) fn take_due(&mut self, now: Nanos) -> Option<Attempt> {
        self.end(|attempt| {
            attempt.deadline <= now && matches!(attempt.goal, Goal::NextTap | Goal::NextKey | Goal::Chord)
        });
        let due = |&(_, attempt): &(usize, &Attempt)| attempt.deadline <= now;
        let first = |&(_, attempt): &(usize, &Attempt)| (attempt.set, attempt.rank, attempt.serial);
        let (index, _) = self.attempts.iter().enumerate().filter(due).min_by_key(first)?;
        self.is_unsettled = true;
        Some(self.remove(index))
    }

    /// Takes out the first, in the order of rules, of the attempts that `is_wanted` picks.
    pub(crate) fn take(&mut self, is_wanted: impl Fn(&Attempt) -> bool) -> Option<Attempt> {
        let wanted = self.attempts.iter().enumerate().filter(|(_, attempt)| is_wanted(attempt));
        let (index, _) = wanted.min_by_key(|(_, attempt)| (attempt.set, attempt.rank))?;
        Some(self.remove(index))
    }

    fn remove(&mut self, index: usize) -> Attempt {
        self.serials.remove(index);
        let attempt = self.attempts.remove(index);
        self.count(attempt.set, -1);
        attempt
    }

    /// Whether an attempt on one of these presses is under way.
    pub(crate) fn has_rival(&self, presses: &Presses) -> bool {
        match presses.serials[..usize::from(presses.count)] {
            // What most rules wait for.
            [serial] => self.serials.contains(&serial),
            _ => self.serials.iter().any(|&serial| presses.has(serial)),
        }
    }

    /// Adds a rule that waits. Gives it back if there is no room.
    pub(crate) fn wait(&mut self, waiting: Waiting) -> Result<(), Waiting> {
        if self.waiting.len() == Self::MAX_WAITING {
            return Err(waiting);
        }
        self.count(waiting.set, 1);
        self.waiting.push(waiting);
        self.is_unsettled = true;
        Ok(())
    }

    /// The first rule that has waited long enough: a gesture until nothing is under way in its presses, a
    /// press until no gesture waits, either.
    pub(crate) fn take_settled(&mut self) -> Option<Waiting> {
        if !self.is_unsettled {
            return None;
        }
        let is_gesture = |waiting: &Waiting| matches!(waiting.event, Event::Gesture(_));
        let may_lose = |waiting: &Waiting| {
            !is_gesture(waiting)
                && self.waiting.iter().any(|other| is_gesture(other) && other.presses.shares_one_with(&waiting.presses))
        };
        let settled = |waiting: &Waiting| !self.has_rival(&waiting.presses) && !may_lose(waiting);
        let Some(index) = self.waiting.iter().position(settled) else {
            self.is_unsettled = false;
            return None;
        };
        Some(self.no_longer_waiting(index))
    }

    fn no_longer_waiting(&mut self, index: usize) -> Waiting {
        let waiting = self.waiting.remove(index);
        self.count(waiting.set, -1);
        self.is_unsettled = true;
        waiting
    }

    /// The first rule of this set that waits.
    pub(crate) fn take_waiting(&mut self, set: u8) -> Option<Waiting> {
        let index = self.waiting.iter().position(|waiting| waiting.set == set)?;
        Some(self.no_longer_waiting(index))
    }

    /// A gesture was found in these presses: rules that waited for the end of it don't fire, attempts of
    /// rules that defer end, and if the rule consumes, so do those that come after it.
    pub(crate) fn used_up(&mut self, presses: &Presses, rank: u32, consumes: bool) {
        while let Some(index) = self.waiting.iter().position(|waiting| waiting.presses.shares_one_with(presses)) {
            self.no_longer_waiting(index);
        }
        self.end(|attempt| presses.has(attempt.serial) && (attempt.defers || consumes && attempt.rank > rank));
    }
}
