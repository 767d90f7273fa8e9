//! A control that is mapped by an event that came, as if it had just been moved.

use conductor_learn_mapping::{Control, Learned, Note, Unbound};
use conductor_ports::Direction;
use conductor_ports::status::{DiscoveredPort, PortState};

use super::State;
use super::live::{Pane, RowKind};
use crate::input::Screen;

impl State {
    /// Asks what the control of the chosen event should do. Returns whether it asks: not where no event is chosen, nor where one event
    /// does not tell the control.
    pub(super) fn map_event(&mut self) -> bool {
        let row = if self.live.pane == Pane::Rows { self.live.chosen_row() } else { None };
        let control = row.filter(|row| row.kind == RowKind::Event).and_then(|row| control_of(&row.source, &row.text));
        let Some(control) = control else { return false };
        let ports = self.status.as_ref().map(|status| status.ports.ports.as_slice()).unwrap_or_default();
        let unbound = ports.iter().filter(|port| port.device == control.device).filter_map(unbound).collect();
        self.go(Screen::Learn);
        self.stop_listening();
        (self.learn.at, self.learn.is_plain, self.learn.is_moving) = (0, false, false);
        (self.learn.moved, self.learn.refused) = (None, None);
        (self.learn.form, self.learn.changed) = (None, None);
        self.learn.light_text.clear();
        self.learn.learned = Learned { controls: vec![control], unbound };
        self.ask_action("")
    }
}

/// The port, if it has no binding.
fn unbound(port: &DiscoveredPort) -> Option<Unbound> {
    if port.port.direction != Direction::Input || !port.bindings.is_empty() {
        return None;
    }
    let could_be = match &port.state {
        PortState::Ambiguous(alias) => Some(alias.clone()),
        _ => None,
    };
    let matcher = port.told_apart_by.as_ref().map(ToString::to_string);
    Some(Unbound { port: port.device.clone(), could_be, matcher })
}

/// The control that an event is of. `None` if it takes more than one event to tell: what a wheel or an address pattern is.
fn control_of(device: &str, event: &str) -> Option<Control> {
    let (kind, keys) = match Note::named(event) {
        Some(Note { number, channel }) => ("key", format!("type = \"Note\", note = {number}, channel = {channel}")),
        None => {
            let controller = event.strip_prefix("cc ")?;
            let number: u8 = controller.split(' ').next()?.parse().ok()?;
            let channel = controller.rsplit_once(" ch ").map_or(Some(0), |(_, channel)| channel.parse::<u8>().ok())?;
            ("controller", format!("type = \"CC\", cc = {number}, channel = {channel}"))
        }
    };
    let toml = format!("trigger = {{ {keys}, device = {} }}", toml::Value::from(device));
    let (device, kind) = (device.to_owned(), kind.to_owned());
    let evidence = vec![format!("it sent {event}")];
    Some(Control { device, kind, evidence, last: event.to_owned(), toml, gestures: Vec::new() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_event_tells_a_key_and_a_controller() {
        let toml = |event: &str| control_of("a \"b\"", event).map(|control| control.toml);
        let read = |event: &str| -> toml::Table { toml::from_str(&toml(event).unwrap()).unwrap() };
        let trigger = |text: &str| -> toml::Table { toml::from_str(text).unwrap() };
        assert_eq!(
            read("note-off 36 0 ch 9"),
            trigger("trigger = { type = 'Note', note = 36, channel = 9, device = 'a \"b\"' }")
        );
        assert_eq!(read("cc 7 1"), trigger("trigger = { type = 'CC', cc = 7, channel = 0, device = 'a \"b\"' }"));
        for other in ["pitch-bend 8192", "osc /go 1", "cc", "cc x 1", ""] {
            assert_eq!(toml(other), None, "{other:?}");
        }
    }
}
