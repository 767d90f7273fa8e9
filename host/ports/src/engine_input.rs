//! The engine thread's queue: what ports, control and the system put in.

use std::sync::Arc;

use conductor_event::{DeviceEvent, DeviceId, Event, Nanos};
use conductor_stdx::doorbell::{self, Doorbell, Sender};
use crossbeam_channel::Receiver;

/// Inputs that the queue holds; what happens beyond is its sender's to decide.
pub const QUEUE_CAPACITY: usize = 8192;

/// A message to the engine thread.
#[derive(Debug)]
pub enum Input {
    /// Something happened on a port.
    Event {
        /// When.
        at: Nanos,
        /// Where, and what.
        event: DeviceEvent<Event>,
    },
    /// Another mode, from outside the rules.
    SetMode(Arc<str>),
    /// The mode of the profile that applies; `None` if none does any more.
    Profile(Option<Arc<str>>),
    /// A device is gone: what was under way on it ends.
    Gone(DeviceId),
    /// Other rules are in use.
    Reloaded,
    /// The clock was moved by hand: something may be due.
    Moved,
    /// End.
    Stop,
}

/// The engine's end of its queue.
#[derive(Debug)]
pub struct Inputs {
    /// What was put in.
    pub queue: Receiver<Input>,
    /// Rings when something was.
    pub bell: Doorbell,
}

/// The engine's queue: the way in, and what the engine thread takes.
pub fn queue() -> (Sender<Input>, Inputs) {
    let bell = Doorbell::default();
    let (sender, queue) = doorbell::bounded(QUEUE_CAPACITY, &bell);
    (sender, Inputs { queue, bell })
}
