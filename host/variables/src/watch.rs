//! What is called when a variable changes.

use std::fmt;

/// Hears that a variable has changed. It is called on the event path: it takes no lock, allocates nothing and waits for
/// nothing.
pub struct Watch(Box<dyn Fn() + Send + Sync>);

impl Watch {
    /// One that calls this function.
    pub fn new(call: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Box::new(call))
    }

    pub(crate) fn call(&self) {
        (self.0)();
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watch")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::{Change, Declaration, Key, Kind, Scope, Variables};

    #[test]
    fn it_hears_of_each_change_and_of_nothing_else() {
        let switch =
            Declaration { name: "mute".into(), kind: Kind::Switch, scope: Scope::Device, initial: 0.0, keep: false };
        let variables = Variables::declare([switch.clone()], &Variables::default());
        let mute = variables.find("mute").unwrap();
        let heard = Arc::new(AtomicU32::new(0));
        let counter = Arc::clone(&heard);
        let watch = Watch::new(move || {
            counter.fetch_add(1, Ordering::Relaxed);
        });
        mute.watch(Some(Arc::new(watch)));
        mute.change(Key::of("pads"), &Change::Set, 1.0, 1);
        mute.change(Key::of("pads"), &Change::Set, 1.0, 2);
        assert_eq!(heard.load(Ordering::Relaxed), 1, "the second one changes nothing");
        mute.restore(Key::of("keys"), 1.0);
        mute.restore(Key::of("keys"), 1.0);
        assert_eq!(heard.load(Ordering::Relaxed), 2);
        // Declared anew in the same way it is the same variable.
        let again = Variables::declare([switch], &variables);
        again.find("mute").unwrap().change(Key::of("pads"), &Change::Toggle, 1.0, 3);
        assert_eq!(heard.load(Ordering::Relaxed), 3);
        mute.watch(None);
        mute.change(Key::of("pads"), &Change::Toggle, 1.0, 4);
        assert_eq!(heard.load(Ordering::Relaxed), 3);
    }
}
