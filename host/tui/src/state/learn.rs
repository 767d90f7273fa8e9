//! Learning: which control was moved, and what it should do.

use std::time::Duration;

use conductor_host::host::status::Status;
use conductor_learn_mapping::{
    Control, Learned, action_form::ActionForm, action_keys::ActionKey, device_light::DeviceLight,
};
use conductor_terminal::typed::Line;
use serde_json::Value;

use super::State;
use super::overlay::{Overlay, Prompt, Purpose};
use crate::api::{Act, Proposal, Query};
use crate::input::Screen;

/// How long a control has to rest before what was moved is asked for; longer than the pause in a double tap.
const SETTLE_TIME: Duration = Duration::from_millis(700);
/// The same for devices that never rest, since they send a clock.
const MAX_SETTLE: Duration = Duration::from_secs(3);

/// How far learning is.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) enum Listening {
    #[default]
    No,
    /// The host is asked to listen.
    Starting,
    /// It listens, in this session.
    Yes { session: u64 },
}

/// Learning.
#[derive(Debug, Default)]
pub(crate) struct Learn {
    pub(crate) listening: Listening,
    /// The only device that is listened to.
    pub(crate) device: Option<String>,
    /// Events that ports had counted.
    pub(super) count: Option<u64>,
    /// When the first and the last of what was not asked for yet was moved.
    pub(super) moved: Option<(Duration, Duration)>,
    pub(crate) learned: Learned,
    pub(crate) at: usize,
    /// The mode that the mapping is for; `None` for every mode.
    pub(crate) mode: Option<String>,
    pub(crate) any: bool,
    /// Whether the mapping waits for the control alone, whatever gesture was made of it.
    pub(crate) is_plain: bool,
    /// Whether something was moved that the host was not asked for yet.
    pub(crate) is_moving: bool,
    pub(crate) actions: Vec<(String, String)>,
    /// The place in the list of those that begin as what is typed.
    pub(crate) action_at: usize,
    /// The action whose name is typed, and the keys that it takes.
    pub(crate) keys: Option<(String, Vec<ActionKey>)>,
    /// The action whose keys came last, and their JSON Schema.
    pub(super) schema: Option<(String, Value)>,
    /// The action that is to be filled in once its schema is known.
    pub(super) wanted: Option<Value>,
    /// The form that is filled in, or was last.
    pub(crate) form: Option<ActionForm>,
    /// The place of the mapping whose action is typed; `None` if it is the action of a new one.
    pub(crate) changed: Option<String>,
    /// The device whose profile was asked for last and is known, and its lights.
    pub(crate) lights: Option<(String, Vec<DeviceLight>)>,
    /// What was typed for the light of the mapping that is made.
    pub(crate) light_text: String,
    /// Why the action that was typed last was refused.
    pub(crate) refused: Option<String>,
}

impl State {
    /// The session of learn that has to be ended when the program does.
    pub(crate) fn session(&self) -> Option<u64> {
        match self.learn.listening {
            Listening::Yes { session } => Some(session),
            _ => None,
        }
    }

    /// Looks whether something was moved, and once it rests asks for what it was.
    pub(super) fn take_count(&mut self, status: &Status) {
        let is_meant = |device: &str, bindings: &[String]| {
            self.learn.device.as_ref().is_none_or(|wanted| wanted == device || bindings.contains(wanted))
        };
        let ports = status.ports.ports.iter().filter(|port| is_meant(&port.device, &port.bindings));
        let count = ports.map(|port| port.events + port.unheard).sum();
        let before = self.learn.count.replace(count);
        if before.is_some_and(|before| before != count) {
            let first = self.learn.moved.map_or(self.now, |(first, _)| first);
            self.learn.moved = Some((first, self.now));
            self.learn.is_moving = true;
        }
        // The control that an action is typed for stays chosen; what is moved meanwhile is asked for afterwards.
        let Some((first, last)) = self.learn.moved.filter(|_| !self.is_typing_action()) else { return };
        if self.now - last >= SETTLE_TIME || self.now - first >= MAX_SETTLE {
            self.learn.moved = None;
            if let Some(session) = self.session() {
                self.requests.ask(Query::Learned { session });
            }
        }
    }

    pub(super) fn listen(&mut self, device: Option<String>) {
        self.learn.learned = Learned::default();
        (self.learn.is_plain, self.learn.is_moving) = (false, false);
        self.learn.device.clone_from(&device);
        self.learn.listening = Listening::Starting;
        self.requests.act(Act::Listen { device });
    }

    pub(super) fn stop_listening(&mut self) {
        if let Some(session) = self.session() {
            self.learn.listening = Listening::No;
            self.requests.act(Act::StopListening { session });
        }
    }

    /// Takes in what was moved. An answer that comes while an action is typed is dropped, and asked for again afterwards:
    /// the action is for the control that was chosen.
    pub(super) fn take_learned(&mut self, learned: Learned) {
        if self.is_typing_action() {
            self.learn.moved.get_or_insert((self.now, self.now));
            return;
        }
        self.learn.at = 0;
        (self.learn.is_plain, self.learn.is_moving) = (false, false);
        self.learn.learned = learned;
    }

    /// Whether the line in front is one for an action, or for the light of its mapping.
    pub(super) fn is_typing_action(&self) -> bool {
        let Some(Overlay::Line(Prompt { purpose, .. })) = &self.overlay else { return false };
        matches!(purpose, Purpose::Action | Purpose::Field(_) | Purpose::Light(_))
    }

    /// Whether there is something to complete the line in front with.
    pub(super) fn can_complete(&self) -> bool {
        let is_action = matches!(&self.overlay, Some(Overlay::Line(Prompt { purpose: Purpose::Action, .. })));
        is_action || self.typed_field().is_some() || self.typed_light().is_some()
    }

    /// Asks what the chosen control, or the mapping that is changed, should do; what stands in front of the screen stays there. An
    /// action that a form came to is asked for by that form. Returns whether it asks.
    pub(super) fn ask_action(&mut self, text: &str) -> bool {
        let screen = if self.learn.changed.is_some() { Screen::Mappings } else { Screen::Learn };
        let is_free = self.screen == screen && self.overlay.is_none();
        if is_free {
            let form = self.learn.form.as_ref().filter(|form| form.line() == text);
            match form.and_then(|form| form.fields().into_iter().next()) {
                Some(first) => self.ask_field(&first.name, None),
                None => self.ask_action_line(text),
            }
            self.look_for_lights();
        }
        is_free
    }

    /// Asks again for an action that was refused, for the control that it was typed for. Returns whether it asks.
    pub(super) fn ask_action_again(&mut self, proposal: &Proposal, why: &str) -> bool {
        if self.overlay.is_some() {
            return false;
        }
        self.learn.changed = None;
        let asks = self.ask_action(&proposal.action);
        if asks {
            self.learn.learned.clone_from(&proposal.learned);
            (self.learn.at, self.learn.is_plain) = (proposal.control, proposal.is_plain);
            self.learn.refused = Some(why.to_owned());
            self.look_for_lights();
        }
        asks
    }

    /// Asks again for the action of a mapping that was refused. Returns whether it asks.
    pub(super) fn ask_change_again(&mut self, place: &str, action: &str, why: &str) -> bool {
        if self.overlay.is_some() {
            return false;
        }
        self.learn.changed = Some(place.to_owned());
        let asks = self.ask_action(action);
        if asks {
            self.learn.refused = Some(why.to_owned());
        }
        asks
    }

    /// What a control is called, as its events are: by its device's profile, where that is known, and else by what it is.
    pub(crate) fn name_of<'c>(&'c self, control: &'c Control) -> &'c str {
        self.live.control_of(&control.device, &control.last).unwrap_or(&control.kind)
    }

    /// Whether a gesture was made of the chosen control.
    pub(super) fn has_gesture(&self) -> bool {
        self.learn.learned.controls.get(self.learn.at).is_some_and(|control| control.gesture().is_some())
    }

    /// Writes what is certain of an action: the name that only one begins with, and then the keys that it needs. For a light, the
    /// next colour; of a form, the next field.
    pub(super) fn complete(&mut self) {
        if self.typed_field().is_some() {
            self.step_field(1, true);
            return;
        }
        if self.typed_light().is_some() {
            self.complete_light();
            return;
        }
        let Some(Overlay::Line(Prompt { line, purpose: Purpose::Action, .. })) = &mut self.overlay else { return };
        let typed = line.text().trim().to_owned();
        let keys = self.learn.keys.as_ref().filter(|(name, _)| name.eq_ignore_ascii_case(&typed));
        let mut fitting = self.learn.actions.iter().filter(|(name, _)| begins(name, &typed));
        let completed = match (keys, fitting.next(), fitting.next()) {
            (Some((name, keys)), ..) => with_needed(name, keys),
            (None, Some((name, _)), None) => Some(Line::between(name, "")),
            _ => None,
        };
        if let Some(completed) = completed {
            *line = completed;
            self.typed();
        }
    }

    /// Asks for the keys of the action whose whole name is typed.
    pub(super) fn look_for_keys(&mut self, text: &str) {
        let typed = text.split([' ', '{']).next().unwrap_or_default();
        let named = self.learn.actions.iter().map(|(name, _)| name).find(|name| name.eq_ignore_ascii_case(typed));
        if let Some(name) = named
            && self.learn.keys.as_ref().is_none_or(|(known, _)| known != name)
        {
            let name = name.clone();
            self.requests.ask(Query::ActionKeys(name.clone()));
            // Until they are there, so that the next key pressed does not ask again.
            self.learn.keys = Some((name, Vec::new()));
        }
    }
}

/// Whether the name of an action, with that of its feature or without, begins as what is typed.
pub(crate) fn begins(name: &str, typed: &str) -> bool {
    let (name, typed) = (name.to_lowercase(), typed.to_lowercase());
    let short = name.rsplit(':').next().unwrap_or_default();
    short.starts_with(&typed) || name.starts_with(&typed)
}

/// An action with the keys that it needs, and the cursor in the value of the first. `None` if it needs none.
fn with_needed(name: &str, keys: &[ActionKey]) -> Option<Line> {
    let quote = |key: &ActionKey| if key.is_text { "\"" } else { "" };
    let mut needed = keys.iter().filter(|key| key.required);
    let first = needed.next()?;
    let further: String = needed.map(|key| format!(", {} = {q}{q}", key.name, q = quote(key))).collect();
    let behind = format!("{}{further} }}", quote(first));
    Some(Line::between(&format!("{name} {{ {} = {}", first.name, quote(first)), &behind))
}
