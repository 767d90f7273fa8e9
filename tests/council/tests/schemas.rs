//! The schemas of requests and results in `docs/schemas/council`: what they say is what the council takes and gives.
//!
//! `COUNCIL_SCHEMAS=1` writes those that are made from the types.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::path::PathBuf;

use conductor_council_tests::Member::{Babbles, Down, Fooled, Obeys};
use conductor_council_tests::{Commit, Scripted, verified, verified_since};
use conductor_schema::ResultSchema;
use council::compare::Compared;
use council::records::Found;
use council::request::{Audit, Check, Compare, Consensus, Gate, Review, Verify};
use council::result::{Agreed, Verification};
use council::review::Verdict;
use council::transcript::Checked;
use schemars::{JsonSchema, schema_for};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

fn path(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "../../docs/schemas/council", &format!("{name}.schema.json")].iter().collect()
}

fn schema(name: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(path(name)).unwrap()).unwrap()
}

fn is_written<T: JsonSchema>(name: &str) {
    let text = serde_json::to_string_pretty(&schema_for!(T)).unwrap() + "\n";
    if std::env::var_os("COUNCIL_SCHEMAS").is_some() {
        fs::write(path(name), &text).unwrap();
    }
    let there = fs::read_to_string(path(name)).unwrap_or_default();
    assert!(there == text, "docs/schemas/council/{name}.schema.json is not up to date: run with COUNCIL_SCHEMAS=1");
}

#[test]
fn the_schemas_are_those_of_the_tools() {
    is_written::<Verify>("verify.request");
    is_written::<Review>("review.request");
    is_written::<Gate>("gate.request");
    is_written::<Consensus>("consensus.request");
    is_written::<Audit>("audit.request");
    is_written::<Check>("check.request");
    is_written::<Compare>("compare.request");
    is_written::<Verification>("verification.result");
    is_written::<Agreed>("consensus.result");
    is_written::<Found>("audit.result");
    is_written::<Checked>("check.result");
    is_written::<Compared>("compare.result");
}

fn commit(text: &str) -> Commit {
    Commit::of(&[("src/fault.rs", text)])
}

/// Real results: each verdict, with and without what may be missing.
fn results() -> Vec<Value> {
    let args = json!({ "snapshot_id": "HEAD", "target_paths": ["src"] });
    let agent = json!({ "snapshot_id": "HEAD", "target_paths": ["src"], "invoking_agent": "an agent", "rubric_focus": "Security",
        "confidence_threshold": 0.8, "author_family": "openai" });
    let since = json!({ "snapshot_id": "HEAD", "base_id": "main" });
    let right = commit("fn a() {}\n");
    let all = [
        verified(&Scripted::new(&[Obeys; 3]), &right, args.clone()),
        verified(&Scripted::new(&[Obeys; 5]).of(&["openai", "meta", "google", "xai", "ibm"]), &right, agent),
        verified(&Scripted::new(&[Obeys; 3]), &commit("FAULT"), args.clone()),
        verified(&Scripted::new(&[Obeys, Obeys, Fooled]), &commit("FAULT attempt-"), args.clone()),
        verified(&Scripted::new(&[Obeys, Down, Babbles]), &right, args),
        verified_since(&Scripted::new(&[Obeys; 3]), &commit("before"), &right, since),
    ];
    all.into_iter().map(|result| serde_json::to_value(result.unwrap()).unwrap()).collect()
}

/// CNC-2: "Machine-Actionable Output Schema" of ADR-034, as it stands there, and the whole result.
#[test]
fn real_results_fit_the_schema_of_the_decision_record_and_their_own() {
    let results = results();
    let verdicts: Vec<&str> = results.iter().map(|result| result["verdict"].as_str().unwrap()).collect();
    assert_eq!(verdicts, ["pass", "pass", "fail", "fail", "unclear", "pass"]);
    for name in ["verdict", "verification.result"] {
        let schema = ResultSchema::compile(&schema(name)).unwrap();
        for result in &results {
            assert_eq!(schema.check(result), Ok(()), "{name}: {result:#}");
            // The validator has no bounds of numbers.
            assert!((0.0..=1.0).contains(&result["confidence"].as_f64().unwrap()), "{result:#}");
        }
        // It can fail.
        for (key, value) in [
            ("verdict", json!("approved")),
            ("confidence", json!("high")),
            ("timestamp", Value::Null),
            ("blocking_issues", json!({})),
        ] {
            let mut wrong = results[2].clone();
            wrong[key] = value;
            assert!(schema.check(&wrong).is_err(), "{name} {key}");
        }
    }
}

/// ADR-034, "Cross-Agent Consistency" and "API Response Enhancement": each field, and what it is called here.
#[test]
fn every_field_of_the_decision_record_is_there() {
    for result in results() {
        for field in [
            "verification_id",
            "original_response_hash",
            "votes",
            "responses",
            "verdict",
            "confidence",
            "protocol_version",
            "timestamp",
            "reproducibility_hash",
            "requested_paths",
            "expanded_paths",
            "paths_truncated",
            "expansion_warnings",
            "rationale",
            "blocking_issues",
        ] {
            assert!(!result[field].is_null(), "{field}: {result:#}");
        }
        assert_eq!(result["protocol_version"], "1.0");
        let weights = ["accuracy", "completeness", "clarity", "conciseness", "relevance"];
        let scores = &result["rubric_scores"];
        assert!(weights.iter().all(|name| scores[name].is_number()), "{result:#}");
        assert_eq!(
            result["exit_code"],
            json!(["pass", "fail", "unclear"].iter().position(|it| result["verdict"] == *it))
        );
    }
    assert_eq!([Verdict::Pass, Verdict::Fail, Verdict::Unclear].map(Verdict::exit_code), [0, 1, 2]);
}

/// What the schemas of requests refuse the tools refuse, and what they let through the tools read.
#[test]
fn requests_that_fit_are_read_and_others_are_not() {
    fn read<T: DeserializeOwned>(args: &Value) -> bool {
        serde_json::from_value::<T>(args.clone()).is_ok()
    }
    let whole = json!({ "snapshot_id": "HEAD", "target_paths": ["src"], "rubric_focus": "Security", "effort": "quick",
        "confidence_threshold": 0.7, "models": ["a", "b"], "chairman": "a", "seed": 1, "invoking_agent": "x",
        "requirements": "y", "assurance": "diverse", "author_family": "openai" });
    let schema = ResultSchema::compile(&schema("verify.request")).unwrap();
    assert!(schema.check(&whole).is_ok() && read::<Verify>(&whole));
    for (key, value) in [
        ("snapshot_id", Value::Null),
        ("target_paths", json!("src")),
        ("effort", json!("max")),
        ("assurance", json!("total")),
        ("seed", json!("1")),
        ("threshold", json!(0.5)),
    ] {
        let mut wrong = whole.clone();
        wrong[key] = value;
        assert!(schema.check(&wrong).is_err() && !read::<Verify>(&wrong), "{key}");
    }
}
