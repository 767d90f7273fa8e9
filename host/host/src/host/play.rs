//! Injected events, which no port sent: a person tries a mapping without its device.

use conductor_audit::caller::Caller;
use conductor_event::{DeviceEvent, DeviceId, Event};
use conductor_ports::engine_input::Input;
use conductor_ports::supervisor::UnknownDevice;
use conductor_timeline::Timeline;

use super::Host;
use crate::control::lock::Locked;

/// Why an event was not played.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlayError {
    /// The show is locked.
    #[error(transparent)]
    Locked(#[from] Locked),
    /// There is no such device.
    #[error(transparent)]
    Device(#[from] UnknownDevice),
    /// It is no event, or one that comes from no port.
    #[error("{0}")]
    Event(String),
    /// More events wait than the engine has room for.
    #[error("the engine is behind; try again")]
    Busy,
}

impl Host {
    /// Has an event come from a device, as if its port had sent it: mappings fire, and what they do is done. `device` is a
    /// binding's alias, or a port's own name; it need not be plugged in. `event` is one event of the line language, such as
    /// `note-on 36 100`.
    ///
    /// # Errors
    /// See [`PlayError`].
    pub fn play_for(&self, caller: &Caller, device: &str, event: &str) -> Result<(), PlayError> {
        let played = self.play(caller, device, event);
        self.note_asked("play", caller, &format!("{device:.64} {event:.256}"), played.as_ref().err());
        played
    }

    fn play(&self, caller: &Caller, device: &str, event: &str) -> Result<(), PlayError> {
        self.lock.check(caller)?;
        let device = self.supervisor.device(device)?;
        let event = parse_event(event).map_err(PlayError::Event)?;
        if matches!(event, Event::Variable(_) | Event::Musical(_) | Event::Gesture(_)) {
            return Err(PlayError::Event("the host makes these events itself; say one that a device sends".to_owned()));
        }
        let event = DeviceEvent { device: DeviceId::new(&device), event };
        self.queue.try_send(Input::Event { at: self.clock.now(), event }).map_err(|_| PlayError::Busy)
    }
}

/// One event of the line language, without its time and its device.
///
/// # Errors
/// What is wrong with it.
pub(super) fn parse_event(text: &str) -> Result<Event, String> {
    let parsed = Timeline::parse(&format!("0s device {text}")).map_err(|errors| {
        let errors: Vec<_> = errors.iter().map(|error| error.message.to_string()).collect();
        format!("{text:?}: {}", errors.join("; "))
    })?;
    match <[_; 1]>::try_from(parsed.entries) {
        Ok([entry]) => Ok(entry.event),
        Err(_) => Err("say one event, such as `note-on 36 100`".to_owned()),
    }
}
