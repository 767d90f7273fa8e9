//! The panel: which models are asked, what that costs, and what they answer.

use crate::digest::sha256;
use crate::fence::{bounded, one_line};
use crate::request::{Budget, MIN_PANEL, Members, Wrong};
use crate::result::{LeftOut, PeerRanking, Response, Stage};

/// Bytes of text that make about one token.
pub const BYTES_PER_TOKEN: usize = 4;
/// Tokens that an answer needs at least: below that no model is asked.
const MIN_ANSWER: u32 = 64;
/// Milliseconds that a stage needs at least.
const MIN_STAGE_MS: u64 = 200;
/// Bytes of a response that are on record.
const MAX_RECORDED: usize = 4096;
/// Bytes of a reason.
const MAX_REASON: usize = 300;

/// A question to one model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inquiry {
    /// The model.
    pub model: String,
    /// The council's own words.
    pub instructions: String,
    /// What it is shown.
    pub text: String,
    /// The JSON Schema of the answer.
    pub schema: String,
    /// Tokens of the answer at most.
    pub max_tokens: u32,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// What the model said.
    pub text: String,
    /// Tokens read and written, as counted; 0 if they were not.
    pub tokens: u32,
}

/// The models, and the time.
pub trait Panel {
    /// Asks all at once and waits for no longer than `timeout_ms`. A result for each, in their order.
    fn ask(&self, inquiries: &[Inquiry], timeout_ms: u32) -> Vec<Result<Reply, String>>;
    /// Milliseconds since the call began.
    fn elapsed_ms(&self) -> u64;
    /// Reports progress, 0.0 to 1.0.
    fn progress(&self, done: f32, text: &str);
    /// Whether the answer is no longer wanted.
    fn is_cancelled(&self) -> bool;
}

/// The models of a panel, and the one that is to write the verdict. Where the request names none, it is the first of
/// `order`, `most` of them.
///
/// # Errors
/// A model that was not granted, or too few.
pub fn chosen(
    members: &Members,
    granted: &[String],
    order: &[String],
    most: usize,
) -> Result<(Vec<String>, Option<String>), Wrong> {
    let there = || if granted.is_empty() { "none is".to_owned() } else { granted.join(", ") };
    for (index, model) in members.models.iter().enumerate() {
        if !granted.contains(model) {
            let problem = format!("it is not granted to the council; granted: {}", there());
            return Err(Wrong::new(format!("models[{index}] = {model:?}"), problem));
        }
    }
    if let Some(chairman) = members.chairman.as_ref().filter(|chairman| !granted.contains(chairman)) {
        let problem = format!("it is not granted to the council; granted: {}", there());
        return Err(Wrong::new(format!("chairman = {chairman:?}"), problem));
    }
    let models: Vec<String> = match &members.models[..] {
        [] => order.iter().take(most).cloned().collect(),
        named => named.to_vec(),
    };
    if models.len() < MIN_PANEL {
        let problem = format!(
            "{} granted, and a council needs {MIN_PANEL} models or more; add some to `models` (or `programs`) \
             under [features.council.grants]",
            there()
        );
        return Err(Wrong::new("models", problem));
    }
    Ok((models, members.chairman.clone()))
}

/// What one call has asked, and what is left to it.
#[derive(Debug)]
pub struct Session<'p, P> {
    panel: &'p P,
    budget: Budget,
    /// Tokens that were used.
    pub tokens: u32,
    /// What came, in order.
    pub responses: Vec<Response>,
    /// How members ranked what was said.
    pub rankings: Vec<PeerRanking>,
    /// Models without an answer that counts.
    pub left_out: Vec<LeftOut>,
    /// Why less was done than should have been.
    pub incomplete: Vec<String>,
}

/// Tokens of a text, about.
pub fn estimated(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(BYTES_PER_TOKEN)).unwrap_or(u32::MAX)
}

impl<'p, P: Panel> Session<'p, P> {
    /// Nothing is used yet.
    pub const fn new(panel: &'p P, budget: Budget) -> Self {
        Self {
            panel,
            budget,
            tokens: 0,
            responses: Vec::new(),
            rankings: Vec::new(),
            left_out: Vec::new(),
            incomplete: Vec::new(),
        }
    }

    /// Reports progress.
    pub fn progress(&self, done: f32, text: &str) {
        self.panel.progress(done, text);
    }

    /// Milliseconds that were used.
    pub fn elapsed_ms(&self) -> u64 {
        self.panel.elapsed_ms()
    }

    /// Asks the models of a stage, which gets a `share` of the time that is left, and leaves `later` tokens for the stages
    /// after it. What `read` can make nothing of is no answer. Gives each model that answered, by its number, with what
    /// was read.
    pub fn stage<T>(
        &mut self,
        stage: Stage,
        mut inquiries: Vec<Inquiry>,
        (share, later): (f64, u32),
        read: impl Fn(usize, &str) -> Result<T, String>,
    ) -> Vec<(usize, T)> {
        if self.panel.is_cancelled() {
            self.incomplete.push("it was cancelled".to_owned());
            return Vec::new();
        }
        let time = self.budget.time_ms.saturating_sub(self.panel.elapsed_ms());
        let time = (time as f64 * share) as u64;
        if time < MIN_STAGE_MS {
            let seconds = self.budget.time_ms / 1000;
            self.incomplete.push(format!("the {seconds} s are used up before the {}", stage.as_str()));
            return Vec::new();
        }
        let reads: Vec<u32> =
            inquiries.iter().map(|one| estimated(one.instructions.len() + one.text.len() + one.schema.len())).collect();
        let left = self.budget.tokens.saturating_sub(self.tokens).saturating_sub(later);
        let for_answers = left.saturating_sub(reads.iter().sum());
        let each = for_answers / u32::try_from(inquiries.len()).unwrap_or(u32::MAX).max(1);
        if each < MIN_ANSWER {
            let all = self.budget.tokens;
            self.incomplete.push(format!("the {all} tokens are used up before the {}", stage.as_str()));
            return Vec::new();
        }
        inquiries.iter_mut().for_each(|one| one.max_tokens = one.max_tokens.min(each));
        let mut replies = self.panel.ask(&inquiries, u32::try_from(time).unwrap_or(u32::MAX));
        replies.resize_with(inquiries.len(), || Err("it was not asked".to_owned()));
        let mut answers = Vec::new();
        for (index, (inquiry, reply)) in inquiries.into_iter().zip(replies).enumerate() {
            let read = match reply {
                Ok(Reply { text, tokens }) => {
                    // What is counted is believed as long as it is not too good.
                    let used = tokens.max((reads[index] + estimated(text.len())) / 2);
                    self.tokens = self.tokens.saturating_add(used);
                    self.responses.push(Response {
                        stage,
                        model: inquiry.model.clone(),
                        sha256: sha256(text.as_bytes()),
                        tokens: used,
                        text: bounded(&text, MAX_RECORDED).to_owned(),
                    });
                    read(index, &text)
                }
                Err(why) => {
                    self.tokens = self.tokens.saturating_add(reads[index]);
                    Err(why)
                }
            };
            match read {
                Ok(answer) => answers.push((index, answer)),
                Err(why) => {
                    self.left_out.push(LeftOut { model: inquiry.model, stage, reason: one_line(&why, MAX_REASON) });
                }
            }
        }
        answers
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;
    use crate::request::{Effort, Operation};

    /// Answers by the name of the model: `fine` does, `late` does not, `free` counts nothing.
    #[derive(Default)]
    struct Scripted {
        elapsed: Cell<u64>,
        asked: RefCell<Vec<(u32, u32)>>,
        cancelled: bool,
    }

    impl Panel for Scripted {
        fn ask(&self, inquiries: &[Inquiry], timeout_ms: u32) -> Vec<Result<Reply, String>> {
            self.asked.borrow_mut().push((inquiries[0].max_tokens, timeout_ms));
            let answer = |one: &Inquiry| match &*one.model {
                "late" => Err("it did not answer\n".into()),
                "free" => Ok(Reply { text: "x".repeat(8000), tokens: 0 }),
                _ => Ok(Reply { text: "fine".into(), tokens: 300 }),
            };
            inquiries.iter().map(answer).collect()
        }

        fn elapsed_ms(&self) -> u64 {
            self.elapsed.get()
        }

        fn progress(&self, _: f32, _: &str) {}

        fn is_cancelled(&self) -> bool {
            self.cancelled
        }
    }

    fn inquiry(model: &str) -> Inquiry {
        let (instructions, text) = ("x".repeat(400), "y".repeat(400));
        Inquiry { model: model.into(), instructions, text, schema: String::new(), max_tokens: 800 }
    }

    fn budget() -> Budget {
        Budget::of(Operation::Verify, Effort::Quick)
    }

    fn read(_: usize, text: &str) -> Result<usize, String> {
        if text.starts_with('x') { Err("nonsense".into()) } else { Ok(text.len()) }
    }

    #[test]
    fn what_fails_or_makes_no_sense_is_left_out_and_said() {
        let panel = Scripted::default();
        let mut session = Session::new(&panel, budget());
        let all = ["fine", "late", "free"].map(inquiry).to_vec();
        assert_eq!(session.stage(Stage::Reviews, all, (0.5, 0), read), [(0, 4)]);
        let left_out: Vec<_> = session.left_out.iter().map(|one| (one.model.as_str(), one.reason.as_str())).collect();
        assert_eq!(left_out, [("late", "it did not answer"), ("free", "nonsense")]);
        // 300 as counted, 200 for a question without an answer, half of 200 + 2000 for what was not counted.
        assert_eq!(session.tokens, 300 + 200 + 1100);
        assert_eq!(session.responses[0].sha256, sha256(b"fine"));
        assert_eq!(session.responses[1].text.len(), MAX_RECORDED);
        assert_eq!(*panel.asked.borrow(), [(800, 15_000)]);
    }

    /// CNC-6: what a stage may take is what is left.
    #[test]
    fn tokens_and_time_that_are_used_up_end_it() {
        let panel = Scripted::default();
        let mut session = Session::new(&panel, budget());
        session.tokens = 9000;
        session.stage(Stage::Reviews, vec![inquiry("fine")], (1.0, 500), read);
        assert_eq!(panel.asked.borrow()[0].0, 300, "1000 are left, 200 are read, 500 are for later");
        session.tokens = 9800;
        assert_eq!(session.stage(Stage::Rankings, vec![inquiry("fine")], (1.0, 0), read), []);
        assert_eq!(session.incomplete, ["the 10000 tokens are used up before the rankings"]);
        session.tokens = 0;
        panel.elapsed.set(29_900);
        assert_eq!(session.stage(Stage::Verdict, vec![inquiry("fine")], (1.0, 0), read), []);
        assert_eq!(session.incomplete[1], "the 30 s are used up before the verdict");
        assert_eq!(panel.asked.borrow().len(), 1, "no other member was asked");
    }

    #[test]
    fn who_cancelled_is_asked_nothing_for() {
        let panel = Scripted { cancelled: true, ..Scripted::default() };
        let mut session = Session::new(&panel, budget());
        assert_eq!(session.stage(Stage::Reviews, vec![inquiry("fine")], (1.0, 0), read), []);
        assert_eq!(session.incomplete, ["it was cancelled"]);
        assert!(panel.asked.borrow().is_empty());
    }

    #[test]
    fn a_panel_is_of_models_that_were_granted() {
        let granted = ["a", "b", "c", "d"].map(str::to_owned);
        let members = |models: &[&str], chairman: Option<&str>| Members {
            models: models.iter().map(|model| (*model).to_owned()).collect(),
            chairman: chairman.map(str::to_owned),
            ..Members::default()
        };
        let panel = |members: &Members| chosen(members, &granted, &granted, 3).map(|(models, _)| models.concat());
        assert_eq!(panel(&members(&[], None)).as_deref(), Ok("abc"));
        assert_eq!(panel(&members(&["d", "a"], Some("c"))).as_deref(), Ok("da"));
        let refused = |members: &Members, granted: &[String]| {
            chosen(members, granted, granted, 3).expect_err("it is refused").to_string()
        };
        assert_eq!(
            refused(&members(&["a", "x"], None), &granted),
            "models[1] = \"x\": it is not granted to the council; granted: a, b, c, d"
        );
        assert!(refused(&members(&[], Some("x")), &granted).starts_with("chairman = \"x\": "));
        assert!(
            refused(&members(&[], None), &granted[..1]).contains("a granted, and a council needs 2 models or more")
        );
        assert!(refused(&members(&[], None), &[]).contains("[features.council.grants]"));
    }
}
