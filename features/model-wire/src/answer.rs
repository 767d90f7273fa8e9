//! An answer as far as it was read: the events for the host, and what is known beside them.
//!
//! A [`Format`](crate::Format) says here what it finds, in the order of the API. The order of the contract is kept here:
//! a thought ends before what follows it, calls are numbered, every call ends before the stop, nothing follows a failure.
//! Neighbours of one kind become one event, so that many small pieces cost no more than a large one.

use conductor_feature::Error;
use conductor_feature::chat::{CallArgs, CallBegin, CallEnd, Event, StopReason, Usage};
use conductor_feature::details::Report;

use crate::calls_in_text::{CallsInText, Found};
use crate::pieces::pieces;
use crate::request::made_up_id;

/// Tool calls of one answer.
pub const MAX_CALLS: usize = 128;
/// Bytes of text that go to the host at once.
const MAX_AT_ONCE: usize = 256 * 1024;
/// Bytes of a mark.
pub const MAX_MARK: usize = 768 * 1024;
/// Notes that are kept.
const MAX_NOTES: usize = 8;

/// An answer that is being read.
#[derive(Debug, Default)]
pub struct Answer {
    events: Vec<Event>,
    /// Bytes of text in them.
    size: usize,
    calls: Vec<Call>,
    /// Calls in the conversation before this answer.
    calls_before: usize,
    thinking: bool,
    /// No event may be joined to the last one: a whole answer is cut in pieces.
    in_pieces: bool,
    over: Option<Over>,
    in_text: Option<CallsInText>,
    cost: Option<u64>,
    cache_written: Option<u32>,
    thoughts: Option<u32>,
    model: Option<String>,
    notes: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Over {
    Stopped,
    Failed,
}

#[derive(Debug, Default)]
struct Call {
    has_arguments: bool,
    is_whole: bool,
}

impl Answer {
    /// Counts ids that are made up from here.
    pub(crate) fn follow(&mut self, calls_before: usize) {
        self.calls_before = calls_before;
    }

    /// Looks for tool calls in the text from now on.
    pub(crate) fn look_for_calls(&mut self) {
        self.in_text = Some(CallsInText::default());
    }

    /// Cuts texts from now on.
    pub(crate) fn cut_in_pieces(&mut self) {
        self.in_pieces = true;
    }

    /// The events since the last call of this.
    pub(crate) fn take(&mut self) -> Vec<Event> {
        if std::mem::take(&mut self.size) > MAX_AT_ONCE && self.over != Some(Over::Failed) {
            self.events.clear();
            self.fail(Error::Exhausted("the server sends more than 256 KiB of an answer at once".into()));
        }
        std::mem::take(&mut self.events)
    }

    pub(crate) fn report(&mut self) -> Report {
        Report {
            model: self.model.take(),
            cache_written: self.cache_written,
            thoughts: self.thoughts,
            cost: self.cost,
            notes: std::mem::take(&mut self.notes),
        }
    }

    /// Whether it has stopped or failed. What is said after that is left out, but for usage after a stop.
    pub fn is_over(&self) -> bool {
        self.over.is_some()
    }

    /// Tool calls so far.
    pub fn calls(&self) -> usize {
        self.calls.len()
    }

    /// More text.
    pub fn text(&mut self, text: &str) {
        if text.is_empty() || self.is_over() {
            return;
        }
        match &mut self.in_text {
            Some(reader) => {
                let found = reader.push(text);
                found.into_iter().for_each(|found| self.found(found));
            }
            None => self.plain_text(text),
        }
    }

    fn found(&mut self, found: Found) {
        match found {
            Found::Text(text) => self.plain_text(&text),
            Found::Call(name, arguments) => {
                if let Some(call) = self.begin_call(None, &name) {
                    self.call_arguments(call, &arguments);
                    self.end_call(call, None);
                }
            }
            Found::Broken(text) => {
                self.note("the model wrote a tool call that can't be read; it is in the text");
                self.plain_text(&text);
            }
        }
    }

    fn plain_text(&mut self, text: &str) {
        self.end_thought();
        if self.in_pieces {
            self.size += text.len();
            self.events.extend(pieces(text).map(|piece| Event::Text(piece.to_owned())));
            return;
        }
        match self.events.last_mut() {
            Some(Event::Text(before)) => before.push_str(text),
            _ => self.events.push(Event::Text(text.to_owned())),
        }
        self.size += text.len();
    }

    /// More of a thought.
    pub fn reasoning(&mut self, text: &str) {
        if text.is_empty() || self.is_over() {
            return;
        }
        self.thinking = true;
        self.size += text.len();
        if self.in_pieces {
            self.events.extend(pieces(text).map(|piece| Event::Reasoning(piece.to_owned())));
            return;
        }
        match self.events.last_mut() {
            Some(Event::Reasoning(before)) => before.push_str(text),
            _ => self.events.push(Event::Reasoning(text.to_owned())),
        }
    }

    /// The thought is whole. With a mark there need not have been any text. A mark of more than 768 KiB is left out.
    pub fn end_reasoning(&mut self, mark: Option<String>) {
        let mark = self.kept(mark);
        if self.is_over() || !(self.thinking || mark.is_some()) {
            return;
        }
        self.thinking = false;
        self.events.push(Event::ReasoningEnd(mark));
    }

    fn end_thought(&mut self) {
        if self.thinking {
            self.end_reasoning(None);
        }
    }

    fn kept(&mut self, mark: Option<String>) -> Option<String> {
        let mark = mark?;
        if mark.len() > MAX_MARK {
            self.note("the server wants more back with the next question than can be kept");
            return None;
        }
        self.size += mark.len();
        Some(mark)
    }

    /// A tool call begins; an id is made up if the API has none. Returns its number for the calls below; `None` if the
    /// answer is over, which it is after more than 128 calls, too.
    pub fn begin_call(&mut self, id: Option<&str>, name: &str) -> Option<usize> {
        if self.is_over() {
            return None;
        }
        let at = self.calls.len();
        if at == MAX_CALLS {
            self.fail(Error::Exhausted(format!("the model makes more than {MAX_CALLS} tool calls in one answer")));
            return None;
        }
        self.end_thought();
        let id = id.filter(|id| !id.is_empty()).map_or_else(|| made_up_id(self.calls_before + at), str::to_owned);
        self.size += id.len() + name.len();
        self.calls.push(Call::default());
        self.events.push(Event::CallBegin(CallBegin { index: index(at), id, name: name.to_owned() }));
        Some(at)
    }

    /// More of a call's arguments. Of a call that is whole they are left out.
    pub fn call_arguments(&mut self, call: usize, text: &str) {
        let Some(state) = self.calls.get_mut(call).filter(|state| !state.is_whole) else { return };
        if text.is_empty() || self.over.is_some() {
            return;
        }
        state.has_arguments = true;
        self.size += text.len();
        match self.events.last_mut() {
            Some(Event::CallArgs(before)) if before.index == index(call) => before.text.push_str(text),
            _ => self.events.push(Event::CallArgs(CallArgs { index: index(call), text: text.to_owned() })),
        }
    }

    /// Whether the call has arguments so far.
    pub fn has_arguments(&self, call: usize) -> bool {
        self.calls.get(call).is_some_and(|state| state.has_arguments)
    }

    /// A call is whole. Without arguments it has none: `{}`.
    pub fn end_call(&mut self, call: usize, mark: Option<String>) {
        if self.is_over() || self.calls.get(call).is_none_or(|state| state.is_whole) {
            return;
        }
        if !self.has_arguments(call) {
            self.call_arguments(call, "{}");
        }
        self.calls[call].is_whole = true;
        let mark = self.kept(mark);
        self.events.push(Event::CallEnd(CallEnd { index: index(call), mark }));
    }

    /// What was used so far, in all.
    pub fn usage(&mut self, usage: Usage) {
        if self.over == Some(Over::Failed) {
            return;
        }
        match self.events.last_mut() {
            Some(Event::Usage(before)) => *before = usage,
            _ => self.events.push(Event::Usage(usage)),
        }
    }

    /// The answer is whole, for this reason. An answer with tool calls that is done wants them called, whatever the API
    /// says.
    pub fn stop(&mut self, reason: StopReason) {
        if self.is_over() {
            return;
        }
        if let Some(found) = self.in_text.as_mut().and_then(CallsInText::end) {
            self.found(found);
        }
        self.end_thought();
        (0..self.calls.len()).for_each(|call| self.end_call(call, None));
        if self.is_over() {
            return;
        }
        self.over = Some(Over::Stopped);
        self.events.push(Event::Stop(match reason {
            StopReason::Done | StopReason::Tools if self.calls.is_empty() => StopReason::Done,
            StopReason::Done => StopReason::Tools,
            reason => reason,
        }));
    }

    /// There won't be a whole answer.
    pub fn fail(&mut self, error: Error) {
        if !self.is_over() {
            self.over = Some(Over::Failed);
            self.events.push(Event::Failed(error));
        }
    }

    /// The server sent what can't be read.
    pub fn not_understood(&mut self, error: &dyn std::fmt::Display) {
        self.fail(Error::Failed(format!("the server's answer is not understood: {error}")));
    }

    /// The model that answers, as the API calls it.
    pub fn model(&mut self, model: &str) {
        if self.model.as_deref() != Some(model) && !model.is_empty() {
            self.model = Some(model.to_owned());
        }
    }

    /// Of the input: tokens that were written to a cache.
    pub fn cache_written(&mut self, tokens: Option<u32>) {
        self.cache_written = tokens.or(self.cache_written);
    }

    /// Of the output: tokens of thoughts.
    pub fn thoughts(&mut self, tokens: Option<u32>) {
        self.thoughts = tokens.or(self.thoughts);
    }

    /// What the exchange cost, in US dollars, as the API reports it. What is no amount is left out.
    pub fn cost(&mut self, dollars: Option<f64>) {
        if let Some(dollars) = dollars.filter(|dollars| (0.0..1e6).contains(dollars)) {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range was checked")]
            let billionths = (dollars * 1e9).round() as u64;
            self.cost = Some(billionths);
        }
    }

    /// What went otherwise than it was asked for, a sentence without a full stop. Each is kept once.
    pub fn note(&mut self, note: &str) {
        if self.notes.len() < MAX_NOTES && !self.notes.iter().any(|before| before == note) {
            self.notes.push(note.to_owned());
        }
    }
}

fn index(call: usize) -> u32 {
    u32::try_from(call).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::transcript;

    #[test]
    fn the_contracts_order_is_kept() {
        let mut answer = Answer::default();
        answer.follow(3);
        answer.reasoning("Hm");
        answer.reasoning("m.");
        answer.text("Yes.");
        let first = answer.begin_call(None, "look").unwrap();
        let second = answer.begin_call(Some("b"), "hear").unwrap();
        answer.call_arguments(second, "{}");
        answer.end_call(second, Some("mark".into()));
        answer.call_arguments(second, "more");
        answer.stop(StopReason::Done);
        answer.text("more");
        answer.stop(StopReason::Done);
        answer.usage(Usage { input: 1, cached: 0, output: 2 });
        let expected = [
            "reasoning Hmm.",
            "reasoned",
            "text Yes.",
            "call 0 call-3 look",
            "call 1 b hear",
            "args 1 {}",
            "end 1 mark",
            "args 0 {}",
            "end 0",
            "stop StopReason::Tools",
            "usage 1 0 2",
        ];
        assert_eq!(transcript(answer.take()), expected);
        let _ = first;
    }

    #[test]
    fn neighbours_are_one_event() {
        let mut answer = Answer::default();
        (0..5000).for_each(|_| answer.text("x"));
        assert_eq!(answer.take().len(), 1);
    }

    #[test]
    fn what_is_too_much_fails() {
        let mut answer = Answer::default();
        answer.text(&"x".repeat(MAX_AT_ONCE + 1));
        assert!(matches!(answer.take()[..], [Event::Failed(Error::Exhausted(_))]));
        let mut answer = Answer::default();
        let begun = (0..1000).filter(|_| answer.begin_call(None, "look").is_some()).count();
        assert_eq!(begun, MAX_CALLS);
        assert!(matches!(answer.take().last(), Some(Event::Failed(Error::Exhausted(_)))));
        let mut answer = Answer::default();
        answer.end_reasoning(Some("x".repeat(MAX_MARK + 1)));
        assert!(answer.take().is_empty());
        assert_eq!(answer.report().notes.len(), 1);
    }

    #[test]
    fn a_cost_is_an_amount() {
        let mut answer = Answer::default();
        answer.cost(Some(0.000_141_5));
        for none in [None, Some(-1.0), Some(f64::NAN), Some(1e9)] {
            answer.cost(none);
        }
        assert_eq!(answer.report().cost, Some(141_500));
    }
}
