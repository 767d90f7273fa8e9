//! The conformance suite against the product: `conductor run`, with its own tools, over HTTP.
//!
//! Most of the suite calls tools, prompts and resources that it wants servers to have for it. The product has none of
//! them, so their checks can't pass; [`NOT_APPLICABLE`] lists these, with the reason. Every other check has to pass, and
//! so has one that is listed and could: the list stays true.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Stdio},
};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::{Peers, REVISIONS, Server, program, suite};
use crate::{process, repo::Repo};

/// Why a check says nothing about the product.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Reason {
    /// It calls one of the suite's own tools.
    Tool,
    /// It gets one of the suite's own prompts.
    Prompt,
    /// It reads or watches one of the suite's own resources.
    Resource,
    /// It needs a tool whose arguments go into headers as well; the product has none.
    Header,
}

impl Reason {
    const fn text(self) -> &'static str {
        match self {
            Self::Tool => "they call tools of the suite's own",
            Self::Prompt => "they get prompts of the suite's own",
            Self::Resource => "they read resources of the suite's own",
            Self::Header => "no tool wants arguments in headers",
        }
    }
}

/// The checks that can't pass, by the suite's ids.
const NOT_APPLICABLE: [(&str, Reason); 46] = [
    ("elicitation-sep1034-general", Reason::Tool),
    ("elicitation-sep1330-general", Reason::Tool),
    ("json-schema-2020-12-tool-found", Reason::Tool),
    ("prompts-get-embedded-resource", Reason::Prompt),
    ("prompts-get-simple", Reason::Prompt),
    ("prompts-get-with-args", Reason::Prompt),
    ("prompts-get-with-image", Reason::Prompt),
    ("resources-read-binary", Reason::Resource),
    ("resources-read-text", Reason::Resource),
    ("resources-subscribe", Reason::Resource),
    ("resources-templates-read", Reason::Resource),
    ("resources-unsubscribe", Reason::Resource),
    ("sep-2243-server-decode-base64", Reason::Header),
    ("sep-2243-server-no-xmcp-tool", Reason::Header),
    ("sep-2243-server-reject-invalid-param-chars", Reason::Header),
    ("sep-2243-server-reject-param-mismatch", Reason::Header),
    ("sep-2243-server-validate-param-match", Reason::Header),
    ("sep-2322-elicitation-incomplete", Reason::Tool),
    ("sep-2322-ignore-unexpected-params", Reason::Tool),
    ("sep-2322-list-roots-incomplete", Reason::Tool),
    ("sep-2322-missing-response-rerequests", Reason::Tool),
    ("sep-2322-multi-round-r1", Reason::Tool),
    ("sep-2322-multiple-inputs-incomplete", Reason::Tool),
    ("sep-2322-non-tool-incomplete", Reason::Prompt),
    ("sep-2322-reject-tampered-state", Reason::Tool),
    ("sep-2322-request-state-incomplete", Reason::Tool),
    ("sep-2322-respect-client-capabilities", Reason::Tool),
    ("sep-2322-result-type-included", Reason::Tool),
    ("sep-2322-sampling-incomplete", Reason::Tool),
    ("sep-2575-http-server-no-independent-requests-on-stream", Reason::Tool),
    ("sep-2575-missing-capability-http-400", Reason::Tool),
    ("sep-2575-server-no-log-without-loglevel", Reason::Tool),
    ("sep-2575-server-rejects-undeclared-capability", Reason::Tool),
    ("sep-2575-server-sends-prompts-list-changed-on-subscription", Reason::Tool),
    ("sep-2575-server-sends-tools-list-changed-on-subscription", Reason::Tool),
    ("server-sse-disconnect-resume", Reason::Tool),
    ("tools-call-audio", Reason::Tool),
    ("tools-call-elicitation", Reason::Tool),
    ("tools-call-embedded-resource", Reason::Tool),
    ("tools-call-error", Reason::Tool),
    ("tools-call-image", Reason::Tool),
    ("tools-call-mixed-content", Reason::Tool),
    ("tools-call-sampling", Reason::Tool),
    ("tools-call-simple-text", Reason::Tool),
    ("tools-call-with-logging", Reason::Tool),
    ("tools-call-with-progress", Reason::Tool),
];

/// What the checks of a revision came to.
#[derive(Debug, Default)]
struct Outcome {
    passed: usize,
    /// Ids of those that did not pass and are listed.
    not_applicable: BTreeSet<String>,
    /// What is wrong, a line each.
    wrong: Vec<String>,
}

/// A running product. Dropping it ends it.
struct Conductor(Child);

impl Conductor {
    fn start(program: &Path, home: &Path, features: &Path) -> Result<Self> {
        let mut command = process::dying_with_us(&program.to_string_lossy());
        command.arg("--home").arg(home).args(["run", "--http", "0"]).env("CONDUCTOR_FEATURES", features);
        let child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn();
        let mut conductor = Self(child.with_context(|| format!("cannot start {}", program.display()))?);
        let mut lines = BufReader::new(conductor.0.stderr.take().context("it has no output")?).lines();
        let mut said = String::new();
        loop {
            let Some(line) = lines.next().transpose()? else {
                bail!("{} ended before it was ready:\n{said}", program.display());
            };
            if line.contains("ready: ") {
                break;
            }
            said += &(line + "\n");
        }
        // Its log is read to the end, so that it never blocks on it.
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        Ok(conductor)
    }
}

impl Drop for Conductor {
    fn drop(&mut self) {
        // Both fail only if it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs the suite for every revision.
///
/// # Errors
/// If a check fails that is not listed, or passes although it is.
pub fn run(repo: &Repo, peers: &Peers, conductor: &Path, features: &Path) -> Result<()> {
    let folder = repo.target().join("mcp-peers/product");
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    let home = folder.join("home");
    fs::create_dir_all(&home).with_context(|| format!("cannot create {}", home.display()))?;
    fs::write(home.join("config.toml"), "")?;
    let _conductor = Conductor::start(conductor, &home, features)?;
    let mut proxy = process::dying_with_us(&program(repo, "conductor-mcp-proxy").to_string_lossy());
    let proxy = Server::start(proxy.arg(&home))?;
    for revision in REVISIONS {
        let results = folder.join(revision);
        let mut suite = suite(peers, &proxy.url, revision);
        let output = suite.arg("--output-dir").arg(&results).output().context("cannot start the conformance suite")?;
        let outcome = outcome(&checks(&results)?);
        if outcome.passed == 0 || !outcome.wrong.is_empty() {
            let said = String::from_utf8_lossy(&output.stderr);
            bail!("conformance of the product, {revision}:\n{}\n{said}", outcome.wrong.join("\n"));
        }
        let (passed, rest) = (outcome.passed, outcome.not_applicable.len());
        println!("conformance of the product, {revision}: {passed} passed, 0 failed, {rest} do not apply:");
        for (reason, ids) in by_reason(&outcome.not_applicable) {
            println!("  {}: {}", reason.text(), ids.join(", "));
        }
    }
    Ok(())
}

/// Every check that the suite has written down in this folder.
fn checks(results: &Path) -> Result<Vec<Value>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(results).with_context(|| format!("no results in {}", results.display()))? {
        let file: PathBuf = entry?.path().join("checks.json");
        let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        found.extend(serde_json::from_str::<Vec<Value>>(&text)?);
    }
    Ok(found)
}

fn outcome(checks: &[Value]) -> Outcome {
    let mut outcome = Outcome::default();
    // A check may be made several times; it applies if it passes once.
    let mut passed = BTreeSet::new();
    for check in checks {
        let text = |key: &str| check[key].as_str().unwrap_or_default();
        let id = text("id");
        match text("status") {
            "SUCCESS" => {
                outcome.passed += 1;
                passed.insert(id);
            }
            "FAILURE" | "WARNING" if NOT_APPLICABLE.iter().any(|(listed, _)| *listed == id) => {
                outcome.not_applicable.insert(id.to_owned());
            }
            status @ ("FAILURE" | "WARNING") => {
                outcome.wrong.push(format!("{status} {id}: {}", text("errorMessage")));
            }
            _ => {}
        }
    }
    for (listed, _) in NOT_APPLICABLE.iter().filter(|(listed, _)| passed.contains(listed)) {
        outcome.wrong.push(format!("{listed} passes: take it off the list of what does not apply"));
    }
    outcome
}

fn by_reason(ids: &BTreeSet<String>) -> BTreeMap<Reason, Vec<&str>> {
    let mut found = BTreeMap::<_, Vec<_>>::new();
    for (id, reason) in NOT_APPLICABLE.iter().filter(|(id, _)| ids.contains(*id)) {
        found.entry(*reason).or_default().push(*id);
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_fails_is_listed_and_what_is_listed_fails() {
        let check = |id: &str, status: &str| json!({ "id": id, "status": status, "errorMessage": "why" });
        let fine = outcome(&[check("ping", "SUCCESS"), check("tools-call-audio", "FAILURE"), check("x", "INFO")]);
        assert_eq!((fine.passed, fine.wrong.len()), (1, 0));
        assert_eq!(fine.not_applicable.len(), 1);
        assert_eq!(outcome(&[check("ping", "FAILURE")]).wrong, ["FAILURE ping: why"]);
        assert_eq!(outcome(&[check("ping", "WARNING")]).wrong, ["WARNING ping: why"]);
        let stale = outcome(&[check("tools-call-audio", "SUCCESS")]);
        assert_eq!(stale.wrong, ["tools-call-audio passes: take it off the list of what does not apply"]);
    }
}
