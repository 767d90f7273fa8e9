//! From the events of a provider to those of a conversation.

use std::collections::HashMap;

use crate::record::ChatEvent;
use crate::{Event, Usage};

/// A call that is not whole.
#[derive(Debug)]
struct Call {
    id: String,
    tool: String,
    args: String,
}

/// From the events of a provider to those of a conversation.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    /// Calls that are not whole, by number.
    calls: HashMap<u32, Call>,
    /// What was used so far, as the API says.
    pub(crate) usage: Option<Usage>,
    /// Bytes of texts, thoughts and arguments so far.
    pub(crate) came: usize,
    /// Whether the model has said that it is done.
    pub(crate) is_whole: bool,
}

impl Pieces {
    /// What is kept of these. Pieces of one text that came together are one.
    pub(crate) fn take(&mut self, events: Vec<Event>) -> Vec<ChatEvent> {
        let mut kept: Vec<ChatEvent> = Vec::new();
        for event in events {
            self.came += match &event {
                Event::Text(more) | Event::Reasoning(more) => more.len(),
                Event::CallArgs(more) => more.text.len(),
                _ => 0,
            };
            match event {
                Event::Text(more) => match kept.last_mut() {
                    Some(ChatEvent::Text { text }) => text.push_str(&more),
                    _ => kept.push(ChatEvent::Text { text: more }),
                },
                Event::Reasoning(more) => match kept.last_mut() {
                    Some(ChatEvent::Reasoning { text }) => text.push_str(&more),
                    _ => kept.push(ChatEvent::Reasoning { text: more }),
                },
                Event::ReasoningEnd(mark) => kept.push(ChatEvent::ReasoningEnded { mark }),
                Event::CallBegin(begin) => {
                    kept.push(ChatEvent::CallBegun { call: begin.id.clone(), tool: begin.name.clone() });
                    let call = Call { id: begin.id, tool: begin.name, args: String::new() };
                    self.calls.insert(begin.index, call);
                }
                Event::CallArgs(more) => {
                    if let Some(call) = self.calls.get_mut(&more.index) {
                        call.args.push_str(&more.text);
                    }
                }
                Event::CallEnd(end) => {
                    if let Some(Call { id: call, tool, args }) = self.calls.remove(&end.index) {
                        kept.push(ChatEvent::Call { call, tool, args, mark: end.mark });
                    }
                }
                Event::Usage(usage) => self.usage = Some(usage),
                // The end of the exchange says how it ended.
                Event::Stop(_) => self.is_whole = true,
                Event::Failed(_) => {}
            }
        }
        kept
    }
}
