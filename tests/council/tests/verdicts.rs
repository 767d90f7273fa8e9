//! Verdicts of scripted panels: what passes, what fails, and what has no verdict.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use conductor_council_tests::Member::{Babbles, Down, Obeys};
use conductor_council_tests::{Commit, Member, Scripted, answered, operated, verified, verified_at, verified_since};
use council::panel::Inquiry;
use council::request::{Budget, Effort, Operation};
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

/// CNC-1, CNC-2, ADR-034 "LLM Council's Current Approach", "Machine-Actionable Output Schema"
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

/// CNC-5: each stage is reported as it begins.
#[test]
fn progress_is_reported_with_each_stage() {
    let panel = Scripted::new(&[Obeys; 3]);
    verified(&panel, &right(), args()).unwrap();
    let steps = panel.progress.borrow();
    assert!(steps.windows(2).all(|two| two[0].0 < two[1].0), "{steps:?}");
    let texts: Vec<&str> = steps.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(texts, ["3 models review 2 files", "the models rank the reviews", "the chairman writes the verdict"]);
}

/// CNC-2, ADR-034 "Machine-Actionable Output Schema": versions, and the score by the rubric's weights.
#[test]
fn a_result_names_what_it_was_made_with_and_its_total_score() {
    let result = verified(&Scripted::new(&[Obeys; 3]), &right(), args()).unwrap();
    let version = &result.version;
    assert_eq!((version.rubric.as_str(), version.models.len()), (council::prompt::RUBRIC, 3));
    assert_eq!(version.aggregator, council::result::AGGREGATOR);
    // 9 for accuracy, 8 for all else: 35 % of 9 and 65 % of 8.
    assert!((result.rubric_total.unwrap() - 8.35).abs() < 1e-9, "{:?}", result.rubric_total);
    assert_eq!(result.requested_paths, ["src"]);
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

/// CNC-7, ADR-034 "Cross-Agent Consistency": the same request has the same hash and orders for every caller; another commit, path
/// or criterion does not.
#[test]
fn the_same_request_has_the_same_hash_and_the_same_orders() {
    let of = |(key, value): (&str, Value)| {
        let panel = Scripted::new(&[Obeys; 4]).of(&FOUR);
        let mut args = args();
        args[key] = value;
        let result = verified(&panel, &right(), args).unwrap();
        let texts: Vec<String> = panel.asked.borrow().iter().map(|asked| asked.text.clone()).collect();
        (result.reproducibility_hash, result.seed, texts, result.confidence)
    };
    let first = of(("invoking_agent", json!("a test")));
    assert_eq!(first, of(("invoking_agent", json!("another"))));
    assert_eq!(first, of(("skill_version", json!("1.0"))));
    for other in [
        ("target_paths", json!(["src/a.rs"])),
        ("rubric_focus", json!("Security")),
        ("confidence_threshold", json!(0.8)),
        ("seed", json!(7)),
        ("models", json!(["m0", "m1", "m2"])),
        ("git_diff", json!("+x")),
        ("author_family", json!("meta")),
        ("effort", json!("quick")),
        ("assurance", json!("diverse")),
        ("chairman", json!("m1")),
        ("requirements", json!("It is fast.")),
    ] {
        assert_ne!(first.0, of(other.clone()).0, "{other:?}");
    }
    // The same files in another commit, and what changed between two.
    let panel = Scripted::new(&[Obeys; 4]).of(&FOUR);
    let at = |digits: &str| verified_at(&panel, &digits.repeat(20), &right(), args()).unwrap();
    let (one, other) = (at("1a"), at("2b"));
    assert_ne!(one.reproducibility_hash, other.reproducibility_hash);
    assert_eq!(one.original_response_hash, other.original_response_hash, "the work is the same");
    let mut since = args();
    since["base_id"] = json!("main");
    let base = verified_since(&panel, &Commit::default(), &right(), since).unwrap();
    assert_ne!(first.0, base.reproducibility_hash);
}

/// The families of four models.
const FOUR: [&str; 4] = ["openai", "meta", "google", "xai"];

/// CNC-6, CNC-8, ADR-034 "Assurance Levels": a panel of one family is worth less than two votes, whatever its size.
#[test]
fn a_panel_gives_the_assurance_that_is_asked_for_or_is_refused() {
    let with = |families: &[&str], members: &[Member], extra: Value| {
        let mut args = args();
        args.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        verified(&Scripted::new(members).of(families), &right(), args).map_err(|wrong| wrong.to_string())
    };
    let (diverse, high) = (json!({ "assurance": "diverse" }), json!({ "assurance": "high" }));
    let error = with(&["openai"; 5], &[Obeys; 5], diverse.clone()).unwrap_err();
    assert!(error.contains("the panel is worth 1.47 independent votes, and 2 are needed"), "{error}");
    let result = with(&["openai", "openai", "meta"], &[Obeys; 3], diverse.clone()).unwrap();
    assert_eq!((result.verdict, result.panel[1].family.as_str()), (Verdict::Pass, "meta"));
    assert!((result.independent_votes - 2.25).abs() < 1e-9);
    // Those that come have to be worth it, too.
    let result = with(&["openai", "openai", "meta"], &[Obeys, Obeys, Down], diverse.clone()).unwrap();
    assert_eq!(result.verdict, Verdict::Unclear);
    assert!(result.reasons[0].contains("worth 1.25 independent votes, and 2 are needed"), "{:?}", result.reasons);
    // What the author's family says is heard, and counts for no vote.
    let mut authors = diverse;
    authors["author_family"] = json!("meta");
    assert!(
        with(&["openai", "meta"], &[Obeys; 2], authors.clone()).unwrap_err().contains("m1 (meta, who wrote the work)")
    );
    let result = with(&["openai", "meta", "google"], &[Obeys; 3], authors).unwrap();
    assert_eq!(
        result.panel.iter().map(|seat| seat.is_authors).collect::<Vec<_>>(),
        [false, false, true],
        "its own is last"
    );
    // With high all of three have to come.
    assert_eq!(with(&["openai", "meta", "google"], &[Obeys; 3], high.clone()).unwrap().verdict, Verdict::Pass);
    let result = with(&["openai", "meta", "google", "xai"], &[Obeys, Obeys, Obeys, Down], high.clone()).unwrap();
    assert_eq!(result.reasons[0], "no quorum: 3 of 4 models reviewed, and 4 have to");
    let mut authors = high;
    authors["author_family"] = json!("xai");
    let result = with(&["openai", "meta", "google", "xai"], &[Obeys; 4], authors.clone()).unwrap();
    assert_eq!(result.version.models, ["m0", "m1", "m2"]);
    authors["chairman"] = json!("m3");
    let error = with(&["openai", "meta", "google", "xai"], &[Obeys; 4], authors).unwrap_err();
    assert!(error.starts_with("chairman = \"m3\": it is of the family that wrote the work"), "{error}");
}

/// CNC-1, ADR-034 "Context Isolation": a reviewer has the work alone, and no word of another review or of an earlier call.
#[test]
fn each_review_has_a_context_of_its_own() {
    let panel = Scripted::new(&[Obeys; 3]);
    verified(&panel, &wrong(), args()).unwrap();
    let first: Vec<Inquiry> = panel.asked.take();
    for asked in &first[..3] {
        assert_eq!((&asked.instructions, &asked.text), (&first[0].instructions, &first[0].text));
        assert!(!asked.text.contains("verdict: ") && !asked.text.contains("a test"), "{}", asked.text);
    }
    verified(&panel, &wrong(), args()).unwrap();
    assert_eq!(panel.asked.take(), first, "the second call is as the first");
}

/// CNC-1, ADR-034 "LLM Council's Current Approach": the ranking is anonymous.
#[test]
fn peers_and_the_chairman_are_not_told_whose_a_review_is() {
    let panel = Scripted::new(&[Obeys; 3]);
    verified(&panel, &wrong(), args()).unwrap();
    for asked in &panel.asked.borrow()[3..] {
        assert!(["m0", "m1", "m2"].iter().all(|name| !asked.text.contains(name)), "{}", asked.text);
        assert_eq!(asked.text.matches("BEGIN DATA").count(), 3);
    }
}

/// CNC-2: what changed between two commits is the work, and nothing beside it.
#[test]
fn what_changed_between_two_commits_is_reviewed() {
    let base = Commit::of(&[("src/a.rs", "fn a() {}\n"), ("src/old.rs", "// FAULT\n")]);
    let mut head = base.clone();
    let args = json!({ "snapshot_id": "HEAD", "base_id": "main" });
    let error = verified_since(&Scripted::new(&[Obeys; 3]), &base, &head, args.clone()).unwrap_err().to_string();
    assert!(error.contains("nothing changed there"), "{error}");
    head.0.insert("src/a.rs".into(), b"fn a() { b() }\n".to_vec());
    let panel = Scripted::new(&[Obeys; 3]);
    let result = verified_since(&panel, &base, &head, args.clone()).unwrap();
    assert_eq!((result.verdict, &result.expanded_paths[..]), (Verdict::Pass, &["src/a.rs".to_owned()][..]));
    assert_eq!(result.base_id.as_deref(), Some(&"facade".repeat(7)[..40]));
    let shown = panel.asked.borrow()[0].text.clone();
    assert!(shown.contains("| -fn a() {}\n") && shown.contains("| +fn a() { b() }\n"), "{shown}");
    assert!(!shown.contains("FAULT"), "what was there before is not the work: {shown}");
    head.0.insert("src/b.rs".into(), b"// FAULT\n".to_vec());
    assert_eq!(verified_since(&Scripted::new(&[Obeys; 3]), &base, &head, args).unwrap().verdict, Verdict::Fail);
}

/// CNC-7, ADR-034 "Cross-Agent Consistency": the hash of the work is that of the work alone.
#[test]
fn equal_work_has_an_equal_hash_whatever_the_criteria() {
    let of = |extra: (&str, Value), commit: &Commit| {
        let mut args = args();
        args[extra.0] = extra.1;
        verified(&Scripted::new(&[Obeys; 3]), commit, args).unwrap().original_response_hash
    };
    let first = of(("seed", json!(1)), &right());
    assert_eq!(first, of(("rubric_focus", json!("Security")), &right()));
    assert_ne!(first, of(("requirements", json!("more")), &right()));
    assert_ne!(first, of(("seed", json!(1)), &Commit::of(&[("src/a.rs", "fn a() {}\n"), ("src/b.rs", "fn c() {}\n")])));
}

/// CNC-6, ADR-034 "Cost and Latency Budgets": what does not fit into the tokens is left out, said, and does not pass.
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

/// Every operation, with its arguments beside the models.
fn operations() -> [(Operation, Effort, Value); 4] {
    let of = |paths: &str| json!({ "snapshot_id": "HEAD", paths: ["src"] });
    let mut quick = of("target_paths");
    quick["effort"] = json!("quick");
    [
        (Operation::Verify, Effort::Quick, quick),
        (Operation::Verify, Effort::High, of("target_paths")),
        (Operation::Review, Effort::High, of("file_paths")),
        (Operation::Gate, Effort::High, of("target_paths")),
    ]
}

/// Tokens of all that a panel was asked, with the most that it may answer.
fn most_tokens(asked: &[Inquiry]) -> usize {
    let read = asked.iter().map(|asked| asked.instructions.len() + asked.text.len() + asked.schema.len());
    let written = asked.iter().map(|asked| asked.max_tokens as usize).sum::<usize>();
    read.sum::<usize>() / 4 + written
}

/// CNC-6, ADR-034 "Cost and Latency Budgets": verify, review and gate.
#[test]
fn all_questions_together_fit_into_the_tokens_of_their_operation() {
    let file = |number: u32| (format!("src/{number:03}.rs"), b"fn a() { b(c, d); }\n".repeat(8));
    let commit = Commit((0..200).map(file).collect());
    for (operation, effort, args) in operations() {
        let budget = Budget::of(operation, effort);
        for members in 2..=9 {
            let panel = Scripted::new(&vec![Obeys; members]);
            let mut args = args.clone();
            args["models"] = json!(panel.names());
            let Ok(result) = operated(&panel, operation, &commit, args) else {
                // The panel that is asked where none is named has room, and for a verification one more.
                let more = usize::from(operation == Operation::Verify && effort == Effort::High);
                assert!(members > budget.panel + more, "{operation:?} {effort:?}: {members} models have no room");
                continue;
            };
            let all = most_tokens(&panel.asked.borrow());
            assert!(all <= budget.tokens as usize, "{operation:?} {effort:?} {members}: {all}");
            assert_eq!(result.cost.token_limit, budget.tokens);
            assert!(result.reasons.iter().all(|reason| !reason.contains("used up")), "{:?}", result.reasons);
        }
    }
}

/// CNC-6, ADR-034 "Cost and Latency Budgets": a question to the council.
#[test]
fn a_question_fits_into_the_tokens_of_its_effort() {
    for (effort, name) in [(Effort::Quick, "quick"), (Effort::High, "high")] {
        let budget = Budget::of(Operation::Consensus, effort);
        for words in [1, 200, 3000] {
            let panel = Scripted::new(&vec![Obeys; budget.panel]);
            let question = "word ".repeat(words);
            let Ok(agreed) = answered(&panel, json!({ "question": question, "effort": name })) else {
                assert!(words > 200, "{name}: {words} words have no room");
                continue;
            };
            let all = most_tokens(&panel.asked.borrow());
            assert!(all <= budget.tokens as usize, "{name} {words}: {all}");
            assert!(agreed.cost.tokens <= budget.tokens && agreed.answer.is_some(), "{:?}", agreed.reasons);
        }
    }
}

/// CNC-6, ADR-034 "Cost and Latency Budgets": models that answer in known times, and those that are never waited for longer.
#[test]
fn no_operation_takes_longer_than_it_may() {
    for (operation, effort, args) in operations() {
        let budget = Budget::of(operation, effort);
        let timed = |takes_ms| {
            let panel = Scripted { takes_ms, ..Scripted::new(&[Obeys; 3]) };
            operated(&panel, operation, &right(), args.clone()).unwrap()
        };
        // Without rankings there are two stages.
        let stages = if effort == Effort::Quick { 2 } else { 3 };
        let in_time = timed(budget.time_ms / 10);
        assert_eq!((in_time.verdict, in_time.cost.time_ms), (Verdict::Pass, stages * budget.time_ms / 10));
        assert_eq!(in_time.cost.time_limit_ms, budget.time_ms);
        let late = timed(budget.time_ms * 2);
        assert_eq!((late.verdict, late.left_out.len()), (Verdict::Unclear, 3), "{operation:?} {effort:?}");
        assert!(late.cost.time_ms <= budget.time_ms && late.left_out[0].reason.contains("no answer within"));
    }
    for (effort, name) in [(Effort::Quick, "quick"), (Effort::High, "high")] {
        let limit = Budget::of(Operation::Consensus, effort).time_ms;
        let panel = Scripted { takes_ms: limit * 2, ..Scripted::new(&[Obeys; 3]) };
        let agreed = answered(&panel, json!({ "question": "Which?", "effort": name })).unwrap();
        assert!(agreed.answer.is_none() && agreed.cost.time_ms <= limit, "{agreed:?}");
    }
}
