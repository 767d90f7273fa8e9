//! What members answer, read: reviews, rankings and the chairman's verdict. An answer that is not in the form that was asked
//! for is no answer.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::fence::one_line;

/// Bytes of an answer that are read.
const MAX_ANSWER: usize = 64 * 1024;
/// Issues of one review that are kept, the worst first.
const MAX_ISSUES: usize = 20;
/// Bytes of one message.
const MAX_MESSAGE: usize = 400;
/// Bytes of a rationale.
const MAX_RATIONALE: usize = 1200;
/// The highest score.
pub const MAX_SCORE: f64 = 10.0;

/// The outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It is right.
    Pass,
    /// It is not.
    Fail,
    /// It can't be said.
    Unclear,
}

impl Verdict {
    /// As results have it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Unclear => "unclear",
        }
    }

    /// The exit code of a program that ends with it.
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Pass => 0,
            Self::Fail => 1,
            Self::Unclear => 2,
        }
    }
}

/// How bad something is, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// It must not be used so.
    Critical,
    /// It does not do what it should.
    Major,
    /// It could be better.
    Minor,
}

/// Something that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Issue {
    /// How bad it is.
    pub severity: Severity,
    /// The file. `None` if it is about none, or about one that was not reviewed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line in it, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// What is wrong.
    pub message: String,
}

/// The rubric's scores, 0.0 to 10.0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Scores {
    /// It is correct.
    pub accuracy: f64,
    /// All that is required is there.
    pub completeness: f64,
    /// It can be read and changed.
    pub clarity: f64,
    /// There is no more than necessary.
    pub conciseness: f64,
    /// It is what was asked for.
    pub relevance: f64,
}

impl Scores {
    /// How much each counts, in the order of the fields; they add up to 1.
    pub const WEIGHTS: [f64; 5] = [0.35, 0.20, 0.20, 0.15, 0.10];

    /// In the order of the fields.
    pub const fn all(&self) -> [f64; 5] {
        [self.accuracy, self.completeness, self.clarity, self.conciseness, self.relevance]
    }

    /// The mean of several; `None` of none.
    pub fn mean<'s>(all: impl ExactSizeIterator<Item = &'s Self>) -> Option<Self> {
        let count = all.len() as f64;
        let sums = all.fold([0.0; 5], |sums, one| {
            let scores = one.all();
            std::array::from_fn(|index| sums[index] + scores[index])
        });
        let [accuracy, completeness, clarity, conciseness, relevance] = sums.map(|sum| sum / count);
        (count > 0.0).then_some(Self { accuracy, completeness, clarity, conciseness, relevance })
    }

    /// What they come to with their weights.
    pub fn weighted(&self) -> f64 {
        self.all().iter().zip(Self::WEIGHTS).map(|(score, weight)| score * weight).sum()
    }
}

/// A member's review.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Review {
    /// What it says in the end.
    pub verdict: Verdict,
    /// How sure it is, 0.0 to 1.0.
    pub confidence: f64,
    /// By the rubric.
    pub scores: Scores,
    /// What is wrong.
    #[serde(default)]
    pub issues: Vec<Issue>,
    /// Why.
    #[serde(default)]
    pub rationale: String,
}

/// What the chairman says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Chairman {
    /// In the end.
    pub verdict: Verdict,
    /// How sure, 0.0 to 1.0.
    pub confidence: f64,
    /// Why.
    #[serde(default)]
    pub rationale: String,
    /// What members see otherwise.
    #[serde(default)]
    pub dissent: String,
}

#[derive(Deserialize)]
struct Ranking {
    ranking: Vec<String>,
}

#[derive(Deserialize)]
struct Answer {
    answer: String,
}

/// The JSON object of an answer: the whole of it, or what stands between the first brace and the last.
fn object<T: for<'de> Deserialize<'de>>(text: &str) -> Result<T, String> {
    if text.len() > MAX_ANSWER {
        return Err(format!("its answer has {} bytes; at most {MAX_ANSWER} are read", text.len()));
    }
    let (Some(begin), Some(end)) = (text.find('{'), text.rfind('}')) else {
        return Err("its answer has no JSON object".to_owned());
    };
    let object = text.get(begin..=end).ok_or("its answer has no JSON object")?;
    serde_json::from_str(object).map_err(|error| one_line(&format!("its answer is not as asked for: {error}"), 200))
}

fn is_share(value: f64) -> Result<(), String> {
    if (0.0..=1.0).contains(&value) { Ok(()) } else { Err(format!("its confidence is {value}, and not from 0 to 1")) }
}

/// Reads a review of these files.
///
/// # Errors
/// Why it is not valid.
pub fn review(text: &str, files: &[String]) -> Result<Review, String> {
    let mut review: Review = object(text)?;
    is_share(review.confidence)?;
    if let Some(score) = review.scores.all().into_iter().find(|score| !(0.0..=MAX_SCORE).contains(score)) {
        return Err(format!("a score is {score}, and not from 0 to {MAX_SCORE}"));
    }
    review.issues.sort_by_key(|issue| issue.severity);
    review.issues.truncate(MAX_ISSUES);
    for issue in &mut review.issues {
        // A place that was not reviewed does not count.
        issue.file = issue.file.take().filter(|file| files.contains(file));
        issue.line = issue.line.filter(|line| *line > 0 && issue.file.is_some());
        issue.message = one_line(&issue.message, MAX_MESSAGE);
    }
    review.issues.retain(|issue| !issue.message.is_empty());
    review.rationale = one_line(&review.rationale, MAX_RATIONALE);
    Ok(review)
}

/// Reads the chairman's verdict.
///
/// # Errors
/// Why it is not valid.
pub fn chairman(text: &str) -> Result<Chairman, String> {
    let mut chairman: Chairman = object(text)?;
    is_share(chairman.confidence)?;
    chairman.rationale = one_line(&chairman.rationale, MAX_RATIONALE);
    chairman.dissent = one_line(&chairman.dissent, MAX_RATIONALE);
    Ok(chairman)
}

/// Reads a ranking of this many, the best first: the numbers of what was ranked, in the order in which it was shown.
///
/// # Errors
/// Why it is not valid: each label has to appear once.
pub fn ranking(text: &str, count: usize) -> Result<Vec<usize>, String> {
    let Ranking { ranking } = object(text)?;
    let numbers: Vec<usize> =
        ranking.iter().filter_map(|said| (0..count).find(|number| label(*number) == *said)).collect();
    let is_whole = ranking.len() == count && (0..count).all(|number| numbers.contains(&number));
    is_whole.then_some(numbers).ok_or_else(|| "its ranking does not have each label once".to_owned())
}

/// Reads an answer to a question, or the chairman's.
///
/// # Errors
/// Why it is not valid.
pub fn answer(text: &str) -> Result<String, String> {
    let Answer { answer } = object(text)?;
    if answer.trim().is_empty() { Err("its answer is empty".to_owned()) } else { Ok(answer) }
}

/// What a review is called while its author is not shown: `A`, `B`.
pub fn label(number: usize) -> String {
    char::from_u32('A' as u32 + number as u32 % 26).unwrap_or('A').to_string()
}

/// The JSON Schema of a review.
pub fn review_schema() -> Value {
    let score = serde_json::json!({ "type": "number" });
    let scores = ["accuracy", "completeness", "clarity", "conciseness", "relevance"];
    let properties: serde_json::Map<String, Value> =
        scores.iter().map(|name| ((*name).to_owned(), score.clone())).collect();
    serde_json::json!({
        "type": "object", "additionalProperties": false,
        "required": ["verdict", "confidence", "scores", "issues", "rationale"],
        "properties": {
            "verdict": { "type": "string", "enum": ["pass", "fail", "unclear"] },
            "confidence": { "type": "number" },
            "scores": { "type": "object", "additionalProperties": false, "required": scores, "properties": properties },
            "issues": { "type": "array", "items": {
                "type": "object", "additionalProperties": false, "required": ["severity", "file", "line", "message"],
                "properties": {
                    "severity": { "type": "string", "enum": ["critical", "major", "minor"] },
                    "file": { "type": ["string", "null"] },
                    "line": { "type": ["integer", "null"] },
                    "message": { "type": "string" },
                },
            } },
            "rationale": { "type": "string" },
        },
    })
}

/// The JSON Schema of a ranking.
pub fn ranking_schema() -> Value {
    serde_json::json!({
        "type": "object", "additionalProperties": false, "required": ["ranking"],
        "properties": { "ranking": { "type": "array", "items": { "type": "string" } } },
    })
}

/// The JSON Schema of the chairman's verdict.
pub fn chairman_schema() -> Value {
    serde_json::json!({
        "type": "object", "additionalProperties": false,
        "required": ["verdict", "confidence", "rationale", "dissent"],
        "properties": {
            "verdict": { "type": "string", "enum": ["pass", "fail", "unclear"] },
            "confidence": { "type": "number" },
            "rationale": { "type": "string" },
            "dissent": { "type": "string" },
        },
    })
}

/// The JSON Schema of an answer.
pub fn answer_schema() -> Value {
    serde_json::json!({
        "type": "object", "additionalProperties": false, "required": ["answer"],
        "properties": { "answer": { "type": "string" } },
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn whole() -> Value {
        json!({
            "verdict": "fail", "confidence": 0.8, "rationale": "Off\nby one.",
            "scores": { "accuracy": 2, "completeness": 5, "clarity": 8, "conciseness": 9, "relevance": 10 },
            "issues": [
                { "severity": "minor", "file": "b.rs", "line": 1, "message": "name" },
                { "severity": "critical", "file": "a.rs", "line": 3, "message": "<= for <\u{202e}" },
            ],
        })
    }

    fn files() -> Vec<String> {
        vec!["a.rs".into()]
    }

    #[test]
    fn a_review_is_read_where_a_model_writes_around_it() {
        for text in [whole().to_string(), format!("Here it is:\n```json\n{}\n```\nDone.", whole())] {
            let review = review(&text, &files()).expect("it is a review");
            assert_eq!((review.verdict, review.confidence), (Verdict::Fail, 0.8));
            assert_eq!(review.issues[0].message, "<= for <\\u{202e}", "the worst first, nothing hidden");
            assert_eq!((&review.issues[1].file, review.issues[1].line), (&None, None), "b.rs was not reviewed");
            assert_eq!(review.rationale, "Off\\u{a}by one.");
            assert!((review.scores.weighted() - 5.65).abs() < 1e-9);
        }
    }

    /// CNC-1, ADR-034 "Security Considerations": answers are validated.
    #[test]
    fn nonsense_is_no_review() {
        for (key, value) in [
            ("verdict", json!("approved")),
            ("verdict", json!("PASS")),
            ("verdict", Value::Null),
            ("confidence", json!(7)),
            ("confidence", json!(-0.1)),
            ("confidence", json!("0.9")),
            ("scores", json!({ "accuracy": 9 })),
            ("issues", json!([{ "severity": "blocker", "message": "x" }])),
            ("issues", json!("none")),
        ] {
            let mut text = whole();
            text[key] = value;
            assert!(review(&text.to_string(), &files()).is_err(), "{text}");
        }
        let mut high = whole();
        high["scores"]["clarity"] = json!(11);
        assert!(review(&high.to_string(), &files()).is_err());
        for text in
            ["", "pass", "}{", "{", "[{\"verdict\": \"pass\"}]", "{\"verdict\": \"pass\"} {\"verdict\": \"fail\"}"]
        {
            assert!(review(text, &files()).is_err(), "{text}");
        }
        assert!(review(&format!("{}{}", " ".repeat(MAX_ANSWER), whole()), &files()).is_err());
    }

    #[test]
    fn a_ranking_has_each_label_once() {
        assert_eq!(ranking(r#"{"ranking":["B","A","C"]}"#, 3), Ok(vec![1, 0, 2]));
        for wrong in [r#"["A"]"#, r#"["A","A","B"]"#, r#"["A","B","D"]"#, r#"["A","B","C","A"]"#, r#"["a","b","c"]"#] {
            assert!(ranking(&format!("{{\"ranking\":{wrong}}}"), 3).is_err(), "{wrong}");
        }
    }

    /// CNC-1, ADR-034 "Proposed Skills", "Rubric (ADR-016)"
    #[test]
    fn weights_add_up() {
        assert!((Scores::WEIGHTS.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        assert!(Scores::mean([].iter()).is_none());
    }
}
