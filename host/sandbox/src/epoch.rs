//! Epoch interruption (in place of fuel): the tick by which the host checks running guests.
//!
//! A tick that finds a guest at work is noted. Where for a while none does, ticks become rare: a host that has
//! nothing to do should not wake a processor a thousand times a second. A call that is short is seldom found, and
//! needs no ticks; one that is long is found by the next, and from then on at every one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use conductor_scheduling::clock_thread;
use wasmtime::{Engine, EngineWeak};

use crate::limits;

/// Ticks that find no guest at work, until they become rare.
const IDLE_TICKS: u32 = 50;

/// Whether a guest was at work at the last tick, and the ticks so far.
#[derive(Debug, Default)]
pub struct BusyGuests {
    found: AtomicBool,
    ticks: AtomicU64,
}

impl BusyGuests {
    /// A tick has found one.
    pub(super) fn note(&self) {
        self.found.store(true, Ordering::Relaxed);
    }

    /// Ticks so far.
    pub(super) fn ticks(&self) -> u64 {
        self.ticks.load(Ordering::Relaxed)
    }
}

/// Advances the engines' epoch for as long as they live: once a [`limits::TICK`], or a [`limits::IDLE_TICK`].
pub(super) fn start(engines: [&Engine; 2], at_work: &Arc<BusyGuests>) {
    let (weak, at_work) = (engines.map(Engine::weak), Arc::clone(at_work));
    let ticker = std::thread::Builder::new().name("epoch".into()).spawn(move || {
        clock_thread();
        let mut idle = 0_u32;
        while weak.iter().filter_map(EngineWeak::upgrade).map(|engine| engine.increment_epoch()).count() > 0 {
            at_work.ticks.fetch_add(1, Ordering::Relaxed);
            idle = if at_work.found.swap(false, Ordering::Relaxed) { 0 } else { idle.saturating_add(1) };
            std::thread::sleep(if idle < IDLE_TICKS { limits::TICK } else { limits::IDLE_TICK });
        }
    });
    if let Err(error) = ticker {
        tracing::error!(%error, "the sandbox's clock can't start; features that loop won't be stopped");
    }
}
