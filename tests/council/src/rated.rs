//! Scripted panels of known error rates, for the benchmark: what they err in follows from a seed.

use std::cell::Cell;

use council::families::ALIKE;
use council::panel::{Inquiry, Panel, Reply};
use council::review::label;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::benchmark::Work;
use crate::{Commit, reviewed};

/// A model of known rates.
#[derive(Debug, Clone)]
pub struct Rated {
    /// Whose it is. Models of one family err together in a share of [`ALIKE`] of their reviews.
    pub family: &'static str,
    /// The share of faults that it does not see, 0.0-1.0.
    pub misses: f64,
    /// The share of right changes in which it sees one, 0.0-1.0.
    pub alarms: f64,
    /// How much more it makes of what it is shown early, of length, and of its own review: 0.0 is nothing.
    pub biases: [f64; 3],
    /// Milliseconds that an answer takes.
    pub takes_ms: u64,
}

impl Rated {
    /// A model without biases that answers within 2 s.
    pub const fn new(family: &'static str, misses: f64, alarms: f64) -> Self {
        Self { family, misses, alarms, biases: [0.0; 3], takes_ms: 2000 }
    }
}

/// A panel of them, by their names: `m0`, `m1`.
#[derive(Debug)]
pub struct RatedPanel {
    members: Vec<Rated>,
    seed: u64,
    number: Cell<usize>,
    is_wrong: Cell<bool>,
    /// The time since the work was begun, which goes by while models answer.
    elapsed_ms: Cell<u64>,
}

impl RatedPanel {
    /// A panel whose errors follow from `seed`.
    pub const fn new(members: Vec<Rated>, seed: u64) -> Self {
        Self { members, seed, number: Cell::new(0), is_wrong: Cell::new(false), elapsed_ms: Cell::new(0) }
    }

    /// Has it verify work, and gives the JSON of the result.
    pub fn verify(&self, number: usize, work: &Work) -> Option<Value> {
        self.number.set(number);
        self.is_wrong.set(work.fault.is_some());
        self.elapsed_ms.set(0);
        let names: Vec<String> = (0..self.members.len()).map(|number| format!("m{number}")).collect();
        let families = names.iter().cloned().zip(self.members.iter().map(|member| member.family.to_owned())).collect();
        let args = json!({ "snapshot_id": "HEAD", "git_diff": work.diff, "requirements": work.requirements,
            "models": names, "seed": number });
        let result = reviewed(self, names, families, &Commit::default(), args).ok()?;
        serde_json::to_value(result).ok()
    }

    /// A number from 0 to 1 that follows from the seed, the work and a word.
    fn drawn(&self, word: &str) -> f64 {
        let digest = Sha256::digest(format!("{} {} {word}", self.seed, self.number.get()).as_bytes());
        let number = digest[..6].iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
        number as f64 / (1_u64 << 48) as f64
    }

    /// Whether a model errs in the work at hand.
    fn errs(&self, model: &str, member: &Rated) -> bool {
        let together = self.drawn(&format!("{model} together")) < ALIKE;
        let drawn = self.drawn(if together { member.family } else { model });
        drawn < if self.is_wrong.get() { member.misses } else { member.alarms }
    }

    fn review(&self, model: &str, member: &Rated) -> Value {
        let errs = self.errs(model, member);
        let fails = self.is_wrong.get() != errs;
        let sure = self.drawn(&format!("{model} sure"));
        let confidence = if errs { 0.6 + 0.25 * sure } else { 0.8 + 0.18 * sure };
        let issue =
            json!({ "severity": "major", "file": null, "line": null, "message": "It does not do what it should." });
        let words = (self.drawn(&format!("{model} words")) * 60.0) as usize;
        let scores = json!({ "accuracy": if fails { 3 } else { 9 }, "completeness": 8, "clarity": 8, "conciseness": 8,
            "relevance": 8 });
        json!({ "verdict": if fails { "fail" } else { "pass" }, "confidence": confidence, "scores": scores,
            "issues": if fails { vec![issue] } else { Vec::new() },
            "rationale": format!("{} {}", self.mark(model), "word ".repeat(words)) })
    }

    /// What a model knows its own review by.
    fn mark(&self, model: &str) -> String {
        format!("mark-{:.0}", self.drawn(&format!("{model} mark")) * 1e9)
    }

    fn ranking(&self, model: &str, member: &Rated, text: &str) -> Value {
        let own = if self.is_wrong.get() == self.errs(model, member) { "verdict: pass" } else { "verdict: fail" };
        let blocks: Vec<&str> = text.split("BEGIN DATA ").skip(1).collect();
        let longest = blocks.iter().map(|block| block.len()).max().unwrap_or(1) as f64;
        let [early, long, self_love] = member.biases;
        let score = |(place, block): (usize, &&str)| {
            let agrees = f64::from(u8::from(block.contains(own)));
            let place_share = 1.0 - place as f64 / blocks.len() as f64;
            let is_own = f64::from(u8::from(block.contains(&self.mark(model))));
            let noise = self.drawn(&format!("{model} {}", block.len() * 31 + block.matches("word").count()));
            agrees + noise + early * place_share + long * block.len() as f64 / longest + self_love * is_own
        };
        let mut places: Vec<(usize, f64)> =
            blocks.iter().enumerate().map(|(at, block)| (at, score((at, block)))).collect();
        places.sort_by(|one, other| other.1.total_cmp(&one.1));
        json!({ "ranking": places.into_iter().map(|(at, _)| label(at)).collect::<Vec<_>>() })
    }

    fn member(&self, model: &str) -> Option<&Rated> {
        self.members.get(model.trim_start_matches('m').parse::<usize>().ok()?)
    }

    fn answer(&self, inquiry: &Inquiry, timeout_ms: u64) -> Result<Reply, String> {
        let member = self.member(&inquiry.model).ok_or("there is no such model")?;
        if member.takes_ms > timeout_ms {
            return Err(format!("there was no answer within {timeout_ms} ms"));
        }
        let answer = if inquiry.schema.contains("\"ranking\"") {
            self.ranking(&inquiry.model, member, &inquiry.text)
        } else if inquiry.schema.contains("\"dissent\"") {
            let count = |verdict: &str| inquiry.text.matches(&format!("verdict: {verdict}")).count();
            let verdict = if count("fail") > count("pass") { "fail" } else { "pass" };
            json!({ "verdict": verdict, "confidence": 0.9, "rationale": "What most say.", "dissent": "" })
        } else {
            self.review(&inquiry.model, member)
        };
        let text = answer.to_string();
        let bytes = inquiry.instructions.len() + inquiry.text.len() + inquiry.schema.len() + text.len();
        Ok(Reply { text, tokens: u32::try_from(bytes / 4).unwrap_or(u32::MAX) })
    }
}

impl Panel for RatedPanel {
    fn ask(&self, inquiries: &[Inquiry], timeout_ms: u32) -> Vec<Result<Reply, String>> {
        let timeout = u64::from(timeout_ms);
        // They are asked side by side: the slowest says how long it takes, as long as it is waited for.
        let takes = inquiries.iter().filter_map(|inquiry| Some(self.member(&inquiry.model)?.takes_ms.min(timeout)));
        self.elapsed_ms.set(self.elapsed_ms.get() + takes.max().unwrap_or_default());
        inquiries.iter().map(|inquiry| self.answer(inquiry, timeout)).collect()
    }

    fn elapsed_ms(&self) -> u64 {
        self.elapsed_ms.get()
    }

    fn progress(&self, _: f32, _: &str) {}

    fn is_cancelled(&self) -> bool {
        false
    }
}
