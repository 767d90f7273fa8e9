//! Which device an event came from: a cheap shared name, and the wrapper that carries it.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::hash::key_of;

/// The name of one port instance: a binding's alias, or the port's own name.
///
/// Made once when a port opens and then shared: a clone is a counter's increment. The 64-bit key is
/// computed at the same time, so that finding a device's rules does not walk its name.
///
/// Two ids are equal when their names are equal. Order is the order of the names.
#[derive(Clone)]
pub struct DeviceId {
    key: u64,
    name: Arc<str>,
}

impl DeviceId {
    /// The device with this name.
    pub fn new(name: &str) -> Self {
        Self { key: key_of(name.as_bytes()), name: Arc::from(name) }
    }

    /// The `n`-th port (from 0) of those that report the same name: `name`, `name #2`, `name #3`, …
    ///
    /// The number says which is which on a screen, no more: the system may list twins in another order
    /// after a restart.
    pub fn instance(name: &str, n: usize) -> Self {
        match n {
            0 => Self::new(name),
            n => Self::new(&format!("{name} #{}", n.saturating_add(1))),
        }
    }

    /// The name.
    #[inline]
    pub fn as_str(&self) -> &str {
        &self.name
    }

    /// A 64-bit hash of the name: the same in every run and on every platform, but not proof of
    /// equality.
    #[inline]
    pub fn key(&self) -> u64 {
        self.key
    }
}

impl PartialEq for DeviceId {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key && (Arc::ptr_eq(&self.name, &other.name) || self.name == other.name)
    }
}

impl Eq for DeviceId {}

impl Hash for DeviceId {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.key);
    }
}

impl PartialOrd for DeviceId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for DeviceId {
    fn cmp(&self, other: &Self) -> Ordering {
        self.name.cmp(&other.name)
    }
}

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.name)
    }
}

impl fmt::Debug for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceId({:?})", &*self.name)
    }
}

/// Anything together with the device it came from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DeviceEvent<T> {
    /// Where it came from.
    pub device: DeviceId,
    /// What came.
    pub event: T,
}

impl<T> DeviceEvent<T> {
    /// Changes what came and keeps where it came from.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> DeviceEvent<U> {
        DeviceEvent { device: self.device, event: change(self.event) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twins_get_numbers_from_two() {
        let names: Vec<_> = (0..3).map(|n| DeviceId::instance("nanoKONTROL2", n).to_string()).collect();
        assert_eq!(names, ["nanoKONTROL2", "nanoKONTROL2 #2", "nanoKONTROL2 #3"]);
    }

    #[test]
    fn a_name_is_the_identity_wherever_it_was_made() {
        let (here, there) = (DeviceId::new("pads"), DeviceId::new("pads"));
        assert_eq!(here, there);
        assert_eq!(here.key(), there.key());
        assert_ne!(here, DeviceId::new("keys"));
    }

    #[test]
    fn ids_sort_by_name_and_print_as_it() {
        let mut ids = [DeviceId::new("b"), DeviceId::new("a #2"), DeviceId::new("a")];
        ids.sort();
        assert_eq!(format!("{ids:?}"), r#"[DeviceId("a"), DeviceId("a #2"), DeviceId("b")]"#);
    }

    #[test]
    fn mapping_keeps_the_device() {
        let event = DeviceEvent { device: DeviceId::new("pads"), event: 7 };
        assert_eq!(event.map(|n| n * 2), DeviceEvent { device: DeviceId::new("pads"), event: 14 });
    }

    #[test]
    fn keys_of_similar_names_differ() {
        let mut keys: Vec<_> = (0..10_000).map(|n| DeviceId::instance("port", n).key()).collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), 10_000);
    }
}
