//! The host as services for features see it.

use std::sync::{Arc, PoisonError, RwLock};

use conductor_engine::{DeviceId, Event, MidiMessage, MidiParser, Nanos, RuleSetHandle};
use crossbeam_channel::Sender;

use crate::config::{self, Source};
use crate::control::plan::Plan;
use crate::dispatch::Action;
use crate::dispatch::midi_out::MidiJob;
use crate::dispatch::outputs::Outputs;
use crate::event_loop::Input;
use crate::observer::{Observation, Observed, Observer, PlanNews, PlanStep};
use crate::ports::supervisor::{PortState, PortsReader};
use crate::service::host_state::{HostView, MidiRefusal, PortView};

/// Everything that features may see of a running host, and the few ways in that they may be given.
#[derive(Debug)]
pub(super) struct View {
    pub(super) rules: Arc<RuleSetHandle<Action>>,
    pub(super) observer: Observer,
    pub(super) observed: Observed,
    pub(super) ports: PortsReader,
    pub(super) outputs: Outputs,
    pub(super) queue: Sender<Input>,
    /// The configuration in force: its text, and its file as messages show it.
    pub(super) config: RwLock<(String, String)>,
}

impl View {
    /// Another configuration is in force.
    pub(super) fn set_config(&self, source: &Source) {
        *self.config.write().unwrap_or_else(PoisonError::into_inner) =
            (source.text().to_owned(), source.file().to_owned());
    }
}

impl HostView for View {
    fn mode(&self) -> String {
        let first = || self.rules.load().modes().first().map(ToString::to_string);
        self.observed.mode().map(|mode| mode.to_string()).or_else(first).unwrap_or_default()
    }

    fn config(&self) -> String {
        self.config.read().unwrap_or_else(PoisonError::into_inner).0.clone()
    }

    fn config_file(&self) -> String {
        self.config.read().unwrap_or_else(PoisonError::into_inner).1.clone()
    }

    fn check_config(&self, text: &str) -> Result<(), String> {
        config::parse(text, &self.config_file()).map(drop).map_err(|wrong| wrong.render(false))
    }

    fn ports(&self) -> Vec<PortView> {
        let port = |port: crate::ports::supervisor::DiscoveredPort| PortView {
            name: port.port.name,
            protocol: port.port.protocol.to_string(),
            direction: port.port.direction.to_string(),
            state: match port.state {
                PortState::Open => "open".to_owned(),
                PortState::Idle => "closed".to_owned(),
                PortState::Ambiguous(binding) => format!("closed: another port could as well be {binding}"),
                PortState::Ignored => "closed: left alone by ignore_ports".to_owned(),
                PortState::OverLimit => "closed: there are too many".to_owned(),
                PortState::Failed(reason) => reason,
            },
            binding: port.binding,
        };
        self.ports.status().ports.into_iter().map(port).collect()
    }

    fn events(&self, limit: usize) -> Vec<(Nanos, DeviceId, Event)> {
        let records = self.observed.records();
        let last = records.len().saturating_sub(limit);
        records.into_iter().skip(last).map(|record| (record.at, record.device, record.event)).collect()
    }

    fn switch_mode(&self, mode: &str) -> Result<(), String> {
        let rules = self.rules.load();
        let modes: Vec<String> = rules.modes().iter().map(ToString::to_string).collect();
        if !modes.iter().any(|known| known == mode) {
            return Err(format!("there is no mode {mode:?}; there are {}", modes.join(", ")));
        }
        self.queue.send(Input::SetMode(mode.into())).map_err(|_| "the host is stopping".to_owned())
    }

    fn send_midi(&self, target: &str, message: &[u8]) -> Result<(), MidiRefusal> {
        let message = whole(message)?;
        let queue = self.outputs.queues().into_iter().find(|queue| **queue.name() == *target);
        let unavailable = |reason: String| MidiRefusal::Unavailable(format!("the output {target:?}: {reason}"));
        let queue = queue.ok_or_else(|| unavailable("no rule and no grant names it, so it is not open".into()))?;
        queue.try_put(MidiJob::Message(message)).map_err(|reason| unavailable(reason.to_string()))
    }

    fn plan_waits(&self, plan: &Plan) {
        let (who, description) = (plan.proposer.clone(), plan.description.clone());
        let news = PlanNews { step: PlanStep::Proposed, plan: Some(plan.id.clone()), who, description };
        self.observer.put(Observation::Plan(news));
    }
}

/// The bytes as exactly one message.
fn whole(bytes: &[u8]) -> Result<MidiMessage, MidiRefusal> {
    let mut messages = Vec::new();
    let mut parser = MidiParser::new();
    parser.push(bytes, &mut |message| messages.push(message));
    let clean = parser.stray_bytes() == 0 && parser.dropped_messages() == 0;
    let mut encoded = Vec::with_capacity(bytes.len());
    match messages.as_slice() {
        // What is left over after the message would be a second one's beginning.
        [one]
            if clean && {
                one.encode(&mut encoded);
                encoded.len() == bytes.len()
            } =>
        {
            Ok(messages.remove(0))
        }
        _ => Err(MidiRefusal::Invalid(format!("{} bytes that are not one whole MIDI message", bytes.len()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_whole_message_is_taken_and_nothing_else() {
        assert_eq!(whole(&[0x90, 60, 100]), Ok(MidiMessage::NoteOn { channel: 0, note: 60, velocity: 100 }));
        assert!(whole(&[0xf0, 1, 2, 0xf7]).is_ok());
        for wrong in
            [&[][..], &[0x90, 60], &[0x90, 60, 100, 61], &[60, 100], &[0xf0, 1], &[0xf8, 0xf8], &[0x90, 60, 100, 0x90]]
        {
            assert!(whole(wrong).is_err(), "{wrong:02x?}");
        }
    }
}
