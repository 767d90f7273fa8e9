//! Work and models that are not as they should be: each gets a result that says so, or an error, and never a pass.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::cell::Cell;
use std::collections::BTreeMap;

use conductor_council_tests::{Commit, reviewed};
use council::panel::{Inquiry, Panel, Reply};
use council::result::Verification;
use council::review::Verdict;
use serde_json::{Value, json};

/// Models that answer by a function of the question and of how many were asked before; a stage takes so many milliseconds.
struct Models<F> {
    answer: F,
    asked: Cell<usize>,
    elapsed: Cell<u64>,
    each_takes: u64,
    cancelled_after: usize,
}

impl<F: Fn(&Inquiry, usize) -> Result<Reply, String>> Models<F> {
    const fn new(answer: F) -> Self {
        Self { answer, asked: Cell::new(0), elapsed: Cell::new(0), each_takes: 0, cancelled_after: usize::MAX }
    }

    fn verify(&self, commit: &Commit, args: Value) -> Result<Verification, String> {
        let names = ["m0", "m1", "m2"].map(str::to_owned).to_vec();
        reviewed(self, names, BTreeMap::new(), commit, args).map_err(|wrong| wrong.to_string())
    }
}

impl<F: Fn(&Inquiry, usize) -> Result<Reply, String>> Panel for Models<F> {
    fn ask(&self, inquiries: &[Inquiry], _: u32) -> Vec<Result<Reply, String>> {
        self.elapsed.set(self.elapsed.get() + self.each_takes);
        let answer = |inquiry: &Inquiry| {
            let number = self.asked.get();
            self.asked.set(number + 1);
            (self.answer)(inquiry, number)
        };
        inquiries.iter().map(answer).collect()
    }

    fn elapsed_ms(&self) -> u64 {
        self.elapsed.get()
    }

    fn progress(&self, _: f32, _: &str) {}

    fn is_cancelled(&self) -> bool {
        self.asked.get() >= self.cancelled_after
    }
}

/// What a model answers that finds nothing wrong.
fn passes(inquiry: &Inquiry) -> String {
    let scores = json!({ "accuracy": 9, "completeness": 9, "clarity": 9, "conciseness": 9, "relevance": 9 });
    let answer = if inquiry.schema.contains("\"ranking\"") {
        json!({ "ranking": ["A", "B", "C"] })
    } else if inquiry.schema.contains("\"dissent\"") {
        json!({ "verdict": "pass", "confidence": 0.9, "rationale": "Fine.", "dissent": "" })
    } else {
        json!({ "verdict": "pass", "confidence": 0.9, "scores": scores, "issues": [], "rationale": "Fine." })
    };
    answer.to_string()
}

fn reply(text: String) -> Result<Reply, String> {
    Ok(Reply { text, tokens: 300 })
}

fn small() -> Commit {
    Commit::of(&[("src/a.rs", "fn a() {}\n")])
}

fn args() -> Value {
    json!({ "snapshot_id": "HEAD", "target_paths": ["."] })
}

#[test]
fn of_ten_thousand_files_the_first_hundred_are_reviewed_and_that_is_no_pass() {
    let file = |number: usize| (format!("src/{:02}/{number:05}.rs", number / 200), b"x\n".to_vec());
    let commit = Commit((0..10_000).map(file).collect());
    let result = Models::new(|asked: &Inquiry, _| reply(passes(asked))).verify(&commit, args()).unwrap();
    assert_eq!((result.verdict, result.paths_truncated), (Verdict::Unclear, true));
    assert_eq!(result.expanded_paths.len(), 100);
    assert!(result.expansion_warnings[0].contains("10000 files"), "{:?}", result.expansion_warnings);
}

#[test]
fn nothing_to_review_is_an_error_and_asks_nobody() {
    for (commit, args, why) in [
        (Commit::default(), args(), "there is nothing to review"),
        (Commit::of(&[("logo.png", "x")]), args(), "not the name of a text file"),
        (Commit::of(&[("a.rs", "\0")]), args(), "binary"),
        (small(), json!({ "snapshot_id": "HEAD", "target_paths": ["../etc"] }), "leads out of the repository"),
        (small(), json!({ "snapshot_id": "HEAD", "target_paths": [] }), "there is nothing to review"),
    ] {
        let models = Models::new(|asked: &Inquiry, _| reply(passes(asked)));
        let error = models.verify(&commit, args).unwrap_err();
        assert!(error.contains(why), "{error}");
        assert_eq!(models.asked.get(), 0);
    }
}

/// A file of a gigabyte would be the host's to refuse, above 4 MiB; what it hands over has to fit as well.
#[test]
fn a_file_that_is_too_large_is_left_out_and_that_is_no_pass() {
    let mut commit = small();
    commit.0.insert("src/large.rs".into(), vec![b'x'; 4 * 1024 * 1024]);
    let result = Models::new(|asked: &Inquiry, _| reply(passes(asked))).verify(&commit, args()).unwrap();
    assert_eq!((result.verdict, &result.expanded_paths[..]), (Verdict::Unclear, &["src/a.rs".to_owned()][..]));
}

#[test]
fn a_verdict_of_ten_megabytes_or_against_its_own_schema_is_left_out() {
    for answer in [
        format!("{{\"verdict\": \"pass\", \"rationale\": \"{}\"}}", "x".repeat(10 << 20)),
        json!({ "verdict": "pass", "confidence": 3, "scores": {}, "issues": [], "rationale": "" }).to_string(),
        json!({ "verdict": "approved" }).to_string(),
        String::new(),
    ] {
        let models =
            Models::new(|asked: &Inquiry, number| reply(if number > 0 { passes(asked) } else { answer.clone() }));
        let result = models.verify(&small(), args()).unwrap();
        assert_eq!((result.left_out.len(), result.left_out[0].model.as_str()), (1, "m0"));
        assert_eq!(result.votes.len(), 2, "the others reviewed");
        let all = serde_json::to_string(&result).unwrap();
        assert!(all.len() < 32 * 1024, "{} bytes", all.len());
    }
}

/// A review that says pass and names a critical issue says neither.
#[test]
fn a_model_that_contradicts_itself_votes_for_nothing() {
    let odd = |asked: &Inquiry, number| {
        let mut answer: Value = serde_json::from_str(&passes(asked)).unwrap();
        if number < 3 {
            answer["issues"] = json!([{ "severity": "critical", "message": "It loses data." }]);
        }
        reply(answer.to_string())
    };
    let result = Models::new(odd).verify(&small(), args()).unwrap();
    assert_eq!(result.verdict, Verdict::Unclear);
    assert_eq!(result.blocking_issues.len(), 1);
}

/// CNC-6: what is used up in the middle leaves what was done on record.
#[test]
fn time_or_tokens_that_are_gone_in_the_middle_leave_it_unclear() {
    let mut late = Models::new(|asked: &Inquiry, _| reply(passes(asked)));
    late.each_takes = 119_900;
    let result = late.verify(&small(), args()).unwrap();
    assert_eq!(result.verdict, Verdict::Unclear);
    assert!(result.reasons.iter().any(|reason| reason.contains("120 s are used up")), "{:?}", result.reasons);
    let costly = Models::new(|asked: &Inquiry, _| Ok(Reply { text: passes(asked), tokens: 17_000 }));
    let result = costly.verify(&small(), args()).unwrap();
    assert_eq!((result.verdict, result.votes.len()), (Verdict::Unclear, 3), "{:?}", result.reasons);
    assert!(result.reasons.iter().any(|reason| reason.contains("50000 tokens are used up")), "{:?}", result.reasons);
    assert_eq!(costly.asked.get(), 3, "no other member is asked");
    let mut gone = Models::new(|asked: &Inquiry, _| reply(passes(asked)));
    gone.cancelled_after = 3;
    let result = gone.verify(&small(), args()).unwrap();
    assert!(result.verdict == Verdict::Unclear && result.reasons.contains(&"it was cancelled".to_owned()));
    assert_eq!(result.transcript.len(), 4, "request and stages are on record");
}
