//! A background task: every 25 minutes it says that it is time for a break.

use std::cell::OnceCell;

use conductor_feature::alerts::Sink;
use conductor_feature::runs::Run;
use conductor_feature::task_registrar::Registrar;
use conductor_feature::{Context, Error, Tasks};

use crate::{{Type}};

/// In milliseconds.
const BETWEEN: u32 = 25 * 60 * 1000;

// What `install` opens is kept for the calls that come.
thread_local!(static ALERTS: OnceCell<Sink> = const { OnceCell::new() });

/// A task has an instance of its own. What is opened here is all that it can use.
pub fn install(ctx: &Context) -> Result<(), Error> {
    Registrar::open(ctx)?.register("reminder")?;
    let sink = Sink::open(ctx)?;
    ALERTS.with(|alerts| alerts.set(sink)).map_err(|_| Error::Failed("it was installed twice".into()))
}

impl Tasks for {{Type}} {
    // `wait` gives false when the host wants the task to end. Between two waits it may work for two seconds.
    fn start(_name: String, run: &Run) -> Result<(), Error> {
        while run.wait(BETWEEN) {
            ALERTS.with(|alerts| alerts.get().map(|alerts| alerts.emit("Time for a break.")));
        }
        Ok(())
    }
}
