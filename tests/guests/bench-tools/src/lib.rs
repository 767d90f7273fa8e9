//! What tools, services and hooks cost: nothing else is in it.

use std::cell::RefCell;

use conductor_feature::hook_registrar::{Band, Point, Registrar as Hooks};
use conductor_feature::store::Table;
use conductor_feature::tool_registrar::Registrar;
use conductor_feature::{
    Context, Error, Event, EventHooks, Invocation, Lifecycle, ReadOnlyTools, Reader, clock, random,
};

struct Bench;

thread_local! {
    static TABLE: RefCell<Option<Table>> = const { RefCell::new(None) };
    static SEEN: RefCell<f64> = const { RefCell::new(0.0) };
}

impl Lifecycle for Bench {
    fn install(ctx: &Context) -> Result<(), Error> {
        let tools = Registrar::open(ctx)?;
        for name in ["nothing", "clock", "random", "mode", "store_get", "store_set"] {
            tools.register(name, "{}", None)?;
        }
        Hooks::open(ctx)?.register(Point::Events, Band::Normal)?;
        TABLE.set(Table::open(ctx).ok());
        Ok(())
    }
}

impl ReadOnlyTools for Bench {
    /// The arguments are a number here: how often.
    fn call(name: String, args: String, _: &Invocation, state: &Reader) -> Result<String, Error> {
        let times: u32 = args.parse().unwrap_or(0);
        TABLE.with_borrow(|table| {
            let table = table.as_ref().ok_or_else(|| Error::Unavailable("there is no store".into()))?;
            for n in 0..times {
                match name.as_str() {
                    "clock" => {
                        std::hint::black_box(clock::monotonic());
                    }
                    "random" => drop(std::hint::black_box(random::bytes(16))),
                    "mode" => drop(std::hint::black_box(state.mode())),
                    "store_get" => drop(table.get("key")?),
                    "store_set" => table.set("key", &n.to_le_bytes())?,
                    _ => {}
                }
            }
            Ok("null".into())
        })
    }
}

impl EventHooks for Bench {
    fn events(batch: Vec<Event>, _missed: u64) {
        SEEN.with_borrow_mut(|seen| *seen += batch.iter().map(|event| event.value).sum::<f64>());
    }
}

conductor_feature::feature!(Bench, "../feature.toml", [read_only_tools, event_hooks]);
