//! What one event would send: the rules in force, performed beside the host on recorded sinks.
//!
//! Features perform with instances of their own, which find no data and leave none behind, and variables are as they are
//! declared. When it is known what goes out, all of that ends.

use std::sync::Arc;
use std::time::Instant;

use super::assembler::{Rehearsal, rehearse_beside};
use super::look::CallerClass;
use super::play::parse_event;
use super::{Host, STOP_TIMEOUT};
use conductor_audit::caller::Caller;
use conductor_effects::shown;
use conductor_engine::{EnvironmentHandle, RuleSetHandle};
use conductor_event::{DeviceEvent, DeviceId, Event};
use conductor_stdx::hidden::hide_line;
use conductor_stdx::plural::{plural, plural_u64};
use conductor_terminal::{MAX_TEXT, excerpt};
use conductor_timeline::player::{Happened, Player};

/// Effects that are listed; the others are counted.
const MAX_EFFECTS: usize = 64;
/// Steps of scripts that are performed; the others are counted.
const MAX_STEPS: u64 = 1000;

/// Why it is not known what an event would send.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EffectsError {
    /// It is no event.
    #[error("{0}")]
    Event(String),
    /// There is no such mode.
    #[error("{0}")]
    Mode(String),
    /// Too many configurations are looked at already.
    #[error("the host is looking at other configurations; try again in a few seconds")]
    Busy,
    /// The rules can't be performed beside the host. Why is for its owner, since it may show private values.
    #[error("the rules can't be performed beside the host; a person finds out why with `conductor explain`")]
    Rehearsal,
}

impl Host {
    /// What would go out if this event came from `device` now, a line each, in the order in which it goes out, without private
    /// values. Nothing goes out. `event` is one event of the line language, such as `note-on 36 100`, and `mode` the mode that
    /// it meets, or `None` for the active one. What a gesture would do that the event begins is not part of it.
    ///
    /// # Errors
    /// See [`EffectsError`].
    pub fn effects_of(
        &self,
        caller: &Caller,
        device: &str,
        event: &str,
        mode: Option<&str>,
    ) -> Result<Vec<String>, EffectsError> {
        let event = parse_event(event).map_err(EffectsError::Event)?;
        let event = DeviceEvent { device: DeviceId::new(device), event };
        let _turn = self.view.turns.wait(CallerClass::caller(caller)).ok_or(EffectsError::Busy)?;
        let current = self.in_force.load();
        let mode = mode.map(str::to_owned).or_else(|| current.mode(self.observed.mode().as_deref()));
        let loaded = current.source.parse(current.source.text()).map_err(|_| EffectsError::Rehearsal)?;
        let (features, live) = (self.assembler.bundled.as_deref(), self.services.stores.clone());
        let made = rehearse_beside(&loaded, self.home.as_deref(), features, self.compiler.clone(), live);
        let (rehearsal, workers, registry) = made.map_err(|error| {
            tracing::warn!("the rules can't be performed beside the host: {error}");
            EffectsError::Rehearsal
        })?;
        let effects = performed(rehearsal, &self.environment, mode.as_deref(), event);
        let deadline = Instant::now() + STOP_TIMEOUT;
        let (workers_ended, features_ended) = (workers.stop(deadline), registry.stop(deadline));
        if !workers_ended || !features_ended {
            tracing::warn!("something that performed an event beside the host did not end");
        }
        effects
    }
}

/// What goes out of an event; what performs it is dropped.
fn performed(
    rehearsal: Rehearsal,
    environment: &Arc<EnvironmentHandle>,
    mode: Option<&str>,
    event: DeviceEvent<Event>,
) -> Result<Vec<String>, EffectsError> {
    let Rehearsal { compiled, mut actions } = rehearsal;
    let rules = Arc::new(RuleSetHandle::new(compiled.rules));
    actions.limit_steps(MAX_STEPS);
    let mut player = Player::new(&rules, environment, &mut actions);
    if let Some(mode) = mode {
        player.set_mode(mode).map_err(|error| EffectsError::Mode(error.to_string()))?;
    }
    // What entering the mode has done is none of the event's.
    player.happened();
    player.event(0, event);
    player.finish_actions();
    let rules = rules.load();
    let sent = player.happened().into_iter().filter_map(|happened| match happened {
        Happened::Sent(sent) => Some(excerpt(&hide_line(&shown::line_since(0, &sent, &rules)), MAX_TEXT)),
        _ => None,
    });
    let mut effects: Vec<String> = sent.collect();
    if let Some(more) = effects.len().checked_sub(MAX_EFFECTS).filter(|more| *more > 0) {
        effects.truncate(MAX_EFFECTS);
        effects.push(format!("and {}", plural(more, "more effect")));
    }
    if actions.left_out() > 0 {
        effects.push(format!("and those of {}, which were not tried", plural_u64(actions.left_out(), "more step")));
    }
    Ok(effects)
}
