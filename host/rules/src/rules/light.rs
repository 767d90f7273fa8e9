//! Lights that show what variables hold.

use std::collections::BTreeSet;
use std::sync::Arc;

use conductor_config::{self as config, NumberExpr, PathStep};
use conductor_dispatch::lights::StateLight;
use conductor_event::{DeviceId, ModeIx};
use conductor_expression::{Expression, Names};
use conductor_variables::Key;

use super::Compiler;

/// What is wrong with a number that an event would have to give.
const NO_EVENT: &str = "a light has no event: its numbers can name variables only";

impl<'a> Compiler<'a> {
    /// Has the output of a light show it.
    pub(super) fn light(&mut self, light: &'a config::Light, path: &[PathStep<'_>]) {
        let mode = light.mode.as_deref().and_then(|name| self.modes.iter().position(|mode| mode == name));
        self.mode = mode.and_then(|number| u16::try_from(number).ok()).map(ModeIx);
        self.device = Some(&light.target);
        self.view.mode = light.mode.as_deref().map_or(Key::EVERYONE, Key::of);

        let shows = [path, &["shows".into()]].concat();
        let mut names = BTreeSet::new();
        let mut knows = |expression: &Expression, at: &[PathStep<'_>], compiler: &mut Self| {
            if expression.names_events() {
                compiler.error(at, NO_EVENT);
            }
            names.extend(expression.variables().map(|(name, _)| name.to_owned()));
        };
        for (key, expression) in light.shows.calculated() {
            knows(expression, &[&shows[..], &[key.into()]].concat(), self);
        }
        let blinks = match &light.blink {
            None => Some(None),
            Some(text) => {
                let at = [path, &["blink".into()]].concat();
                match Expression::parse(text, Names::EventAndVariables) {
                    Ok(expression) => {
                        knows(&expression, &at, self);
                        let mut number = NumberExpr::Calculated(Arc::new(expression));
                        let bound = self.asking().bind(&mut number);
                        bound.map_err(|message| self.error(&at, message)).ok().map(|()| Some(number))
                    }
                    Err(mistake) => {
                        self.error(&at, mistake.to_string());
                        None
                    }
                }
            }
        };
        if names.is_empty() {
            self.error(
                &shows,
                "a light shows what variables hold, and it names none: `velocity = \"{if(mute, 5, 21)}\"`",
            );
        }
        let message = self.message(&light.shows, &shows);
        let queue = self.output(&light.target, path);
        let (Some(message), Some(blinks), Some(_)) = (message, blinks, queue) else { return };
        let variables = names.iter().filter_map(|name| self.view.variables.find(name)).cloned().collect();
        let light = StateLight {
            mode: self.mode,
            message,
            blinks,
            view: self.view.clone(),
            device: DeviceId::new(&light.target),
            variables,
        };
        let target = light.device.to_string();
        self.outputs.lights.entry(target).or_default().state.push(Arc::new(light));
    }
}
