//! The schemas of requests and results in `docs/schemas/council`: what they say is what the council takes and gives.
//!
//! `COUNCIL_SCHEMAS=1` writes those that are made from the types.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use conductor_council_tests::Member::{Babbles, Down, Fooled, Obeys};
use conductor_council_tests::{Commit, Scripted, TIMESTAMP, answered, deliberated, verified, verified_since};
use conductor_schema::ResultSchema;
use council::compare::{Compared, compare};
use council::records::{self, Found, Shelf};
use council::request::{Audit, Check, Compare, Consensus, Gate, Review, Verify};
use council::result::{Agreed, Verification};
use council::review::Verdict;
use council::transcript::{Checked, Folder, Seal, Transcript, Validity, check};
use schemars::{JsonSchema, schema_for};
use serde::Serialize;
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
    let agent = json!({ "snapshot_id": "HEAD", "target_paths": ["src"], "invoking_agent": "an agent", "skill_version": "1.0", "rubric_focus": "Security",
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

/// CNC-2, ADR-034 "Machine-Actionable Output Schema", as it stands there, and the whole result.
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

/// A shelf for records and a folder for transcripts in memory.
#[derive(Default)]
struct Memory(RefCell<BTreeMap<String, Vec<u8>>>);

impl Shelf for Memory {
    fn keys(&self) -> Result<Vec<String>, String> {
        Ok(self.0.borrow().keys().filter(|key| key.starts_with(records::PREFIX)).cloned().collect())
    }

    fn get(&self, key: &str) -> Result<Option<Vec<u8>>, String> {
        Ok(self.0.borrow().get(key).cloned())
    }

    fn set(&self, key: &str, value: &[u8]) -> Result<(), String> {
        self.0.borrow_mut().insert(key.to_owned(), value.to_owned());
        Ok(())
    }

    fn delete(&self, key: &str) -> Result<(), String> {
        self.0.borrow_mut().remove(key);
        Ok(())
    }
}

impl Folder for Memory {
    fn write(&self, path: &str, text: &str) -> Result<(), String> {
        self.set(path, text.as_bytes())
    }

    fn read(&self, path: &str) -> Result<Option<Vec<u8>>, String> {
        self.get(path)
    }

    fn names(&self, path: &str) -> Result<Vec<String>, String> {
        let below = format!("{path}/");
        Ok(self.0.borrow().keys().filter_map(|key| key.strip_prefix(&below)).map(str::to_owned).collect())
    }
}

/// A key that signs by saying again what it signs.
struct Echo;

impl Seal for Echo {
    fn sign(&self, statement: &str) -> Result<(Vec<u8>, Vec<u8>), String> {
        Ok((vec![7; 32], statement.as_bytes().to_owned()))
    }

    fn validity(&self, statement: &str, key: &[u8], value: &[u8]) -> Validity {
        if key == [7; 32] && value == statement.as_bytes() { Validity::ThisHost } else { Validity::Invalid }
    }
}

/// Holds a result against its schema in `docs/schemas/council`.
fn fits(name: &str, result: &impl Serialize) -> Value {
    let (schema, result) = (ResultSchema::compile(&schema(name)).unwrap(), serde_json::to_value(result).unwrap());
    assert_eq!(schema.check(&result), Ok(()), "{name}: {result:#}");
    // It can fail: without what it requires, it does.
    assert!(schema.check(&json!({})).is_err(), "{name}");
    result
}

/// CNC-2, ADR-034 "Track A": what consensus, audit, check and compare give fits their schemas.
#[test]
fn real_results_of_the_other_tools_fit_their_schemas() {
    let question =
        json!({ "question": "The first or the second?", "invoking_agent": "an agent", "skill_version": "1.0" });
    let agreed = fits("consensus.result", &answered(&Scripted::new(&[Obeys; 3]), question.clone()).unwrap());
    assert_eq!(agreed["answer"], "The second.");
    assert!(agreed["cost"]["tokens"].as_u64() > Some(0), "{agreed:#}");
    let agreed = fits("consensus.result", &answered(&Scripted::new(&[Obeys, Down, Down]), question).unwrap());
    assert_eq!((agreed["left_out"].as_array().unwrap().len(), &agreed["answer"]), (2, &Value::Null));

    let (memory, args) = (Memory::default(), json!({ "snapshot_id": "HEAD", "target_paths": ["src"] }));
    let run = |id: &str, text: &str| {
        let mut transcript = Transcript::new(Some(&memory), TIMESTAMP, id);
        let panel = Scripted::new(&[Obeys; 3]);
        let result = deliberated(&panel, (&commit(text), None), args.clone(), id, &mut transcript).unwrap();
        let finished = transcript.finish(&result, &Echo);
        records::keep(&memory, 1, id, finished.files).unwrap();
        result
    };
    let (one, other) = (run("0a", "fn a() {}\n"), run("0b", "FAULT"));
    let path = one.transcript_path.clone().unwrap();
    let checked = fits("check.result", &check(&memory, &path, &Echo, None).unwrap());
    assert_eq!((&checked["intact"], &checked["path"]), (&json!(true), &json!(path)));
    memory.write(&format!("{path}/stage1.json"), "[]").unwrap();
    let checked = fits("check.result", &check(&memory, &path, &Echo, None).unwrap());
    assert_eq!((&checked["exit_code"], &checked["findings"][0]["file"]), (&json!(1), &json!("stage1.json")));

    let all = fits("audit.result", &records::find(&memory, None, &Echo).unwrap());
    assert_eq!(all["verifications"].as_array().unwrap().len(), 2);
    let found = fits("audit.result", &records::find(&memory, Some("0b"), &Echo).unwrap());
    assert_eq!((&found["intact"], &found["record"]["result.json"]["verdict"]), (&json!(true), &json!("fail")));

    let value = |result: &Verification| serde_json::to_value(result).unwrap();
    let same = fits("compare.result", &compare(&value(&one), &value(&one)));
    assert_eq!((&same["consistent"], &same["differences"]), (&json!(true), &json!([])));
    let differs = fits("compare.result", &compare(&value(&one), &value(&other)));
    assert_eq!((&differs["exit_code"], &differs["verifications"]), (&json!(1), &json!(["0a", "0b"])));
    assert_eq!(differs["differences"][1], "verdict: \"pass\" and \"fail\"");
}

/// CNC-2, CNC-7, ADR-034 "Cross-Agent Consistency" and "API Response Enhancement": each field, and what it is called here.
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
        // Of who says so, both.
        assert_eq!(result["invoking_agent"].is_null(), result["skill_version"].is_null());
        let weights = ["accuracy", "completeness", "clarity", "conciseness", "relevance"];
        let scores = &result["rubric_scores"];
        assert!(weights.iter().all(|name| scores[name].is_number()), "{result:#}");
        assert_eq!(
            result["exit_code"],
            json!(["pass", "fail", "unclear"].iter().position(|it| result["verdict"] == *it))
        );
    }
    assert_eq!((&results()[1]["invoking_agent"], &results()[1]["skill_version"]), (&json!("an agent"), &json!("1.0")));
    assert_eq!([Verdict::Pass, Verdict::Fail, Verdict::Unclear].map(Verdict::exit_code), [0, 1, 2]);
}

/// What the schemas of requests refuse the tools refuse, and what they let through the tools read.
#[test]
fn requests_that_fit_are_read_and_others_are_not() {
    fn read<T: DeserializeOwned>(args: &Value) -> bool {
        serde_json::from_value::<T>(args.clone()).is_ok()
    }
    let whole = json!({ "snapshot_id": "HEAD", "target_paths": ["src"], "rubric_focus": "Security", "effort": "quick",
        "confidence_threshold": 0.7, "models": ["a", "b"], "chairman": "a", "seed": 1, "invoking_agent": "x", "skill_version": "1.0",
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

/// CNC-2, ADR-034 "Proposed Skills": the same of all other tools.
#[test]
fn requests_of_the_other_tools_fit_their_schemas() {
    fn both<T: DeserializeOwned>(name: &str, right: &Value, wrong: &[(&str, Value)]) {
        let schema = ResultSchema::compile(&schema(&format!("{name}.request"))).unwrap();
        let read = |args: &Value| serde_json::from_value::<T>(args.clone()).is_ok();
        assert!(schema.check(right).is_ok() && read(right), "{name}");
        for (key, value) in wrong {
            let mut args = right.clone();
            args[*key] = value.clone();
            assert!(schema.check(&args).is_err() && !read(&args), "{name}: {key}");
        }
    }
    let review = json!({ "snapshot_id": "HEAD~1", "file_paths": ["src"], "git_diff": "+x", "seed": 1 });
    both::<Review>("review", &review, &[("target_paths", json!(["src"])), ("effort", json!("quick"))]);
    let gate = json!({ "snapshot_id": "HEAD", "base_id": "main", "confidence_threshold": 0.8 });
    both::<Gate>("gate", &gate, &[("file_paths", json!([])), ("snapshot_id", Value::Null)]);
    let consensus = json!({ "question": "Which?", "effort": "quick", "models": ["a", "b"] });
    both::<Consensus>("consensus", &consensus, &[("question", json!(1)), ("target_paths", json!([]))]);
    both::<Audit>("audit", &json!({ "verification_id": "0a" }), &[("verification_id", json!(1)), ("id", json!("0a"))]);
    let check = json!({ "path": ".council/logs/x", "public_key": "00" });
    both::<Check>("check", &check, &[("path", Value::Null), ("key", json!("00"))]);
    both::<Compare>("compare", &json!({ "verifications": ["a", "b"] }), &[("verifications", json!("a"))]);
}
