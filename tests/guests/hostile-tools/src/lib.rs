//! Tools of every tier that misbehave in the way that their argument `how` names, and one that
//! misbehaves while it is installed.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use conductor_feature::diagnostics::{Severity, Sink as Diagnostics};
use conductor_feature::files::Folder;
use conductor_feature::git::{Repository, Snapshot};
use conductor_feature::hardware::Access;
use conductor_feature::http::{Client, Request, Secret};
use conductor_feature::planning::Change;
use conductor_feature::privileges::Authority;
use conductor_feature::programs::{self, Command, Process};
use conductor_feature::runtime_controls::Controls;
use conductor_feature::store::Table;
use conductor_feature::tool_registrar::Registrar;
use conductor_feature::udp::Network;
use conductor_feature::{
    ConfigChangeTools, Context, Error, HardwareIoTools, Invocation, Lifecycle, Migration, Planner, PrivilegedTools,
    ReadOnlyTools, Reader, StateHandover, StatefulTools, alerts, clock, notifications, random,
};
use serde_json::{Value, json};

struct Hostile;

/// Allocates memory, until it is switched to loop: the host asks for some, by `cabi_realloc`, before each call and
/// wherever it hands text over.
struct Allocator;

static ALLOCATE_FOREVER: AtomicBool = AtomicBool::new(false);

// SAFETY: what it gives out is the system's.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if ALLOCATE_FOREVER.load(Ordering::Relaxed) {
            forever()
        }
        // SAFETY: the caller's promises are handed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// How `install` misbehaves. Tests write another word over it, in the file.
static INSTALL: [u8; 24] = *b"INSTALL:quiet           ";

/// How `migrate` misbehaves, in the same way.
static MIGRATE: [u8; 24] = *b"MIGRATE:quiet           ";

/// How handing over the state misbehaves, in the same way.
static HANDOVER: [u8; 24] = *b"HANDOVER:quiet          ";

fn way(text: &'static [u8; 24]) -> String {
    let at = std::hint::black_box(&raw const *text);
    // SAFETY: it points to a static. Volatile, so that the compiler can't fold the value.
    let bytes = unsafe { at.read_volatile() };
    let text = String::from_utf8_lossy(&bytes).into_owned();
    text.split_once(':').map_or_else(String::new, |(_, way)| way.trim().to_owned())
}

#[derive(Default)]
struct State {
    registrar: Option<Registrar>,
    diagnostics: Option<Diagnostics>,
    alerts: Option<alerts::Sink>,
    notifications: Option<notifications::Sink>,
    network: Option<Network>,
    http: Option<Client>,
    table: Option<Table>,
    look: Option<Folder>,
    work: Option<Folder>,
    other: Option<Error>,
    repository: Option<Repository>,
    commits: Vec<Snapshot>,
    programs: Option<programs::Access>,
    started: Vec<Process>,
    hoard: Vec<Diagnostics>,
    memory: Vec<Vec<u8>>,
}

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
    static KEPT: Cell<u32> = const { Cell::new(0) };
    static REMEMBERED: RefCell<String> = const { RefCell::new(String::new()) };
    static CONTEXT: Cell<u32> = const { Cell::new(0) };
}

/// How deep it goes. Never reached unless it is set, but the compiler can't know.
static BOTTOM: AtomicU64 = AtomicU64::new(u64::MAX);

fn recurse(depth: u64) -> u64 {
    if depth == BOTTOM.load(Ordering::Relaxed) { 0 } else { recurse(depth + 1).wrapping_mul(3) ^ depth }
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
        let tools = Registrar::open(ctx)?;
        match way(&INSTALL).as_str() {
            "loop" => forever(),
            "wait" => fetch_forever(&Client::open(ctx, "mischief")?),
            "trap" => std::process::abort(),
            "recurse" => return Err(Error::Failed(recurse(0).to_string())),
            "refuse" => return Err(Error::Failed("\u{1b}[2J no".repeat(1000))),
            "no-text" => return Err(Error::Failed(no_text())),
            "nothing" => return Ok(()),
            "undeclared" => return tools.register("elsewhere", "{}", None),
            "no-schema" => return tools.register("look", "[1, 2", None),
            "large-schema" => {
                return tools.register("look", &format!("{{\"x\": \"{}\"}}", "x".repeat(70_000)), None);
            }
            "enum-schema" => {
                let zeros = vec![0; 20_000];
                return tools.register("look", "{}", Some(&json!({ "items": { "enum": zeros } }).to_string()));
            }
            "deep-schema" => {
                let schema = format!("{}{{}}{}", "{\"items\":".repeat(80), "}".repeat(80));
                return tools.register("look", &schema, None);
            }
            "wide-schema" => {
                let many = vec![json!({}); 10_000];
                return tools.register("look", &json!({ "anyOf": many }).to_string(), None);
            }
            "pattern-schema" => {
                return tools.register("look", &json!({ "pattern": "(a+)+".repeat(1000) }).to_string(), None);
            }
            "lost-schema" => return tools.register("look", "{}", Some(r##"{"$ref": "#/nowhere"}"##)),
            "outside-schema" => return tools.register("look", r#"{"items": {"$ref": "http://127.0.0.1:1/x"}}"#, None),
            "ring-schema" => return tools.register("look", "{}", Some(r##"{"anyOf": [{"$ref": "#"}]}"##)),
            // Eight ways to itself in each array, and each has eight.
            "circle-schema" => {
                let ways = vec![json!({ "$ref": "#" }); 8];
                for name in ["look", "change", "claim", "send", "rule"] {
                    tools.register(name, "{}", None)?;
                }
                return tools.register(
                    "propose",
                    "{}",
                    Some(&json!({ "type": "array", "items": { "anyOf": ways } }).to_string()),
                );
            }
            "control" => return tools.register("lo\u{1b}[2Jok", "{}", None),
            "many" => {
                let mut last = Ok(());
                for n in 0..10_000 {
                    last = tools.register(&format!("tool{n}"), "{}", None);
                }
                return last;
            }
            "handles" => STATE.with_borrow_mut(|state| {
                for _ in 0..2000 {
                    state.hoard.extend(Diagnostics::open(ctx));
                }
            }),
            _ => {}
        }
        for name in ["look", "change", "claim", "send", "rule"] {
            tools.register(name, "{}", None)?;
        }
        tools.register("propose", "{}", Some(r#"{"type": "string"}"#))?;
        CONTEXT.set(ctx.handle());
        STATE.set(State {
            registrar: Some(tools),
            diagnostics: Diagnostics::open(ctx).ok(),
            alerts: alerts::Sink::open(ctx).ok(),
            notifications: notifications::Sink::open(ctx).ok(),
            network: Network::open(ctx, "mischief").ok(),
            http: Client::open(ctx, "mischief").ok(),
            table: Table::open(ctx).ok(),
            look: Folder::open(ctx, "look").ok(),
            work: Folder::open(ctx, "work").ok(),
            other: Folder::open(ctx, "another purpose").err(),
            repository: Repository::open(ctx, "look").ok(),
            programs: programs::Access::open(ctx).ok(),
            ..State::default()
        });
        Ok(())
    }
}

impl StateHandover for Hostile {
    fn export_state() -> Result<Vec<u8>, Error> {
        match way(&HANDOVER).as_str() {
            "loop" => forever(),
            "trap" => std::process::abort(),
            "fail" => Err(Error::Failed("there is no state".into())),
            "large" => Ok(vec![0; 300_000]),
            _ => Ok(REMEMBERED.take().into_bytes()),
        }
    }

    fn import_state(state: Vec<u8>) -> Result<(), Error> {
        match way(&HANDOVER).as_str() {
            "import-loop" => forever(),
            "import-trap" => std::process::abort(),
            "import-fail" => return Err(Error::Failed("the state is not understood".into())),
            _ => REMEMBERED.set(String::from_utf8_lossy(&state).into_owned()),
        }
        Ok(())
    }
}

impl Migration for Hostile {
    /// Writes both versions behind every value, and then misbehaves.
    fn migrate(from: u32, to: u32, data: &Table) -> Result<(), Error> {
        for key in data.keys("", None)? {
            let value = data.get(&key)?.unwrap_or_default();
            data.set(&key, &[value, format!("-{from}-{to}").into_bytes()].concat())?;
        }
        match way(&MIGRATE).as_str() {
            "loop" => forever(),
            "trap" => std::process::abort(),
            "fail" => Err(Error::Failed("the data is not understood".into())),
            "fill" => (0..).try_for_each(|n| data.set(&format!("fill{n}"), &[0; 4096])),
            "empty" => data.keys("", None)?.iter().try_for_each(|key| data.delete(key).map(drop)),
            _ => Ok(()),
        }
    }
}

fn text<'a>(args: &'a Value, key: &str) -> &'a str {
    args[key].as_str().unwrap_or_default()
}

fn missing(what: &str) -> Error {
    Error::Failed(format!("hostile: no {what}"))
}

fn start(state: &State, program: &str) -> Result<Process, Error> {
    let access = state.programs.as_ref().ok_or_else(|| missing("programs"))?;
    let command = Command { program: program.to_owned(), input: Vec::new(), files: Vec::new(), timeout_ms: 600_000 };
    access.start(&command)
}

/// What every tier can try.
fn anything(args: &Value, invoked: &Invocation, reader: &Reader) -> Result<String, Error> {
    let done = Ok("\"done\"".to_owned());
    STATE.with_borrow_mut(|state| match text(args, "how") {
        "loop" => forever(),
        "trap" => std::process::abort(),
        "recurse" => Err(Error::Failed(recurse(0).to_string())),
        // Frames of 32 bytes or more: beyond 512 KiB, and within twice as much.
        "recurse-beyond" => {
            BOTTOM.store(20_000, Ordering::Relaxed);
            Ok(recurse(0).to_string())
        }
        "memory" => {
            let mut kept: Vec<Vec<u8>> = Vec::new();
            loop {
                kept.push(std::hint::black_box(Vec::with_capacity(1 << 20)));
            }
        }
        "hoard" => {
            state.memory.push(std::hint::black_box(Vec::with_capacity(50 << 20)));
            done
        }
        "ignore-cancel" => {
            // Works for longer than any caller waits, in pieces that each cost little.
            loop {
                let _ = reader.mode();
                if clock::monotonic() == 0 {
                    return done;
                }
            }
        }
        "large" => Ok(format!("\"{}\"", "x".repeat(300_000))),
        "huge" => Ok("x".repeat(40 << 20)),
        "no-json" => Ok("{\"a\": ".to_owned()),
        "no-text" => Ok(no_text()),
        "error-no-text" => Err(Error::Denied(no_text())),
        "nonsense" => Err(Error::Failed("\u{1b}[2J\u{202e}".repeat(10_000))),
        "deep" => Ok("[".repeat(100_000)),
        "diagnostics" => {
            let sink = state.diagnostics.as_ref().ok_or_else(|| missing("diagnostics"))?;
            (0..10_000).for_each(|n| sink.emit(Severity::Error, &format!("{n} \u{1b}[31m{}", "y".repeat(3000))));
            done
        }
        "alerts" => {
            let sink = state.alerts.as_ref().ok_or_else(|| missing("alerts"))?;
            (0..10_000).for_each(|n| sink.emit(&format!("{n} {}", "y".repeat(3000))));
            done
        }
        "notifications" => {
            let sink = state.notifications.as_ref().ok_or_else(|| missing("notifications"))?;
            (0..10_000).for_each(|n| sink.emit(&format!("{n} {}", "y".repeat(6000))));
            done
        }
        "say-no-text" => {
            let sink = state.diagnostics.as_ref().ok_or_else(|| missing("diagnostics"))?;
            sink.emit(Severity::Info, &no_text());
            done
        }
        "say-huge" => {
            let sink = state.diagnostics.as_ref().ok_or_else(|| missing("diagnostics"))?;
            sink.emit(Severity::Info, &"x".repeat(40 << 20));
            done
        }
        "write-huge" => {
            let folder = state.work.as_ref().ok_or_else(|| missing("folder"))?;
            folder.write("huge", &vec![7; 40 << 20]).map(|()| "\"done\"".to_owned())
        }
        "many-headers" => {
            let client = state.http.as_ref().ok_or_else(|| missing("http"))?;
            let answer = client.send(&Request {
                method: "GET".to_owned(),
                url: "https://granted.example/".to_owned(),
                headers: vec![(String::new(), String::new()); 600_000],
                body: Vec::new(),
                secret: None,
            });
            answer.map(|answer| answer.status.to_string())
        }
        "say" => {
            let sink = state.diagnostics.as_ref().ok_or_else(|| missing("diagnostics"))?;
            sink.emit(Severity::Info, text(args, "text"));
            done
        }
        "progress" => {
            for n in 0..10_000 {
                invoked.progress(n as f32 * f32::NAN, &"p\u{7}".repeat(1000));
            }
            done
        }
        "random" => Ok(random::bytes(u32::MAX).len().to_string()),
        "datagrams" => {
            let network = state.network.as_ref().ok_or_else(|| missing("network"))?;
            let target = network.target("127.0.0.1:9")?;
            let sent = (0..100_000).filter(|_| target.send(b"flood").is_ok()).count();
            Ok(sent.to_string())
        }
        "target" => {
            let network = state.network.as_ref().ok_or_else(|| missing("network"))?;
            network.target(text(args, "target")).map(|_| "\"done\"".to_owned())
        }
        "targets" => {
            let network = state.network.as_ref().ok_or_else(|| missing("network"))?;
            let kept: Vec<_> = (0..2000).map(|_| network.target("127.0.0.1:9")).collect();
            Ok(kept.len().to_string())
        }
        "register-late" => {
            let registrar = state.registrar.as_ref().ok_or_else(|| missing("registrar"))?;
            registrar.register(text(args, "name"), "{}", None).map(|()| "\"done\"".to_owned())
        }
        "context-late" => {
            // SAFETY: the number was a handle once. That it is none any more is what is tried.
            let context = unsafe { Context::from_handle(CONTEXT.get()) };
            let opened = Diagnostics::open(&context);
            std::mem::forget(context);
            opened.map(|_| "\"done\"".to_owned())
        }
        "remember" => {
            REMEMBERED.set(text(args, "what").to_owned());
            done
        }
        "recall" => Ok(json!(REMEMBERED.with_borrow(String::clone)).to_string()),
        "keep" => {
            KEPT.set(invoked.handle());
            done
        }
        "drop" => {
            // SAFETY: it is a handle, lent for this call: dropped here, and once more at the end of the call.
            drop(unsafe { Invocation::from_handle(invoked.handle()) });
            done
        }
        "read" => {
            let folder = state.look.as_ref().ok_or_else(|| missing("folder"))?;
            folder.read(text(args, "path")).map(|bytes| json!(String::from_utf8_lossy(&bytes)).to_string())
        }
        "read-commit" => {
            let repository = state.repository.as_ref().ok_or_else(|| missing("repository"))?;
            let snapshot = repository.at(text(args, "revision"))?;
            snapshot.read(text(args, "path")).map(|bytes| json!(String::from_utf8_lossy(&bytes)).to_string())
        }
        "hoard-commits" => {
            let repository = state.repository.as_ref().ok_or_else(|| missing("repository"))?;
            state.commits = (0..2000).map(|_| repository.at("HEAD")).collect::<Result<_, _>>()?;
            done
        }
        "run" => {
            let outcome = start(state, text(args, "program"))?.wait()?;
            let output = String::from_utf8_lossy(&outcome.output).into_owned();
            Ok(json!([outcome.status, output, outcome.complaint]).to_string())
        }
        "run-and-keep" => {
            let process = start(state, text(args, "program"))?;
            state.started.push(process);
            done
        }
        "wait-twice" => {
            let process = start(state, text(args, "program"))?;
            process.wait()?;
            process.wait().map(|_| "\"done\"".to_owned())
        }
        "names-in-commit" => {
            let repository = state.repository.as_ref().ok_or_else(|| missing("repository"))?;
            let names = repository.at(text(args, "revision"))?.names(text(args, "path"))?;
            Ok(json!(names.into_iter().map(|entry| entry.name).collect::<Vec<_>>()).to_string())
        }
        "names" => {
            let folder = state.look.as_ref().ok_or_else(|| missing("folder"))?;
            folder.names(text(args, "path")).map(|names| names.len().to_string())
        }
        "write-ungranted" => {
            let folder = state.look.as_ref().ok_or_else(|| missing("folder"))?;
            folder.write(text(args, "path"), b"hostile").map(|()| "\"done\"".to_owned())
        }
        "write" => {
            let folder = state.work.as_ref().ok_or_else(|| missing("folder"))?;
            folder.write(text(args, "path"), b"hostile").map(|()| "\"done\"".to_owned())
        }
        "write-large" => {
            let folder = state.work.as_ref().ok_or_else(|| missing("folder"))?;
            folder.write("large", &vec![0; 5 << 20]).map(|()| "\"done\"".to_owned())
        }
        "write-much" => {
            let folder = state.work.as_ref().ok_or_else(|| missing("folder"))?;
            let data = vec![7; 4 << 20];
            (0..20).try_for_each(|n| folder.write(&format!("large{n}"), &data)).map(|()| "\"done\"".to_owned())
        }
        "write-many" => {
            let folder = state.work.as_ref().ok_or_else(|| missing("folder"))?;
            (0..2000).try_for_each(|n| folder.write(&format!("file{n}"), b"")).map(|()| "\"done\"".to_owned())
        }
        "remove" => {
            let folder = state.work.as_ref().ok_or_else(|| missing("folder"))?;
            folder.remove(text(args, "path")).map(|()| "\"done\"".to_owned())
        }
        "other-purpose" => Err(state.other.clone().unwrap_or_else(|| Error::Failed("it was opened".into()))),
        "fetch" => {
            let client = state.http.as_ref().ok_or_else(|| missing("http"))?;
            let secret = args["secret"].as_str().map(|id| Secret {
                id: id.to_owned(),
                header: args["header"].as_str().unwrap_or("authorization").to_owned(),
                prefix: "Bearer ".to_owned(),
            });
            let headers = args["headers"].as_object().into_iter().flatten();
            let headers = headers.map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned()));
            let answer = client.send(&Request {
                method: args["method"].as_str().unwrap_or("GET").to_owned(),
                url: text(args, "url").to_owned(),
                headers: headers.collect(),
                body: Vec::new(),
                secret,
            })?;
            let body = String::from_utf8_lossy(&answer.body).into_owned();
            if let Some(sink) = &state.diagnostics {
                sink.emit(Severity::Info, &format!("{:?} {body}", answer.headers));
            }
            Ok(json!({ "status": answer.status, "headers": answer.headers, "body": body }).to_string())
        }
        "fetch-forever" => fetch_forever(state.http.as_ref().ok_or_else(|| missing("http"))?),
        "realloc-loop" => {
            // In the text that this call asks for; and if the host had none to hand over, in the next call.
            ALLOCATE_FOREVER.store(true, Ordering::Relaxed);
            let _ = reader.mode();
            done
        }
        "realloc-loop-later" => {
            let answer = Ok("0".to_owned());
            ALLOCATE_FOREVER.store(true, Ordering::Relaxed);
            answer
        }
        "requests" => {
            let client = state.http.as_ref().ok_or_else(|| missing("http"))?;
            let request = || Request {
                method: "GET".to_owned(),
                url: "https://granted.example/".to_owned(),
                headers: Vec::new(),
                body: Vec::new(),
                secret: None,
            };
            Ok((0..200).filter(|_| client.send(&request()).is_ok()).count().to_string())
        }
        "store-fill" => {
            let table = state.table.as_ref().ok_or_else(|| missing("store"))?;
            for n in 0..10_000 {
                table.set(&format!("key{n}"), &[7; 1000])?;
            }
            done
        }
        "store-large" => {
            let table = state.table.as_ref().ok_or_else(|| missing("store"))?;
            table.set("large", &vec![7; 2 << 20]).map(|()| "\"done\"".to_owned())
        }
        "store-key" => {
            let table = state.table.as_ref().ok_or_else(|| missing("store"))?;
            let key = if args["long"] == true { "k".repeat(600) } else { text(args, "key").to_owned() };
            table.set(&key, b"1").map(|()| "\"done\"".to_owned())
        }
        "store-no-text" => {
            let table = state.table.as_ref().ok_or_else(|| missing("store"))?;
            table.set(&no_text(), b"1").map(|()| "\"done\"".to_owned())
        }
        "store-get" => {
            let table = state.table.as_ref().ok_or_else(|| missing("store"))?;
            table.get(text(args, "key")).map(|value| json!(value).to_string())
        }
        _ => done,
    })
}

/// Uses no time of its own, and waits as long as it is let.
fn fetch_forever(client: &Client) -> ! {
    loop {
        let _ = client.send(&Request {
            method: "GET".to_owned(),
            url: "https://granted.example/".to_owned(),
            headers: Vec::new(),
            body: Vec::new(),
            secret: None,
        });
    }
}

fn args_of(args: &str) -> Value {
    serde_json::from_str(args).unwrap_or_default()
}

impl ReadOnlyTools for Hostile {
    fn call(_name: String, args: String, invoked: &Invocation, reader: &Reader) -> Result<String, Error> {
        let args = args_of(&args);
        match text(&args, "how") {
            // What other tiers are handed: their numbers are tried one after the other.
            "steal" => {
                for number in 0..64 {
                    // SAFETY: most likely no handle of this kind; that is the point.
                    let planner = unsafe { Planner::from_handle(number) };
                    let planned = planner.propose("stolen", &[Change { path: "modes".into(), value: None }]);
                    std::mem::forget(planner);
                    planned?;
                }
                Ok("\"done\"".to_owned())
            }
            "steal-controls" => {
                // SAFETY: the reader's number is no handle of this kind; that is the point.
                let controls = unsafe { Controls::from_handle(reader.handle()) };
                let changed = controls.switch_mode("other");
                std::mem::forget(controls);
                changed.map(|()| "\"done\"".to_owned())
            }
            "steal-authority" => {
                // SAFETY: as above.
                let authority = unsafe { Authority::from_handle(reader.handle()) };
                let performed = authority.perform(r#"{"type": "Suppress"}"#);
                std::mem::forget(authority);
                performed
            }
            "check" => {
                let text = "x".repeat(args["size"].as_u64().and_then(|size| usize::try_from(size).ok()).unwrap_or(1));
                reader.check(&text).map(|found| found.len().to_string())
            }
            // Each is one call of the host, and not a short one.
            "check-again" => {
                for _ in 0..100_000 {
                    reader.check("slow")?;
                }
                Ok("\"done\"".to_owned())
            }
            "explain-again" => {
                for _ in 0..100_000 {
                    reader.explain("slow", "note-on", None)?;
                }
                Ok("\"done\"".to_owned())
            }
            "check-huge" => reader.check(&"x".repeat(40 << 20)).map(|found| found.len().to_string()),
            "explain" => reader
                .explain(text(&args, "device"), &"note-on ".repeat(1000), None)
                .map(|explained| explained.len().to_string()),
            "many-events" => Ok((reader.captured(u32::MAX)?.len() + reader.events(u32::MAX)?.len()).to_string()),
            _ => anything(&args, invoked, reader),
        }
    }
}

impl StatefulTools for Hostile {
    fn call(
        _: String,
        args: String,
        invoked: &Invocation,
        reader: &Reader,
        change: &Controls,
    ) -> Result<String, Error> {
        let args = args_of(&args);
        match text(&args, "how") {
            "mode" => change.switch_mode(text(&args, "mode")).map(|()| "\"done\"".to_owned()),
            "mute" => change.set_device_enabled(text(&args, "device"), false).map(|()| "\"done\"".to_owned()),
            "keep" => {
                KEPT.set(change.handle());
                Ok("\"done\"".to_owned())
            }
            _ => anything(&args, invoked, reader),
        }
    }
}

impl ConfigChangeTools for Hostile {
    fn call(_: String, args: String, invoked: &Invocation, reader: &Reader, plan: &Planner) -> Result<String, Error> {
        let args = args_of(&args);
        let one = |value: Option<String>| Change { path: "modes/0".to_owned(), value };
        let done = || "\"done\"".to_owned();
        match text(&args, "how") {
            "flood" => {
                for _ in 0..200 {
                    plan.propose("one more", &[one(None)])?;
                }
                Ok(done())
            }
            "many-changes" => {
                let changes: Vec<Change> = (0..10_000).map(|_| one(None)).collect();
                plan.propose("many", &changes).map(|_| done())
            }
            // Refused each time, but not before it was looked at.
            "propose-again" => loop {
                let _ = plan.propose("slow", &[one(None)]);
            },
            "million-changes" => {
                let none = || Change { path: String::new(), value: None };
                plan.propose("many", &(0..400_000).map(|_| none()).collect::<Vec<_>>()).map(|_| done())
            }
            "large-changes" => {
                let value = format!("\"{}\"", "x".repeat(200_000));
                let changes: Vec<Change> = (0..20).map(|_| one(Some(value.clone()))).collect();
                plan.propose("large", &changes).map(|_| done())
            }
            // Proposes so many plans, and answers what its caller wants said of them.
            "claim" => {
                for number in 0..args["plans"].as_u64().unwrap_or_default() {
                    let mode = json!({ "name": format!("claimed {number}") }).to_string();
                    plan.propose("one more", &[Change { path: "modes/1".to_owned(), value: Some(mode) }])?;
                }
                if args["fail"] == true { Err(missing("answer")) } else { Ok(args["claim"].to_string()) }
            }
            "nested" => Ok(format!("{}1{}", "[".repeat(20), "]".repeat(20))),
            "not-as-promised" => Ok("{\"plan\": 1}".to_owned()),
            "deep-change" => plan.propose("deep", &[one(Some("[".repeat(50_000)))]).map(|_| done()),
            "no-text" => plan.propose(&no_text(), &[one(None)]).map(|_| done()),
            "keep" => {
                KEPT.set(plan.handle());
                Ok(done())
            }
            _ => anything(&args, invoked, reader),
        }
    }
}

impl HardwareIoTools for Hostile {
    fn call(_: String, args: String, invoked: &Invocation, reader: &Reader, devices: &Access) -> Result<String, Error> {
        let args = args_of(&args);
        match text(&args, "how") {
            // Handles that were kept from a call before, of another tier.
            "kept-planner" => {
                // SAFETY: the number was a planner's once. That it is none any more is what is tried.
                let planner = unsafe { Planner::from_handle(KEPT.get()) };
                let planned = planner.propose("kept", &[Change { path: "modes".into(), value: None }]);
                std::mem::forget(planner);
                planned.map(|plan| plan.id)
            }
            "kept-controls" => {
                // SAFETY: as above.
                let controls = unsafe { Controls::from_handle(KEPT.get()) };
                let changed = controls.switch_mode("other");
                std::mem::forget(controls);
                changed.map(|()| "\"done\"".to_owned())
            }
            "kept-authority" => {
                // SAFETY: as above.
                let authority = unsafe { Authority::from_handle(KEPT.get()) };
                let performed = authority.perform(r#"{"type": "Suppress"}"#);
                std::mem::forget(authority);
                performed
            }
            "sysex" => devices.send_midi(text(&args, "target"), &[0xf0, 0x7d, 1, 0xf7]).map(|()| "\"done\"".to_owned()),
            "probe" => devices.probe_identity(text(&args, "target")).map(|found| found.is_some().to_string()),
            // Everything that the arguments name.
            "midi-elsewhere" => devices.send_midi("other", &[0x90, 60, 100]).map(|()| "\"done\"".to_owned()),
            "midi" => devices.send_midi(text(&args, "target"), &[0x90, 60]).map(|()| "\"done\"".to_owned()),
            _ => anything(&args, invoked, reader),
        }
    }
}

impl PrivilegedTools for Hostile {
    fn call(
        _: String,
        args: String,
        invoked: &Invocation,
        reader: &Reader,
        plan: &Planner,
        rights: &Authority,
    ) -> Result<String, Error> {
        let args = args_of(&args);
        match text(&args, "how") {
            "perform" => rights.perform(text(&args, "action")).map(|done| json!(done).to_string()),
            "large-action" => rights.perform(&format!("\"{}\"", "x".repeat(200_000))),
            "plan" => {
                let change = Change { path: "modes/0/name".to_owned(), value: Some("\"other\"".to_owned()) };
                plan.propose("privileged", &[change]).map(|plan| json!(plan.id).to_string())
            }
            "keep" => {
                KEPT.set(rights.handle());
                Ok("\"done\"".to_owned())
            }
            _ => anything(&args, invoked, reader),
        }
    }
}

conductor_feature::feature!(
    Hostile,
    "../feature.toml",
    [
        read_only_tools,
        stateful_tools,
        config_change_tools,
        hardware_io_tools,
        privileged_tools,
        migration,
        state_handover
    ]
);
