//! What the host says, and what the state makes of it.

use std::time::Duration;

use conductor_api::types::StreamItem;
use conductor_host::host::status::Status;
use conductor_observation::ObservationView;

use super::chat::Conversation;
use super::learn::Listening;
use super::live::HIGHLIGHT_TIMEOUT;
use super::overlay::Overlay;
use super::{Link, State};
use crate::api::{Act, FromHost, Query, Reply, Request};
use crate::input::Screen;

impl State {
    /// Takes in what the host says.
    pub(crate) fn receive(&mut self, message: FromHost, now: Duration) {
        self.now = now;
        match message {
            FromHost::Connected(status) => {
                self.is_changed = true;
                self.link = Link::Up;
                self.take_status(status);
                self.ask_for_all();
            }
            FromHost::Lost(why) => {
                self.is_changed = true;
                let since = match self.link {
                    Link::Lost { since, .. } => since,
                    _ => now,
                };
                self.link = Link::Lost { since, why };
                // A session of a host that has ended has ended, too.
                self.learn.listening = Listening::No;
            }
            FromHost::Item(item) => self.take_item(&item),
            FromHost::Answered { request, result } => {
                self.is_changed = true;
                self.requests.answered(&request);
                match (*request, result) {
                    (Request::Query(query), result) => self.take_answer(query, result),
                    (Request::Act(act), Ok(reply)) => self.take_done(&act, reply),
                    (Request::Act(act), Err(why)) => self.take_refused(&act, why),
                }
            }
        }
    }

    /// Asks for everything that is shown, since it may be another by now.
    pub(super) fn ask_for_all(&mut self) {
        for query in [Query::Plans, Query::Steps, Query::Config, Query::Conversations, Query::DisabledFeatures] {
            self.requests.ask(query);
        }
        self.plans.views.clear();
        self.ask_for_chosen_plan();
        self.ask_for_conversation();
    }

    pub(super) fn take_item(&mut self, item: &StreamItem) {
        let what = &item.what;
        // Conversations are read from the host, which has all of them; that something came is the sign to.
        self.is_changed |= !matches!(what, ObservationView::Chat { .. } | ObservationView::Lights { .. });
        let age = self.age(what);
        self.live.take(what, self.now, age);
        match what {
            ObservationView::Event { device, event, rules, .. } => {
                if let Some(config) = self.config.as_ref().filter(|_| age < HIGHLIGHT_TIMEOUT) {
                    let fired = rules.iter().flat_map(|rule| config.meant(rule, device, event));
                    self.fired.extend(fired.map(|at| (at, self.now)));
                }
            }
            ObservationView::Mode { mode } => {
                if let Some(status) = &mut self.status {
                    status.mode = Some(mode.clone());
                }
            }
            ObservationView::Port { .. } | ObservationView::Lock { .. } => self.requests.ask(Query::Status),
            ObservationView::Reload { .. } => {
                self.requests.ask(Query::Status);
                self.requests.ask(Query::Config);
                self.requests.ask(Query::DisabledFeatures);
            }
            ObservationView::Plan { plan, .. } => {
                if let Some(plan) = plan {
                    self.plans.views.remove(plan);
                }
                self.requests.ask(Query::Plans);
                self.requests.ask(Query::Steps);
            }
            ObservationView::Chat { conversation, event, .. } => {
                let open = self.chat.open.as_ref().filter(|open| open.id == *conversation);
                if let Some(Conversation { id, last, .. }) = open {
                    self.requests.ask(Query::Conversation { id: *id, after: *last });
                }
                if matches!(event["kind"].as_str(), Some("message" | "turn_ended")) {
                    self.requests.ask(Query::Conversations);
                }
            }
            ObservationView::Gap { .. } => {
                self.requests.ask(Query::Status);
                self.ask_for_all();
            }
            ObservationView::Failure { .. }
            | ObservationView::Lights { .. }
            | ObservationView::Message { .. }
            | ObservationView::Model { .. } => {}
        }
    }

    /// How long ago something happened: a host sends what it still has of before.
    fn age(&self, what: &ObservationView) -> Duration {
        let (ObservationView::Event { at, .. }, Some((uptime, then))) = (what, self.host_clock) else {
            return Duration::ZERO;
        };
        (uptime + self.now.saturating_sub(then)).saturating_sub(Duration::from_nanos(*at))
    }

    pub(super) fn take_status(&mut self, status: Box<Status>) {
        self.host_clock = Some((Duration::from_nanos(status.uptime), self.now));
        self.live.counters(&status.ports, self.now);
        self.features.take(&status.features, self.now);
        if self.session().is_some() {
            self.take_count(&status);
        }
        self.mode_at = self.mode_at.min(status.modes.len().saturating_sub(1));
        self.status = Some(status);
        self.list_disabled();
    }

    pub(super) fn take_answer(&mut self, query: Query, result: Result<Reply, String>) {
        let reply = match (query, result) {
            (Query::Plan(id), Err(why)) => {
                self.plans.take_view(id, Err(why));
                return;
            }
            (Query::Explain { device, event }, result) => {
                if let Some(Overlay::Explanation(open)) = &mut self.overlay
                    && (&open.row.source, &open.row.text) == (&device, &event)
                {
                    open.rules = Some(result.map(|reply| match reply {
                        Reply::Explained(rules) => rules,
                        _ => Vec::new(),
                    }));
                }
                return;
            }
            (Query::ActionKeys(action), Err(why)) => {
                self.take_keys(action, Err(why));
                return;
            }
            (Query::Learned { .. }, Err(why)) => {
                self.learn.listening = Listening::No;
                self.notice(why, true);
                return;
            }
            (Query::Conversation { id, .. }, result) => {
                let open = self.chat.open.as_mut().filter(|open| open.id == id);
                if let (Some(open), Ok(Reply::Conversation(events))) = (open, result)
                    && !events.is_empty()
                {
                    events.into_iter().for_each(|event| open.take(event));
                    // There may be more than came at once, or have come meanwhile.
                    let query = Query::Conversation { id, after: open.last };
                    let plans: Vec<String> = open.waiting_plans().map(str::to_owned).collect();
                    self.requests.ask(query);
                    plans.into_iter().for_each(|plan| self.ask_for_plan(plan));
                }
                return;
            }
            // What can't be had is said where the host is; the next answer may have it.
            (_, Err(_)) => return,
            (_, Ok(reply)) => reply,
        };
        match reply {
            Reply::Status(status) => self.take_status(status),
            Reply::Plans(list) => self.take_plans(list),
            Reply::Steps { undo, redo } => self.plans.steps = Some((undo, redo)),
            Reply::Config(config) if self.config.as_ref() != Some(&config) => {
                self.fired.clear();
                self.config = Some(config);
                self.search();
            }
            Reply::DisabledFeatures(installed) => self.take_disabled(installed),
            Reply::Actions(actions) => self.learn.actions = actions,
            Reply::ActionKeys(action, schema) => self.take_keys(action, Ok(schema)),
            Reply::Lights(device, lights) => {
                self.learn.lights = Some((device, lights));
                self.name_light_line();
            }
            Reply::Conversations(list) => {
                let chosen = self.chat.list.get(self.chat.at).map(|view| view.id);
                let at = chosen.and_then(|id| list.iter().position(|view| view.id == id));
                self.chat.at = at.unwrap_or(0);
                self.chat.list = list;
            }
            Reply::Plan(view) => self.plans.take_view(view.plan.id.clone(), Ok(view)),
            Reply::Learned(learned) => self.take_learned(*learned),
            _ => {}
        }
    }

    pub(super) fn take_done(&mut self, act: &Act, reply: Reply) {
        match reply {
            Reply::Done(text) if !text.is_empty() => self.notice(text, false),
            Reply::Begun(id) => {
                self.chat.open = Some(Conversation::new(id));
                self.requests.ask(Query::Conversations);
                self.write(id, "", None);
            }
            Reply::Listening(session) => {
                self.learn.listening = Listening::Yes { session };
                // Something may be moved before its counters are read first.
                (self.learn.count, self.learn.moved) = (None, Some((self.now, self.now)));
                self.requests.ask(Query::Status);
            }
            Reply::Proposed(id) => {
                let asked_on = match act {
                    Act::SetUp { .. } => Screen::Live,
                    Act::ChangeAction { .. } | Act::ProposeBy { .. } => Screen::Mappings,
                    _ => Screen::Learn,
                };
                if self.screen == asked_on && self.overlay.is_none() {
                    self.screen = Screen::Plans;
                }
                self.requests.ask(Query::Plans);
                self.ask_for_plan(id.clone());
                self.plans.wanted = Some(id);
                if asked_on == Screen::Learn {
                    self.stop_listening();
                }
            }
            _ => {}
        }
        match act {
            Act::Apply { .. } | Act::Reject { .. } | Act::Undo | Act::Redo => {
                self.requests.ask(Query::Plans);
                self.requests.ask(Query::Steps);
                self.requests.ask(Query::Config);
                self.requests.ask(Query::Status);
                self.ask_for_conversation();
            }
            // What was not installed is changed in the configuration, by a step that can be undone.
            Act::Enable { .. } | Act::Disable { .. } => {
                self.requests.ask(Query::DisabledFeatures);
                self.requests.ask(Query::Steps);
                self.requests.ask(Query::Config);
                self.requests.ask(Query::Status);
            }
            Act::StopListening { .. } => self.learn.listening = Listening::No,
            Act::Say { .. } | Act::Approve { .. } | Act::CancelTurn { .. } => self.ask_for_conversation(),
            _ => self.requests.ask(Query::Status),
        }
    }

    pub(super) fn take_refused(&mut self, act: &Act, why: String) {
        match act {
            Act::Listen { .. } => self.learn.listening = Listening::No,
            Act::StopListening { .. } => {
                self.learn.listening = Listening::No;
                return;
            }
            // What was typed is not lost.
            Act::Say { id, text } => self.write(*id, text, Some(&why)),
            // Said beside the line, which stands where notices do: a notice would be seen when it is over.
            Act::Propose(proposal) if self.ask_action_again(proposal, &why) => return,
            Act::ChangeAction { place, action } if self.ask_change_again(place, action, &why) => return,
            Act::Apply { .. } | Act::Reject { .. } => self.requests.ask(Query::Plans),
            _ => {}
        }
        self.notice(why, true);
    }
}
