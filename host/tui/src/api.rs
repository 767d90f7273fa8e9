//! The side of the shell that talks to the host: what is asked and answered, and the threads that do it.
//!
//! One thread follows the event stream, and after a loss goes on from the last cursor. Others ask, each for one kind of
//! request, so that what takes long delays nothing else: applying a plan may take minutes, and questions do not wait for it.

use std::collections::BTreeMap;
use std::path::Path;
use std::thread;
use std::time::Duration;

use conductor_api::client::{AskError, Client};
use conductor_api::types::{ApprovalAnswer, ConversationEvents, Say, SetLock, StreamItem, StreamQuery};
use conductor_chat::record::Recorded;
use conductor_chat::store::{ConversationQuery, ConversationView};
use conductor_config_view::ConfigView;
use conductor_host::control::gate::{ToolRequest, ToolResult};
use conductor_host::control::plan::PlanSummary;
use conductor_host::host::PlanView;
use conductor_host::host::status::Status;
use conductor_install::receipt::{FeatureInstallReport, What};
use conductor_learn_mapping::{
    self as learn_mapping, HeldLight, LearnError, Learned, Started, device_light, known_actions,
};
use conductor_package::Contributions;
use crossbeam_channel::{Receiver, Sender, unbounded};
use serde_json::{Value, json};

/// How long the shell waits between two tries to reach a host.
const RETRY_INTERVAL: Duration = Duration::from_millis(500);
/// Events of a conversation that are read at once.
const MAX_PAGE: usize = 2000;

/// What can be asked. Of each, one request at a time is under way.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Query {
    Status,
    Plans,
    /// What undo and redo would do.
    Steps,
    Config,
    Actions,
    /// Which installed features a person has disabled: the status has those of the configuration only.
    DisabledFeatures,
    /// The keys of an action of this type.
    ActionKeys(String),
    /// The lights of a device, as its profile has them.
    Lights(String),
    Conversations,
    /// A plan by its id.
    Plan(String),
    /// What happened in a conversation after an event.
    Conversation {
        id: u64,
        after: u64,
    },
    /// Which rules look at an event, and why they fire or not.
    Explain {
        device: String,
        event: String,
    },
    /// What was moved in a session of learn.
    Learned {
        session: u64,
    },
}

/// What can be done.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Act {
    Apply {
        id: String,
    },
    Reject {
        id: String,
    },
    Undo,
    Redo,
    SwitchMode {
        mode: String,
    },
    Lock {
        locked: bool,
    },
    Mute {
        device: String,
        muted: bool,
    },
    SetUp {
        device: String,
    },
    Lift {
        feature: String,
    },
    Enable {
        feature: String,
    },
    Disable {
        feature: String,
    },
    Begin,
    Say {
        id: u64,
        text: String,
    },
    CancelTurn {
        id: u64,
    },
    Approve {
        conversation: u64,
        answer: Answer,
    },
    Listen {
        device: Option<String>,
    },
    StopListening {
        session: u64,
    },
    Propose(Box<Proposal>),
    /// Has the mapping at a place do this, as a person typed it.
    ChangeAction {
        place: String,
        action: String,
    },
    /// Has a tool propose a plan.
    ProposeBy {
        tool: &'static str,
        args: Value,
    },
}

/// A person's answer to a call that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) id: String,
    pub(crate) agreed: bool,
    pub(crate) phrase: Option<String>,
}

/// A mapping of a control that was learned.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Proposal {
    pub(crate) learned: Learned,
    /// Which of the controls.
    pub(crate) control: usize,
    /// What the control is called.
    pub(crate) name: String,
    /// What it is to do, as a person typed it.
    pub(crate) action: String,
    /// `None` for every mode.
    pub(crate) mode: Option<String>,
    pub(crate) any: bool,
    /// Whether the control alone is meant, whatever gesture was made of it.
    pub(crate) is_plain: bool,
    pub(crate) light: Option<HeldLight>,
}

/// A request to the host.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Request {
    Query(Query),
    Act(Act),
}

/// What the host answered.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    Status(Box<Status>),
    Plans(Vec<PlanSummary>),
    /// What undo and redo would do; each says why not otherwise.
    Steps {
        undo: Result<String, String>,
        redo: Result<String, String>,
    },
    Config(Box<ConfigView>),
    /// The types of actions, and what each does.
    Actions(Vec<(String, String)>),
    /// Names of installed features that a person has disabled.
    DisabledFeatures(Vec<String>),
    /// An action, and the JSON Schema of the keys that it takes.
    ActionKeys(String, Value),
    /// A device, and its lights.
    Lights(String, Vec<device_light::DeviceLight>),
    Conversations(Vec<ConversationView>),
    Plan(Box<PlanView>),
    Conversation(Vec<Recorded>),
    Explained(Vec<Explained>),
    Learned(Box<Learned>),
    /// It is done; a sentence for a person, if there is more to say than that.
    Done(String),
    /// The conversation that was begun.
    Begun(u64),
    /// The session of learn that was begun.
    Listening(u64),
    /// The plan that was proposed.
    Proposed(String),
}

/// A rule that queries at an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Explained {
    pub(crate) rule: String,
    pub(crate) fires: bool,
    pub(crate) why: String,
}

/// What the host has to say to the state.
#[derive(Debug)]
pub(crate) enum FromHost {
    /// The event stream goes on. The status is as of now.
    Connected(Box<Status>),
    /// It does not, for this reason; it is tried again.
    Lost(String),
    Item(Box<StreamItem>),
    Answered {
        request: Box<Request>,
        result: Result<Reply, String>,
    },
}

/// Follows the event stream for good. `last` is the cursor of the last item that came.
pub(crate) fn follow(home: &Path, sender: Sender<FromHost>) -> std::io::Result<()> {
    let client = Client::new(home);
    thread::Builder::new().name("stream".into()).spawn(move || {
        // What the host still has of before is of use, too.
        let mut last = "start".to_owned();
        loop {
            let connected = client.status().map(|status| sender.send(FromHost::Connected(Box::new(status))));
            let ended = match connected {
                Ok(Ok(())) => {
                    let which = StreamQuery { after: Some(last.clone()), kinds: None };
                    client.events(&which, |item| {
                        last.clone_from(&item.cursor);
                        sender.send(FromHost::Item(Box::new(item))).is_ok()
                    })
                }
                Ok(Err(_)) => return,
                Err(error) => Err(error),
            };
            let why = ended.map_or_else(|error| error.to_string(), |()| "the host has stopped".to_owned());
            if sender.send(FromHost::Lost(why)).is_err() {
                return;
            }
            thread::sleep(RETRY_INTERVAL);
        }
    })?;
    Ok(())
}

/// The threads that ask.
#[derive(Debug)]
pub(crate) struct Askers {
    queries: Sender<Request>,
    acts: Sender<Request>,
    chat: Sender<Request>,
}

impl Askers {
    /// Starts them.
    pub(crate) fn start(home: &Path, answers: &Sender<FromHost>) -> std::io::Result<Self> {
        let start = |name: &str| -> std::io::Result<Sender<Request>> {
            let (sender, requests) = unbounded();
            let (client, answers) = (Client::new(home), answers.clone());
            thread::Builder::new().name(name.into()).spawn(move || serve(&client, &requests, &answers))?;
            Ok(sender)
        };
        Ok(Self { queries: start("queries")?, acts: start("acts")?, chat: start("chat")? })
    }

    /// Asks; the answer comes through the channel.
    pub(crate) fn ask(&self, request: Request) {
        let lane = match &request {
            Request::Query(Query::Conversation { .. } | Query::Conversations)
            | Request::Act(Act::CancelTurn { .. } | Act::Approve { .. } | Act::Say { .. }) => &self.chat,
            Request::Query(_) => &self.queries,
            Request::Act(_) => &self.acts,
        };
        // It ends with the program only.
        let _ = lane.send(request);
    }
}

fn serve(client: &Client, requests: &Receiver<Request>, answers: &Sender<FromHost>) {
    for request in requests {
        let result = match &request {
            Request::Query(query) => answer(client, query),
            Request::Act(act) => done(client, act),
        };
        if answers.send(FromHost::Answered { request: Box::new(request), result }).is_err() {
            return;
        }
    }
}

fn answer(client: &Client, query: &Query) -> Result<Reply, String> {
    let reply = match query {
        Query::Status => client.status().map(|status| Reply::Status(Box::new(status))),
        Query::Plans => client.plans().map(Reply::Plans),
        Query::Steps => {
            let said = |step: Result<conductor_api::types::NextStep, AskError>| match step {
                Ok(step) => Ok(Ok(step.description)),
                Err(AskError::ApiError(why)) => Ok(Err(why)),
                Err(error) => Err(error),
            };
            said(client.next_undo()).and_then(|undo| Ok(Reply::Steps { undo, redo: said(client.next_redo())? }))
        }
        Query::Config => {
            let in_force = client.config().map_err(|error| error.to_string())?;
            return ConfigView::read(&in_force.file, &in_force.text).map(|config| Reply::Config(Box::new(config)));
        }
        Query::Actions => known_actions::list(|args| tool(client, known_actions::TOOL, args).map(|page| page.result))
            .map(Reply::Actions),
        Query::DisabledFeatures => client.receipts().map(|receipts| Reply::DisabledFeatures(disabled(&receipts))),
        Query::ActionKeys(action) => {
            let asked = tool(client, "conductor_list_actions", &json!({ "type": action }));
            asked.map(|answer| Reply::ActionKeys(action.clone(), answer.result["actions"][0]["keys"].clone()))
        }
        Query::Lights(device) => {
            let asked = tool(client, "conductor_get_device_profile", &json!({ "port": device, "drawing": true }));
            asked.map(|profile| Reply::Lights(device.clone(), device_light::lights(&profile.result)))
        }
        Query::Conversations => client.conversations(&ConversationQuery::default()).map(Reply::Conversations),
        Query::Plan(id) => client.plan(id).map(|plan| Reply::Plan(Box::new(plan))),
        Query::Conversation { id, after } => {
            let mut events = Vec::new();
            let which = ConversationEvents { after: *after, follow: false };
            let read = client.conversation_events(*id, &which, |event| {
                events.push(event);
                events.len() < MAX_PAGE
            });
            read.map(|()| Reply::Conversation(events))
        }
        Query::Explain { device, event } => {
            let asked = json!({ "device": device, "event": event });
            tool(client, "conductor_explain_event", &asked).map(|ToolResult { result, .. }| {
                let rules = result["rules"].as_array().map(Vec::as_slice).unwrap_or_default();
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                let rule = |rule: &Value| Explained {
                    rule: text(&rule["rule"]),
                    fires: rule["fires"].as_bool().unwrap_or_default(),
                    why: text(&rule["why"]),
                };
                Reply::Explained(rules.iter().map(rule).collect())
            })
        }
        Query::Learned { session } => {
            let asked = json!({ "keep": true, "session": session });
            let ToolResult { result, .. } =
                tool(client, "conductor_stop_learn", &asked).map_err(|error| error.to_string())?;
            return serde_json::from_value(result)
                .map(|learned| Reply::Learned(Box::new(learned)))
                .map_err(|error| format!("what conductor_stop_learn returned is not understood: {error}"));
        }
    };
    reply.map_err(|error| error.to_string())
}

/// Names of the features that are disabled by their last receipt.
fn disabled(receipts: &[FeatureInstallReport]) -> Vec<String> {
    let last: BTreeMap<&str, &FeatureInstallReport> =
        receipts.iter().map(|receipt| (receipt.feature.as_str(), receipt)).collect();
    let is_disabled = |receipt: &&FeatureInstallReport| !receipt.enabled && receipt.what != What::Remove;
    last.into_values().filter(is_disabled).map(|receipt| receipt.feature.clone()).collect()
}

fn done(client: &Client, act: &Act) -> Result<Reply, String> {
    let nothing = Contributions::default();
    let said = |text: String| Reply::Done(text);
    let reply = match act {
        Act::Apply { id } => client.apply_plan(id).map(|done| said(format!("applied: {}", done.description))),
        Act::Reject { id } => client.reject_plan(id).map(|()| said("rejected".into())),
        Act::Undo => client.undo().map(|done| said(format!("taken back: {}", done.description))),
        Act::Redo => client.redo().map(|done| said(format!("applied again: {}", done.description))),
        Act::SwitchMode { mode } => client.switch_mode(mode).map(|done| said(format!("mode: {}", done.mode))),
        Act::Lock { locked } => {
            let lock = SetLock { locked: *locked, persistent: false };
            client.set_lock(lock).map(|_| said(if *locked { "locked" } else { "unlocked" }.into()))
        }
        Act::Mute { device, muted } => client.mute(device, *muted).map(|done| {
            said(if done.muted {
                format!("{device} is muted until the host ends")
            } else {
                format!("{device} is heard")
            })
        }),
        Act::SetUp { device } => {
            return proposed_by(client, "conductor_suggest_setup", &json!({ "port": device }));
        }
        Act::Lift { feature } => {
            client.lift_quarantine(feature).map(|_| said(format!("the quarantine of {feature} has ended")))
        }
        Act::Enable { feature } => client.enable(feature, &nothing).map(|_| said(format!("{feature} is enabled"))),
        Act::Disable { feature } => client.disable(feature, &nothing).map(|_| said(format!("{feature} is disabled"))),
        Act::Begin => client.begin_conversation(None).map(|view| Reply::Begun(view.id)),
        Act::Say { id, text } => client.say(*id, &Say { text: text.clone(), model: None }).map(|_| said(String::new())),
        Act::CancelTurn { id } => client.cancel_turn(*id).map(|()| said("the turn is cancelled".into())),
        Act::Approve { conversation, answer: Answer { id, agreed, phrase } } => {
            let answer = ApprovalAnswer { id: id.clone(), agreed: *agreed, phrase: phrase.clone() };
            client.approve(*conversation, &answer).map(|()| said(String::new()))
        }
        Act::Listen { device } => {
            let asked = device.as_ref().map_or_else(|| json!({}), |device| json!({ "device": device }));
            let name = "conductor_start_learn";
            let ToolResult { result, .. } = tool(client, name, &asked).map_err(|error| error.to_string())?;
            let started = learn_mapping::understood(name, &result);
            let Started { session } = started.map_err(|error: LearnError<AskError>| error.to_string())?;
            return Ok(Reply::Listening(session));
        }
        Act::StopListening { session } => {
            tool(client, "conductor_stop_learn", &json!({ "session": session })).map(|_| said(String::new()))
        }
        Act::Propose(proposal) => return proposed(client, proposal),
        Act::ProposeBy { tool, args } => return proposed_by(client, tool, args),
        Act::ChangeAction { place, action } => {
            let mut call = |name: &str, args: &Value| tool(client, name, args).map(|answer| answer.result);
            let action = learn_mapping::action(&mut call, action).map_err(|error| error.to_string())?;
            return proposed_by(client, "conductor_update_mapping", &json!({ "place": place, "action": action }));
        }
    };
    reply.map_err(|error| error.to_string())
}

/// Calls a tool that needs no confirmation.
fn tool(client: &Client, name: &str, args: &Value) -> Result<ToolResult, AskError> {
    let args = args.as_object().cloned().unwrap_or_default();
    client.call_tool(name, &ToolRequest { args, confirmed: false, confirmation: None })
}

/// Ends a session of learn: nothing is listened to any longer.
///
/// # Errors
/// Those of the host.
pub(crate) fn stop_listening(home: &Path, session: u64) -> Result<(), AskError> {
    tool(&Client::new(home), "conductor_stop_learn", &json!({ "session": session })).map(drop)
}

/// Has a tool propose a plan.
fn proposed_by(client: &Client, name: &str, args: &Value) -> Result<Reply, String> {
    let made = tool(client, name, args).map_err(|error| error.to_string())?;
    let plan = made.plan().map(str::to_owned);
    plan.map(Reply::Proposed).ok_or_else(|| "the tool proposed no plan".into())
}

fn proposed(client: &Client, proposal: &Proposal) -> Result<Reply, String> {
    let Proposal { learned, control, name, action, mode, any, is_plain, light } = proposal;
    let Some(control) = learned.controls.get(*control) else { return Err("no control is chosen".into()) };
    let mut control = control.clone();
    if *is_plain {
        control.gestures.clear();
    }
    let mut plan = None;
    // Which plan it is, is the host's word, not the tool's.
    let mut call = |name: &str, args: &Value| {
        tool(client, name, args).map(|ToolResult { result, plans, .. }| {
            plan = plans.into_iter().last().or(plan.take());
            result
        })
    };
    let said = |error: LearnError<AskError>| error.to_string();
    let value = learn_mapping::action(&mut call, action).map_err(said)?;
    let wanted = learn_mapping::MappingRequest {
        action: &value,
        text: action,
        name,
        mode: mode.as_deref(),
        any: *any,
        light: light.as_ref(),
    };
    let config = || client.config().map(|in_force| in_force.text);
    learn_mapping::propose(&mut call, config, learned, &control, wanted).map_err(said)?;
    plan.map(Reply::Proposed).ok_or_else(|| "the tool proposed no plan".into())
}
