//! Verdicts of scripted panels: what passes, what fails, and what can't be told.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use conductor_council_tests::Member::{Babbles, Down, Obeys};
use conductor_council_tests::{Commit, Member, Scripted, verified};
use council::review::Verdict;
use serde_json::{Value, json};

fn right() -> Commit {
    Commit::of(&[("src/a.rs", "fn a() {}\n"), ("src/b.rs", "fn b() {}\n"), ("Cargo.lock", "x")])
}

fn wrong() -> Commit {
    Commit::of(&[("src/fault.rs", "fn a() {} // FAULT\n")])
}

fn args() -> Value {
    json!({ "snapshot_id": "HEAD", "target_paths": ["src"], "invoking_agent": "a test" })
}

/// CNC-1, CNC-2
#[test]
fn work_that_is_right_passes_and_a_fault_fails() {
    let panel = Scripted::new(&[Obeys; 3]);
    let result = verified(&panel, &right(), args()).unwrap();
    assert_eq!((result.verdict, result.exit_code, result.reasons.len()), (Verdict::Pass, 0, 0), "{result:?}");
    assert_eq!(result.expanded_paths, ["src/a.rs", "src/b.rs"]);
    assert!((result.confidence - 0.9).abs() < 1e-9 && result.dissent.is_none());
    assert_eq!(panel.asked.borrow().len(), 3 + 3 + 1, "reviews, rankings, the chairman");
    assert_eq!(result.responses.len(), 7);
    assert_eq!(
        result.transcript.keys().collect::<Vec<_>>(),
        ["request.json", "stage1.json", "stage2.json", "stage3.json"]
    );

    let result = verified(&Scripted::new(&[Obeys; 3]), &wrong(), args()).unwrap();
    assert_eq!((result.verdict, result.exit_code), (Verdict::Fail, 1));
    let issue = &result.blocking_issues[0];
    assert_eq!((issue.file.as_deref(), issue.line, issue.reported_by.len()), (Some("src/fault.rs"), Some(1), 3));
}

#[test]
fn two_of_five_that_are_down_leave_no_quorum_and_one_does() {
    let of = |members: &[Member]| verified(&Scripted::new(members), &right(), args()).unwrap();
    let result = of(&[Obeys, Down, Obeys, Babbles, Obeys]);
    assert_eq!((result.verdict, result.exit_code), (Verdict::Unclear, 2));
    assert_eq!(result.reasons, ["no quorum: 3 of 5 models reviewed, and 4 have to"]);
    let left_out: Vec<_> = result.left_out.iter().map(|one| (one.model.as_str(), one.reason.as_str())).collect();
    assert_eq!(left_out, [("m1", "the server says 503: busy"), ("m3", "its answer has no JSON object")]);
    assert_eq!(of(&[Obeys, Down, Obeys, Obeys, Obeys]).verdict, Verdict::Pass);
}

/// CNC-7: the same request has the same hash and orders for every caller; another commit, path or criterion does not.
#[test]
fn the_same_request_has_the_same_hash_and_the_same_orders() {
    let of = |(key, value): (&str, Value)| {
        let panel = Scripted::new(&[Obeys; 4]);
        let mut args = args();
        args[key] = value;
        let result = verified(&panel, &right(), args).unwrap();
        let texts: Vec<String> = panel.asked.borrow().iter().map(|asked| asked.text.clone()).collect();
        (result.reproducibility_hash, result.seed, texts, result.confidence)
    };
    let first = of(("invoking_agent", json!("a test")));
    assert_eq!(first, of(("invoking_agent", json!("another"))));
    for other in [
        ("target_paths", json!(["src/a.rs"])),
        ("rubric_focus", json!("Security")),
        ("confidence_threshold", json!(0.8)),
        ("seed", json!(7)),
        ("models", json!(["m0", "m1", "m2"])),
        ("git_diff", json!("+x")),
    ] {
        assert_ne!(first.0, of(other.clone()).0, "{other:?}");
    }
}

#[test]
fn peers_and_the_chairman_are_not_told_whose_a_review_is() {
    let panel = Scripted::new(&[Obeys; 3]);
    verified(&panel, &wrong(), args()).unwrap();
    for asked in &panel.asked.borrow()[3..] {
        assert!(["m0", "m1", "m2"].iter().all(|name| !asked.text.contains(name)), "{}", asked.text);
        assert_eq!(asked.text.matches("BEGIN DATA").count(), 3);
    }
}

/// CNC-6: what does not fit into the tokens is left out, said, and does not pass.
#[test]
fn what_does_not_fit_into_the_budget_does_not_pass() {
    let mut commit = right();
    commit.0.insert("src/large.rs".into(), vec![b'x'; 400_000]);
    let result = verified(&Scripted::new(&[Obeys; 3]), &commit, args()).unwrap();
    assert_eq!((result.verdict, result.paths_truncated), (Verdict::Unclear, true));
    assert_eq!(result.expanded_paths, ["src/a.rs", "src/b.rs"]);
    assert!(result.expansion_warnings[0].contains("src/large.rs"), "{:?}", result.expansion_warnings);
    assert!(result.cost.tokens <= result.cost.token_limit);
    let mut args = args();
    args["git_diff"] = json!("+x\n".repeat(70_000));
    let error = verified(&Scripted::new(&[Obeys; 3]), &right(), args).unwrap_err().to_string();
    assert!(error.starts_with("git_diff: ") && error.contains("within 50000 tokens"), "{error}");
}

#[test]
fn all_questions_together_fit_into_the_tokens_of_their_operation() {
    for effort in ["quick", "high"] {
        let file = |number: u32| (format!("src/{number:03}.rs"), b"fn a() { b(c, d); }\n".repeat(8));
        let commit = Commit((0..200).map(file).collect());
        for members in 2..=9 {
            let panel = Scripted::new(&vec![Obeys; members]);
            let mut args = args();
            args["effort"] = json!(effort);
            args["models"] = json!(panel.names());
            let Ok(result) = verified(&panel, &commit, args) else {
                let most = if effort == "quick" { 3 } else { 6 };
                assert!(members > most, "{effort}: {members} models have no room for a single file");
                continue;
            };
            let asked = panel.asked.borrow();
            let read = asked.iter().map(|asked| asked.instructions.len() + asked.text.len() + asked.schema.len());
            let written = asked.iter().map(|asked| asked.max_tokens as usize).sum::<usize>();
            let all = read.sum::<usize>() / 4 + written;
            assert!(all <= result.cost.token_limit as usize, "{effort} {members}: {all}");
            assert!(result.reasons.iter().all(|reason| !reason.contains("used up")), "{:?}", result.reasons);
        }
    }
}
