//! A hook: it receives events as they come, and reports notes that are very loud. It observes; it cannot stop what the
//! events do.

use std::cell::OnceCell;

use conductor_feature::diagnostics::{Severity, Sink};
use conductor_feature::hook_registrar::{Band, Point, Registrar};
use conductor_feature::{Context, Error, Event, EventHooks, devices, kind};

use crate::{{Type}};

/// From this velocity on a note is loud.
const LOUD: f64 = 120.0;

// What `install` opens is kept for the calls that come.
thread_local!(static LOG: OnceCell<Sink> = const { OnceCell::new() });

/// What is opened here is all that the hook can ever use.
pub fn install(ctx: &Context) -> Result<(), Error> {
    Registrar::open(ctx)?.register(Point::Events, Band::Normal)?;
    let sink = Sink::open(ctx)?;
    LOG.with(|log| log.set(sink)).map_err(|_| Error::Failed("it was installed twice".into()))
}

impl EventHooks for {{Type}} {
    // Events come in batches, off the event path; `_missed` counts those that were left out before them.
    fn events(batch: Vec<Event>, _missed: u64) {
        for event in batch.iter().filter(|event| event.kind == kind::NOTE_ON && event.value >= LOUD) {
            // Event records hold numbers only; names are asked for.
            let device = devices::name(event.device).unwrap_or_default();
            let text = format!("{device} plays note {} at {}", event.number, event.value);
            LOG.with(|log| log.get().map(|log| log.emit(Severity::Info, &text)));
        }
    }
}
