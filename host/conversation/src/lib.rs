//! Conversations with a host: what the agent loop of [`conductor_chat`] sees of it.
//!
//! Calls pass the host's gate as an agent's do, at a door of their own: the allow-list, limits, the lock, hooks and the
//! record apply, and what a person has to agree to is asked, exactly as the gate shows it. No call applies a plan. What
//! became of a plan is kept in its conversation, and so are the notifications of features from its beginning on.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::disallowed_macros))]

use std::path::Path;
use std::sync::{Arc, Weak};

use conductor_audit::caller::Caller;
use conductor_chat::conversations::ChatUpdate;
use conductor_chat::record::{Approval, PlanOutcome};
use conductor_chat::store::StoreError;
use conductor_chat::tools::{Called, Later, NotificationFacts, SkillFacts, ToolCall, ToolFacts, Tools};
use conductor_chat::{Conversations, Models};
use conductor_host::control::confirmation::Confirmation;
use conductor_host::control::gate::{ToolError, ToolRequest, ToolResult};
use conductor_host::host::Host;
use conductor_observer::notification_log::{Notification, NotificationQuery, Order};
use conductor_observer::{ChatChange, ModelChange, Observation, PlanChange, PlanStep};
use conductor_skills::library::Library;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// Notifications that a conversation is given at once.
const MAX_NOTIFICATIONS: usize = 20;

/// A host, as conversations see it, and the library of skills. It is not kept alive by them.
#[derive(Debug)]
struct OfHost(Weak<Host>, Arc<Library>);

/// The conversations that `home` keeps, with this host and the skills of a library.
///
/// # Errors
/// See [`StoreError`].
pub fn open(home: &Path, host: &Arc<Host>, library: Arc<Library>) -> Result<Arc<Conversations>, StoreError> {
    let conversations = Arc::new(Conversations::open(home, Arc::new(OfHost(Arc::downgrade(host), library)))?);
    conversations.keep_usage_of(&host.models());
    follow_plans(host, &conversations);
    let told = Arc::downgrade(host);
    conversations.watch(move |update| {
        if let Some(host) = told.upgrade() {
            host.observe(observation(update));
        }
    });
    Ok(conversations)
}

/// Bytes of one text of an event in the stream: the conversation itself has all of it.
const MAX_TEXT: usize = 8 * 1024;

/// An update as the watchers of the host see it.
fn observation(update: ChatUpdate<'_>) -> Observation {
    match update {
        ChatUpdate::Event { conversation, event } => {
            // Of strings and numbers only: it always has a JSON form.
            let mut view = serde_json::to_value(&event.event).unwrap_or_default();
            for text in view.as_object_mut().into_iter().flat_map(|fields| fields.values_mut()) {
                if let Value::String(text) = text
                    && text.len() > MAX_TEXT
                {
                    text.truncate(text.floor_char_boundary(MAX_TEXT));
                    text.push('…');
                }
            }
            let event_text = view.to_string().into();
            Observation::Chat(ChatChange { conversation, number: event.number, event: event_text })
        }
        ChatUpdate::Health { model, error } => {
            Observation::Model(ModelChange { model: model.to_owned(), error: error.map(str::to_owned) })
        }
    }
}

/// Keeps what becomes of plans, until the host or the conversations are gone.
fn follow_plans(host: &Host, conversations: &Arc<Conversations>) {
    let (changes, _) = host.observed().subscribe_to(|one| matches!(one, Observation::Plan(_)));
    let conversations = Arc::downgrade(conversations);
    let follow = move || {
        for change in changes {
            let Observation::Plan(PlanChange { step, plan: Some(plan), .. }) = change else { continue };
            let outcome = match step {
                PlanStep::Applied => PlanOutcome::Applied,
                PlanStep::Rejected => PlanOutcome::Rejected,
                PlanStep::Expired => PlanOutcome::Expired,
                PlanStep::Proposed | PlanStep::Undone | PlanStep::Redone => continue,
            };
            let Some(conversations) = conversations.upgrade() else { return };
            conversations.plan_decided(&plan, outcome);
        }
    };
    // Without it a model hears later, and less exactly, that its plan does not wait any longer.
    if let Err(error) = std::thread::Builder::new().name("chat-plans".into()).spawn(follow) {
        tracing::warn!("what becomes of plans is not followed: {error}");
    }
}

impl Tools for OfHost {
    fn models(&self) -> Option<Arc<Models>> {
        Some(self.0.upgrade()?.models())
    }

    fn list(&self) -> Vec<ToolFacts> {
        let tools = self.0.upgrade().map(|host| host.tools()).unwrap_or_default();
        let facts = |tool: conductor_host::control::gate::ToolView| ToolFacts {
            name: tool.tool.name,
            summary: tool.tool.summary,
            input: tool.tool.input.value(),
        };
        tools.into_iter().map(facts).collect()
    }

    fn skills(&self) -> Vec<SkillFacts> {
        let Some(host) = self.0.upgrade() else { return Vec::new() };
        let skills = self.1.used(&host.skills()).into_iter();
        skills.map(|(_, skill)| SkillFacts { name: skill.name.clone(), summary: skill.description.clone() }).collect()
    }

    fn read_skill(&self, name: &str, file: Option<&str>) -> Result<String, String> {
        let host = self.0.upgrade().ok_or("the host is stopping")?;
        let skill = self.1.find(name, &host.skills()).map_err(|error| error.to_string())?.skill;
        match file {
            Some(file) => skill.read(file).map_err(|error| error.to_string()),
            None => Ok(skill.text().to_owned()),
        }
    }

    fn notifications(&self, after: u64, since: u64) -> Vec<NotificationFacts> {
        let Some(host) = self.0.upgrade().filter(|host| *host.observed().notified().borrow() > after) else {
            return Vec::new();
        };
        let query =
            NotificationQuery { after, limit: MAX_NOTIFICATIONS, order: Order::Newest, ..NotificationQuery::default() };
        let last = match host.notifications(&query) {
            Ok(page) => page.notifications,
            Err(error) => {
                tracing::warn!("notifications can't be read for a conversation: {error}");
                return Vec::new();
            }
        };
        let mut before = after;
        let facts = |one: Notification| {
            // Those of before its beginning are nothing that a conversation misses.
            let between = if before == 0 { 0 } else { one.sequence.saturating_sub(before + 1) };
            before = one.sequence;
            NotificationFacts {
                sequence: one.sequence,
                feature: one.feature.into(),
                text: one.text,
                left_out: one.left_out + between,
            }
        };
        last.into_iter().rev().filter(|one| one.at >= since).map(facts).collect()
    }

    fn call<'a>(&'a self, caller: &'a Caller, call: ToolCall, cancelled: CancellationToken) -> Later<'a, Called> {
        Box::pin(async move {
            let Some(host) = self.0.upgrade() else { return Called::Failed("the host is stopping".to_owned()) };
            let ToolCall { tool, args, approved: confirmation } = call;
            // A person agreed to this call, as a person agrees to one of any agent.
            let caller = if confirmation.is_some() { caller.clone().by_elicitation() } else { caller.clone() };
            let request = ToolRequest { args, confirmed: confirmation.is_some(), confirmation };
            match host.call_tool(&caller, &tool, request, cancelled, Arc::new(|_, _| {})).await {
                Ok(ToolResult { result, plans, remarks }) => Called::Done { result, plans, remarks },
                Err(ToolError::NeedsConfirmation { confirmation: Some(asked), .. }) => {
                    let Confirmation { id, expires_in_ms, tool, effect, shown, phrase } = *asked;
                    Called::Asks(Box::new(Approval { id, tool, effect, shown, phrase, expires_in_ms }))
                }
                Err(error) => Called::Failed(error.to_string()),
            }
        })
    }

    fn plan_description(&self, plan: &str) -> Option<String> {
        self.0.upgrade()?.plan_description(plan)
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use conductor_chat::record::{ChatEvent, Recorded};
    use conductor_chat::tools::caller;
    use serde_json::json;

    use super::*;

    /// What watchers get of an event that was kept as the seventh of the conversation 3.
    fn seen(event: ChatEvent) -> Value {
        let recorded = Recorded { number: 7, at: 0, event };
        match observation(ChatUpdate::Event { conversation: 3, event: &recorded }) {
            Observation::Chat(ChatChange { conversation: 3, number: 7, event }) => {
                serde_json::from_str(&event).unwrap()
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_long_text_of_an_event_is_cut_for_watchers_and_nothing_else() {
        let whole = "x".repeat(MAX_TEXT);
        assert_eq!(seen(ChatEvent::Text { text: whole.clone() }), json!({ "kind": "text", "text": whole }));
        // A character of two bytes lies over the limit.
        let text = format!("{}é and more", "x".repeat(MAX_TEXT - 1));
        let cut = format!("{}…", "x".repeat(MAX_TEXT - 1));
        assert_eq!(seen(ChatEvent::Text { text: text.clone() })["text"], cut);

        let call = ChatEvent::Call { call: "c1".to_owned(), tool: "look".to_owned(), args: text, mark: None };
        let told = json!({ "kind": "call", "call": "c1", "tool": "look", "args": cut });
        assert_eq!(seen(call), told);
    }

    #[test]
    fn watchers_hear_how_a_model_is() {
        let health = |error| observation(ChatUpdate::Health { model: "m", error });
        let change = |error: Option<&str>| {
            Observation::Model(ModelChange { model: "m".to_owned(), error: error.map(str::to_owned) })
        };
        for error in [None, Some("it is gone")] {
            assert_eq!(format!("{:?}", health(error)), format!("{:?}", change(error)));
        }
    }

    #[test]
    fn conversations_outlive_their_host_and_find_nothing_there() {
        let gone = OfHost(Weak::new(), Arc::new(Library::of(Vec::new())));
        assert!(gone.models().is_none());
        assert!(gone.list().is_empty() && gone.skills().is_empty() && gone.notifications(0, 0).is_empty());
        assert_eq!(gone.plan_description("p1"), None);
        assert_eq!(gone.read_skill("any", None), Err("the host is stopping".to_owned()));

        let caller = caller(1);
        let call = ToolCall { tool: "look".to_owned(), args: serde_json::Map::new(), approved: None };
        let mut made = gone.call(&caller, call, CancellationToken::new());
        let Poll::Ready(called) = made.as_mut().poll(&mut Context::from_waker(Waker::noop())) else {
            panic!("a call of a host that is gone waits");
        };
        assert_eq!(called, Called::Failed("the host is stopping".to_owned()));
    }
}
