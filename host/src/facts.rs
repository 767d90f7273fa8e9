//! What only the system knows, pushed to the engine: the local time and the applications that run.
//!
//! A thread of its own looks every few seconds and whenever it is asked for the first time. The engine never
//! asks the system; it reads the last snapshot.

use std::sync::Arc;
use std::time::Duration;

use chrono::{Datelike as _, Local, Timelike as _};
use conductor_engine::{Condition, Day, Facts, FactsHandle, LocalTime, RuleSetHandle};
use crossbeam_channel::{RecvTimeoutError, Sender};

use crate::clock::Clock;
use crate::dispatch::Action;

/// How often the thread looks. The clock goes on by itself between; what it may miss for so long is that
/// the clock was set, that summer time began, and that an application was started or ended.
const EVERY: Duration = Duration::from_secs(2);

/// Keeps the facts fresh; until it is dropped.
#[derive(Debug)]
pub struct Watch {
    _end: Sender<()>,
}

/// Begins to keep facts fresh. The first are there when this returns.
///
/// # Errors
/// When the system has no thread left.
pub fn start(handle: Arc<FactsHandle>, rules: Arc<RuleSetHandle<Action>>, clock: Clock) -> std::io::Result<Watch> {
    handle.set(now(asks_for_applications(&rules), clock));
    let (end, ended) = crossbeam_channel::bounded::<()>(0);
    std::thread::Builder::new().name("facts".into()).spawn(move || {
        while ended.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
            handle.set(now(asks_for_applications(&rules), clock));
        }
    })?;
    Ok(Watch { _end: end })
}

/// What the system says now; of applications only if somebody asks for them, since it takes a while.
pub(crate) fn now(applications: bool, clock: Clock) -> Facts {
    let local = chrono::DateTime::from_timestamp_millis(i64::try_from(clock.wall()).unwrap_or(0)).unwrap_or_default();
    let local = local.with_timezone(&Local);
    let running = if applications { running() } else { Vec::new() };
    Facts::unknown().running(running.iter().map(String::as_str)).local(LocalTime {
        moment: clock.now(),
        day: Day::Monday.after(local.weekday().num_days_from_monday().into()),
        second: local.num_seconds_from_midnight(),
    })
}

fn asks_for_applications(rules: &RuleSetHandle<Action>) -> bool {
    let mut asks = false;
    for condition in rules.load().rules().iter().flat_map(|rule| rule.conditions()) {
        condition.each(&mut |condition| asks |= matches!(condition, Condition::AppRunning(_)));
    }
    asks
}

/// The names of the programs that run.
#[cfg(target_os = "linux")]
fn running() -> Vec<String> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    // The kernel cuts names off after 15 bytes; the program's file has the whole one, where we may see it.
    let name = |process: std::fs::DirEntry| {
        process.file_name().to_str()?.parse::<u32>().ok()?;
        let file = std::fs::read_link(process.path().join("exe")).ok();
        let whole =
            file.as_ref().and_then(|file| Some(file.file_name()?.to_str()?.trim_end_matches(" (deleted)").to_owned()));
        let short = || std::fs::read_to_string(process.path().join("comm")).ok().map(|name| name.trim_end().to_owned());
        whole.or_else(short)
    };
    let mut names: Vec<String> = processes.filter_map(name).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Nothing is known of them here, so no `AppRunning` holds.
#[cfg(not(target_os = "linux"))]
fn running() -> Vec<String> {
    Vec::new()
}

#[cfg(test)]
mod tests {
    use conductor_engine::{
        AppName, Edge, Held, Moment, NumberRange, RuleSource, RuleSpec, TimeRange, Trigger, ValueRange,
    };

    use super::*;

    #[test]
    fn the_time_and_this_very_program_are_known() {
        let clock = Clock::start();
        let handle = Arc::new(FactsHandle::new());
        let note = Trigger::Note {
            notes: NumberRange::ALL,
            velocity: ValueRange::SEVEN_BIT,
            edge: Edge::Press,
            channel: None,
        };
        let asks = RuleSpec {
            condition: Some(Condition::Not(Box::new(Condition::AppRunning(AppName::new("anything"))))),
            ..RuleSpec::new(note, Action::Suppress)
        };
        let rules = conductor_engine::compile(RuleSource { modes: Vec::new(), rules: vec![asks] }).unwrap();
        let _watch = start(Arc::clone(&handle), Arc::new(RuleSetHandle::new(rules)), clock).unwrap();
        let facts = handle.load();
        let held = Held::new();
        let holds =
            |condition: Condition| condition.holds(&Moment { at: clock.now(), mode: None, facts: &facts, held: &held });
        assert!(holds(Condition::TimeRange(TimeRange { from: 0, to: 86_400 })), "the time of day is known");
        if cfg!(target_os = "linux") {
            let program = std::env::current_exe().unwrap();
            let name = program.file_name().unwrap().to_str().unwrap();
            assert!(holds(Condition::AppRunning(AppName::new(name))), "{name} runs");
        }
        assert!(!holds(Condition::AppRunning(AppName::new("no such program"))));
    }
}
