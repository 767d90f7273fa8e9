//! Variables as actions see them: what an expression reads, and the actions that change them.

use std::collections::VecDeque;
use std::sync::Arc;

use conductor_config::NumberExpr;
use conductor_event::{DeviceEvent, DeviceId, Event, Nanos, VariableChange};
use conductor_expression::Slots;
use conductor_musical_time::TapTempo;
use conductor_variables::{Change, Changed, Key, Scope, Variable, Variables, WithVariables};
use parking_lot::Mutex;

/// The device that changes of variables come from.
pub const DEVICE: &str = "variables";

/// Changes that one event brings about at most; further ones are made, and nothing follows them.
pub const MAX_BROUGHT_ABOUT: usize = 16;

/// The variables that a mapping may name.
#[derive(Debug, Clone)]
pub struct View {
    /// All that there are.
    pub variables: Arc<Variables>,
    /// The mode that the mapping is of, for variables that each mode has for itself.
    pub mode: Key,
}

impl Default for View {
    fn default() -> Self {
        Self { variables: Arc::default(), mode: Key::EVERYONE }
    }
}

impl PartialEq for View {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.variables, &other.variables) && self.mode == other.mode
    }
}

impl View {
    /// What an expression reads for an event of this device.
    pub fn of<'v, S: Slots>(&'v self, event: &'v S, device: &DeviceId) -> WithVariables<'v, S> {
        self.variables.with(event, Key::of(device.as_str()), self.mode)
    }

    /// Whose value of a variable a device gets.
    pub fn owner(&self, variable: &Variable, device: &str) -> Key {
        if variable.declaration().scope == Scope::Mode { self.mode } else { Key::of(device) }
    }
}

/// A change of a variable, ready to be made.
#[derive(Debug, Clone)]
pub struct VariableAction {
    /// What it is, for people: `SetVariable gain`.
    pub name: Box<str>,
    /// The variable.
    pub variable: Variable,
    /// What is done to it.
    pub change: Change,
    /// The taps that say to what it is set, instead of `amount`.
    pub tap: Option<Arc<Taps>>,
    /// To what it is set, or by how much it goes on.
    pub amount: NumberExpr,
    /// What the amount may name.
    pub view: View,
    /// [`DEVICE`], so that nothing is allocated when something changes.
    pub device: DeviceId,
}

/// The taps of a mapping on a tempo.
#[derive(Debug, Default)]
pub struct Taps(Mutex<TapTempo>);

impl Taps {
    /// Takes a tap, and returns the tempo if there is one. Never waits: of two taps at once one does not count.
    fn tap(&self, at: Nanos) -> Option<f64> {
        self.0.try_lock()?.tap(at)
    }
}

impl VariableAction {
    /// Makes the change, for an event of a device. Takes no lock and allocates nothing. Returns the change as an event,
    /// or `None` if nothing has changed.
    pub fn perform(&self, at: Nanos, device: &DeviceId, event: &impl Slots) -> Option<DeviceEvent<Event>> {
        let amount = match &self.tap {
            Some(taps) => taps.tap(at)?,
            None => self.amount.number(&self.view.of(event, device)),
        };
        let owner = self.view.owner(&self.variable, device.as_str());
        let Changed { variable, to, unit, .. } = self.variable.change(owner, &self.change, amount, at)?;
        #[expect(clippy::cast_possible_truncation, reason = "it is from 0 to 1")]
        let change = VariableChange { variable, value: to, unit: unit as f32 };
        Some(DeviceEvent { device: self.device.clone(), event: Event::Variable(change) })
    }
}

/// Notes what an action has brought about, as long as there is room for it.
pub(crate) fn note(event: Option<DeviceEvent<Event>>, brought_about: &mut VecDeque<DeviceEvent<Event>>) {
    if brought_about.len() < MAX_BROUGHT_ABOUT {
        brought_about.extend(event);
    }
}
