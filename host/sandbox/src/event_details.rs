//! What belongs to the event that an action is performed for, beside its record: an OSC message, and the mapping's address
//! pattern.

use std::sync::Arc;

use conductor_event::{Event, OscMessage};
use conductor_message_pattern::OscPattern;

/// What a guest may ask of an event. Empty for what is no OSC message, and between calls.
#[derive(Debug, Clone, Default)]
pub struct EventDetails {
    pub(crate) message: Option<Arc<OscMessage>>,
    pub(crate) pattern: Option<Arc<OscPattern>>,
}

impl EventDetails {
    /// Those of `event`. `pattern` is the address pattern of the mapping.
    pub fn of(event: &Event, pattern: Option<&Arc<OscPattern>>) -> Self {
        match event {
            Event::Osc(message) => Self { message: Some(Arc::clone(message)), pattern: pattern.cloned() },
            _ => Self::default(),
        }
    }
}
