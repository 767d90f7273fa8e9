//! The light of a mapping that is made: whether there can be one, the output that it takes, and its line.

use conductor_learn_mapping::{HeldLight, Note, device_light, device_light::DeviceLight, likeness::most_alike};
use conductor_ports::status::{BindingStatus, DiscoveredPort, PortState};
use conductor_ports::{Direction, Protocol};
use conductor_terminal::typed::Line;
use serde_json::{Value, json};

use super::State;
use super::mappings::no_light;
use super::overlay::{Overlay, Prompt, Purpose};
use crate::api::{Act, Proposal, Query};

/// A mapping whose light is asked for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LightRequest {
    pub(crate) proposal: Proposal,
    note: Note,
    /// The output that the device's binding gets; `None` if it has one.
    pub(crate) output: Option<FreeOutput>,
}

/// An output that no binding has.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FreeOutput {
    pub(crate) label: String,
    matcher: Value,
}

impl State {
    /// Asks the host what the light of the chosen control can show, if it can have one.
    pub(super) fn look_for_lights(&mut self) {
        let device = self.learn.learned.controls.get(self.learn.at).map(|control| control.device.clone());
        if let Some(device) = device
            && self.pressed_note().is_some()
            && self.light_output().is_some()
            && self.learn.lights.as_ref().is_none_or(|(known, _)| *known != device)
        {
            self.requests.ask(Query::Lights(device));
        }
    }

    /// What is known of the light of a control that sends this note. `None` if no profile of the device is known.
    fn known_light(&self, note: Note) -> Option<Option<&DeviceLight>> {
        self.known_light_of(&self.learn.learned.controls.get(self.learn.at)?.device, note)
    }

    /// What is known of the light of this device's control that sends this note. `None` if no profile of the device is known.
    pub(super) fn known_light_of(&self, device: &str, note: Note) -> Option<Option<&DeviceLight>> {
        let (_, lights) = self.learn.lights.as_ref().filter(|(known, _)| known == device)?;
        Some(device_light::light_of(lights, note))
    }

    /// The light whose line is typed, as the device's profile has it.
    pub(crate) fn typed_light(&self) -> Option<&DeviceLight> {
        match &self.overlay {
            Some(Overlay::Line(Prompt { purpose: Purpose::Light(request), .. })) => {
                self.known_light(request.note).flatten()
            }
            Some(Overlay::Line(Prompt { purpose: Purpose::MappingLight(light), .. })) => {
                self.known_light_of(&light.device, light.note).flatten()
            }
            _ => None,
        }
    }

    /// Proposes a mapping; asks for its light first if it can have one.
    pub(super) fn propose(&mut self, proposal: Proposal) {
        let note = self.pressed_note();
        // A device that is known has no light but those of its profile.
        let note = note.filter(|note| self.known_light(*note).is_none_or(|light| light.is_some()));
        match note.zip(self.light_output()) {
            Some((note, output)) => {
                let line = Line::new(&self.learn.light_text);
                let request = Box::new(LightRequest { proposal, note, output });
                self.overlay = Some(Overlay::Line(Prompt::new("", line, Purpose::Light(request))));
                self.name_light_line();
            }
            None => self.requests.act(Act::Propose(Box::new(proposal))),
        }
    }

    /// Has the line for a light say what can be typed.
    pub(super) fn name_light_line(&mut self) {
        let what = if self.typed_light().is_some() { "Tab: colours" } else { "0 to 127" };
        if let Some(Overlay::Line(Prompt { purpose: Purpose::Light(_) | Purpose::MappingLight(_), asks, .. })) =
            &mut self.overlay
        {
            *asks = format!("light while it is held ({what}; empty: none)");
        }
    }

    /// Proposes the mapping with the light that was typed, or asks again.
    pub(super) fn submit_light(&mut self, request: Box<LightRequest>, text: &str) {
        text.clone_into(&mut self.learn.light_text);
        let known = self.known_light(request.note).flatten();
        let mut proposal = request.proposal.clone();
        if !text.is_empty() {
            let Some(on) = device_light::value(known, text) else {
                let why = no_light(known);
                let again = Prompt::new("", Line::new(text), Purpose::Light(request));
                self.overlay = Some(Overlay::Line(Prompt { refused: Some(why.to_owned()), ..again }));
                self.name_light_line();
                return;
            };
            let output = request.output.as_ref().map(|output| output.matcher.clone());
            proposal.light = Some(HeldLight { output, ..HeldLight::shown(known, on) });
        }
        self.requests.act(Act::Propose(Box::new(proposal)));
    }

    /// Writes the next colour.
    pub(super) fn complete_light(&mut self) {
        let Some(Overlay::Line(Prompt { line, .. })) = &self.overlay else { return };
        let typed = line.text().trim().to_owned();
        let Some(next) = self.typed_light().and_then(|light| light.next_colour(&typed)).map(Line::new) else { return };
        self.edit(|line| *line = next);
    }

    /// The note whose press the mapping of the chosen control would wait for.
    fn pressed_note(&self) -> Option<Note> {
        let mut control = self.learn.learned.controls.get(self.learn.at)?.clone();
        if self.learn.is_plain {
            control.gestures.clear();
        }
        Note::pressed(&control)
    }

    /// Where the light of the chosen control is set: an output that the device's binding gets, or `Some(None)` for its own. `None` if
    /// there is no output.
    fn light_output(&self) -> Option<Option<FreeOutput>> {
        let learned = &self.learn.learned;
        let control = learned.controls.get(self.learn.at)?;
        let status = &self.status.as_ref()?.ports;
        let alias = match learned.unbound_port_of(control) {
            Some(unbound) => unbound.could_be.as_ref(),
            None => Some(&control.device),
        };
        let name = match alias {
            Some(alias) => {
                let BindingStatus { protocol, input, output, .. } =
                    status.bindings.iter().find(|binding| binding.alias == *alias)?;
                if *protocol != Protocol::Midi {
                    return None;
                }
                if output.is_some() {
                    return Some(None);
                }
                input.as_ref().and_then(|input| input.ports.first()).unwrap_or(alias)
            }
            None => {
                let is_it =
                    |port: &&DiscoveredPort| port.device == control.device && port.port.direction == Direction::Input;
                status.ports.iter().find(is_it).map_or(&control.device, |port| &port.label)
            }
        };
        free_output(&status.ports, name).map(Some)
    }
}

/// The output without a binding whose name is the most like this one. `None` if none is like it.
fn free_output(ports: &[DiscoveredPort], name: &str) -> Option<FreeOutput> {
    let is_free = |port: &&DiscoveredPort| {
        port.port.protocol == Protocol::Midi
            && port.port.direction == Direction::Output
            && port.bindings.is_empty()
            && port.state != PortState::Ignored
    };
    let free: Vec<&DiscoveredPort> = ports.iter().filter(is_free).collect();
    let port = free[most_alike(name, free.iter().map(|port| port.label.as_str()))?];
    let by_name = || json!({ "type": "exact_name", "value": port.port.name });
    Some(FreeOutput { label: port.label.clone(), matcher: port.told_apart_by.clone().unwrap_or_else(by_name) })
}
