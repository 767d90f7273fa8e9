//! A feature that misbehaves in the way that a mapping's parameter `how` names.
//!
//! `prepare` and `install` misbehave, too: `how = "prepare-loop"` loops while it is prepared.
wit_bindgen::generate!({ path: "../../../wit/v0.1", world: "action-feature" });

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};

use conductor::feature::action_registrar::Registrar;
use conductor::feature::alerts;
use conductor::feature::clock;
use conductor::feature::install::Context;
use conductor::feature::types::{Error, Event};
use conductor::feature::udp::{Network, Target};

struct Hostile;

#[derive(Default)]
struct State {
    ways: Vec<String>,
    network: Option<Network>,
    targets: Vec<Target>,
    alerts: Option<alerts::Sink>,
}

thread_local!(static STATE: RefCell<State> = RefCell::default());

impl exports::conductor::feature::lifecycle::Guest for Hostile {
    fn install(ctx: &Context) -> Result<(), Error> {
        let registrar = Registrar::open(ctx)?;
        let undeclared = registrar.register("Undeclared", "{}");
        let nonsense = registrar.register("Misbehave", "no JSON");
        if undeclared.is_ok() || nonsense.is_ok() {
            return Err(Error::Failed("the registrar takes anything".into()));
        }
        registrar.register("Misbehave", r#"{"type": "object"}"#)?;
        if registrar.register("Misbehave", "{}").is_ok() {
            return Err(Error::Failed("the registrar takes a name twice".into()));
        }
        if Network::open(ctx, "another purpose").is_ok() {
            return Err(Error::Failed("a purpose that was not requested is open".into()));
        }
        STATE.with_borrow_mut(|state| {
            state.network = Network::open(ctx, "mischief").ok();
            state.alerts = alerts::Sink::open(ctx).ok();
        });
        Ok(())
    }
}

/// How deep it goes. Never reached unless it is set, but the compiler can't know.
static BOTTOM: AtomicU64 = AtomicU64::new(u64::MAX);

/// Keeps its frames on WebAssembly's own stack: nothing here has an address.
fn recurse(depth: u64) -> u64 {
    if depth == BOTTOM.load(Ordering::Relaxed) { 0 } else { recurse(depth + 1).wrapping_mul(3) ^ depth }
}

/// Calls of an action that behaves at first.
static CALLS: AtomicU64 = AtomicU64::new(0);

fn forever() -> ! {
    let mut n = 0_u64;
    loop {
        n = std::hint::black_box(n.wrapping_add(1));
    }
}

/// Works for so many nanoseconds.
fn spin(nanos: u64) {
    let began = clock::monotonic();
    while clock::monotonic() - began < nanos {}
}

fn target(name: &str) -> Result<(), Error> {
    STATE.with_borrow_mut(|state| {
        let network = state.network.as_ref().ok_or_else(|| Error::Denied("no network".into()))?;
        let target = network.target(name)?;
        state.targets.push(target);
        Ok(())
    })
}

impl exports::conductor::feature::actions::Guest for Hostile {
    fn prepare(_name: String, params: String) -> Result<u32, Error> {
        let way = params.split('"').nth(3).unwrap_or_default().to_owned();
        match way.as_str() {
            "prepare-loop" => forever(),
            "prepare-trap" => std::process::abort(),
            "target-elsewhere" => target("192.0.2.1:9")?,
            "target-nonsense" => target("user@127.1:0x50")?,
            "target-handles" => {
                for port in 1..=2000 {
                    target(&format!("127.0.0.1:{port}"))?;
                }
            }
            "target-local" => target("127.0.0.1:9")?,
            _ => {}
        }
        STATE.with_borrow_mut(|state| {
            state.ways.push(way);
            Ok(state.ways.len() as u32 - 1)
        })
    }

    fn perform(action: u32, _event: Event) -> Result<(), Error> {
        let way = STATE.with_borrow(|state| state.ways.get(action as usize).cloned()).unwrap_or_default();
        match way.as_str() {
            "loop" => forever(),
            // It behaves until it is trusted.
            "late-loop" => {
                if CALLS.fetch_add(1, Ordering::Relaxed) < 10_000 {
                    Ok(())
                } else {
                    forever()
                }
            }
            "trap" => std::process::abort(),
            "recurse" => Err(Error::Failed(recurse(0).to_string())),
            // Frames of 32 bytes or more: beyond 512 KiB, and within twice as much.
            "recurse-beyond" => {
                BOTTOM.store(20_000, Ordering::Relaxed);
                STATE.with_borrow_mut(|state| state.ways.push(recurse(0).to_string()));
                Ok(())
            }
            "memory" => {
                let mut kept: Vec<Vec<u8>> = Vec::new();
                loop {
                    kept.push(std::hint::black_box(Vec::with_capacity(1 << 20)));
                }
            }
            // Less than it may take in any call.
            "slow" => {
                spin(12_000_000);
                Ok(())
            }
            // Just short enough that other threads make its calls.
            "nearly-slow" => {
                spin(85_000);
                Ok(())
            }
            "nonsense" => Err(Error::Failed("\u{1b}[2J".repeat(10_000))),
            "flood" => STATE.with_borrow(|state| {
                for n in 0..10_000 {
                    if let Some(alerts) = &state.alerts {
                        alerts.emit(&format!("flood {n}\r\n\u{1b}[31m"));
                    }
                }
                Ok(())
            }),
            "flood-huge" => STATE.with_borrow(|state| {
                if let Some(alerts) = &state.alerts {
                    alerts.emit(&"x".repeat(40 << 20));
                }
                Ok(())
            }),
            "no-text" => {
                // SAFETY: it is no text; that is the point. Nothing here looks at it.
                Err(Error::Failed(unsafe { String::from_utf8_unchecked(vec![0xff, 0xfe]) }))
            }
            "datagrams" => STATE.with_borrow(|state| match state.targets.first() {
                Some(target) => {
                    let sent = (0..20_000).filter(|_| target.send(b"flood").is_ok()).count();
                    Err(Error::Failed(format!("sent {sent}")))
                }
                None => Err(Error::Failed("no target".into())),
            }),
            "large-datagram" => STATE.with_borrow(|state| match state.targets.first() {
                Some(target) => target.send(&vec![0; 100_000]),
                None => Err(Error::Failed("no target".into())),
            }),
            _ => Ok(()),
        }
    }

    fn release(action: u32) {
        let way = STATE.with_borrow(|state| state.ways.get(action as usize).cloned()).unwrap_or_default();
        match way.as_str() {
            "release-loop" => forever(),
            "release-trap" => std::process::abort(),
            _ => {}
        }
    }
}

#[unsafe(link_section = "conductor:feature")]
#[used]
static DESCRIPTOR: [u8; include_bytes!("../feature.toml").len()] = *include_bytes!("../feature.toml");
export!(Hostile);
