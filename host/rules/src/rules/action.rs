//! Actions, ready to be done: each is prepared by the worker that will do it.

use std::sync::Arc;
use std::time::Duration;

use conductor_config::{self as config, PathStep};
use conductor_dispatch::desktop::DesktopAction;
use conductor_dispatch::process::{self, ProcessAction};
use conductor_dispatch::script::{self, Script, Step};
use conductor_dispatch::{Action, Branch};
use conductor_engine::{self as engine, Choices};

use super::condition::condition;
use super::edges::{Releases, wants_both};
use super::transform::forwarding;
use super::{Compiler, clock};

/// What is wrong with a place of which one number is missing.
const PLACE: &str = "`x` and `y` go together: a place on the screen needs both";

impl Compiler<'_> {
    /// The action at this place, ready to be done.
    pub(super) fn action(
        &mut self,
        action: &config::Action,
        releases: Releases,
        path: &[PathStep<'_>],
    ) -> Option<Action> {
        match action {
            config::Action::SendMidi(send) => {
                let queue = self.output(&send.target, path)?;
                let message = self.message(&send.message, path)?;
                Some(Action::SendMidi { queue, message: Arc::new(message) })
            }
            config::Action::MidiForward(forward) => {
                let queue = self.output(&forward.target, path)?;
                Some(Action::MidiForward {
                    queue,
                    forwarding: forward.transform.as_ref().map(|changes| Arc::new(forwarding(changes))),
                })
            }
            config::Action::Keystroke(keystroke) => self.desktop(DesktopAction::Keystroke(keystroke.clone()), path),
            config::Action::Text(text) => self.desktop(DesktopAction::Text(text.text.as_str().into()), path),
            config::Action::MouseClick(click) => {
                if click.x.is_some() != click.y.is_some() {
                    self.error(path, PLACE);
                    return None;
                }
                self.desktop(DesktopAction::Click(click.clone()), path)
            }
            config::Action::MouseMove(moving) => self.mouse_move(moving.clone(), path),
            config::Action::Scroll(scroll) => {
                let mut scroll = scroll.clone();
                let bound = self.asking().bind(&mut scroll.amount);
                bound.map_err(|wrong| self.error(&[path, &["amount".into()]].concat(), wrong)).ok()?;
                self.desktop(DesktopAction::Scroll(scroll, self.view.clone()), path)
            }
            config::Action::VolumeControl(volume) => {
                self.desktop(DesktopAction::Volume(volume.operation, volume.steps), path)
            }
            config::Action::VirtualGamepad(pad) => self.virtual_gamepad(pad, path),
            config::Action::Launch(launch) => {
                self.process(ProcessAction::Launch(launch.clone(), self.view.clone()), path)
            }
            config::Action::Shell(shell) => self.process(ProcessAction::Shell(shell.clone(), self.view.clone()), path),
            config::Action::Sequence(sequence) => self.script("Sequence", action, &sequence.cancel_on, path),
            config::Action::Repeat(repeat) => self.script("Repeat", action, &repeat.cancel_on, path),
            config::Action::Delay(_) => self.script("Delay", action, &[], path),
            config::Action::Conditional(conditional) => {
                let choice = self.choice(&conditional.condition, path);
                let then = self.branch(&conditional.then, releases, &[path, &["then".into()]].concat());
                let otherwise = match &conditional.otherwise {
                    None => Some(None),
                    Some(otherwise) => {
                        self.branch(otherwise, releases, &[path, &["else".into()]].concat()).map(Box::new).map(Some)
                    }
                };
                Some(Action::Conditional { choice: choice?, then: Box::new(then?), otherwise: otherwise? })
            }
            config::Action::ModeChange(change) => Some(Action::ModeChange { mode: change.mode.as_str().into() }),
            config::Action::NextMode(_) => self.step_mode(1, path),
            config::Action::PreviousMode(_) => self.step_mode(-1, path),
            config::Action::SetVariable(_)
            | config::Action::ToggleVariable(_)
            | config::Action::CycleVariable(_)
            | config::Action::AddToVariable(_)
            | config::Action::TapTempo(_) => match self.asking().action(action) {
                Ok(action) => action.map(|action| Action::Variable(Arc::new(action))),
                Err(message) => {
                    self.error(path, message);
                    None
                }
            },
            config::Action::Suppress(_) => Some(Action::Suppress),
            config::Action::Feature { type_name, params } => self.feature_action(type_name, params, path),
        }
    }

    fn mouse_move(&mut self, mut moving: config::MouseMove, path: &[PathStep<'_>]) -> Option<Action> {
        if moving.x.is_none() && moving.y.is_none() {
            self.error(path, "it moves the pointer nowhere: write `x`, `y` or both");
            return None;
        }
        if moving.motion == config::Motion::To && (moving.x.is_none() || moving.y.is_none()) {
            self.error(path, PLACE);
            return None;
        }
        for (key, number) in [("x", &mut moving.x), ("y", &mut moving.y)] {
            let bound = number.as_mut().map_or(Ok(()), |number| self.asking().bind(number));
            bound.map_err(|wrong| self.error(&[path, &[key.into()]].concat(), wrong)).ok()?;
        }
        self.desktop(DesktopAction::Move(moving, self.view.clone()), path)
    }

    fn virtual_gamepad(&mut self, pad: &config::VirtualGamepad, path: &[PathStep<'_>]) -> Option<Action> {
        let axis = match (pad.button, pad.axis, pad.trigger) {
            (Some(button), None, None) => {
                if pad.value.is_some() {
                    self.error(
                        &[path, &["value".into()]].concat(),
                        "`value` is for `axis` and `trigger`: a button has `stroke`",
                    );
                    return None;
                }
                return self.gamepad(DesktopAction::GamepadButton(button.get(), pad.stroke()), path);
            }
            (None, Some(axis), None) => axis.get(),
            (None, None, Some(trigger)) => trigger.get(),
            _ => {
                self.error(path, "write one of `button`, `axis` and `trigger`: what of the gamepad moves");
                return None;
            }
        };
        if pad.stroke.is_some() {
            self.error(
                &[path, &["stroke".into()]].concat(),
                "`stroke` is for `button`: an axis or a trigger has `value`",
            );
            return None;
        }
        let Some(mut value) = pad.value.clone() else {
            self.error(
                path,
                "`value` is missing: where the axis or trigger goes, such as \"{value -> -32767..32767}\"",
            );
            return None;
        };
        let bound = self.asking().bind(&mut value);
        bound.map_err(|wrong| self.error(&[path, &["value".into()]].concat(), wrong)).ok()?;
        self.gamepad(DesktopAction::GamepadAxis(axis, value, self.view.clone()), path)
    }

    fn gamepad(&mut self, action: DesktopAction, path: &[PathStep<'_>]) -> Option<Action> {
        if let Some(why) = self.workers.gamepad_unavailable() {
            self.error(path, why);
            return None;
        }
        let queue = self.workers.gamepad();
        let queue = self.started(queue, path)?;
        Some(Action::Desktop { queue, action: Arc::new(action) })
    }

    /// Another mode, this many after the one that the rule is compiled for.
    fn step_mode(&mut self, by: i32, path: &[PathStep<'_>]) -> Option<Action> {
        let count = i32::try_from(self.modes.len()).ok()?;
        let Some(now) = self.mode.filter(|_| count > 0) else {
            self.error(path, "there is no mode to go to");
            return None;
        };
        let next = usize::try_from((i32::from(now.0) + by).rem_euclid(count)).ok()?;
        self.modes.get(next).map(|name| Action::ModeChange { mode: name.as_str().into() })
    }

    fn branch(&mut self, action: &config::Action, releases: Releases, path: &[PathStep<'_>]) -> Option<Branch> {
        let compiled = self.action(action, releases, path)?;
        Some(Branch { action: compiled, presses_only: releases == Releases::ForSome && !wants_both(action) })
    }

    /// Has the rule ask a condition when it fires. Returns the number of the choice.
    fn choice(&mut self, asked: &config::Condition, path: &[PathStep<'_>]) -> Option<usize> {
        let asked = match condition(asked, &self.asking()) {
            Ok(asked) => asked,
            Err(message) => {
                self.error(&[path, &["condition".into()]].concat(), message);
                return None;
            }
        };
        let wrong = engine::check_standalone_condition(&asked, &self.modes);
        for error in &wrong {
            self.error(&[path, &["condition".into()]].concat(), error.to_string());
        }
        let number = self.choices.conditions.len();
        if number == Choices::MAX_CHOICES {
            let message = format!("the action asks more than {} conditions in all", Choices::MAX_CHOICES);
            self.error(path, message);
            return None;
        }
        self.choices.conditions.push(asked);
        wrong.is_empty().then_some(number)
    }

    fn desktop(&mut self, action: DesktopAction, path: &[PathStep<'_>]) -> Option<Action> {
        if let Some(why) = self.workers.desktop_unavailable() {
            self.error(path, why);
            return None;
        }
        let queue = self.workers.desktop();
        let queue = self.started(queue, path)?;
        Some(Action::Desktop { queue, action: Arc::new(action) })
    }

    fn process(&mut self, action: ProcessAction, path: &[PathStep<'_>]) -> Option<Action> {
        let args = match &action {
            ProcessAction::Launch(launch, _) => &launch.args,
            ProcessAction::Shell(shell, _) => &shell.args,
        };
        for (index, arg) in args.iter().enumerate() {
            if let Some(mistake) = process::mistake(arg, &self.view) {
                self.error(&[path, &["args".into(), index.into()]].concat(), format!("in the expression, {mistake}"));
                return None;
            }
        }
        let queue = self.workers.processes();
        let queue = self.started(queue, path)?;
        Some(Action::Process { queue, action: Arc::new(action) })
    }

    fn script(
        &mut self,
        name: &str,
        action: &config::Action,
        cancel_on: &[config::CancelOn],
        path: &[PathStep<'_>],
    ) -> Option<Action> {
        let mut steps = Vec::new();
        self.steps(action, path, 0, &mut steps)?;
        let script = Script {
            name: name.into(),
            steps: steps.into(),
            cancel_on_mode_change: cancel_on.contains(&config::CancelOn::ModeChange),
            cancel_on_reload: cancel_on.contains(&config::CancelOn::Reload),
        };
        if script.steps.len() > script::MAX_STEPS || script.work() > script::MAX_WORK {
            let message = format!(
                "the action is too long: with all repetitions at most {} steps, of which {} are different",
                script::MAX_WORK,
                script::MAX_STEPS
            );
            self.error(path, message);
            return None;
        }
        let queue = self.workers.scripts();
        let queue = self.started(queue, path)?;
        Some(Action::Script { queue, script: Arc::new(script) })
    }

    /// Adds the steps of an action that stands in `depth` repetitions.
    fn steps(
        &mut self,
        action: &config::Action,
        path: &[PathStep<'_>],
        depth: usize,
        steps: &mut Vec<Step>,
    ) -> Option<()> {
        let millis = |ms: u32| Duration::from_millis(ms.into());
        match action {
            config::Action::Sequence(sequence) => {
                let mut complete = Some(());
                for (index, action) in sequence.actions.iter().enumerate() {
                    if index > 0 && sequence.delay_between_ms > 0 {
                        steps.push(Step::Wait(millis(sequence.delay_between_ms)));
                    }
                    let path = [path, &["actions".into(), index.into()]].concat();
                    // Not the first mistake only.
                    if self.steps(action, &path, depth, steps).is_none() {
                        complete = None;
                    }
                }
                complete
            }
            config::Action::Repeat(repeat) => {
                if depth == script::MAX_DEPTH {
                    let message = format!("repetitions stand in repetitions, more than {} deep", script::MAX_DEPTH);
                    self.error(path, message);
                    return None;
                }
                let to = steps.len();
                self.steps(&repeat.action, &[path, &["action".into()]].concat(), depth + 1, steps)?;
                let pause = millis(repeat.delay_ms);
                steps.push(Step::Again { counter: depth, to, times: repeat.count, pause });
                Some(())
            }
            config::Action::Delay(delay) => {
                let step =
                    match (delay.ms, delay.beats, self.view.variables.find("tempo").filter(|_| self.clock.is_some())) {
                        (Some(ms), None, _) => Ok(Step::Wait(millis(ms))),
                        (None, Some(beats), Some(tempo)) => Ok(Step::WaitBeats { beats, tempo: tempo.clone() }),
                        (None, Some(_), None) => Err(clock::NO_CLOCK),
                        _ => Err("say how long: either `ms` or `beats`"),
                    };
                steps.push(step.map_err(|message| self.error(path, message)).ok()?);
                Some(())
            }
            config::Action::Conditional(conditional) => {
                let choice = self.choice(&conditional.condition, path);
                let decide = steps.len();
                steps.push(Step::Skip { to: 0 });
                let then = self.steps(&conditional.then, &[path, &["then".into()]].concat(), depth, steps);
                let skip = steps.len();
                let otherwise = conditional.otherwise.as_ref().map_or(Some(()), |otherwise| {
                    steps.push(Step::Skip { to: 0 });
                    self.steps(otherwise, &[path, &["else".into()]].concat(), depth, steps)
                });
                let to = if conditional.otherwise.is_some() { skip + 1 } else { skip };
                steps[decide] = Step::Unless { choice: choice?, to };
                if conditional.otherwise.is_some() {
                    steps[skip] = Step::Skip { to: steps.len() };
                }
                then.and(otherwise)
            }
            action => {
                let action = self.action(action, Releases::AsSaid, path)?;
                steps.push(Step::Do(action));
                Some(())
            }
        }
    }
}
