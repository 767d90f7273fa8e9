//! A control that is mapped by an event that came, as if it had just been moved.

use conductor_learn_mapping::{Control, Learned, Unbound};
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
        let control =
            row.filter(|row| row.kind == RowKind::Event).and_then(|row| Control::of_event(&row.source, &row.text));
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
