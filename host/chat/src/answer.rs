//! Assembles an answer from its streamed pieces.

use super::{Event, Part, Reasoning, StopReason, ToolCall, Usage};
use conductor_sandbox::bindings::Error;
use conductor_sandbox::model_view::Answer;

/// Bytes of text that a whole answer may have.
const MAX_ANSWER: usize = 2 * 1024 * 1024;

/// An answer that is being put together.
#[derive(Debug, Default)]
pub struct Gathering {
    parts: Vec<Part>,
    /// Numbers of the tool calls among the parts, and whether they are whole.
    calls: Vec<(usize, bool)>,
    thinking: Option<String>,
    usage: Option<Usage>,
    stop: Option<StopReason>,
    size: usize,
}

impl Gathering {
    /// Takes the next event.
    ///
    /// # Errors
    /// The error that the answer reports, or what is wrong with its events; there is no answer then.
    pub fn take(&mut self, event: Event) -> Result<(), Error> {
        if self.stop.is_some() && !matches!(event, Event::Usage(_) | Event::Failed(_)) {
            return Err(nonsense("goes on after its end"));
        }
        match event {
            Event::Text(text) => {
                self.grow(text.len())?;
                self.end_thought(None);
                match self.parts.last_mut() {
                    Some(Part::Text(said)) => said.push_str(&text),
                    _ => self.parts.push(Part::Text(text)),
                }
            }
            Event::Reasoning(text) => {
                self.grow(text.len())?;
                self.thinking.get_or_insert_default().push_str(&text);
            }
            Event::ReasoningEnd(mark) => {
                self.grow(mark.as_ref().map_or(0, String::len))?;
                self.thinking.get_or_insert_default();
                self.end_thought(mark);
            }
            Event::CallBegin(begin) => {
                self.grow(begin.id.len() + begin.name.len() + 1)?;
                self.end_thought(None);
                if begin.index as usize != self.calls.len() {
                    return Err(nonsense("numbers its tool calls in another order"));
                }
                self.calls.push((self.parts.len(), false));
                let (id, name) = (begin.id, begin.name);
                self.parts.push(Part::ToolCall(ToolCall { id, name, args: String::new(), mark: None }));
            }
            Event::CallArgs(more) => {
                self.grow(more.text.len())?;
                self.call(more.index)?.args.push_str(&more.text);
            }
            Event::CallEnd(end) => {
                self.grow(end.mark.as_ref().map_or(0, String::len))?;
                self.call(end.index)?.mark = end.mark;
                self.calls[end.index as usize].1 = true;
            }
            Event::Usage(usage) => self.usage = Some(usage),
            Event::Stop(reason) => {
                if self.calls.iter().any(|(_, whole)| !whole) {
                    return Err(nonsense("ends within a tool call"));
                }
                self.end_thought(None);
                self.stop = Some(reason);
            }
            Event::Failed(error) => return Err(error),
        }
        Ok(())
    }

    /// The whole answer; none before its end.
    pub fn answer(self) -> Option<Answer> {
        let usage = self.usage.unwrap_or(Usage { input: 0, cached: 0, output: 0 });
        Some(Answer { parts: self.parts, stop: self.stop?, usage, size: self.size })
    }

    fn grow(&mut self, bytes: usize) -> Result<(), Error> {
        self.size += bytes;
        if self.size > MAX_ANSWER {
            return Err(Error::Exhausted("the answer has more than 2 MiB".into()));
        }
        Ok(())
    }

    fn end_thought(&mut self, mark: Option<String>) {
        if let Some(text) = self.thinking.take() {
            self.parts.push(Part::Reasoning(Reasoning { text, mark }));
        }
    }

    /// The tool call of this number, as long as it is not whole.
    fn call(&mut self, index: u32) -> Result<&mut ToolCall, Error> {
        let open = self.calls.get(index as usize).filter(|(_, whole)| !whole).map(|(part, _)| *part);
        match open.and_then(|part| self.parts.get_mut(part)) {
            Some(Part::ToolCall(call)) => Ok(call),
            _ => Err(nonsense("speaks of a tool call that it is not making")),
        }
    }
}

fn nonsense(what: &str) -> Error {
    Error::Failed(format!("the provider reports an answer that {what}"))
}

#[cfg(test)]
mod tests {
    use super::super::{CallArgs, CallBegin, CallEnd};
    use super::*;

    fn gathered(events: Vec<Event>) -> Result<Gathering, Error> {
        let mut gathering = Gathering::default();
        events.into_iter().try_for_each(|event| gathering.take(event))?;
        Ok(gathering)
    }

    fn begin(index: u32) -> Event {
        Event::CallBegin(CallBegin { index, id: format!("call-{index}"), name: "look".into() })
    }

    fn args(index: u32, text: &str) -> Event {
        Event::CallArgs(CallArgs { index, text: text.into() })
    }

    fn end(index: u32) -> Event {
        Event::CallEnd(CallEnd { index, mark: None })
    }

    #[test]
    fn pieces_become_parts_in_their_order() {
        let answer = gathered(vec![
            Event::Reasoning("Hm".into()),
            Event::Reasoning("m.".into()),
            Event::ReasoningEnd(Some("sealed".into())),
            Event::Text("Two ".into()),
            Event::Text("things.".into()),
            begin(0),
            begin(1),
            args(1, "{}"),
            args(0, r#"{"a":"#),
            args(0, "1}"),
            end(0),
            end(1),
            Event::Stop(StopReason::Tools),
            Event::Usage(Usage { input: 7, cached: 0, output: 9 }),
        ])
        .unwrap()
        .answer()
        .unwrap();
        let [Part::Reasoning(thought), Part::Text(text), Part::ToolCall(first), Part::ToolCall(second)] =
            &answer.parts[..]
        else {
            panic!("{:?}", answer.parts)
        };
        assert_eq!((thought.text.as_str(), thought.mark.as_deref()), ("Hmm.", Some("sealed")));
        assert_eq!((text.as_str(), first.args.as_str(), second.args.as_str()), ("Two things.", r#"{"a":1}"#, "{}"));
        assert_eq!(answer.usage.output, 9);
    }

    #[test]
    fn events_that_make_no_answer_are_refused() {
        let stop = || Event::Stop(StopReason::Done);
        for events in [
            vec![stop(), Event::Text("more".into())],
            vec![stop(), stop()],
            vec![begin(1)],
            vec![begin(0), stop()],
            vec![args(0, "{}")],
            vec![begin(0), end(0), args(0, "{}")],
            vec![end(3)],
            vec![Event::Failed(Error::Failed("overloaded".into()))],
            vec![Event::Text("x".repeat(MAX_ANSWER)), Event::Text("x".into())],
        ] {
            assert!(gathered(events.clone()).is_err(), "{events:?}");
        }
        assert!(gathered(vec![Event::Text("half".into())]).unwrap().answer().is_none());
    }
}
