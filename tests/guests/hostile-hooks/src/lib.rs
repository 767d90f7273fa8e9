//! Hooks that misbehave in the way that an argument of the tool, the mode, or an event's number says.

use std::cell::{Cell, RefCell};

use conductor_feature::diagnostics::{Severity, Sink};
use conductor_feature::hook_registrar::{Band, Point, Registrar};
use conductor_feature::http::{Client, Request};
use conductor_feature::planning::Change;
use conductor_feature::{
    ChangeHooks, Context, Decision, Error, Event, EventHooks, Invocation, Lifecycle, Planner, ReadOnlyTools, Reader,
    ToolCall, ToolHooks, clock, tool_registrar,
};

struct Hostile;

/// The argument that hooks before a call go by. Tests write another word over it, in the file.
static KEY: [u8; 16] = *b"KEY:before      ";

fn key() -> String {
    let at = std::hint::black_box(&raw const KEY);
    // SAFETY: it points to a static. Volatile, so that the compiler can't fold the value.
    let bytes = unsafe { at.read_volatile() };
    String::from_utf8_lossy(&bytes[4..]).trim().to_owned()
}

thread_local! {
    static SINK: RefCell<Option<Sink>> = const { RefCell::new(None) };
    static NEXT: RefCell<String> = const { RefCell::new(String::new()) };
    static CLIENT: RefCell<Option<Client>> = const { RefCell::new(None) };
    static READER: RefCell<Option<Reader>> = const { RefCell::new(None) };
    static PLANNER: RefCell<Option<Planner>> = const { RefCell::new(None) };
    static KEPT: Cell<(u32, u32)> = const { Cell::new((0, 0)) };
}

fn forever() -> ! {
    let mut n = 0_u64;
    loop {
        n = std::hint::black_box(n.wrapping_add(1));
    }
}

fn no_text() -> String {
    // SAFETY: it is not; that is the point. Nothing here looks at it.
    unsafe { String::from_utf8_unchecked(vec![0xff, 0xfe, 0xc3]) }
}

impl Lifecycle for Hostile {
    fn install(ctx: &Context) -> Result<(), Error> {
        let hooks = Registrar::open(ctx)?;
        for point in [
            Point::PreToolCall,
            Point::PostToolCall,
            Point::Events,
            Point::PortChange,
            Point::ModeChange,
            Point::ConfigApplied,
        ] {
            hooks.register(point, Band::Late)?;
        }
        tool_registrar::Registrar::open(ctx)?.register("hold", "{}", None)?;
        SINK.set(Some(Sink::open(ctx)?));
        READER.set(Reader::open(ctx).ok());
        PLANNER.set(Planner::open(ctx).ok());
        CLIENT.set(Client::open(ctx, "mischief").ok());
        Ok(())
    }
}

fn way(call: &ToolCall, key: &str) -> String {
    let args: serde_json::Value = serde_json::from_str(&call.args).unwrap_or_default();
    args[key].as_str().unwrap_or_default().to_owned()
}

fn flood() {
    SINK.with_borrow(|sink| {
        if let Some(sink) = sink {
            (0..10_000).for_each(|n| sink.emit(Severity::Info, &format!("flood {n}")));
        }
    });
}

impl ToolHooks for Hostile {
    fn before_call(call: ToolCall) -> Decision {
        match way(&call, &key()).as_str() {
            "loop" => forever(),
            "trap" => std::process::abort(),
            "deny" => Decision::Deny("\u{1b}[2Jno ".repeat(1000)),
            "annotate" => Decision::Annotate("\u{1b}[2Jwell ".repeat(1000)),
            "no-text" => Decision::Annotate(no_text()),
            "wait" => CLIENT.with_borrow(|client| {
                loop {
                    if let Some(client) = client {
                        let _ = client.send(&Request {
                            method: "GET".to_owned(),
                            url: "https://granted.example/".to_owned(),
                            headers: Vec::new(),
                            body: Vec::new(),
                            secret: None,
                        });
                    }
                }
            }),
            // Handles that were kept from a tool call before.
            "kept-invocation" => {
                // SAFETY: the number was an invocation's once. That it is none any more is what is tried.
                let invocation = unsafe { Invocation::from_handle(KEPT.get().0) };
                let cancelled = invocation.cancelled();
                std::mem::forget(invocation);
                Decision::Annotate(cancelled.to_string())
            }
            "kept-reader" => {
                // SAFETY: as above.
                let reader = unsafe { Reader::from_handle(KEPT.get().1) };
                let mode = reader.mode();
                std::mem::forget(reader);
                Decision::Annotate(mode)
            }
            _ => Decision::Proceed,
        }
    }

    fn after_call(call: ToolCall, _failed: Option<String>) -> Option<String> {
        match way(&call, "after").as_str() {
            "loop" => forever(),
            "trap" => std::process::abort(),
            "remark" => Some("\u{1b}[2Jfine ".repeat(1000)),
            "no-text" => Some(no_text()),
            _ => None,
        }
    }
}

fn misbehave(way: &str) {
    match way {
        "loop" => forever(),
        "trap" => std::process::abort(),
        "flood" => flood(),
        _ => {}
    }
}

impl ReadOnlyTools for Hostile {
    /// Keeps what it is handed, or blocks all callers that wait for this instance.
    fn call(_: String, args: String, invoked: &Invocation, reader: &Reader) -> Result<String, Error> {
        if args.contains("keep") {
            KEPT.set((invoked.handle(), reader.handle()));
            return Ok("0".to_owned());
        }
        forever()
    }
}

impl ChangeHooks for Hostile {
    fn ports_changed() {
        misbehave(&NEXT.with_borrow(String::clone));
    }

    fn mode_changed(mode: String) {
        match mode.strip_prefix("next-") {
            Some(next) => NEXT.set(next.to_owned()),
            None => misbehave(&mode),
        }
    }

    fn config_applied() {
        misbehave(&NEXT.with_borrow(String::clone));
    }
}

fn say(text: &str) {
    SINK.with_borrow(|sink| {
        if let Some(sink) = sink {
            sink.emit(Severity::Info, text);
        }
    });
}

/// Asks the host for what takes it long.
fn look() {
    READER.with_borrow(|reader| match reader {
        Some(reader) => say(&format!("checked {:?}", reader.check("slow"))),
        None => say("no reader"),
    });
    PLANNER.with_borrow(|planner| match planner {
        Some(planner) => {
            let change = Change { path: "modes/0".to_owned(), value: None };
            say(&format!("proposed {:?}", planner.propose("slow", &[change])));
        }
        None => say("no planner"),
    });
}

/// Takes most of what a batch may take.
fn linger() {
    let began = clock::monotonic();
    while clock::monotonic() - began < 30_000_000 {}
}

impl EventHooks for Hostile {
    fn events(batch: Vec<Event>, missed: u64) {
        // A twin that only watches.
        if key() == "watch" {
            return;
        }
        misbehave(match batch.first().map(|event| event.number) {
            Some(1) => "loop",
            Some(2) => "trap",
            Some(3) => "flood",
            Some(4) => return look(),
            Some(5) => return say(&format!("missed {missed}")),
            Some(6) => return linger(),
            _ => "",
        });
    }
}

conductor_feature::feature!(Hostile, "../feature.toml", [read_only_tools, tool_hooks, event_hooks, change_hooks]);
