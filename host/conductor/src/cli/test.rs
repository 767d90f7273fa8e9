//! `conductor test`: mapping tests that a person keeps beside the configuration.

use std::path::PathBuf;
use std::sync::Arc;

use conductor_engine::RuleSetHandle;
use conductor_timeline::{Difference, MappingTest, parse_mapping_tests};
use serde_json::json;

use super::{CommandResult, Failure, Paths, load, shown_effects, simulate, warn};
use conductor_config::Loaded;
use conductor_host::host::{self, Rehearsal};
use conductor_stdx::plural::plural;
use conductor_terminal::{self as terminal, outln};

/// What to test.
#[derive(Debug, clap::Args)]
pub(super) struct TestArguments {
    /// Files of tests: what happens, and lines `-> RULE` for the rules that fire then, `=> EFFECT` for what goes out
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Print JSON, one object for each test
    #[arg(long)]
    json: bool,
}

pub(super) fn run(places: &Paths, arguments: &TestArguments) -> CommandResult {
    let mut files = Vec::new();
    let mut mistakes = Vec::new();
    for path in &arguments.files {
        let name = path.display().to_string();
        let text = simulate::read(path)?;
        match parse_mapping_tests(&text) {
            Ok(tests) => files.push((name, tests)),
            Err(errors) => mistakes.extend(errors.iter().map(|error| format!("{name}: {error}"))),
        }
    }
    if !mistakes.is_empty() {
        return Err(Failure::Wrong(mistakes.join("\n")));
    }
    let loaded = load(&places.config)?;
    let first = rehearse(places, &loaded)?;
    warn(&first.compiled.warnings);
    for (file, tests) in &files {
        let named = tests.iter().flat_map(MappingTest::devices);
        let named = named.map(|(line, device)| (format!("{file}: line {line}: "), device));
        shown_effects::hint_devices(named, &loaded.config, &first.compiled.rules);
    }

    let mut ready = Some(first);
    let (mut passed, mut failed) = (0_usize, 0_usize);
    for (file, test) in files.iter().flat_map(|(file, tests)| tests.iter().map(move |test| (file, test))) {
        // Each begins with nothing held, and variables as they are declared.
        let rehearsal = match ready.take() {
            Some(first) => first,
            None => rehearse(places, &loaded)?,
        };
        let differences = differences(test, rehearsal);
        let is_passed = differences.is_empty();
        *(if is_passed { &mut passed } else { &mut failed }) += 1;
        if arguments.json {
            let told: Vec<String> = differences.iter().map(ToString::to_string).collect();
            terminal::json_line(&json!({ "file": file, "test": test.name, "passed": is_passed, "differences": told }));
            continue;
        }
        outln!("{} {file}:{} {}", if is_passed { "ok    " } else { "FAILED" }, test.line, test.name);
        for difference in &differences {
            difference.to_string().lines().for_each(|line| outln!("       {line}"));
        }
    }
    if !arguments.json {
        outln!("{passed} passed, {failed} failed");
    }
    let empty: Vec<&str> = files.iter().filter(|(_, tests)| tests.is_empty()).map(|(name, _)| name.as_str()).collect();
    match failed {
        0 if empty.is_empty() => Ok(()),
        0 => Err(anyhow::anyhow!("no tests in {}; a test begins with a line `test NAME`", empty.join(", ")).into()),
        _ => Err(anyhow::anyhow!("{failed} of {} failed", plural(passed + failed, "test")).into()),
    }
}

fn rehearse(places: &Paths, loaded: &Loaded) -> Result<Rehearsal, Failure> {
    host::rehearse(loaded, Some(&places.home), places.features.as_deref()).map_err(super::started)
}

/// What is not as a test says, without private values.
fn differences(test: &MappingTest, rehearsal: Rehearsal) -> Vec<Difference> {
    let Rehearsal { compiled, mut actions } = rehearsal;
    let unknown = test.rules().filter_map(|(line, name)| {
        let message = shown_effects::unknown_rule(name, &compiled.rules)?;
        Some(Difference { line: Some(line), message })
    });
    let mut differences: Vec<Difference> = unknown.collect();
    let rules = Arc::new(RuleSetHandle::new(compiled.rules));
    differences.extend(test.run_on(&rules, &mut actions, shown_effects::text));
    differences
}
