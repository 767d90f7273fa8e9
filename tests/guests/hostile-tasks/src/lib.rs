//! Background tasks, each of which misbehaves as it is called.

use std::cell::RefCell;

use conductor_feature::diagnostics::{Severity, Sink};
use conductor_feature::runs::Run;
use conductor_feature::task_control::Controller;
use conductor_feature::task_registrar::Registrar;
use conductor_feature::{Context, Error, Lifecycle, Tasks, clock};

struct Hostile;

thread_local! {
    static TASKS: RefCell<Option<Controller>> = const { RefCell::new(None) };
    static LOG: RefCell<Option<Sink>> = const { RefCell::new(None) };
}

/// Starts a task of any name.
fn start(name: &str) -> Result<(), Error> {
    TASKS.with_borrow(|tasks| tasks.as_ref().map_or(Ok(()), |tasks| tasks.start(name)))
}

impl Lifecycle for Hostile {
    fn install(ctx: &Context) -> Result<(), Error> {
        let tasks = Registrar::open(ctx)?;
        TASKS.set(Some(Controller::open(ctx)?));
        LOG.set(Some(Sink::open(ctx)?));
        ["spin", "wait-zero", "trap", "stubborn", "no-text", "patient", "called", "busy"]
            .iter()
            .try_for_each(|name| tasks.register(name))
    }
}

fn work() {
    (0..1000_u32).for_each(|n| {
        std::hint::black_box(n);
    });
}

impl Tasks for Hostile {
    fn start(name: String, run: &Run) -> Result<(), Error> {
        match name.as_str() {
            "spin" => loop {
                work();
            },
            "wait-zero" => {
                while run.wait(0) {
                    work();
                }
            }
            "trap" => std::process::abort(),
            "stubborn" => loop {
                // Once it is cancelled, waiting returns at once.
                run.wait(10);
                work();
            },
            // Gets back by waiting what it takes.
            "busy" => {
                while run.wait(100) {
                    let began = clock::monotonic();
                    while clock::monotonic() - began < 100_000_000 {
                        work();
                    }
                }
            }
            // SAFETY: it is no text; that is the point. Nothing here looks at it.
            "no-text" => return Err(Error::Failed(unsafe { String::from_utf8_unchecked(vec![0xff, 0xfe]) })),
            // Nothing but its own on-demand task may be started, which runs already.
            "called" => {
                for name in ["watch", "patient", "spin", "builtin:work-items/watch"] {
                    if start(name).is_ok() {
                        return Err(Error::Failed(format!("it started {name}")));
                    }
                }
                start("called")?;
                LOG.with_borrow(|log| log.iter().for_each(|log| log.emit(Severity::Info, "called waits")));
                while run.wait(60_000) {}
            }
            _ => {
                let _ = start("called");
                while run.wait(60_000) {}
            }
        }
        Ok(())
    }
}

conductor_feature::feature!(Hostile, "../feature.toml", [tasks]);
