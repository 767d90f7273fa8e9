//! Hosts that are killed at random moments of turns, and what is left of the conversations.
//!
//! One home lives through all of it. Each time a few turns stream at once, their events are followed, and the host is
//! killed (SIGKILL) after a random time. A kill that comes when all of them have ended is not one of those that were asked
//! for. The next host has to open every conversation; every event that was shown has to be in it, unchanged and at its
//! place; a turn that was cut off says so and can be gone on with; and what turns cost is what their answers say, no more
//! and no less.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::conductor::{Host, command};
use crate::conversation::{Person, end};
use crate::home::Home;
use crate::model_server::{Request, STREAM, Server, Step};
use crate::random::Random;
use crate::wire::{INPUT, OUTPUT, Wire};

/// Turns at once.
const TURNS: usize = 3;
/// The latest moment of a kill after the turns have begun: so many times what a turn takes that nothing disturbs.
const LATEST: f64 = 1.2;
/// Pieces of an answer.
const PIECES: usize = 12;
/// How long the server takes from one piece to the next.
const PAUSE: Duration = Duration::from_millis(4);
/// Of so many kills one at least comes while a turn streams, or the moments are not what they are to be.
const PATIENCE: usize = 5;
/// What the API says that an answer costs, in billionths of a dollar.
const COST: u64 = 250_000;

/// What came of it.
#[derive(Debug, Default)]
pub struct Report {
    /// Where the chance came from.
    pub seed: u64,
    /// How often a host was killed.
    pub kills: usize,
    /// Of those: while a turn streamed, which it cut off.
    pub amid: usize,
    /// Turns that were begun.
    pub turns: usize,
    /// Of the turns: cut off by a kill.
    pub cut_off: usize,
    /// Of those: whole before it.
    pub whole: usize,
    /// Events that were shown.
    pub shown: usize,
    /// Answers that were whole.
    pub answers: u64,
    /// What they cost, by the host's own count, in billionths of a dollar.
    pub cost: u64,
    /// What is wrong, a sentence each.
    pub wrong: Vec<String>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, kills, amid, turns, cut_off, whole, shown, answers, cost, wrong } = self;
        write!(
            f,
            "{kills} kills (seed {seed}), {amid} while turns streamed: {turns} turns, {cut_off} cut off, {whole} whole; \
             {shown} events shown, {answers} answers for ${:.5}; {} wrong",
            *cost as f64 / 1e9,
            wrong.len()
        )
    }
}

/// An answer in pieces: first thoughts, a text and a call, then a text.
fn answer(request: &Request) -> Vec<Step> {
    let wire = Wire::Compatible;
    let messages = request.body["messages"].as_array().map_or(&[][..], Vec::as_slice);
    let results = messages.iter().rev().take_while(|message| message["role"] != "user");
    let calls = results.filter(|message| message["role"] == "tool").count();
    let mut steps = vec![Step::Send(STREAM.into())];
    for piece in 0..PIECES {
        let text = match (calls, piece % 5) {
            (0, 0) => {
                format!("data: {}\n\n", json!({ "choices": [{ "delta": { "reasoning": format!("Hm {piece}. ") } }] }))
            }
            _ => wire.text(&format!("piece {piece} of {calls}, ")),
        };
        steps.extend([Step::Send(text.into()), Step::Pause(PAUSE)]);
    }
    let mode = format!("{{\"mode\": \"m{calls}\"}}");
    let (call, stop) = match calls {
        0 | 1 => (wire.call(0, "conductor_list_mappings", &mode), "tool_calls"),
        _ => (String::new(), "stop"),
    };
    let stop = json!({ "choices": [{ "delta": {}, "finish_reason": stop }] });
    let cost = COST as f64 / 1e9;
    let usage = json!({ "prompt_tokens": INPUT, "completion_tokens": OUTPUT, "cost": cost });
    let usage = json!({ "choices": [], "usage": usage });
    steps.push(Step::Send(format!("{call}data: {stop}\n\ndata: {usage}\n\ndata: [DONE]\n\n").into()));
    steps
}

/// Kills hosts so many times while turns stream.
///
/// # Panics
/// Where a host can't be started.
pub fn run(kills: usize, seed: u64) -> Report {
    let server = Server::start(answer);
    let wire = Wire::Compatible;
    let limits = "[tools.per_minute]\nmodel_requests = 1000000\nread_only = 1000000\n\n";
    let config =
        format!("{limits}[[modes]]\nname = 'Play'\n\n{}{}", wire.model("m", server.port), wire.grants(server.port));
    let home = Home::new(&config);
    let start = || {
        let mut run = command(home.path(), &["run"]);
        Host::ready(run.env("CONDUCTOR_SECRET_MODEL_KEY", "sk-of-the-kills"), home.socket())
    };
    let (person, mut random) = (Person::at(&home.socket()), Random::new(seed));
    let mut report = Report { seed, ..Report::default() };
    // Of each conversation what was shown.
    let mut all = BTreeMap::<u64, Vec<Value>>::new();
    let mut host = start();
    let (undisturbed, begun) = (person.begin(), Instant::now());
    let events = person.turn(undisturbed, "turn", None);
    let latest = begun.elapsed().mul_f64(LATEST);
    (report.turns, report.whole, report.shown) = (1, 1, events.len());
    all.insert(undisturbed, events);
    while report.amid < kills && report.kills < kills * PATIENCE {
        let number = report.kills;
        let shown: Vec<(u64, Arc<Mutex<Vec<Value>>>)> = (0..TURNS)
            .map(|_| {
                // Some go on with what was cut off before.
                let known: Vec<u64> = all.keys().copied().collect();
                let mine = if random.percent(60) { person.begin() } else { *random.one_of(&known) };
                (mine, Arc::default())
            })
            .fold(BTreeMap::new(), |mut each, (id, shown)| {
                each.insert(id, shown);
                each
            })
            .into_iter()
            .collect();
        let delay = latest.mul_f64(f64::from(u32::try_from(random.below(10_000)).unwrap_or(0)) / 10_000.0);
        let followers: Vec<_> = shown
            .iter()
            .map(|(id, seen)| {
                let (person, id, seen) = (person.clone(), *id, Arc::clone(seen));
                let after = person.say(id, &format!("turn {number}"), None);
                report.turns += 1;
                thread::spawn(move || {
                    person.follow(id, after, true, |event| {
                        seen.lock().unwrap().push(event);
                        true
                    });
                })
            })
            .collect();
        thread::sleep(delay);
        host.kill();
        followers.into_iter().for_each(|follower| follower.join().unwrap());
        host = start();
        let cut_off = report.cut_off;
        for (id, seen) in shown {
            let seen = std::mem::take(&mut *seen.lock().unwrap());
            report.shown += seen.len();
            all.entry(id).or_default().extend(seen);
            let (outcome, why) = end(&person.events(id));
            match outcome.as_str() {
                "cut_off" if why.contains("go on") => report.cut_off += 1,
                "done" => report.whole += 1,
                _ => report.wrong.push(format!("kill {number}: the turn of {id} is {outcome:?}: {why}")),
            }
            let shown = &all[&id];
            check(&person, id, shown, number, &mut report);
        }
        report.kills += 1;
        report.amid += usize::from(report.cut_off > cut_off);
    }
    if report.amid < kills {
        let few = format!("{} of {} kills came while a turn streamed, not {kills}", report.amid, report.kills);
        report.wrong.push(few);
    }
    // All of it once more, and each goes on.
    let mut sum = (0, 0, 0);
    for (id, shown) in &all {
        check(&person, *id, shown, report.kills, &mut report);
        let usage = usage(&person.events(*id));
        sum = (sum.0 + usage.0, sum.1 + usage.1, sum.2 + usage.2);
    }
    let counted = person.asks("GET", "/v1/usage?by=model", None);
    let row = counted.as_array().and_then(|rows| rows.first()).cloned().unwrap_or_default();
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    (report.answers, report.cost) = (number(&row["exchanges"]), number(&row["cost"]));
    let told = (
        number(&row["exchanges"]),
        number(&row["tokens"]["input"]) + number(&row["tokens"]["output"]),
        number(&row["cost"]),
    );
    if told != sum {
        report.wrong.push(format!("in all {told:?} are counted, and the answers say {sum:?}"));
    }
    let lasts: Vec<u64> = all.keys().rev().take(5).copied().collect();
    for id in lasts {
        let ended = end(&person.turn(id, "go on", None));
        if ended.0 != "done" {
            report.wrong.push(format!("{id} can't be gone on with: {ended:?}"));
        }
    }
    drop(host);
    let verified = home.conductor(&["audit", "verify"]);
    if verified.code != Some(0) {
        report.wrong.push(format!("the audit log: {}{}", verified.out, verified.err));
    }
    report
}

/// The answers of events: how many, their tokens, what they cost.
fn usage(events: &[Value]) -> (u64, u64, u64) {
    let answers = events.iter().filter(|event| event["kind"] == "answered");
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    answers.fold((0, 0, 0), |(count, tokens, cost), answer| {
        let usage = &answer["usage"];
        (count + 1, tokens + number(&usage["input"]) + number(&usage["output"]), cost + number(&answer["cost"]))
    })
}

/// That what was shown of a conversation is kept as it was, that nothing is missing between, and that its costs add up.
fn check(person: &Person, id: u64, shown: &[Value], kill: usize, report: &mut Report) {
    let kept = person.events(id);
    if kept.iter().zip(1_u64..).any(|(event, number)| event["number"] != number) {
        report.wrong.push(format!("kill {kill}: the events of {id} are not numbered from 1"));
    }
    for event in shown {
        let number = event["number"].as_u64().unwrap_or(0);
        let there = usize::try_from(number).ok().and_then(|number| kept.get(number.checked_sub(1)?));
        if there != Some(event) {
            report.wrong.push(format!("kill {kill}: {id} had {event}, and has {there:?}"));
        }
    }
    let said = usage(&kept);
    let rows = person.asks("GET", "/v1/usage?by=conversation", None);
    let row = rows.as_array().into_iter().flatten().find(|row| row["of"] == id.to_string().as_str());
    let number = |value: Option<&Value>| value.and_then(Value::as_u64).unwrap_or(0);
    let told = row.map_or((0, 0, 0), |row| {
        let tokens = number(row["tokens"].get("input")) + number(row["tokens"].get("output"));
        (number(row.get("exchanges")), tokens, number(row.get("cost")))
    });
    if said != told || said.2 != said.0 * COST {
        report.wrong.push(format!("kill {kill}: the answers of {id} say {said:?}, and {told:?} are counted: {row:?}"));
    }
}
