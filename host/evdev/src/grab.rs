//! Exclusive access to a device: when it is grabbed, and the keys that always let it go.

use std::collections::BTreeSet;

/// Escape, Backspace and Enter, in codes of `input-event-codes.h`: every keyboard that a person types at has them.
const LET_GO: [u16; 3] = [1, 14, 28];

/// Whether a device is to be grabbed: a grabbed one is read by this program alone, and types nothing elsewhere.
///
/// A device is grabbed in a moment when none of its keys is down, since other programs would wait for ever for the end of
/// a press that they saw. Escape, Backspace and Enter held down together let it go, and it is not grabbed again until it is
/// opened anew; on a keypad, the Enter there does as well.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Grab {
    wanted: bool,
    given_up: bool,
    grabbed: bool,
    down: BTreeSet<u16>,
}

/// What is to be done with the device now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Take it.
    Take,
    /// Let it go.
    LetGo,
}

impl Grab {
    /// For a device of which these keys are down at the beginning.
    pub(crate) fn new(wanted: bool, down: impl IntoIterator<Item = u16>) -> Self {
        Self { wanted, given_up: false, grabbed: false, down: down.into_iter().collect() }
    }

    /// A key goes down or comes up.
    pub(crate) fn key(&mut self, code: u16, pressed: bool) {
        if pressed {
            self.down.insert(code);
        } else {
            self.down.remove(&code);
        }
        if LET_GO.iter().all(|code| self.is_down(*code)) {
            self.give_up();
        }
    }

    fn is_down(&self, code: u16) -> bool {
        const KEY_ENTER: u16 = 28;
        const KEY_KPENTER: u16 = 96;
        self.down.contains(&code) || code == KEY_ENTER && self.down.contains(&KEY_KPENTER)
    }

    /// What is to be done now. It counts as done.
    pub(crate) fn step(&mut self) -> Option<Step> {
        let step = match (self.wanted, self.grabbed) {
            (true, false) if self.down.is_empty() => Step::Take,
            (false, true) => Step::LetGo,
            _ => return None,
        };
        self.grabbed = step == Step::Take;
        Some(step)
    }

    /// The device is to be let go, and not to be taken again.
    pub(crate) fn give_up(&mut self) {
        self.given_up |= self.wanted;
        self.wanted = false;
    }

    /// Whether it was to be grabbed, and is not again.
    pub(crate) fn is_given_up(&self) -> bool {
        self.given_up
    }

    /// The keys that are down.
    pub(crate) fn down(&self) -> impl Iterator<Item = u16> {
        self.down.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY_A: u16 = 30;

    #[test]
    fn a_device_is_taken_when_no_key_of_it_is_down() {
        // Enter started this program, and is still held.
        let mut grab = Grab::new(true, [28]);
        assert_eq!(grab.step(), None);
        grab.key(KEY_A, true);
        grab.key(28, false);
        assert_eq!(grab.step(), None);
        grab.key(KEY_A, false);
        assert_eq!(grab.step(), Some(Step::Take));
        assert_eq!(grab.step(), None, "once");
    }

    #[test]
    fn one_that_is_not_wanted_is_never_taken() {
        let mut grab = Grab::new(false, []);
        assert_eq!(grab.step(), None);
        grab.key(KEY_A, true);
        grab.key(KEY_A, false);
        assert_eq!(grab.step(), None);
    }

    #[test]
    fn three_keys_let_go_for_good() {
        for order in [[1, 14, 28], [28, 1, 14], [14, 96, 1]] {
            let mut grab = Grab::new(true, []);
            assert_eq!(grab.step(), Some(Step::Take));
            // Whatever else is held.
            grab.key(KEY_A, true);
            for code in &order[..2] {
                grab.key(*code, true);
                assert_eq!(grab.step(), None, "{order:?}");
            }
            grab.key(order[2], true);
            assert_eq!(grab.step(), Some(Step::LetGo), "{order:?}");
            for code in order.into_iter().chain([KEY_A]) {
                grab.key(code, false);
                assert_eq!(grab.step(), None, "not taken again");
            }
            assert!(grab.is_given_up());
        }
    }

    #[test]
    fn one_after_the_other_they_are_usual_keys() {
        let mut grab = Grab::new(true, []);
        assert_eq!(grab.step(), Some(Step::Take));
        for code in [1, 14, 28] {
            grab.key(code, true);
            grab.key(code, false);
        }
        assert_eq!(grab.step(), None);
        assert!(!grab.is_given_up());
        assert_eq!(grab.down().count(), 0);
    }
}
