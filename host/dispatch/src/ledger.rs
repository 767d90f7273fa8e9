//! The ledger of active outputs: what actions have switched on and not yet off (notes, keys, mouse buttons).
//!
//! Each worker that switches things on keeps a [`Ledger`] of them, with their owners. When an owner goes
//! (its mode is left, its rules are replaced, its device is gone), what it alone held is switched off: no stuck notes.

use conductor_event::{DeviceId, ModeIx, RuleId};

use super::Envelope;

/// Who switched something on: a rule, for a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    device: DeviceId,
    rule: RuleId,
    generation: u64,
    /// The mode that the rule is active in; `None` if it is active in every mode.
    mode: Option<ModeIx>,
}

impl From<&Envelope> for Owner {
    fn from(envelope: &Envelope) -> Self {
        Self {
            device: envelope.device.clone(),
            rule: envelope.rule,
            generation: envelope.generation,
            mode: envelope.mode,
        }
    }
}

#[cfg(test)]
impl Owner {
    /// The first rule of a set, for this device, active in this mode.
    pub(crate) fn of(device: &str, generation: u64, mode: Option<u16>) -> Self {
        Self { device: DeviceId::new(device), rule: RuleId(0), generation, mode: mode.map(ModeIx) }
    }
}

/// Why owners go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Release {
    /// This mode is active now: rules that are awake in another sleep.
    Mode(ModeIx),
    /// The rules of this generation are in use now: those of earlier ones are gone.
    Rules(u64),
    /// The device is gone or muted: what it began it can't end.
    Device(DeviceId),
    /// What this owner does was called off.
    Owner(Owner),
}

impl Release {
    /// Whether it takes this owner away.
    pub fn takes(&self, owner: &Owner) -> bool {
        match self {
            Self::Mode(active) => owner.mode.is_some_and(|mode| mode != *active),
            Self::Rules(generation) => owner.generation < *generation,
            Self::Device(device) => owner.device == *device,
            Self::Owner(called_off) => owner == called_off,
        }
    }
}

/// The things that are on, each with its owners.
#[derive(Debug)]
pub struct Ledger<T> {
    /// One entry for each thing and owner.
    entries: Vec<(T, Owner)>,
}

impl<T> Default for Ledger<T> {
    fn default() -> Self {
        Self { entries: Vec::new() }
    }
}

impl<T: Copy + PartialEq> Ledger<T> {
    /// The owner holds it from now on. True when it was off before.
    pub fn hold(&mut self, thing: T, owner: Owner) -> bool {
        let was_off = !self.is_on(thing);
        if !self.entries.iter().any(|(held, by)| *held == thing && *by == owner) {
            self.entries.push((thing, owner));
        }
        was_off
    }

    /// Whether anybody holds it.
    pub fn is_on(&self, thing: T) -> bool {
        self.entries.iter().any(|(held, _)| *held == thing)
    }

    /// The owner holds it no longer. Returns true if no other owner does, so that it is to be switched off.
    pub fn let_go(&mut self, thing: T, owner: &Owner) -> bool {
        let before = self.entries.len();
        self.entries.retain(|(held, by)| *held != thing || by != owner);
        self.entries.len() < before && !self.is_on(thing)
    }

    /// It is off, for all of its owners. Returns whether there were any.
    pub fn is_off_now(&mut self, thing: T) -> bool {
        let before = self.entries.len();
        self.entries.retain(|(held, _)| *held != thing);
        self.entries.len() < before
    }

    /// Removes the owners that go, and returns what has no owner any more, in the order in which
    /// it was switched on.
    pub fn release(&mut self, release: &Release) -> Vec<T> {
        self.take(|owner| release.takes(owner))
    }

    /// Takes all owners away, and returns everything that was on.
    pub fn release_all(&mut self) -> Vec<T> {
        self.take(|_| true)
    }

    fn take(&mut self, goes: impl Fn(&Owner) -> bool) -> Vec<T> {
        let gone: Vec<T> = self.entries.extract_if(.., |(_, owner)| goes(owner)).map(|(thing, _)| thing).collect();
        let mut off = Vec::new();
        for thing in gone {
            if !self.is_on(thing) && !off.contains(&thing) {
                off.push(thing);
            }
        }
        off
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn owner(device: &str, mode: Option<u16>, generation: u64) -> Owner {
        Owner::of(device, generation, mode)
    }

    #[test]
    fn a_thing_is_on_until_its_last_owner_lets_go() {
        let (left, right) = (owner("left", None, 0), owner("right", None, 0));
        let mut held = Ledger::default();
        assert!(held.hold('x', left.clone()));
        assert!(!held.hold('x', right.clone()), "it was on already");
        assert!(!held.let_go('x', &left), "the other still holds it");
        assert!(!held.let_go('x', &left), "it never held it twice");
        assert!(held.let_go('x', &right));
        assert!(!held.is_on('x'));
    }

    #[test]
    fn a_release_takes_those_owners_and_no_others() {
        let mut held = Ledger::default();
        held.hold('m', owner("pads", Some(0), 1));
        held.hold('n', owner("pads", Some(1), 1));
        held.hold('g', owner("pads", None, 1));
        held.hold('k', owner("keys", None, 1));
        assert_eq!(held.release(&Release::Mode(ModeIx(1))), ['m'], "a mode's own rules stay, and global ones");
        assert!(held.release(&Release::Rules(1)).is_empty(), "these are the rules in use");
        assert_eq!(held.release(&Release::Device(DeviceId::new("keys"))), ['k']);
        assert_eq!(held.release(&Release::Rules(2)), ['n', 'g']);
        assert!(held.release_all().is_empty());
    }

    proptest! {
        /// Whatever happens, a thing is on exactly as long as a present owner holds it.
        #[test]
        fn nothing_is_on_without_an_owner(
            steps in prop::collection::vec((0u8..8, 0u8..3, 0u8..3, prop::option::of(0u16..3), 0u64..3), 0..80),
        ) {
            let mut held = Ledger::default();
            let mut model: Vec<(u8, Owner)> = Vec::new();
            for (step, thing, device, mode, generation) in steps {
                let owner = owner(["a", "b", "c"][usize::from(device)], mode, generation);
                let release = match step {
                    0..=2 => {
                        held.hold(thing, owner.clone());
                        model.push((thing, owner));
                        continue;
                    }
                    3 => {
                        held.let_go(thing, &owner);
                        model.retain(|entry| *entry != (thing, owner.clone()));
                        continue;
                    }
                    4 => {
                        held.is_off_now(thing);
                        model.retain(|(held, _)| *held != thing);
                        continue;
                    }
                    5 => Release::Mode(ModeIx(mode.unwrap_or(0))),
                    6 => Release::Rules(generation),
                    _ => Release::Device(owner.device.clone()),
                };
                let on_before: Vec<u8> = (0..3).filter(|thing| held.is_on(*thing)).collect();
                let off = held.release(&release);
                model.retain(|(_, owner)| !release.takes(owner));
                for thing in 0..3 {
                    let on = model.iter().any(|(held, _)| *held == thing);
                    prop_assert_eq!(held.is_on(thing), on);
                    prop_assert_eq!(off.contains(&thing), on_before.contains(&thing) && !on);
                }
            }
            held.release_all();
            prop_assert!((0..3).all(|thing| !held.is_on(thing)));
        }
    }
}
