//! Measures a council: has it verify small changes, of which one half is right and the other has one seeded fault each, and
//! prints what it makes of them.
//!
//! Without `--models` it is a scripted panel. With them it is the council of a host that runs, by the program `conductor`.

use std::collections::BTreeMap;
use std::process::{Command, ExitCode};

use clap::Parser;
use conductor_council_tests::benchmark::{Report, Work, works};
use conductor_council_tests::rated::{Rated, RatedPanel};
use serde_json::{Value, json};

/// Measure what a council makes of changes that are right and of seeded faults.
#[derive(Parser)]
struct Args {
    /// Models of a running host, by their names under `[models]`, with commas: they are asked, and that costs.
    #[arg(long, value_delimiter = ',')]
    models: Vec<String>,
    /// The program that asks them.
    #[arg(long, default_value = "conductor")]
    conductor: String,
    /// The home of the host.
    #[arg(long)]
    home: Option<String>,
    /// `quick` or `high`.
    #[arg(long, default_value = "high")]
    effort: String,
    /// Only so many changes, half of them right.
    #[arg(long)]
    count: Option<usize>,
    /// Only faults of this kind, and the changes they were seeded in.
    #[arg(long)]
    kind: Option<String>,
    /// The seed of a scripted panel.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The report as JSON.
    #[arg(long)]
    json: bool,
}

/// Asks the council of a running host.
fn asked(args: &Args, work: &Work) -> Option<Value> {
    let body = json!({ "snapshot_id": "HEAD", "git_diff": work.diff, "requirements": work.requirements,
        "models": args.models, "effort": args.effort });
    let mut command = Command::new(&args.conductor);
    if let Some(home) = &args.home {
        command.args(["--home", home]);
    }
    let done = command.args(["council", "verify", "--json", "--args", &body.to_string()]).output();
    let done = done.inspect_err(|error| eprintln!("{}: {error}", args.conductor)).ok()?;
    let result = serde_json::from_slice(&done.stdout).ok();
    if result.is_none() {
        eprintln!("{}: no result: {}", work.name, String::from_utf8_lossy(&done.stderr).escape_debug());
    }
    result
}

fn main() -> ExitCode {
    let args = Args::parse();
    let mut all = works();
    if let Some(kind) = &args.kind {
        let names: BTreeMap<String, ()> =
            all.iter().filter(|work| work.fault.as_ref() == Some(kind)).map(|work| (work.name.clone(), ())).collect();
        all.retain(|work| names.contains_key(&work.name));
    }
    all.truncate(args.count.unwrap_or(all.len()));
    let vendors = ["anthropic", "openai", "google", "meta", "alibaba"];
    // The first answers within 2 s, each further one half a second later.
    let takes = |number: usize| 2000 + 500 * number as u64;
    let members = vendors.iter().enumerate();
    let members = members.map(|(number, family)| Rated { takes_ms: takes(number), ..Rated::new(family, 0.12, 0.08) });
    let scripted = RatedPanel::new(members.collect(), args.seed);
    let mut results = Vec::new();
    for (number, work) in all.into_iter().enumerate() {
        let result = if args.models.is_empty() { scripted.verify(number, &work) } else { asked(&args, &work) };
        results.push((work, result));
    }
    let report = Report::of(&results);
    if args.json {
        println!("{:#}", json!(report));
    } else {
        println!("{} changes\n{report}", results.len());
    }
    if report.false_positives < 0.05 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
