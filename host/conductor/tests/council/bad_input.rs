//! Repositories and models that give a council nothing, too much or something odd: a result that says so, or an error.

use super::*;

/// CNC-2, CNC-6: two models of five that give no review leave it unclear.
#[test]
fn two_models_of_five_that_are_down_or_stream_nonsense_leave_it_unclear() {
    let model = Model::new(|_, request| match request["model"].as_str().unwrap() {
        "m1" => Reply::Status(400, "not today"),
        "m3" => Reply::Text("lorem ipsum { dolor } sit amet"),
        _ => honest(request),
    });
    let repository = Repository::new();
    let stage = council(&model, 5, &repository.0);
    let result = call(&stage, "council_review", &json!({ "snapshot_id": "HEAD", "file_paths": ["bad"] })).unwrap();
    assert_eq!((&result["verdict"], &result["exit_code"]), (&json!("unclear"), &json!(2)), "{result:#}");
    assert_eq!(result["reasons"][0], "no quorum: 3 of 5 models reviewed, and 4 have to");
    assert_eq!((&result["left_out"][0]["model"], &result["left_out"][1]["model"]), (&json!("m1"), &json!("m3")));
    assert!(result["left_out"][0]["reason"].as_str().unwrap().contains("not today"), "{result:#}");
    assert_eq!(model.requests().len(), 5, "no member is asked for what can't come of it any more");
}

/// CNC-2: a model whose stream never ends is cut off and left out; the others decide.
#[test]
fn a_model_that_streams_forever_is_left_out() {
    let model = Model::new(|_, request| match request["model"].as_str().unwrap() {
        "m1" => Reply::Endless("and on and on "),
        _ => honest(request),
    });
    let repository = Repository::new();
    let stage = council(&model, 3, &repository.0);
    let result = call(&stage, "council_verify", &args(&["src"])).unwrap();
    assert_eq!(result["left_out"][0]["model"], "m1", "{result:#}");
    assert_eq!(result["left_out"].as_array().unwrap().len(), 1, "{result:#}");
    assert!(result["left_out"][0]["reason"].as_str().unwrap().contains("too large"), "{result:#}");
    assert_eq!(result["verdict"], "pass", "two of three are a quorum: {result:#}");
}

/// CNC-2: without a review there are no votes, and that is 0.
#[test]
fn a_council_of_which_nobody_answers_is_worth_nothing() {
    let model = Model::new(|_, _| Reply::Status(400, "not today"));
    let repository = Repository::new();
    let stage = council(&model, 3, &repository.0);
    let done = stage.run(&["council", "verify", "src", "--json"]);
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    assert_eq!(done.status.code(), Some(2), "{text}");
    assert!(text.contains("\"independent_votes\": 0.0"), "{text}");
}

/// CNC-1, CNC-3, ADR-034 "Context Isolation", "Directory Expansion Enhancement"
#[test]
fn what_can_not_be_reviewed_is_an_error_that_says_why_and_costs_nothing() {
    let model = Model::new(|_, request| honest(request));
    let repository = Repository::new();
    let stage = council(&model, 3, &repository.0);
    for (args, why) in [
        (json!({ "snapshot_id": "no-such-branch", "target_paths": ["src"] }), "no-such-branch"),
        (args(&["../x"]), "target_paths[0] = \"../x\": it leads out of the repository"),
        (args(&["src", "nowhere"]), "target_paths[1] = \"nowhere\": there is no such file or folder"),
        (args(&["src/*.rs"]), "patterns are not expanded"),
        (
            args(&["binary"]),
            "there is nothing to review: 1 left out, binary by what is in it, and text by its name: \"binary/x.rs\"",
        ),
        (args(&["src/link.rs"]), "symbolic links are not followed"),
        (json!({ "snapshot_id": "HEAD", "target_paths": ["src"], "models": ["m0", "other"] }), "granted: m0, m1, m2"),
        (json!({ "snapshot_id": "HEAD", "target_paths": ["src"], "confidence_threshold": 2 }), "0.0 to 1.0 is allowed"),
    ] {
        let error = call(&stage, "council_verify", &args).unwrap_err();
        assert!(error.contains(why), "{args}: {error}");
    }
    assert_eq!(model.requests().len(), 0);
}

/// CNC-3: what git has besides files of text.
#[test]
fn submodules_and_odd_names_of_a_real_repository_are_reviewed_or_named() {
    let model = Model::new(|_, request| honest(request));
    let repository = Repository::new();
    repository.file("odd/new\nline.rs", "fn n() {}\n");
    repository.file("odd/-rf \"quoted\" \u{1b}[2J.rs", "fn q() {}\n");
    repository.file("odd/grüße.rs", "fn g() {}\n");
    repository.file("odd/back\\slash.rs", "fn b() {}\n");
    repository.git(&["add", "--all"]);
    let nobody_has_it = "160000,0123456789012345678901234567890123456789,odd/library";
    repository.git(&["update-index", "--add", "--cacheinfo", nobody_has_it]);
    repository.git(&["commit", "--quiet", "--message=odd"]);
    let stage = council(&model, 3, &repository.0);
    let result = call(&stage, "council_verify", &args(&["odd"])).unwrap();
    assert_eq!(
        result["expanded_paths"],
        json!(["odd/-rf \"quoted\" \u{1b}[2J.rs", "odd/back\\slash.rs", "odd/grüße.rs", "odd/new\nline.rs"]),
        "{result:#}"
    );
    let warnings = result["expansion_warnings"].to_string();
    assert!(warnings.contains("submodule") && warnings.contains("odd/library"), "{warnings}");
    assert_eq!(result["verdict"], "pass", "{result:#}");
    // A name does not get out of its line, nor to a terminal.
    let review = model.requests()[0]["messages"].to_string();
    assert!(!review.contains("new\\nline") && !review.contains("\\u001b"), "{review}");
    let shown = stage.run(&["council", "verify", "odd"]).stdout;
    assert!(!shown.contains(&0x1b), "{}", String::from_utf8_lossy(&shown));
}

/// CNC-3: what a commit hides behind a name that is not UTF-8 is no pass, whole or as what changed.
#[cfg(target_os = "linux")]
#[test]
fn what_can_not_be_named_is_no_pass() {
    use std::os::unix::ffi::OsStrExt as _;
    let model = Model::new(|_, request| honest(request));
    let repository = Repository::new();
    repository.git(&["tag", "before"]);
    repository.file("hidden/a\u{fffd}.rs", "fn a() {}\n");
    let name = std::ffi::OsStr::from_bytes(b"a\xff.rs");
    fs::write(repository.0.join("hidden").join(name), "fn c() {} // FAULT\n").unwrap();
    repository.git(&["add", "--all"]);
    repository.git(&["commit", "--quiet", "--message=hidden"]);
    let stage = council(&model, 3, &repository.0);
    for more in [json!({ "target_paths": ["hidden"] }), json!({ "base_id": "before" })] {
        let mut args = more.clone();
        args["snapshot_id"] = json!("HEAD");
        let result = call(&stage, "council_gate", &args).unwrap();
        assert_eq!(result["expanded_paths"], json!(["hidden/a\u{fffd}.rs"]), "{more}: {result:#}");
        assert_eq!(result["verdict"], "unclear", "{more}: {result:#}");
        assert!(result["expansion_warnings"].to_string().contains("is no name in a path"), "{more}: {result:#}");
    }
}

/// CNC-3: a file that no model could read whole is left out, without being read.
#[test]
fn a_file_of_a_gigabyte_is_left_out_and_that_is_no_pass() {
    let model = Model::new(|_, request| honest(request));
    let repository = Repository::new();
    repository.file("large/small.rs", "fn s() {}\n");
    let huge = fs::File::create(repository.0.join("large/huge.rs")).unwrap();
    huge.set_len(1 << 30).unwrap();
    repository.git(&["-c", "core.compression=1", "add", "--all"]);
    repository.git(&["commit", "--quiet", "--message=large"]);
    let stage = council(&model, 3, &repository.0);
    let result = call(&stage, "council_verify", &args(&["large"])).unwrap();
    assert_eq!(result["expanded_paths"], json!(["large/small.rs"]), "{result:#}");
    assert_eq!((&result["verdict"], &result["exit_code"]), (&json!("unclear"), &json!(2)), "{result:#}");
    assert!(result["expansion_warnings"].to_string().contains("huge.rs"), "{result:#}");
}

/// CNC-1: a folder without a repository, a repository without a commit, and a folder that is gone.
#[test]
fn without_a_repository_or_a_commit_there_is_nothing_to_review() {
    let model = Model::new(|_, request| honest(request));
    let (none, empty, gone) = (folder().join("no-repository"), folder().join("no-commit"), folder().join("gone"));
    for path in [&none, &empty, &gone] {
        fs::create_dir_all(path).unwrap();
    }
    Repository(empty.clone()).git(&["init", "--quiet"]);
    let no_repository = "the granted folder holds no git repository";
    let no_commit = "\"HEAD\": there is no such branch, tag or commit in the repository";
    for (path, why) in [(none, no_repository), (empty, no_commit), (gone, "the granted folder is not there")] {
        let stage = council(&model, 3, &path);
        if path.ends_with("gone") {
            fs::remove_dir_all(&path).unwrap();
        }
        let done = stage.run(&["council", "verify", "src", "--json"]);
        let error = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.code() == Some(2) && error.contains(why), "{}: {:?} {error}", path.display(), done.status);
    }
    assert_eq!(model.requests().len(), 0);
}
