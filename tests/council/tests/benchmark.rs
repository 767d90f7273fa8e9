//! The benchmark holds what it says, and measures panels of known error rates as what they are.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use conductor_council_tests::benchmark::{Report, changes, works};
use conductor_council_tests::rated::{Rated, RatedPanel};

/// CNC-8: both halves are there, small, in several languages, each fault of a kind that has a name.
#[test]
fn the_changes_are_small_and_each_has_a_right_and_a_wrong_half() {
    let changes = changes();
    assert!(changes.len() * 2 >= 120, "{}", changes.len());
    let names: BTreeSet<&str> = changes.iter().map(|change| change.name.as_str()).collect();
    assert_eq!(names.len(), changes.len());
    let endings: BTreeSet<&str> = changes.iter().filter_map(|change| change.file.rsplit('.').next()).collect();
    assert!(endings.len() >= 8, "{endings:?}");
    let kinds: BTreeSet<&str> = changes.iter().map(|change| change.kind.as_str()).collect();
    assert!(kinds.len() >= 20, "{kinds:?}");
    for change in &changes {
        assert_eq!(change.after.matches(&change.fault[0]).count(), 1, "{}: where the fault goes", change.name);
        let (before, right, wrong) = (&change.before, &change.after, &change.faulty());
        assert!(before != right && right != wrong && before != wrong, "{}", change.name);
        assert!(wrong.lines().count() <= 40, "{} is small", change.name);
    }
    let works = works();
    let faulty = works.iter().filter(|work| work.fault.is_some()).count();
    assert_eq!((works.len(), faulty * 2), (changes.len() * 2, works.len()));
}

/// A repository that goes away with the test.
struct Repository(PathBuf);

impl Repository {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("conductor-benchmark-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        let repository = Self(path);
        repository.git(&["init", "--quiet"]);
        repository
    }

    fn git(&self, arguments: &[&str]) {
        let mut command = Command::new("git");
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
        assert!(command.arg("-C").arg(&self.0).args(arguments).status().unwrap().success(), "{arguments:?}");
    }

    fn file(&self, path: &str, text: &str) -> PathBuf {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Repository {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn git_applies_every_change_right_or_wrong() {
    let repository = Repository::new();
    let works = works();
    for (change, both) in changes().iter().zip(works.chunks(2)) {
        for (work, after) in both.iter().zip([change.after.clone(), change.faulty()]) {
            let patch = repository.file(".patch", &work.diff);
            let file = repository.file(&change.file, &change.before);
            repository.git(&["apply", "--whitespace=nowarn", Path::new(&patch).to_str().unwrap()]);
            assert_eq!(fs::read_to_string(file).unwrap(), after, "{}", change.name);
        }
    }
}

fn measured(members: &[Rated], seed: u64) -> Report {
    let panel = RatedPanel::new(members.to_vec(), seed);
    let works = works();
    let results: Vec<_> = works
        .into_iter()
        .enumerate()
        .map(|(number, work)| {
            let result = panel.verify(number, &work);
            (work, result)
        })
        .collect();
    assert!(results.iter().all(|(_, result)| result.is_some()), "every change fits into the budget");
    Report::of(&results)
}

/// CNC-8, ADR-034 "Success Metrics": fewer than 5 % of right changes fail, with models that err in one of twelve.
#[test]
fn a_panel_of_several_families_has_few_false_positives() {
    let members = ["anthropic", "openai", "google", "meta", "alibaba"].map(|family| Rated::new(family, 0.12, 0.08));
    for seed in 1..=5 {
        let report = measured(&members, seed);
        assert!(report.false_positives < 0.05, "{seed}: {report}");
        assert!(report.false_negatives < 0.05, "{seed}: {report}");
        assert_eq!(report.right.pass + report.right.fail + report.right.unclear, changes().len());
        for (model, errors) in &report.errors {
            assert!((0.04..0.18).contains(errors), "{model} errs in one of ten: {report}");
        }
        assert!((report.votes_by_family - 5.0).abs() < 1e-9 && report.votes_measured > 3.5, "{seed}: {report}");
        assert_eq!(report.over_budget, 0);
        assert_eq!(report.time_ms, (6000.0, 6000), "three stages of 2 s: {report}");
        assert!(report.calibration_error < 0.2, "{seed}: {report}");
    }
}

/// CNC-8: five models of one family are worth less than two votes, by their family and by what they err in.
#[test]
fn models_that_err_together_are_worth_less_than_two_votes() {
    let alone = measured(&vec![Rated::new("openai", 0.25, 0.25); 5], 1);
    let mixed =
        measured(&["anthropic", "openai", "google", "meta", "alibaba"].map(|family| Rated::new(family, 0.25, 0.25)), 1);
    assert!(alone.votes_by_family < 2.0, "{alone}");
    assert!(alone.votes_measured < mixed.votes_measured - 1.0, "{alone}\n{mixed}");
    assert!(alone.false_positives > mixed.false_positives, "{alone}\n{mixed}");
}

/// CNC-6, CNC-8, ADR-034 "Cost and Latency Budgets": models that answer in known times stay within the time of the operation, and
/// those that are too slow are not waited for.
#[test]
fn the_time_of_models_is_measured_and_stays_within_the_budget() {
    let vendors = ["anthropic", "openai", "google", "meta", "alibaba"];
    let with = |times: [u64; 5]| {
        let member = |(family, takes_ms)| Rated { takes_ms, ..Rated::new(family, 0.12, 0.08) };
        measured(&vendors.into_iter().zip(times).map(member).collect::<Vec<_>>(), 1)
    };
    // The slowest says how long reviews and rankings take; the first is the chairman.
    let report = with([1000, 2000, 3000, 4000, 5000]);
    assert_eq!(report.time_ms, (11_000.0, 11_000), "{report}");
    assert!(report.to_string().contains("time                   11000 ms a change, 11000 ms at most"), "{report}");
    let slow = with([1000, 1000, 1000, 1000, 300_000]);
    assert!(slow.time_ms.1 > 70_000 && slow.time_ms.1 <= 120_000, "{slow}");
    assert_eq!((slow.over_budget, slow.errors.len()), (0, 4), "the fifth never reviewed: {slow}");
    let gone = with([1000, 300_000, 300_000, 300_000, 300_000]);
    assert_eq!((gone.right.unclear, gone.over_budget), (changes().len(), 0), "{gone}");
}

/// CNC-8: biases are seen where they are, and not where they are not.
#[test]
fn biases_of_position_length_and_own_answer_are_measured() {
    let panel = |biases: [f64; 3]| {
        let member = |family| Rated { biases, ..Rated::new(family, 0.12, 0.08) };
        measured(&["anthropic", "openai", "google", "meta", "alibaba"].map(member), 3)
    };
    let fair = panel([0.0; 3]);
    for bias in [fair.position_bias, fair.length_bias, fair.own_bias] {
        assert!(bias.abs() < 0.15, "{fair}");
    }
    assert!(panel([4.0, 0.0, 0.0]).position_bias > 0.5);
    assert!(panel([0.0, 4.0, 0.0]).length_bias > 0.4);
    assert!(panel([0.0, 0.0, 4.0]).own_bias > 0.3);
}
