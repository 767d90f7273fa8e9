//! What a verification gives: the verdict with its grounds, and what it is bound to.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::families::{Assurance, Seat};
use crate::request::{Effort, Operation};
use crate::review::{Issue, Scores, Severity, Verdict};
use crate::transcript::{Finished, Signature};

/// The version of the stages, of the decision and of this form.
pub const PROTOCOL: &str = "council/1";
/// The version of requests and results, for those who read them.
pub const PROTOCOL_VERSION: &str = "1.0";
/// The version of the rules of the decision.
pub const AGGREGATOR: &str = "council-decision-1";

/// A part of a deliberation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// Each member alone.
    Reviews,
    /// Members rank all reviews, without names.
    Rankings,
    /// The chairman.
    Verdict,
}

impl Stage {
    /// As results have it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Reviews => "reviews",
            Self::Rankings => "rankings",
            Self::Verdict => "verdict",
        }
    }
}

/// What a model answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Response {
    /// When.
    pub stage: Stage,
    /// The model.
    pub model: String,
    /// SHA-256 of the whole answer.
    pub sha256: String,
    /// Tokens read and written.
    pub tokens: u32,
    /// The answer, for the record; results have its digest.
    #[serde(skip)]
    #[schemars(skip)]
    pub text: String,
}

/// A member's review, as it went into the verdict.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Vote {
    /// The model.
    pub model: String,
    /// What it says.
    pub verdict: Verdict,
    /// How sure it is, 0.0-1.0.
    pub confidence: f64,
    /// How much its peers think of it, 0.5-1.5; 1 without a ranking.
    pub weight: f64,
    /// Bytes of the review as its peers were shown it.
    pub length: usize,
}

/// How a member ranked the reviews.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PeerRanking {
    /// The model.
    pub model: String,
    /// Whose reviews it was shown, in this order; the names it was not.
    pub shown: Vec<String>,
    /// Whose it ranked, the best first.
    pub ranked: Vec<String>,
}

/// A model without an answer that counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LeftOut {
    /// The model.
    pub model: String,
    /// When.
    pub stage: Stage,
    /// Why.
    pub reason: String,
}

/// An issue, with who has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Reported {
    /// How bad it is.
    pub severity: Severity,
    /// The file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line in it, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// What is wrong.
    pub message: String,
    /// The models that say so.
    pub reported_by: Vec<String>,
}

/// What the verdict was made with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Version {
    /// Criteria and prompts.
    pub rubric: String,
    /// The panel.
    pub models: Vec<String>,
    /// The rules of the decision.
    pub aggregator: String,
    /// Stages and form of the result.
    pub protocol: String,
}

/// What it cost, and what it might have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Cost {
    /// Milliseconds.
    pub time_ms: u64,
    /// Milliseconds that it may take at most.
    pub time_limit_ms: u64,
    /// Tokens of all models together.
    pub tokens: u32,
    /// Tokens that it may take at most.
    pub token_limit: u32,
}

/// The result of a verification.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Verification {
    /// The outcome.
    pub verdict: Verdict,
    /// 0.0-1.0.
    pub confidence: f64,
    /// 0 pass, 1 fail, 2 unclear.
    pub exit_code: u8,
    /// Why it is no pass.
    pub reasons: Vec<String>,
    /// Means of all reviews, 0.0-10.0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rubric_scores: Option<Scores>,
    /// The same as one score, with the rubric's weights.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rubric_total: Option<f64>,
    /// Critical and major issues; of a review, minor ones too.
    pub blocking_issues: Vec<Reported>,
    /// In the chairman's words.
    pub rationale: String,
    /// What members see otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dissent: Option<String>,
    /// When it was done, by RFC 3339.
    pub timestamp: String,
    /// What it was made with.
    pub version: Version,
    /// Random; names the record.
    pub verification_id: String,
    /// The version of requests and results.
    pub protocol_version: String,
    /// Equal for equal work, criteria, models and seed.
    pub reproducibility_hash: String,
    /// The operation.
    pub operation: Operation,
    /// How much was spent.
    pub effort: Effort,
    /// What the panel had to be worth.
    pub assurance: Assurance,
    /// The members, each with its family.
    pub panel: Vec<Seat>,
    /// Independent votes that those are worth who reviewed: models of one family err together, and the author's count for
    /// nothing.
    pub independent_votes: f64,
    /// The commit's 40 digits.
    pub snapshot_id: String,
    /// The earlier commit's, where what changed since was reviewed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_id: Option<String>,
    /// SHA-256 of the work: names and contents of the files, the diff, the requirements. Equal for equal work, whatever the
    /// panel, the criteria and the commit.
    pub original_response_hash: String,
    /// As the request has them.
    pub requested_paths: Vec<String>,
    /// The files that were reviewed.
    pub expanded_paths: Vec<String>,
    /// Whether some were left out that should have been.
    pub paths_truncated: bool,
    /// What was left out, and why.
    pub expansion_warnings: Vec<String>,
    /// What the orders were drawn from.
    pub seed: u64,
    /// Who wrote the verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chairman: Option<String>,
    /// What each member said that reviewed.
    pub votes: Vec<Vote>,
    /// How the members ranked the reviews; empty without rankings.
    pub rankings: Vec<PeerRanking>,
    /// Models without an answer that counts.
    pub left_out: Vec<LeftOut>,
    /// The digests of all answers.
    pub responses: Vec<Response>,
    /// SHA-256 of the files of the transcript, by their names.
    pub transcript: BTreeMap<String, String>,
    /// Where the transcript is, below the folder that was granted for it; none without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transcript_path: Option<String>,
    /// Why the transcript is not whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transcript_problem: Option<String>,
    /// Who asked, as they said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub invoking_agent: Option<String>,
    /// The version of the skill that they followed, as they said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skill_version: Option<String>,
    /// What it cost.
    pub cost: Cost,
    /// The host's signature of all of the above, as `result.json` has it; absent if the host has no key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature: Option<Signature>,
}

/// The council's answer to a question.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Agreed {
    /// The chairman's answer. None if there is no quorum, or no answer of the chairman.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// Why there is none, or not all that should be.
    pub reasons: Vec<String>,
    /// Models by what their peers think of their answers, the best first.
    pub ranking: Vec<Ranked>,
    /// When it was done, by RFC 3339.
    pub timestamp: String,
    /// What it was made with.
    pub version: Version,
    /// Random; names the record.
    pub verification_id: String,
    /// The version of requests and results.
    pub protocol_version: String,
    /// Equal for equal question, models and seed.
    pub reproducibility_hash: String,
    /// What the orders were drawn from.
    pub seed: u64,
    /// Models without an answer that counts.
    pub left_out: Vec<LeftOut>,
    /// The digests of all answers.
    pub responses: Vec<Response>,
    /// SHA-256 of the files of the transcript, by their names.
    pub transcript: BTreeMap<String, String>,
    /// Where the transcript is, below the folder that was granted for it; none without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transcript_path: Option<String>,
    /// Why the transcript is not whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transcript_problem: Option<String>,
    /// Who asked, as they said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub invoking_agent: Option<String>,
    /// The version of the skill that they followed, as they said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skill_version: Option<String>,
    /// What it cost.
    pub cost: Cost,
    /// The host's signature of all of the above, as `result.json` has it; absent if the host has no key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature: Option<Signature>,
}

/// A result that is bound to its transcript.
pub trait Bound: Serialize {
    /// Takes over what became of the transcript once it was written.
    fn bind(&mut self, finished: &Finished);
}

impl Bound for Verification {
    fn bind(&mut self, finished: &Finished) {
        self.signature.clone_from(&finished.signature);
        self.transcript_problem.clone_from(&finished.problem);
    }
}

impl Bound for Agreed {
    fn bind(&mut self, finished: &Finished) {
        self.signature.clone_from(&finished.signature);
        self.transcript_problem.clone_from(&finished.problem);
    }
}

/// A model, and what its peers think of what it said.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Ranked {
    /// The model.
    pub model: String,
    /// 0.5-1.5; 1 without a ranking.
    pub weight: f64,
}

/// The issues of several reviews as one list, the worst first: those at the same place with the same severity are one.
pub fn merged<'r>(reviews: impl Iterator<Item = (&'r str, &'r [Issue])>, with_minor: bool) -> Vec<Reported> {
    let mut all: Vec<Reported> = Vec::new();
    for (model, issues) in reviews {
        for issue in issues.iter().filter(|issue| with_minor || issue.severity != Severity::Minor) {
            let same = all.iter_mut().find(|one| {
                let at_one_place = one.line.is_some() && one.file == issue.file && one.line == issue.line;
                one.severity == issue.severity && (at_one_place || one.message == issue.message)
            });
            match same {
                Some(same) if same.reported_by.iter().any(|by| by == model) => {}
                Some(same) => same.reported_by.push(model.to_owned()),
                None => all.push(Reported {
                    severity: issue.severity,
                    file: issue.file.clone(),
                    line: issue.line,
                    message: issue.message.clone(),
                    reported_by: vec![model.to_owned()],
                }),
            }
        }
    }
    all.sort_by(|one, other| {
        let key = |it: &Reported| (it.severity, std::cmp::Reverse(it.reported_by.len()));
        key(one).cmp(&key(other)).then_with(|| (&one.file, one.line).cmp(&(&other.file, other.line)))
    });
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CNC-2, ADR-034 "Machine-Actionable Output Schema"
    #[test]
    fn issues_at_one_place_are_one_and_the_worst_comes_first() {
        let issue = |severity, line: Option<u32>, message: &str| Issue {
            severity,
            file: line.map(|_| "a.rs".into()),
            line,
            message: message.into(),
        };
        let one = [issue(Severity::Major, Some(3), "off by one"), issue(Severity::Minor, Some(9), "name")];
        let other =
            [issue(Severity::Major, Some(3), "one too many"), issue(Severity::Critical, None, "it asks for approval")];
        let all = merged([("a", &one[..]), ("b", &other[..])].into_iter(), false);
        let told: Vec<_> = all.iter().map(|one| (one.severity, one.reported_by.join(" "))).collect();
        assert_eq!(told, [(Severity::Critical, "b".into()), (Severity::Major, "a b".to_owned())]);
        assert_eq!(merged([("a", &one[..])].into_iter(), true).len(), 2);
    }
}
