//! Recorded sinks as the world of a test: what goes out there, in the words of [`stage`](crate::stage).
//!
//! Modes, files and failures are not looked at: nothing of them goes out, no program is started, and every output is there,
//! also one that fails on the stage. Nor is what comes only when the host is ended.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use conductor_dispatch::Action;
use conductor_effects::RecordedActions;
use conductor_engine::Firing;
use conductor_event::{DeviceEvent, DeviceId, Event, ModeIx, Nanos, OscArg};
use conductor_timeline::Effect;
use conductor_timeline::effect::Stroke;
use conductor_timeline::player::{Performer, Request, Sent};

use crate::case::Test;

/// What performs the actions, and what has gone out.
pub struct World {
    actions: RecordedActions,
    went_out: Vec<String>,
    /// The channels of universes that are not 0, by where they were sent.
    universes: BTreeMap<(String, u16), BTreeMap<u16, u8>>,
}

impl World {
    pub fn new(actions: RecordedActions) -> Self {
        Self { actions, went_out: Vec::new(), universes: BTreeMap::new() }
    }

    /// A frame, with everything that is on in its universe.
    fn frame(&mut self, to: &str, universe: u16, levels: &[(u16, u8)]) {
        let on = self.universes.entry((to.to_owned(), universe)).or_default();
        on.extend(levels.iter().copied());
        on.retain(|_, level| *level != 0);
        let on: Vec<String> = on.iter().map(|(channel, level)| format!("{channel}={level}")).collect();
        self.went_out.push(format!("artnet {to} {universe}: {}", on.join(" ")));
    }

    /// What went out otherwise than the test says.
    pub fn differences(self, test: &Test) -> Vec<String> {
        let fails = |world: &str| test.effects.iter().any(|line| line.starts_with(&format!("failure {world}:")));
        let here = |line: &String| {
            let world = line.split(' ').next().unwrap_or_default();
            !["mode", "file", "failure"].contains(&world) && !fails(world)
        };
        let by_world = |lines: Vec<String>| {
            let mut lines: Vec<String> = lines.into_iter().filter(here).collect();
            lines.sort_by_key(|line| line.split(' ').next().map(str::to_owned));
            lines
        };
        let before_the_end = test.effects[..test.effects.len() - test.at_end].to_vec();
        let (expected, went_out) = (by_world(before_the_end), by_world(self.went_out));
        if expected == went_out {
            Vec::new()
        } else {
            vec![
                format!("=> {}", expected.join("\n    => ")),
                format!("rehearsed {}", went_out.join("\n    rehearsed ")),
            ]
        }
    }
}

/// An effect in the words of the stage, which knows no strokes of several keys.
fn words(effect: &Effect) -> Vec<String> {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02X}")).collect::<Vec<_>>().join(" ");
    match effect {
        Effect::Midi { output, message } => vec![format!("{output} {}", hex(message))],
        Effect::Osc { to, message } => {
            let args: Vec<String> = message.args().iter().map(argument).collect();
            vec![format!("osc {to} {} {}", message.address(), args.join(" ")).trim_end().to_owned()]
        }
        Effect::Key(stroke, keys) => {
            let keys: Vec<&str> = keys.split('+').collect();
            strokes(*stroke, &keys)
        }
        Effect::Button(stroke, button) => {
            let mut name = button.clone();
            name[..1].make_ascii_uppercase();
            strokes(*stroke, &[&name])
        }
        Effect::Text(text) => vec![format!("desktop text {text}")],
        Effect::Pointer(x, y) => vec![format!("desktop point {x} {y}")],
        Effect::PointerBy(x, y) => vec![format!("desktop move {x} {y}")],
        Effect::PointerSpeed(x, y) => vec![format!("desktop speed {x} {y}")],
        Effect::Scroll { clicks, vertical } => {
            vec![format!("desktop scroll {clicks} {}", if *vertical { "Vertical" } else { "Horizontal" })]
        }
        Effect::GamepadButton(stroke, button) => strokes(*stroke, &[&format!("gamepad {button}")]),
        Effect::GamepadAxis(axis, place) => vec![format!("desktop axis {axis} {place}")],
        Effect::ArtNet { .. } | Effect::Datagram { .. } => vec![effect.to_string()],
        Effect::Program(_) | Effect::Failed { .. } => Vec::new(),
    }
}

fn strokes(stroke: Stroke, keys: &[&str]) -> Vec<String> {
    let down = keys.iter().filter(|_| stroke != Stroke::Up).map(|key| format!("desktop down {key}"));
    let up = keys.iter().rev().filter(|_| stroke != Stroke::Down).map(|key| format!("desktop up {key}"));
    down.chain(up).collect()
}

/// An argument as the crate `rosc` writes it.
fn argument(arg: &OscArg) -> String {
    match arg {
        OscArg::Int(value) => format!("(i) {value}"),
        OscArg::Float(value) => format!("(f) {value}"),
        OscArg::String(text) => format!("(s) {text}"),
        other => other.to_string(),
    }
}

impl Performer<Action> for World {
    fn fire(
        &mut self,
        firing: &Firing<'_, Action>,
        brought_about: &mut VecDeque<DeviceEvent<Event>>,
    ) -> Option<Arc<str>> {
        self.actions.fire(firing, brought_about)
    }

    fn mode(&mut self, at: Nanos, mode: ModeIx) {
        self.actions.mode(at, mode);
    }

    fn gone(&mut self, at: Nanos, device: &DeviceId) {
        self.actions.gone(at, device);
    }

    fn due(&self) -> Option<Nanos> {
        self.actions.due()
    }

    fn advance(&mut self, at: Nanos) -> Vec<Request> {
        self.actions.advance(at)
    }

    fn sent(&mut self) -> Vec<Sent> {
        let sent = self.actions.sent();
        for Sent { effect, .. } in &sent {
            match effect {
                Effect::ArtNet { to, universe, levels } => self.frame(to, *universe, levels),
                effect => self.went_out.extend(words(effect)),
            }
        }
        sent
    }
}
