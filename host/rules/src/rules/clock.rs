//! The clock: its variables, and the clock that the engine goes by.

use conductor_config::{self as config, CLOCK_VARIABLES, Config};
use conductor_dispatch::clock_out::ClockOut;
use conductor_engine::{ClockChange, ClockSource, Follower, MusicalTime};
use conductor_event::DeviceId;
use conductor_number::Range;
use conductor_variables::{Declaration, Key, Kind, Scope, Variables};

/// The slowest and the fastest tempo that a configuration may say.
const TEMPO: Range = Range { from: 20.0, to: 999.0 };
/// The variables that a mapping may change where the clock goes by its tempo; the clock follows them.
const FOLLOWED: [&str; 2] = [CLOCK_VARIABLES[0], CLOCK_VARIABLES[3]];

/// The variables that come with the clock of a configuration.
pub(super) fn declarations(config: &Config) -> Vec<Declaration> {
    let Some(clock) = &config.clock else { return Vec::new() };
    let number = |initial| (Kind::Number { limits: None }, initial);
    CLOCK_VARIABLES
        .iter()
        .map(|name| {
            let (kind, initial) = match *name {
                "tempo" => (Kind::Number { limits: Some(TEMPO) }, clock.tempo),
                "playing" => (Kind::Switch, f64::from(clock.device.is_none())),
                "time_code" => number(0.0),
                _ => number(1.0),
            };
            Declaration { name: (*name).to_owned(), kind, scope: Scope::Global, initial, keep: false }
        })
        .collect()
}

/// The clock that the engine goes by; what it says becomes what these variables hold, and goes to these outputs.
pub(super) fn source(clock: &config::Clock, variables: &Variables, outputs: ClockOut) -> ClockSource {
    let found = CLOCK_VARIABLES.map(|name| variables.find(name).cloned());
    let number = |name| variables.find(name).map(|variable| variable.number());
    let [tempo, playing] = FOLLOWED.map(number);
    let follower = Follower::new(move |time: MusicalTime, change: ClockChange| {
        outputs.follow(time, change);
        if change.is_between_beats() {
            return;
        }
        let now = [time.tempo, time.beat.into(), time.bar.into(), time.plays.into(), time.time_code];
        for (variable, value) in found.iter().zip(now) {
            if let Some(variable) = variable {
                variable.restore(Key::EVERYONE, value);
            }
        }
    });
    ClockSource {
        device: clock.device.as_deref().map(DeviceId::new),
        tempo: clock.tempo,
        beats_per_bar: clock.beats_per_bar,
        variables: tempo.zip(playing).filter(|_| clock.device.is_none()),
        follower,
    }
}

/// Whether a mapping may change a variable.
///
/// # Errors
/// Why not.
pub(super) fn may_change(clock: Option<&config::Clock>, name: &str) -> Result<(), String> {
    match clock {
        Some(_) if !CLOCK_VARIABLES.contains(&name) => Ok(()),
        Some(config::Clock { device: Some(device), .. }) => {
            Err(format!("the clock of {device:?} says what {name:?} is: mappings only read it"))
        }
        Some(_) if !FOLLOWED.contains(&name) => Err(format!(
            "the clock says what {name:?} is: mappings change {} only",
            FOLLOWED.map(|name| format!("{name:?}")).join(" and ")
        )),
        _ => Ok(()),
    }
}

/// Why a configuration without a clock cannot have something.
pub(super) const NO_CLOCK: &str = "this goes by the clock, and there is none: add `[clock]` to the configuration";

/// What is wrong with a mapping that goes by the clock, and in which key of it.
pub(super) fn mistake(mapping: &config::Mapping, clock: Option<&config::Clock>) -> Option<(&'static str, String)> {
    use config::TriggerEvent::{Bar, Beat, Transport};
    let has_none = || clock.is_none().then(|| NO_CLOCK.to_owned());
    match mapping.trigger.event {
        Beat { every, offset } | Bar { every, offset } if offset >= every => {
            let message = format!("`offset` is one of 0 to {}, since `every` is {every}", every.saturating_sub(1));
            return Some(("trigger", message));
        }
        Beat { .. } | Bar { .. } | Transport { .. } => {
            if let Some(message) = has_none() {
                return Some(("trigger", message));
            }
        }
        _ => {}
    }
    mapping.quantize?;
    let lasts = super::lasts::of(mapping).unwrap_or_default();
    let message = has_none().or_else(|| {
        (lasts != conductor_engine::Lasts::UntilChanged).then(|| {
            "the key may be up when the action has waited: a mode with `lasts` goes without `quantize`".to_owned()
        })
    })?;
    Some(("quantize", message))
}
