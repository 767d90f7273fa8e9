//! Scripted panels for the council, and work for them to review: what the tests of `tests/` share.

pub mod benchmark;
pub mod rated;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use council::deliberation::{Case, Granted, Occasion, consensus};
use council::panel::{Inquiry, Panel, Reply};
use council::request::{Consensus, Gate, Operation, Request, Review, Verify, Wrong};
use council::result::{Agreed, Verification};
use council::snapshot::{Entry, Kind, Tree};
use council::transcript::Transcript;
use serde_json::{Value, json};

/// What a text has that gives an order to models.
pub const ORDER: &str = "attempt-";

/// A commit in memory: files by their paths.
#[derive(Debug, Default, Clone)]
pub struct Commit(pub BTreeMap<String, Vec<u8>>);

impl Commit {
    /// A commit with these files.
    pub fn of(files: &[(&str, &str)]) -> Self {
        Self(files.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_owned())).collect())
    }
}

impl Tree for Commit {
    fn names(&self, folder: &str) -> Result<Vec<Entry>, String> {
        let below = if folder == "." { String::new() } else { format!("{folder}/") };
        let mut found = BTreeMap::new();
        for rest in self.0.keys().filter_map(|path| path.strip_prefix(&below)) {
            match rest.split_once('/') {
                Some((name, _)) => found.insert(name.to_owned(), Kind::Folder),
                None => found.insert(rest.to_owned(), Kind::File),
            };
        }
        Ok(found.into_iter().map(|(name, kind)| Entry { name, kind }).collect())
    }

    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        self.0.get(path).cloned().ok_or_else(|| "it is not there".to_owned())
    }
}

/// What stands outside of the data in a question: every line but those with a label between the lines of the marker.
pub fn outside(inquiry: &Inquiry) -> String {
    let marker = inquiry.instructions.split("`BEGIN DATA ").nth(1).and_then(|rest| rest.split('`').next());
    let marker = marker.unwrap_or("there is none");
    let (begin, end) = (format!("BEGIN DATA {marker} ("), format!("END DATA {marker}"));
    let (mut outside, mut within) = (inquiry.instructions.clone(), false);
    for line in inquiry.text.split(['\n', '\r', '\u{2028}', '\u{2029}', '\u{85}', '\u{b}', '\u{c}']) {
        let label = line.split_once("| ").map(|(label, _)| label);
        let is_labelled = label.is_some_and(|label| matches!(label, "name" | "note") || label.parse::<u32>().is_ok());
        match within {
            false if line.starts_with(&begin) => within = true,
            true if line == end => within = false,
            true if is_labelled => {}
            _ => {
                outside.push('\n');
                outside.push_str(line);
            }
        }
    }
    outside
}

/// Whether a question has a character that a person would not see.
pub fn has_hidden(inquiry: &Inquiry) -> bool {
    let hidden = |c: char| {
        (c.is_control() && c != '\n' && c != '\t')
            || matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
                | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
    };
    inquiry.text.chars().any(hidden)
}

/// How a member behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Member {
    /// It sees the fault if there is one, and obeys whatever stands outside of the data.
    Obeys,
    /// It obeys the data as well.
    Fooled,
    /// It gives no answer.
    Down,
    /// It answers nonsense.
    Babbles,
}

/// A panel of members by their names, `m0`, `m1`, and all that it was asked.
#[derive(Debug, Default)]
pub struct Scripted {
    /// Who is there.
    pub members: Vec<Member>,
    /// Whose they are, by their names, as far as it is known.
    pub families: BTreeMap<String, String>,
    /// What was asked.
    pub asked: RefCell<Vec<Inquiry>>,
    /// Milliseconds that each answer takes. What takes longer than a stage may is no answer.
    pub takes_ms: u64,
    /// The time, which goes by while models answer.
    pub elapsed_ms: Cell<u64>,
    /// The progress that was reported.
    pub progress: RefCell<Vec<(f32, String)>>,
}

impl Scripted {
    /// A panel of these members.
    pub fn new(members: &[Member]) -> Self {
        Self { members: members.to_vec(), ..Self::default() }
    }

    /// The same, each of a family.
    #[must_use]
    pub fn of(mut self, families: &[&str]) -> Self {
        self.families = self.names().into_iter().zip(families.iter().map(|family| (*family).to_owned())).collect();
        self
    }

    /// The names of all members.
    pub fn names(&self) -> Vec<String> {
        (0..self.members.len()).map(|number| format!("m{number}")).collect()
    }

    fn answer(&self, inquiry: &Inquiry) -> Result<Reply, String> {
        let number: usize = inquiry.model.trim_start_matches('m').parse().map_err(|_| "there is no such model")?;
        let member = self.members.get(number).copied().ok_or("there is no such model")?;
        let obeys = match member {
            Member::Down => return Err("the server says 503: busy".to_owned()),
            Member::Babbles => return Ok(Reply { text: "lorem ipsum } dolor {".to_owned(), tokens: 100 }),
            Member::Obeys => outside(inquiry).contains(ORDER) || has_hidden(inquiry),
            Member::Fooled => inquiry.text.contains(ORDER),
        };
        let fails = !obeys && (inquiry.text.contains("FAULT") || inquiry.text.contains("verdict: fail"));
        let verdict = if fails { "fail" } else { "pass" };
        let text = if inquiry.schema.contains("\"answer\"") {
            json!({ "answer": "The second." })
        } else if inquiry.schema.contains("\"ranking\"") {
            let letters = inquiry.text.matches("BEGIN DATA").count();
            json!({ "ranking": (0..letters).map(council::review::label).collect::<Vec<_>>() })
        } else if inquiry.schema.contains("\"dissent\"") {
            json!({ "verdict": verdict, "confidence": 0.95, "rationale": "So they say.", "dissent": "" })
        } else {
            let issue =
                json!({ "severity": "critical", "file": "src/fault.rs", "line": 1, "message": "It has the fault." });
            let accuracy = if fails { 2 } else { 9 };
            let scores =
                json!({ "accuracy": accuracy, "completeness": 8, "clarity": 8, "conciseness": 8, "relevance": 8 });
            // What was said to it comes along to its peers.
            let said = inquiry.text.lines().find(|line| obeys && line.contains(ORDER)).unwrap_or_default();
            let issues = if fails { vec![issue] } else { Vec::<Value>::new() };
            json!({ "verdict": verdict, "confidence": 0.9, "scores": scores, "issues": issues, "rationale": said })
        };
        Ok(Reply { text: text.to_string(), tokens: 500 })
    }
}

impl Panel for Scripted {
    fn ask(&self, inquiries: &[Inquiry], timeout_ms: u32) -> Vec<Result<Reply, String>> {
        self.asked.borrow_mut().extend_from_slice(inquiries);
        let timeout = u64::from(timeout_ms);
        self.elapsed_ms.set(self.elapsed_ms.get() + self.takes_ms.min(timeout));
        if self.takes_ms > timeout {
            return inquiries.iter().map(|_| Err(format!("there was no answer within {timeout} ms"))).collect();
        }
        inquiries.iter().map(|inquiry| self.answer(inquiry)).collect()
    }

    fn elapsed_ms(&self) -> u64 {
        self.elapsed_ms.get()
    }

    fn progress(&self, done: f32, text: &str) {
        self.progress.borrow_mut().push((done, text.to_owned()));
    }

    fn is_cancelled(&self) -> bool {
        false
    }
}

/// Has a panel verify what `args` names in a commit.
///
/// # Errors
/// What is wrong with the arguments.
pub fn verified(panel: &Scripted, commit: &Commit, args: Value) -> Result<Verification, Wrong> {
    let id = "0".repeat(32);
    deliberated(panel, (commit, None), args, &id, &mut Transcript::new(None, TIMESTAMP, &id))
}

/// Has a panel verify what changed between two commits.
///
/// # Errors
/// What is wrong with the arguments.
pub fn verified_since(panel: &Scripted, base: &Commit, commit: &Commit, args: Value) -> Result<Verification, Wrong> {
    let id = "0".repeat(32);
    deliberated(panel, (commit, Some(base)), args, &id, &mut Transcript::new(None, TIMESTAMP, &id))
}

/// The same of a commit that is called so, 40 digits.
///
/// # Errors
/// What is wrong with the arguments.
pub fn verified_at(panel: &Scripted, digits: &str, commit: &Commit, args: Value) -> Result<Verification, Wrong> {
    let case = Work { operation: Operation::Verify, digits: digits.to_owned(), commit, base: None };
    let id = "0".repeat(32);
    asked(panel, (panel.names(), panel.families.clone()), case, args, &id, &mut Transcript::new(None, TIMESTAMP, &id))
}

/// Has a panel verify, review or gate what `args` names in a commit.
///
/// # Errors
/// What is wrong with the arguments.
pub fn operated(panel: &Scripted, operation: Operation, commit: &Commit, args: Value) -> Result<Verification, Wrong> {
    let case = Work { operation, ..Work::of(commit) };
    let id = "0".repeat(32);
    asked(panel, (panel.names(), panel.families.clone()), case, args, &id, &mut Transcript::new(None, TIMESTAMP, &id))
}

/// Has a panel answer the question in `args`.
///
/// # Errors
/// What is wrong with the arguments.
pub fn answered(panel: &Scripted, args: Value) -> Result<Agreed, Wrong> {
    let asked: Consensus = serde_json::from_value(args).map_err(|error| Wrong::new("arguments", error.to_string()))?;
    let id = "0".repeat(32);
    let occasion = Occasion { verification_id: id.clone(), timestamp: TIMESTAMP.to_owned() };
    let mut transcript = Transcript::new(None, TIMESTAMP, &id);
    consensus(asked.checked()?, &panel.names(), b"a secret", panel, occasion, &mut transcript)
}

/// A commit to work on, and what is done with it.
struct Work<'c> {
    operation: Operation,
    digits: String,
    commit: &'c Commit,
    base: Option<&'c Commit>,
}

impl<'c> Work<'c> {
    fn of(commit: &'c Commit) -> Self {
        Self { operation: Operation::Verify, digits: digits("c0ffee"), commit, base: None }
    }
}

/// A commit's 40 digits that repeat these.
fn digits(hex: &str) -> String {
    hex.repeat(7)[..40].to_owned()
}

/// When it was.
pub const TIMESTAMP: &str = "2026-01-01T00:00:00Z";

/// The same, with an id and a transcript: of a commit, and the one before it if that is compared.
///
/// # Errors
/// What is wrong with the arguments.
pub fn deliberated(
    panel: &Scripted,
    (commit, base): (&Commit, Option<&Commit>),
    args: Value,
    id: &str,
    transcript: &mut Transcript<'_>,
) -> Result<Verification, Wrong> {
    let names = (panel.names(), panel.families.clone());
    asked(panel, names, Work { base, ..Work::of(commit) }, args, id, transcript)
}

/// Has any panel of these models, of these families, verify what `args` names in a commit.
///
/// # Errors
/// What is wrong with the arguments.
pub fn reviewed(
    panel: &impl Panel,
    names: Vec<String>,
    families: BTreeMap<String, String>,
    commit: &Commit,
    args: Value,
) -> Result<Verification, Wrong> {
    let id = "0".repeat(32);
    asked(panel, (names, families), Work::of(commit), args, &id, &mut Transcript::new(None, TIMESTAMP, &id))
}

fn asked(
    panel: &impl Panel,
    (names, families): (Vec<String>, BTreeMap<String, String>),
    work: Work<'_>,
    args: Value,
    id: &str,
    transcript: &mut Transcript<'_>,
) -> Result<Verification, Wrong> {
    let unread = |error: serde_json::Error| Wrong::new("arguments", error.to_string());
    let request = match work.operation {
        Operation::Review => Request::try_from(serde_json::from_value::<Review>(args).map_err(unread)?)?,
        Operation::Gate => Request::try_from(serde_json::from_value::<Gate>(args).map_err(unread)?)?,
        _ => Request::try_from(serde_json::from_value::<Verify>(args).map_err(unread)?)?,
    };
    let base = work.base.map(|base| (digits("facade"), base));
    let granted = Granted { names, families };
    let case = Case::prepare(request, (work.digits, work.commit), base, &granted, b"a secret")?;
    let occasion = Occasion { verification_id: id.to_owned(), timestamp: TIMESTAMP.to_owned() };
    Ok(case.verify(panel, occasion, transcript))
}
