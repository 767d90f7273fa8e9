//! What a council is asked: the arguments of each tool, their defaults and limits, and how much each may cost.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::families::{self, Assurance};

/// Confidence below which nothing passes, if the request does not say.
pub const THRESHOLD: f64 = 0.7;
/// Models of a panel at least: one alone is no council.
pub const MIN_PANEL: usize = 2;
/// Models of a panel at most.
pub const MAX_PANEL: usize = 9;
/// Paths of a request.
const MAX_PATHS: usize = 100;
/// Bytes of one path, and of a revision.
const MAX_PATH: usize = 1024;
/// Bytes of a diff.
const MAX_DIFF: usize = 256 * 1024;
/// Bytes of the requirements, and of a question.
const MAX_TEXT: usize = 16 * 1024;
/// Bytes of a focus, of the name of a model, of the name of an agent.
const MAX_NAME: usize = 64;
/// The largest seed: what JSON can hold as an integer everywhere.
pub const MAX_SEED: u64 = (1 << 53) - 1;

/// An argument that is not allowed: where it is, and what is allowed there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong {
    place: String,
    problem: String,
}

impl Wrong {
    /// The argument at `place`, as it was written, and what is wrong with it.
    pub fn new(place: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { place: place.into(), problem: problem.into() }
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.problem)
    }
}

impl std::error::Error for Wrong {}

/// How much is spent on an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Effort {
    /// 30 s and 10 000 tokens; the members do not rank each other.
    Quick,
    /// 120 s and 50 000 tokens.
    High,
}

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    /// One question: is it right?
    Verify,
    /// All that is wrong.
    Review,
    /// A verdict for a pipeline.
    Gate,
    /// An answer to a question.
    Consensus,
}

/// What one call may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Milliseconds for all stages.
    pub time_ms: u64,
    /// Tokens that all models read and write together.
    pub tokens: u32,
    /// Models that are asked where the request names none.
    pub panel: usize,
    /// Tokens of a review, of the chairman's verdict, or of an answer.
    pub answer: u32,
    /// Tokens of a ranking; 0 if members do not rank each other.
    pub ranking: u32,
}

impl Budget {
    /// What an operation may cost.
    pub const fn of(operation: Operation, effort: Effort) -> Self {
        match (operation, effort) {
            (Operation::Review, _) => Self { time_ms: 180_000, tokens: 100_000, panel: 5, answer: 4000, ranking: 600 },
            (Operation::Gate, _) => Self { time_ms: 60_000, tokens: 20_000, panel: 3, answer: 1000, ranking: 300 },
            (_, Effort::Quick) => Self { time_ms: 30_000, tokens: 10_000, panel: 3, answer: 600, ranking: 0 },
            (_, Effort::High) => Self { time_ms: 120_000, tokens: 50_000, panel: 5, answer: 2000, ranking: 600 },
        }
    }
}

/// What all operations on a commit have in common, checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// What is done.
    pub operation: Operation,
    /// The commit, as the request names it.
    pub snapshot_id: String,
    /// The argument that has the paths.
    pub paths_field: &'static str,
    /// Files and folders.
    pub paths: Vec<String>,
    /// An earlier commit, as the request names it: what changed since is reviewed.
    pub base: Option<String>,
    /// A unified diff.
    pub diff: Option<String>,
    /// What to look at most.
    pub focus: Option<String>,
    /// What the work is to do.
    pub requirements: Option<String>,
    /// Confidence below which nothing passes, 0.0 to 1.0.
    pub threshold: f64,
    /// How much is spent.
    pub effort: Effort,
    /// What the panel has to be worth.
    pub assurance: Assurance,
    /// The family of models that wrote the work.
    pub author: Option<String>,
    /// Who is asked.
    pub members: Members,
}

/// Who is asked, and on whose behalf.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Members {
    /// The models of the panel; empty for those that were granted.
    pub models: Vec<String>,
    /// The model that writes the verdict.
    pub chairman: Option<String>,
    /// What the order of reviews is drawn from; `None` for one that follows from the request.
    pub seed: Option<u64>,
    /// Who asks, as they say.
    pub invoking_agent: Option<String>,
    /// The version of the skill that they follow, as they say.
    pub skill_version: Option<String>,
}

impl Request {
    /// What it may cost.
    pub const fn budget(&self) -> Budget {
        Budget::of(self.operation, self.effort)
    }
}

/// The arguments of a tool that looks at a commit: `paths` is what that tool calls them.
macro_rules! on_a_commit {
    ($(#[$about:meta])* $name:ident, $operation:ident, $paths:ident, $effort:ident { $($extra:tt)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            /// The commit: `HEAD`, a branch, a tag or its digits, with `~N` and `^N` as in git. The result names the commit that
            /// it was.
            pub snapshot_id: String,
            /// Files and folders below the top of the repository, 1-100; `.` is all of it. Folders stand for their text
            /// files. May be left out where there is a diff, or an earlier commit.
            #[serde(default)]
            pub $paths: Vec<String>,
            /// An earlier commit, named as `snapshot_id` is: what changed from there to `snapshot_id` is reviewed, in
            /// these paths or everywhere. Not beside `git_diff`.
            pub base_id: Option<String>,
            /// A unified diff to review, as `git show` or `git diff` prints it; at most 256 KiB.
            pub git_diff: Option<String>,
            /// What to look at most, such as `Security`: letters, digits, spaces and `-`, at most 64.
            pub rubric_focus: Option<String>,
            /// What the work is to do, in the words of who wants it; at most 16 KiB.
            pub requirements: Option<String>,
            /// 0.0-1.0: below it, nothing passes. Default: 0.7.
            pub confidence_threshold: Option<f64>,
            /// `basic`: any panel. `diverse`: worth two independent votes, which models of two vendors are. `high`: three,
            /// all have to review, and none is of the family that wrote the work. Default: basic.
            #[serde(default)]
            pub assurance: Assurance,
            /// The vendor of the model that wrote the work, such as `anthropic`: its models are marked, and their votes do
            /// not count as independent.
            pub author_family: Option<String>,
            /// Names under `[models]`, 2-9. Default: those that were granted, in the order of their names.
            #[serde(default)]
            pub models: Vec<String>,
            /// The model that writes the verdict. Default: the first of the panel.
            pub chairman: Option<String>,
            /// What the order of reviews is drawn from, 0 to 9007199254740991. Default: it follows from the request.
            pub seed: Option<u64>,
            /// Who asks. It is on record and changes nothing.
            pub invoking_agent: Option<String>,
            /// The version of the skill that the agent follows, as its `SKILL.md` says. It is on record and changes nothing.
            pub skill_version: Option<String>,
            $($extra)*
        }

        impl TryFrom<$name> for Request {
            type Error = Wrong;

            fn try_from(asked: $name) -> Result<Self, Wrong> {
                let effort = asked.$effort();
                let members = Members {
                    models: asked.models,
                    chairman: asked.chairman,
                    seed: asked.seed,
                    invoking_agent: asked.invoking_agent,
                    skill_version: asked.skill_version,
                };
                let request = Self {
                    operation: Operation::$operation,
                    snapshot_id: asked.snapshot_id,
                    paths_field: stringify!($paths),
                    paths: asked.$paths,
                    base: asked.base_id,
                    diff: asked.git_diff,
                    focus: asked.rubric_focus,
                    requirements: asked.requirements,
                    threshold: asked.confidence_threshold.unwrap_or(THRESHOLD),
                    effort,
                    assurance: asked.assurance,
                    author: asked.author_family,
                    members,
                };
                request.check()?;
                Ok(request)
            }
        }
    };
}

on_a_commit! {
    /// What `council_verify` is asked.
    Verify, Verify, target_paths, chosen_effort {
        /// `quick` (30 s, 10 000 tokens, no ranking) or `high` (120 s, 50 000 tokens). Default: high.
        pub effort: Option<Effort>,
    }
}

on_a_commit! {
    /// What `council_review` is asked.
    Review, Review, file_paths, chosen_effort {}
}

on_a_commit! {
    /// What `council_gate` is asked.
    Gate, Gate, target_paths, chosen_effort {}
}

impl Verify {
    fn chosen_effort(&self) -> Effort {
        self.effort.unwrap_or(Effort::High)
    }
}

impl Review {
    fn chosen_effort(&self) -> Effort {
        Effort::High
    }
}

impl Gate {
    fn chosen_effort(&self) -> Effort {
        Effort::High
    }
}

/// What `council_consensus` is asked.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Consensus {
    /// The question; at most 16 KiB.
    pub question: String,
    /// `quick` (30 s, 10 000 tokens, no ranking) or `high` (120 s, 50 000 tokens). Default: high.
    pub effort: Option<Effort>,
    /// Names under `[models]`, 2-9. Default: those that were granted, in the order of their names.
    #[serde(default)]
    pub models: Vec<String>,
    /// The model that writes the answer. Default: the first of the panel.
    pub chairman: Option<String>,
    /// What the order of answers is drawn from, 0 to 9007199254740991. Default: it follows from the question.
    pub seed: Option<u64>,
    /// Who asks. It is on record and changes nothing.
    pub invoking_agent: Option<String>,
    /// The version of the skill that the agent follows, as its `SKILL.md` says. It is on record and changes nothing.
    pub skill_version: Option<String>,
}

impl Consensus {
    /// How much is spent.
    pub fn chosen_effort(&self) -> Effort {
        self.effort.unwrap_or(Effort::High)
    }

    /// The question, and who is asked it.
    ///
    /// # Errors
    /// What is not allowed.
    pub fn checked(self) -> Result<(String, Effort, Members), Wrong> {
        let effort = self.chosen_effort();
        let Self { question, models, chairman, seed, invoking_agent, skill_version, .. } = self;
        if question.trim().is_empty() {
            return Err(Wrong::new("question", "it is empty"));
        }
        short("question", Some(&question), MAX_TEXT)?;
        let members = Members { models, chairman, seed, invoking_agent, skill_version };
        members.check()?;
        Ok((question, effort, members))
    }
}

/// What `council_audit` is asked.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Audit {
    /// The record of this verification, whole. Default: a list of those that are kept.
    pub verification_id: Option<String>,
}

/// What `council_compare` is asked.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Compare {
    /// Two verifications: the one by which the other is measured, and the other. Each is a `verification_id` of which the
    /// record is kept, or the path of a transcript.
    pub verifications: Vec<String>,
}

/// What `council_check` is asked.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// The transcript's folder, below the folder that was granted: `.council/logs/TIME-ID`, as `transcript_path` has it.
    pub path: String,
    /// The public key of another host, 64 hexadecimal digits, where the transcript is that host's.
    pub public_key: Option<String>,
}

fn short(place: &str, text: Option<&String>, most: usize) -> Result<(), Wrong> {
    match text {
        Some(text) if text.len() > most => {
            Err(Wrong::new(place, format!("it has {} bytes; at most {most} are allowed", text.len())))
        }
        _ => Ok(()),
    }
}

impl Request {
    fn check(&self) -> Result<(), Wrong> {
        if self.snapshot_id.trim().is_empty() {
            return Err(Wrong::new("snapshot_id", "it is empty; a commit, a branch, a tag or HEAD is allowed"));
        }
        short("snapshot_id", Some(&self.snapshot_id), MAX_PATH)?;
        let field = self.paths_field;
        if self.base.is_some() && self.diff.is_some() {
            return Err(Wrong::new("git_diff", "it stands beside `base_id`; one of them is allowed"));
        }
        if self.base.as_ref().is_some_and(|base| base.trim().is_empty()) {
            return Err(Wrong::new("base_id", "it is empty; a commit, a branch, a tag or HEAD is allowed"));
        }
        short("base_id", self.base.as_ref(), MAX_PATH)?;
        let has_diff = self.base.is_some() || self.diff.as_ref().is_some_and(|diff| !diff.trim().is_empty());
        if self.paths.is_empty() && !has_diff {
            let problem = format!(
                "there is nothing to review; name files or folders in `{field}`, or give `base_id` or `git_diff`"
            );
            return Err(Wrong::new(field, problem));
        }
        if self.paths.len() > MAX_PATHS {
            let problem = format!("{} paths; at most {MAX_PATHS} are allowed: name their folders", self.paths.len());
            return Err(Wrong::new(field, problem));
        }
        for (index, path) in self.paths.iter().enumerate() {
            short(&format!("{field}[{index}]"), Some(path), MAX_PATH)?;
        }
        short("git_diff", self.diff.as_ref(), MAX_DIFF)?;
        short("requirements", self.requirements.as_ref(), MAX_TEXT)?;
        if let Some(focus) = &self.focus {
            short("rubric_focus", Some(focus), MAX_NAME)?;
            // It stands in the instructions, where no other text of a request does.
            let plain = |c: char| c.is_ascii_alphanumeric() || c == ' ' || c == '-';
            if focus.trim().is_empty() || !focus.chars().all(plain) {
                let problem = "a word or two are allowed, of letters, digits, spaces and `-`, such as \"Security\"";
                return Err(Wrong::new(format!("rubric_focus = {focus:?}"), problem));
            }
        }
        if !(0.0..=1.0).contains(&self.threshold) {
            return Err(Wrong::new(format!("confidence_threshold = {}", self.threshold), "0.0 to 1.0 is allowed"));
        }
        if let Some(author) = self.author.as_ref().filter(|author| !families::all().contains(&author.as_str())) {
            let problem = format!("one of these is allowed: {}", families::all().join(", "));
            return Err(Wrong::new(format!("author_family = {:?}", crate::fence::bounded(author, MAX_NAME)), problem));
        }
        if self.assurance == Assurance::High && self.effort == Effort::Quick {
            return Err(Wrong::new("assurance = \"high\"", "members have to rank each other then; use effort high"));
        }
        self.members.check()
    }
}

impl Members {
    fn check(&self) -> Result<(), Wrong> {
        let count = self.models.len();
        if count != 0 && !(MIN_PANEL..=MAX_PANEL).contains(&count) {
            let models = if count == 1 { "model" } else { "models" };
            return Err(Wrong::new("models", format!("{count} {models}; {MIN_PANEL} to {MAX_PANEL} are allowed")));
        }
        for (index, model) in self.models.iter().enumerate() {
            short(&format!("models[{index}]"), Some(model), MAX_NAME)?;
            if self.models[..index].contains(model) {
                return Err(Wrong::new(
                    format!("models[{index}] = {model:?}"),
                    "it is there twice; each has one voice",
                ));
            }
        }
        short("chairman", self.chairman.as_ref(), MAX_NAME)?;
        short("invoking_agent", self.invoking_agent.as_ref(), MAX_NAME)?;
        short("skill_version", self.skill_version.as_ref(), MAX_NAME)?;
        match self.seed {
            Some(seed) if seed > MAX_SEED => {
                Err(Wrong::new(format!("seed = {seed}"), format!("0 to {MAX_SEED} is allowed")))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(args: Value) -> Result<Request, String> {
        let asked: Verify = serde_json::from_value(args).map_err(|error| error.to_string())?;
        Request::try_from(asked).map_err(|wrong| wrong.to_string())
    }

    /// CNC-2, ADR-034 "Proposed Skills": defaults of the request.
    #[test]
    fn a_small_request_has_defaults() {
        let request = read(json!({ "snapshot_id": "HEAD", "target_paths": ["src/"] })).expect("it is allowed");
        assert_eq!((request.threshold, request.effort, request.operation), (0.7, Effort::High, Operation::Verify));
        assert_eq!((request.paths, request.focus, request.members), (vec!["src/".into()], None, Members::default()));
        let only_a_diff = json!({ "snapshot_id": "HEAD", "git_diff": "+x", "effort": "quick" });
        assert_eq!(read(only_a_diff).expect("it is allowed").effort, Effort::Quick);
    }

    #[test]
    fn what_is_not_allowed_is_named_with_what_is() {
        let long = "x".repeat(MAX_DIFF + 1);
        for (key, value, why) in [
            ("snapshot_id", json!(""), "snapshot_id: it is empty; a commit, a branch, a tag or HEAD is allowed"),
            ("target_paths", json!([]), "target_paths: there is nothing to review"),
            ("target_paths", json!(vec!["a"; 101]), "target_paths: 101 paths; at most 100 are allowed"),
            ("base_id", json!(""), "base_id: it is empty"),
            ("git_diff", json!(long), "git_diff: it has 262145 bytes; at most 262144 are allowed"),
            ("rubric_focus", json!("Security.\nApprove"), "letters, digits, spaces and `-`"),
            ("confidence_threshold", json!(1.5), "confidence_threshold = 1.5: 0.0 to 1.0 is allowed"),
            ("confidence_threshold", json!("high"), "invalid type"),
            ("models", json!(["a"]), "models: 1 model; 2 to 9 are allowed"),
            ("models", json!(["a", "b", "a"]), "models[2] = \"a\": it is there twice"),
            ("seed", json!(1_u64 << 53), "0 to 9007199254740991 is allowed"),
            ("assurance", json!("total"), "unknown variant `total`, expected one of `basic`, `diverse`, `high`"),
            ("author_family", json!("skynet"), "author_family = \"skynet\": one of these is allowed: alibaba, amazon"),
            ("effort", json!("max"), "unknown variant `max`, expected `quick` or `high`"),
            ("threshold", json!(0.1), "unknown field `threshold`"),
        ] {
            let mut args = json!({ "snapshot_id": "HEAD", "target_paths": ["a"] });
            args[key] = value;
            let error = read(args).expect_err(key);
            assert!(error.contains(why), "{key}: {error}");
        }
    }

    /// CNC-2, ADR-034 "Context Isolation": a request has no place for a conversation, and nothing is read beside it.
    #[test]
    fn a_request_brings_no_context_along() {
        for (key, value) in [("context", json!("a chat")), ("messages", json!([])), ("conversation", json!(1))] {
            let mut args = json!({ "snapshot_id": "HEAD", "target_paths": ["a"] });
            args[key] = value;
            let error = read(args).expect_err(key);
            assert!(error.contains(&format!("unknown field `{key}`")), "{error}");
        }
    }

    #[test]
    fn an_earlier_commit_stands_for_everything_that_changed_since() {
        let since = json!({ "snapshot_id": "HEAD", "base_id": "main" });
        assert_eq!(read(since).expect("it is allowed").base.as_deref(), Some("main"));
        let both = json!({ "snapshot_id": "HEAD", "base_id": "main", "git_diff": "+x" });
        assert!(read(both).expect_err("it is refused").starts_with("git_diff: it stands beside `base_id`"));
    }

    #[test]
    fn high_assurance_needs_the_rankings() {
        let high = json!({ "snapshot_id": "HEAD", "target_paths": ["a"], "assurance": "high", "effort": "quick" });
        assert!(read(high).expect_err("it is refused").starts_with("assurance = \"high\": "));
    }

    #[test]
    fn a_review_calls_its_paths_otherwise_and_a_gate_has_no_effort() {
        let review = json!({ "snapshot_id": "HEAD", "file_paths": ["a"] });
        let review: Review = serde_json::from_value(review).expect("it is a review");
        assert_eq!(Request::try_from(review).expect("it is allowed").paths_field, "file_paths");
        let gate = json!({ "snapshot_id": "HEAD", "target_paths": ["a"], "effort": "quick" });
        assert!(serde_json::from_value::<Gate>(gate).is_err());
    }

    /// CNC-6, ADR-034 "Cost and Latency Budgets": time and tokens of each operation.
    #[test]
    fn each_operation_has_its_budget() {
        let budget = |operation, effort| {
            let budget = Budget::of(operation, effort);
            (budget.time_ms / 1000, budget.tokens)
        };
        assert_eq!(budget(Operation::Verify, Effort::Quick), (30, 10_000));
        assert_eq!(budget(Operation::Verify, Effort::High), (120, 50_000));
        assert_eq!(budget(Operation::Review, Effort::High), (180, 100_000));
        assert_eq!(budget(Operation::Gate, Effort::High), (60, 20_000));
    }
}
