//! A feature that misbehaves with timers, in the way that a mapping's parameter `how` names.

use std::cell::RefCell;

use conductor_feature::{
    Actions, Context, Error, Event, Lifecycle, Prepared, Scheduler, TimerEvents, action_registrar, clock,
};
use serde_json::Value;

struct Hostile;

#[derive(Default)]
struct State {
    scheduler: Option<Scheduler>,
    ways: Prepared<String>,
    /// How often a timer was due in this instance.
    due: u64,
}

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
}

/// What the parameter `how` of a prepared action says.
fn way(action: u32) -> Result<String, Error> {
    STATE.with_borrow_mut(|state| state.ways.get(action).cloned())
}

fn with_scheduler<T>(work: impl FnOnce(&Scheduler) -> Result<T, Error>) -> Result<T, Error> {
    STATE.with_borrow(|state| work(state.scheduler.as_ref().ok_or_else(|| Error::Failed("no timers".into()))?))
}

fn forever() -> ! {
    let mut n = 0_u64;
    loop {
        n = std::hint::black_box(n.wrapping_add(1));
    }
}

impl Lifecycle for Hostile {
    fn install(ctx: &Context) -> Result<(), Error> {
        action_registrar::Registrar::open(ctx)?.register("Misbehave", r#"{"type": "object"}"#)?;
        let scheduler = Scheduler::open(ctx)?;
        if scheduler.after(0, 0).is_ok() || scheduler.cancel(0) || scheduler.deadline(0).is_some() {
            return Err(Error::Failed("a timer can be set while it is installed".into()));
        }
        STATE.with_borrow_mut(|state| state.scheduler = Some(scheduler));
        Ok(())
    }
}

impl Actions for Hostile {
    fn prepare(_name: String, params: String) -> Result<u32, Error> {
        let params: Value = serde_json::from_str(&params).map_err(|error| Error::Invalid(error.to_string()))?;
        let way = params["how"].as_str().unwrap_or_default().to_owned();
        if way == "prepare" {
            with_scheduler(|scheduler| scheduler.after(0, 0))?;
        }
        STATE.with_borrow_mut(|state| state.ways.keep(way))
    }

    fn perform(action: u32, _event: Event) -> Result<(), Error> {
        let way = way(action)?;
        match way.as_str() {
            "many" => with_scheduler(|scheduler| {
                let set = (0..1000).take_while(|id| scheduler.after(*id, 3_600_000_000_000).is_ok()).count();
                Err(Error::Failed(format!("set {set}")))
            }),
            "set-trap" => {
                with_scheduler(|scheduler| (0..10).try_for_each(|id| scheduler.after(id, 0).map(drop)))?;
                std::process::abort()
            }
            "count" => Err(Error::Failed(STATE.with_borrow(|state| format!("due {}", state.due)))),
            "nothing" => Ok(()),
            _ => with_scheduler(|scheduler| scheduler.after(0, 0).map(drop)),
        }
    }

    fn release(action: u32) {
        let _ = with_scheduler(|scheduler| scheduler.after(1, 0));
        STATE.with_borrow_mut(|state| state.ways.release(action));
    }
}

impl TimerEvents for Hostile {
    fn due(action: u32, _id: u32, _at: u64) -> Result<(), Error> {
        STATE.with_borrow_mut(|state| state.due += 1);
        match way(action)?.as_str() {
            "due-trap" => std::process::abort(),
            "due-loop" => forever(),
            // As many as there may be, as soon as may be, and each takes its time.
            "endless" => {
                let began = clock::monotonic();
                while clock::monotonic() - began < 12_000_000 {}
                with_scheduler(|scheduler| {
                    (0..1000).find_map(|id| scheduler.after(id, 0).err());
                    Ok(())
                })
            }
            _ => Ok(()),
        }
    }
}

conductor_feature::feature!(Hostile, "../feature.toml", [actions, timer_events]);
