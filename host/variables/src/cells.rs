//! The cells that values are in: one for each owner, in a table that never grows.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwapOption;

use crate::Watch;

/// Owners that have a cell of their own; further ones share one.
pub const MAX_OWNERS: usize = 64;

/// Who owns a value: a device or a mode, by the hash of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key(NonZeroU64);

impl Key {
    /// All together.
    pub const EVERYONE: Self = Self(NonZeroU64::MIN);

    /// The number that it is known by, the same in every process.
    pub fn number(self) -> u64 {
        self.0.get()
    }

    /// The owner of this number.
    pub fn from_number(number: u64) -> Self {
        NonZeroU64::new(number).map_or(Self::EVERYONE, Self)
    }

    /// The owner of this name. It does not allocate.
    pub fn of(name: &str) -> Self {
        // FNV-1a, 64 bits.
        let hash = name
            .bytes()
            .fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3));
        Self(NonZeroU64::new(hash).filter(|hash| *hash != NonZeroU64::MIN).unwrap_or(NonZeroU64::MAX))
    }
}

/// The values of one variable.
#[derive(Debug)]
pub(crate) struct Cells {
    owners: Box<[Owner]>,
    /// The value of owners that found no room.
    shared: Cell,
    /// What is called when a value has changed.
    watch: ArcSwapOption<Watch>,
}

#[derive(Debug)]
struct Owner {
    /// Its owner; 0 if it has none yet.
    key: AtomicU64,
    cell: Cell,
}

#[derive(Debug)]
struct Cell {
    /// The bits of the number.
    value: AtomicU64,
    /// When it was last changed, in nanoseconds; 0 if never.
    at: AtomicU64,
}

impl Cell {
    fn new(initial: f64) -> Self {
        Self { value: AtomicU64::new(initial.to_bits()), at: AtomicU64::new(0) }
    }
}

impl Cells {
    /// Cells that all hold the same.
    pub(crate) fn new(initial: f64) -> Self {
        let owner = |_| Owner { key: AtomicU64::new(0), cell: Cell::new(initial) };
        let owners = (0..=MAX_OWNERS).map(owner).collect();
        Self { owners, shared: Cell::new(initial), watch: ArcSwapOption::empty() }
    }

    pub(crate) fn get(&self, owner: Key) -> f64 {
        f64::from_bits(self.cell(owner).value.load(Ordering::Acquire))
    }

    /// Puts a value in the place of another. True if it is another one.
    pub(crate) fn set(&self, owner: Key, value: f64) -> bool {
        self.cell(owner).value.swap(value.to_bits(), Ordering::AcqRel) != value.to_bits()
    }

    /// Has this be called from now on when a value has changed, instead of what was called before.
    pub(crate) fn watch(&self, watch: Option<Arc<Watch>>) {
        self.watch.store(watch);
    }

    /// Calls what watches.
    pub(crate) fn changed(&self) {
        if let Some(watch) = &*self.watch.load() {
            watch.call();
        }
    }

    /// The value that there is for all, and those of owners that have a cell of their own.
    pub(crate) fn values(&self) -> impl Iterator<Item = (Key, f64)> {
        let number = |cell: &Cell| f64::from_bits(cell.value.load(Ordering::Acquire));
        let everyone = self.owners.first().map(|owner| (Key::EVERYONE, number(&owner.cell)));
        everyone.into_iter().chain(self.owners.iter().skip(1).filter_map(move |owner| {
            let key = NonZeroU64::new(owner.key.load(Ordering::Acquire))?;
            Some((Key(key), number(&owner.cell)))
        }))
    }

    /// Puts what `change` makes of the value in its place, and returns both. `change` also gets the nanoseconds since the
    /// last change; `None` if there was none. It may be called more than once.
    pub(crate) fn update(&self, owner: Key, at: u64, change: impl Fn(f64, Option<u64>) -> f64) -> (f64, f64) {
        let cell = self.cell(owner);
        let last = cell.at.swap(at.max(1), Ordering::AcqRel);
        let pause = (last != 0).then(|| at.saturating_sub(last));
        let mut before = cell.value.load(Ordering::Acquire);
        loop {
            let (from, to) = (f64::from_bits(before), change(f64::from_bits(before), pause));
            match cell.value.compare_exchange_weak(before, to.to_bits(), Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return (from, to),
                Err(other) => before = other,
            }
        }
    }

    /// The cell of an owner, who gets a free one if this is the first time.
    fn cell(&self, owner: Key) -> &Cell {
        let key = owner.0.get();
        if owner == Key::EVERYONE {
            return self.owners.first().map_or(&self.shared, |owner| &owner.cell);
        }
        // All that have a place of their own stand one behind the other, so a search meets each of them before a
        // free one. A place is never given back.
        for owner in self.owners.iter().skip(1) {
            let mut taken = owner.key.load(Ordering::Acquire);
            if taken == 0 {
                taken = match owner.key.compare_exchange(0, key, Ordering::AcqRel, Ordering::Acquire) {
                    Ok(_) => key,
                    Err(other) => other,
                };
            }
            if taken == key {
                return &owner.cell;
            }
        }
        &self.shared
    }
}
