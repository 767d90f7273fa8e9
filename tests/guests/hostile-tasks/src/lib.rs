//! Background tasks, each of which misbehaves as it is called.

use conductor_feature::runs::Run;
use conductor_feature::task_registrar::Registrar;
use conductor_feature::{Context, Error, Lifecycle, Tasks, clock};

struct Hostile;

impl Lifecycle for Hostile {
    fn install(ctx: &Context) -> Result<(), Error> {
        let tasks = Registrar::open(ctx)?;
        ["spin", "wait-zero", "trap", "stubborn", "no-text", "patient", "busy"]
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
            _ => while run.wait(60_000) {},
        }
        Ok(())
    }
}

conductor_feature::feature!(Hostile, "../feature.toml", [tasks]);
