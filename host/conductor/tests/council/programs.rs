//! Members that are programs: command-line agents, run apart, beside models and without any.
#![cfg(target_os = "linux")]

use std::os::unix::fs::PermissionsExt as _;

use super::*;

/// Answers as an honest member does, and says in its rationale which copies of the work it found.
const HONEST: &str = r#"#!/bin/bash
asked=$(cat)
verdict=pass
[[ $asked == *FAULT* || $asked == *"verdict: fail"* ]] && verdict=fail
copies=$(cd work && find . -type f | sort | tr '\n' ' ')
issue='{"severity": "critical", "file": "bad/fault.rs", "line": 1, "message": "It has the fault."}'
[[ $verdict == pass ]] && issue=
scores='{"accuracy": 8, "completeness": 8, "clarity": 8, "conciseness": 8, "relevance": 8}'
echo "I thought about it." >&2
if [[ $asked == *"one of several independent reviewers"* ]]; then
    echo "Here is my review:"
    echo "{\"verdict\": \"$verdict\", \"confidence\": 0.9, \"scores\": $scores, \"issues\": [$issue], \"rationale\": \"$copies\"}"
elif [[ $asked == *"Rank them by"* ]]; then
    letters=$(grep -o '(review \|(answer ' <<< "$asked" | wc -l)
    echo "{\"ranking\": [$(printf '"%s", ' A B C D E | cut -d, -f1-"$letters")]}"
elif [[ $asked == *"(question)"* ]]; then
    echo '{"answer": "Use the second."}'
else
    echo "{\"verdict\": \"$verdict\", \"confidence\": 0.9, \"rationale\": \"They agree.\", \"dissent\": \"\"}"
fi
"#;

/// A program in the folder of the tests, by its path.
fn agent(name: &str, script: &str) -> String {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let path = folder().join(format!("agents-{}", NUMBER.fetch_add(1, Ordering::Relaxed))).join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

/// A host with a council of models that are called `m0`, `m1`, ... and of programs.
fn council_with(model: &Model, models: usize, programs: &[String], repository: &Path) -> Stage {
    let (folder, compiled) = features();
    let text = configuration(model, &["a", "b", "c"][..models], &repository.display().to_string());
    let text = text.replace("models = []\nmodel_tokens = 400000\n", "") + &format!("programs = {programs:?}\n");
    Stage::with_features(folder, Home::beside(compiled, &text), SimulatedPorts::new())
}

fn reasons(result: &Value) -> Vec<String> {
    let left_out = result["left_out"].as_array().unwrap().iter();
    left_out.map(|one| format!("{}: {}", one["model"].as_str().unwrap(), one["reason"].as_str().unwrap())).collect()
}

/// CNC-5: command-line agents beside models.
#[test]
fn a_program_has_a_seat_beside_models() {
    let model = Model::new(|_, request| honest(request));
    let repository = Repository::new();
    let stage = council_with(&model, 2, &[agent("codex", HONEST)], &repository.0);
    let passed = call(&stage, "council_verify", &args(&["src"])).unwrap();
    assert_eq!(passed["verdict"], "pass", "{passed:#}");
    assert_eq!(passed["version"]["models"], json!(["m0", "m1", "program:codex"]));
    assert_eq!(passed["panel"][2], json!({ "model": "program:codex", "family": "openai", "is_authors": false }));
    assert_eq!((reasons(&passed), passed["rankings"].as_array().unwrap().len()), (vec![], 3), "{passed:#}");
    let asked = json!({ "verification_id": passed["verification_id"] });
    let record = call(&stage, "council_audit", &asked).unwrap()["record"]["stage1.json"].to_string();
    // Nothing of what lies beside the commit, and no link.
    assert!(record.contains("./src/a.rs.txt ./src/two words.rs.txt \\\""), "{record}");

    let failed = stage.run(&["council", "gate", "bad", "--models", "m0,program:codex"]);
    assert_eq!(failed.status.code(), Some(1), "{}", String::from_utf8_lossy(&failed.stdout));
    let checked = call(&stage, "council_check", &json!({ "path": passed["transcript_path"] })).unwrap();
    assert_eq!(checked["intact"], true, "{checked:#}");
}

/// CNC-5: no model, no provider, no key: two programs are a council.
#[test]
fn programs_alone_are_a_council() {
    let model = Model::new(|_, _| Reply::Status(500, "it is not asked"));
    let repository = Repository::new();
    let programs = [agent("llm", HONEST), agent("llm", HONEST)];
    let stage = council_with(&model, 0, &programs, &repository.0);
    let result = call(&stage, "council_verify", &args(&["bad"])).unwrap();
    assert_eq!(result["verdict"], "fail", "{result:#}");
    assert_eq!(result["version"]["models"], json!(["program:llm", "program:llm-2"]));
    let agreed = call(&stage, "council_consensus", &json!({ "question": "Which?" })).unwrap();
    assert_eq!(agreed["answer"], "Use the second.");
    assert_eq!(model.requests().len(), 0);
}

/// CNC-5: an agent that misbehaves loses its seat, reaches nothing, and leaves nothing behind.
#[test]
fn a_program_that_misbehaves_is_left_out_with_its_reason() {
    let model = Model::new(|_, request| honest(request));
    let repository = Repository::new();
    let own = folder().join("a-key");
    fs::write(&own, "hunter2").unwrap();
    let curious = format!("#!/bin/bash\ncat {0}; cat > /dev/null; echo x > {0}\n", own.display());
    let online = format!("#!/bin/bash\nexec 3<>/dev/tcp/127.0.0.1/{}\n", model.port);
    let endless = "#!/bin/bash\nyes '{\"verdict\": \"pass\"}'\n";
    let programs = [
        agent("curious", &curious),
        agent("online", &online),
        agent("endless", endless),
        agent("idle", "#!/bin/bash\ntrue\n"),
        agent("sleepy", "#!/bin/bash\nsleep 600 & sleep 600\n"),
    ];
    let stage = council_with(&model, 3, &programs, &repository.0);
    let asked = |members: &[&str], effort: &str| json!({ "snapshot_id": "HEAD", "target_paths": ["src"], "effort": effort, "models": members });
    let members = ["m0", "program:curious", "program:online", "program:endless", "program:idle"];
    let result = call(&stage, "council_verify", &asked(&members, "high")).unwrap();
    let why = reasons(&result);
    let expected = [
        "program:curious: its answer has no JSON object",
        "program:online: it ended with exit status 1: ",
        "program:endless: ",
        "program:idle: its answer has no JSON object",
    ];
    assert_eq!(why.len(), expected.len(), "{why:?}");
    for (reason, expected) in why.iter().zip(expected) {
        assert!(reason.starts_with(expected), "{reason} is not {expected}");
    }
    assert!(why[1].contains("Connection refused") || why[1].contains("etwork is unreachable"), "{}", why[1]);
    assert!(why[2].ends_with("wrote more than 1048576 bytes"), "{}", why[2]);
    let late = call(&stage, "council_verify", &asked(&["m0", "m1", "program:sleepy"], "quick")).unwrap();
    assert!(reasons(&late)[0].contains("/sleepy did not end within"), "{late:#}");
    assert_eq!(late["verdict"], "pass", "two of three are a quorum: {late:#}");
    assert!(!result.to_string().contains("hunter2") && fs::read_to_string(&own).unwrap() == "hunter2");
    assert_eq!((&result["verdict"], &result["exit_code"]), (&json!("unclear"), &json!(2)), "{result:#}");
}

/// CNC-5, FEA-3: which programs are run is a person's to say, with every argument.
#[test]
fn a_program_that_was_not_granted_is_not_run() {
    let model = Model::new(|_, request| honest(request));
    let repository = Repository::new();
    let stage = council_with(&model, 2, &[agent("codex", HONEST)], &repository.0);
    let request = json!({ "snapshot_id": "HEAD", "target_paths": ["src"], "models": ["m0", "program:bash"] });
    let error = call(&stage, "council_verify", &request).unwrap_err();
    assert!(
        error.contains("\"program:bash\": it is not granted to the council; granted: m0, m1, program:codex"),
        "{error}"
    );
    let listed = stage.run(&["feature", "list", "--json"]);
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert!(listed.contains("/codex\""), "{listed}");
}
