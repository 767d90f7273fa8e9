//! What agents feel of a person who looks: tool calls beside a plan over 10 000 rules that is shown again and again, and
//! beside a configuration of as many rules that is read and compiled again and again.
//!
//! The agents leave most of the processor free. What a busy thread that asks the host for nothing costs them is measured as
//! well: a reader that held a lock over its work would cost more than that, up to as long as that work takes.

use std::fmt::Write as _;
use std::net::UdpSocket;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, ensure};
use conductor_api::client::{AskError, Client};
use conductor_host::control::gate::ToolRequest;
use serde_json::{Value, json};

use crate::agents::Agent;
use crate::arguments::Arguments;
use crate::components;
use crate::measure::{median, quantile};
use crate::process;
use crate::report::{Section, Unit};
use crate::scratch::Folder;

const RULES: usize = 10_000;
/// Agents that call at once.
const AGENTS: usize = 8;
/// How long an agent does something else after each call.
const PAUSE: Duration = Duration::from_millis(15);
/// How long they call without a person and with each of them, in so many turns.
const TURN: (Duration, usize) = (Duration::from_secs(2), 5);
/// Events that the plan is rehearsed over.
const EVENTS: u64 = 1000;
/// How long the host has to hear them.
const EVENTS_TIMEOUT: Duration = Duration::from_secs(20);

/// How long the thread that asks for nothing is busy at a time.
const BUSY: Duration = Duration::from_millis(10);

/// What a person does meanwhile.
#[derive(Clone, Copy)]
enum Person {
    Nothing,
    /// Keeps a processor busy.
    Computes,
    /// Shows the plan.
    Shows,
    /// Has the whole configuration validated.
    Validates,
}

/// Measures the row.
pub fn measure(arguments: &Arguments, section: &mut Section<'_>) -> Result<()> {
    let home = Folder::new()?;
    let feature = arguments.features()?.join("tests/bench-tools.wasm");
    // Free a moment ago; no other program on this machine uses it.
    let port = UdpSocket::bind("127.0.0.1:0")?.local_addr()?.port();
    let configuration = configuration(&feature, port)?;
    let (_host, _) = process::conductor(arguments.conductor()?, arguments.features()?, home.path(), &configuration)?;
    play(home.path(), port)?;
    let change = json!({ "path": "global_mappings/1/action", "value": { "type": "Suppress" } });
    let Value::Object(args) = json!({ "description": "One rule does nothing.", "changes": [change] }) else {
        unreachable!("it is an object")
    };
    let client = Client::new(home.path());
    let request = ToolRequest { args, confirmed: false, confirmation: None };
    let proposed = client.call_tool("conductor_batch_changes", &request)?;
    let plan = proposed.plans.first().context("no plan was proposed")?;
    let rehearsal = client.plan(plan)?.rehearsal;
    ensure!(rehearsal.events as u64 >= EVENTS, "it was not rehearsed: {rehearsal:?}");

    let mut agents = (0..AGENTS).map(|_| Agent::connect(&home.path().join("mcp.sock"))).collect::<Result<Vec<_>>>()?;
    let persons = [Person::Nothing, Person::Computes, Person::Shows, Person::Validates];
    let (mut calls, mut looks) = (persons.map(|_| Vec::new()), persons.map(|_| Vec::new()));
    for round in 0..=TURN.1 {
        for (at, person) in persons.into_iter().enumerate() {
            let look = || match person {
                Person::Nothing => None,
                Person::Computes => {
                    let start = Instant::now();
                    while start.elapsed() < BUSY {
                        std::hint::spin_loop();
                    }
                    Some(Ok(()))
                }
                Person::Shows => Some(client.plan(plan).map(drop)),
                Person::Validates => Some(client.post::<Value>("/v1/config/validate", &json!({})).map(drop)),
            };
            let (called, looked) = turn(&mut agents, look)?;
            // The first turn is the warm-up.
            if round > 0 {
                calls[at].push(quantile(&called, 0.99));
                looks[at].extend(looked);
            }
        }
    }
    let [quiet, computes, shows, validates] = calls.each_ref().map(|calls| median(calls));
    section.figure(format!("showing a plan over {RULES} rules"), median(&looks[2]), Unit::Milliseconds);
    section.figure(format!("validating {RULES} rules"), median(&looks[3]), Unit::Milliseconds);
    let meanwhile =
        [("a thread is busy", computes), ("a plan is shown", shows), ("the configuration is validated", validates)];
    for (what, p99) in meanwhile {
        section.beside(
            format!("a tool call of {AGENTS} agents while {what}, p99, median of {} turns", TURN.1),
            p99,
            Unit::Microseconds,
            "no plan preview",
            quiet,
        );
    }
    Ok(())
}

/// Microseconds of the agents' calls, and milliseconds of what a person does again and again beside them, if anything.
fn turn(agents: &mut [Agent], look: impl Fn() -> Option<Result<(), AskError>> + Sync) -> Result<(Vec<f64>, Vec<f64>)> {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let person = scope.spawn(|| -> Result<Vec<f64>> {
            let mut looks = Vec::new();
            while !done.load(Ordering::Relaxed) {
                let start = Instant::now();
                let Some(looked) = look() else { return Ok(looks) };
                looked?;
                looks.push(start.elapsed().as_secs_f64() * 1e3);
            }
            Ok(looks)
        });
        let call = |agent: &mut Agent| -> Result<Vec<f64>> {
            let (start, mut calls) = (Instant::now(), Vec::new());
            while start.elapsed() < TURN.0 {
                let began = Instant::now();
                agent.call()?;
                calls.push(began.elapsed().as_secs_f64() * 1e6);
                std::thread::sleep(PAUSE);
            }
            Ok(calls)
        };
        let threads: Vec<_> = agents.iter_mut().map(|agent| scope.spawn(move || call(agent))).collect();
        let gone = |_| Err(anyhow!("a thread panicked"));
        let calls: Vec<Result<Vec<f64>>> =
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(gone)).collect();
        done.store(true, Ordering::Relaxed);
        let looks = person.join().unwrap_or_else(gone)?;
        Ok((calls.into_iter().collect::<Result<Vec<_>>>()?.concat(), looks))
    })
}

/// Sends events until the host has heard enough of them.
fn play(home: &Path, port: u16) -> Result<()> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    let message = rosc::OscMessage { addr: "/fader".into(), args: vec![rosc::OscType::Float(0.5)] };
    let packet = rosc::encoder::encode(&rosc::OscPacket::Message(message))?;
    let deadline = Instant::now() + EVENTS_TIMEOUT;
    loop {
        for _ in 0..100 {
            socket.send_to(&packet, ("127.0.0.1", port))?;
        }
        let heard = Client::new(home).status()?.events;
        if heard >= EVENTS {
            return Ok(());
        }
        ensure!(Instant::now() < deadline, "the host heard {heard} events of {EVENTS}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// As many rules, and the tools that agents and the person call.
fn configuration(feature: &Path, port: u16) -> Result<String> {
    let mut text = format!(
        "[tools.per_minute]\nread_only = 10000000\n{}\
         [[bindings]]\nalias = \"faders\"\nprotocol = \"osc\"\ninput = {{ host = \"127.0.0.1\", port = {port} }}\n",
        components::installed("bench-tools", feature, "store = 65536, observe_events = ['*']")?
    );
    for index in 0..RULES {
        let (device, channel, note) = (index / 2048, index / 128 % 16, index % 128);
        let _ = writeln!(
            text,
            "[[global_mappings]]\ntrigger = {{ type = \"Note\", note = {note}, channel = {channel}, device = \"device {device}\" }}\n\
             action = {{ type = \"ModeChange\", mode = \"Play\" }}"
        );
    }
    text.push_str("[[modes]]\nname = \"Play\"\n");
    Ok(text)
}
