//! Every part that a mapping can be made of, from port to effect: each trigger, condition, action, message,
//! matcher and transform that the configuration's schema knows has a section in the files beside this one.
//!
//! A section is a small configuration and tests in the language of `conductor test`, with one more kind of
//! line: `=> WORLD WHAT` says what comes of it in the world. Each test is played twice. First on the engine
//! and recorded sinks, in no time, where exactly the rules behind `->` have to fire, at exactly these times, and exactly what
//! stands behind `=>` has to go out; then on a whole host with simulated ports, where the same has to come out. So what
//! `conductor simulate` shows is what a host does. See [`case`] for the language, [`rehearsed`] for the first world, and
//! [`stage`] for the second.

// Programs are started and looked for as Linux has them.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "in a test a panic is a result")]

mod case;
mod names;
mod rehearsed;
mod stage;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use conductor_config as config;
use conductor_engine::RuleSetHandle;
use conductor_host::host::{self, Rehearsal};
use conductor_timeline::parse_mapping_tests;

use case::{Section, Test};

/// The files with the sections, by what they are about.
const FILES: [&str; 7] = ["actions", "conditions", "matchers", "messages", "original", "transforms", "triggers"];

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parts").join(format!("{name}.txt"))
}

fn sections(name: &str) -> Vec<Section> {
    let path = file(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    Section::all(&text)
}

/// What is not as the test says, on the engine and recorded sinks.
fn timeline(section: &Section, test: &Test) -> Vec<String> {
    let loaded = match config::parse(&section.config("/nowhere"), &section.heading) {
        Ok(loaded) => loaded,
        Err(wrong) => return vec![wrong.render(false)],
    };
    let Rehearsal { compiled, actions } = match host::rehearse(&loaded, None, section.features()) {
        Ok(rehearsal) => rehearsal,
        Err(wrong) => return vec![wrong.to_string()],
    };
    let rules = Arc::new(RuleSetHandle::new(compiled.rules));
    let tests = match parse_mapping_tests(&test.timeline) {
        Ok(tests) => tests,
        Err(wrong) => return wrong.iter().map(ToString::to_string).collect(),
    };
    let mut world = rehearsed::World::new(actions);
    let differences = tests.iter().flat_map(|test| test.run_on(&rules, &mut world, ToString::to_string));
    let mut wrong: Vec<String> = differences.map(|difference| difference.to_string()).collect();
    if test.is_for_a_host() {
        wrong.extend(world.differences(test));
    }
    wrong
}

/// Plays every test of a file, and says everything that is not as it is written.
fn play(name: &str) {
    let mut report = String::new();
    for section in sections(name) {
        for test in &section.tests {
            let mut wrong = timeline(&section, test);
            if wrong.is_empty() && test.is_for_a_host() {
                wrong = stage::play(&section, test);
            }
            if !wrong.is_empty() {
                let _ =
                    writeln!(report, "{name}.txt: {}: {}\n    {}", section.heading, test.name, wrong.join("\n    "));
            }
        }
    }
    assert!(report.is_empty(), "\n{report}");
}

#[test]
fn actions() {
    play("actions");
}

#[test]
fn conditions() {
    play("conditions");
}

#[test]
fn matchers() {
    play("matchers");
}

#[test]
fn messages() {
    play("messages");
}

/// What the documents of the original system show, word for word where it is TOML.
#[test]
fn original() {
    play("original");
}

#[test]
fn transforms() {
    play("transforms");
}

#[test]
fn triggers() {
    play("triggers");
}

// CFG-1, ENG-5, ENG-6, ENG-9, ACT-1: nothing that a file may say is without a proof that it works.
#[test]
fn every_part_of_the_schema_has_a_section_that_uses_it() {
    let known = names::of_the_schema(&config::json_schema());
    let mut proven = BTreeSet::new();
    for name in FILES {
        for section in sections(name) {
            let Some(part) = section.part() else { continue };
            assert!(known.contains(&part), "{name}.txt: the schema knows no {part:?}");
            let used = names::of_a_file(&section.config("/nowhere"));
            assert!(used.contains(&part), "{name}.txt: {}: its configuration does not use it", section.heading);
            assert!(
                section.tests.iter().any(|test| test.timeline.contains("\n->") && !test.effects.is_empty()),
                "{name}.txt: {}: no test says which rule fires, and what comes of it",
                section.heading
            );
            proven.insert(part);
        }
    }
    let missing: Vec<_> = known.difference(&proven).map(|(kind, name)| format!("{kind} {name}")).collect();
    assert!(missing.is_empty(), "no section in host/host/tests/parts for: {}", missing.join(", "));
}

/// Not a test: a program that runs, for `AppRunning`. It ends when its standard input is closed.
#[test]
#[ignore = "it waits for its input to end"]
fn a_program_that_runs() {
    let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
}
