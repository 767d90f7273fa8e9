//! Variables: their declarations, and the actions and conditions on them, as the workers and the engine have them.

use std::collections::BTreeSet;
use std::sync::Arc;

use conductor_config::{
    self as config, CLOCK_VARIABLES, Config, NumberExpr, VariableKind, VariableScope, VariableValue,
};
use conductor_dispatch::variables::{self, VariableAction, View};
use conductor_engine::{Condition, Predicate};
use conductor_event::DeviceId;
use conductor_expression::{Expression, Names};
use conductor_number::Range;
use conductor_variables::{Change, Declaration, Key, Kind, Scope, Step, Variable};

/// The variables of a configuration.
///
/// # Errors
/// What is wrong with one, and its position.
pub(super) fn declarations(config: &Config) -> Result<Vec<Declaration>, (usize, String)> {
    config.variables.iter().enumerate().map(|(at, variable)| declaration(variable).map_err(|why| (at, why))).collect()
}

fn declaration(variable: &config::Variable) -> Result<Declaration, String> {
    let (kind, initial) = match &variable.kind {
        VariableKind::Number { min, max, initial } => {
            let limits = match (min, max) {
                (None, None) => None,
                (Some(from), Some(to)) => Some(Range { from: *from, to: *to }),
                _ => return Err("`min` and `max` go together: say both, or none".into()),
            };
            (Kind::Number { limits }, *initial)
        }
        VariableKind::Boolean { initial } => (Kind::Switch, f64::from(*initial)),
        VariableKind::Text { values, initial } => {
            if values.iter().collect::<BTreeSet<_>>().len() != values.len() {
                return Err("a text stands twice among `values`".into());
            }
            let initial = match initial {
                None => 0,
                Some(text) => position(values, text)?,
            };
            (Kind::Word(values.clone()), initial as f64)
        }
    };
    let scope = match variable.scope {
        VariableScope::Global => Scope::Global,
        VariableScope::Device => Scope::Device,
        VariableScope::Mode => Scope::Mode,
    };
    Ok(Declaration { name: variable.name.clone(), kind, scope, initial, keep: variable.keep })
}

fn position(words: &[String], word: &str) -> Result<usize, String> {
    words.iter().position(|known| known == word).ok_or_else(|| {
        let words: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
        format!("it is never {word:?}; it is one of {}", words.join(", "))
    })
}

/// Who asks for variables: a mapping.
pub(super) struct Asking<'a> {
    /// What it may name.
    pub view: &'a View,
    /// The clock that the configuration goes by.
    pub clock: Option<&'a config::Clock>,
    /// The name of its mode; `None` if it is for every mode.
    pub mode: Option<&'a str>,
    /// The device of its trigger; `None` if it is for every device.
    pub device: Option<&'a str>,
}

impl Asking<'_> {
    /// The variable of this name, if the mapping may use it.
    pub fn variable(&self, name: &str) -> Result<Variable, String> {
        let variable = self.view.variables.find(name).ok_or_else(|| format!("there is no variable {name:?}"))?;
        if variable.declaration().scope == Scope::Mode && self.mode.is_none() {
            return Err(format!(
                "each mode has a value of {name:?} for itself, and this mapping is for every mode: write it under the modes"
            ));
        }
        Ok(variable.clone())
    }

    /// An action that changes a variable.
    pub fn action(&self, action: &config::Action) -> Result<Option<VariableAction>, String> {
        let plain = |number: i32| NumberExpr::Fixed(number);
        let (kind, name, change, amount) = match action {
            config::Action::SetVariable(set) => {
                let amount = self.value(&self.variable(&set.variable)?, &set.value)?;
                ("SetVariable", set.variable.as_str(), Change::Set, amount)
            }
            config::Action::ToggleVariable(toggle) => {
                ("ToggleVariable", toggle.variable.as_str(), Change::Toggle, plain(1))
            }
            config::Action::CycleVariable(cycle) => {
                ("CycleVariable", cycle.variable.as_str(), Change::Cycle, plain(cycle.by.into()))
            }
            config::Action::AddToVariable(add) => {
                let step = Step { wraps: add.wrap, acceleration: add.acceleration, detents: add.detents.clone() };
                ("AddToVariable", add.variable.as_str(), Change::Add(step), add.by.clone())
            }
            config::Action::TapTempo(_) if self.clock.is_none() => return Err(super::clock::NO_CLOCK.into()),
            config::Action::TapTempo(_) => ("TapTempo", CLOCK_VARIABLES[0], Change::Set, plain(0)),
            _ => return Ok(None),
        };
        super::clock::may_change(self.clock, name)?;
        let (variable, mut amount) = (self.variable(name)?, amount);
        self.bind(&mut amount)?;
        let tap = matches!(action, config::Action::TapTempo(_)).then(Arc::default);
        Ok(Some(VariableAction {
            name: if tap.is_some() { kind.into() } else { format!("{kind} {name}").into() },
            tap,
            variable,
            change,
            amount,
            view: self.view.clone(),
            device: DeviceId::new(variables::DEVICE),
        }))
    }

    /// Puts variables in the place of their names.
    pub fn bind(&self, number: &mut NumberExpr) -> Result<(), String> {
        if let NumberExpr::Calculated(expression) = &*number {
            self.check(expression)?;
        }
        number.bind(|name| self.view.variables.bound(name)).map_err(|mistake| mistake.to_string())
    }

    /// Whether the mapping may use the variables in an expression.
    pub fn check(&self, expression: &Expression) -> Result<(), String> {
        expression.variables().try_for_each(|(name, _)| self.variable(name).map(drop))
    }

    fn value(&self, variable: &Variable, value: &VariableValue) -> Result<NumberExpr, String> {
        let fixed = |number: f64| match Expression::parse(&format!("{number:?}"), Names::Event) {
            Ok(expression) => Ok(NumberExpr::Calculated(expression.into())),
            Err(_) => Err(format!("{number} is written with too many digits")),
        };
        match (value, &variable.declaration().kind) {
            (VariableValue::Boolean(on), Kind::Switch) => Ok(NumberExpr::Fixed((*on).into())),
            (VariableValue::Boolean(_), _) => Err("only a variable of the type `boolean` is true or false".into()),
            (VariableValue::Number(number), Kind::Number { .. } | Kind::Switch) => fixed(*number),
            (VariableValue::Number(_), Kind::Word(words)) => position(words, "").map(|_| NumberExpr::Fixed(0)),
            (VariableValue::Text(text), Kind::Word(words)) if !text.contains('{') => {
                Ok(NumberExpr::Fixed(i32::try_from(position(words, text)?).unwrap_or(i32::MAX)))
            }
            (VariableValue::Text(text), _) => text.parse().map_err(|wrong: config::Malformed| wrong.to_string()),
        }
    }

    /// A condition on variables; `None` if it is another one.
    pub fn condition(&self, written: &config::Condition) -> Result<Option<Condition>, String> {
        match written {
            config::Condition::VariableIs { variable: name, value, min, max, device } => {
                let variable = self.variable(name)?;
                let owner = self.owner(&variable, device.as_deref())?;
                let (low, high, text) = match (value, min, max) {
                    (Some(_), Some(_), _) | (Some(_), _, Some(_)) => {
                        return Err("either `value`, or `min` and `max`".into());
                    }
                    (Some(value), None, None) => {
                        let number = match (value, &variable.declaration().kind) {
                            (VariableValue::Number(number), Kind::Number { .. } | Kind::Switch) => *number,
                            (VariableValue::Text(text), Kind::Word(words)) => position(words, text)? as f64,
                            (VariableValue::Boolean(on), Kind::Switch) => f64::from(*on),
                            _ => return Err("`value` is of another type than the variable".into()),
                        };
                        let shown = serde_json::to_string(value).unwrap_or_default();
                        (number, number, format!("{name} is {shown}"))
                    }
                    (None, None, None) => {
                        let text = format!("{name} is set");
                        let text = self.called(text, &variable, device.as_deref());
                        return Ok(Some(Condition::Predicate(Predicate::new(&text, move || {
                            variable.get(owner) != 0.0
                        }))));
                    }
                    (None, min, max) => {
                        let (low, high) = (min.unwrap_or(f64::MIN), max.unwrap_or(f64::MAX));
                        (low, high, format!("{name} is at {low} to {high}"))
                    }
                };
                let text = self.called(text, &variable, device.as_deref());
                let asked = Predicate::new(&text, move || (low..=high).contains(&variable.get(owner)));
                Ok(Some(Condition::Predicate(asked)))
            }
            config::Condition::Expression { holds } => {
                let mut expression =
                    Expression::parse(holds, Names::EventAndVariables).map_err(|mistake| mistake.to_string())?;
                if expression.names_events() {
                    return Err("a condition has no event: the expression can name variables only".into());
                }
                self.check(&expression)?;
                for (name, _) in expression.variables() {
                    self.owner(&self.variable(name)?, None)?;
                }
                expression.bind(|name| self.view.variables.bound(name)).map_err(|mistake| mistake.to_string())?;
                let (view, device) = (self.view.clone(), DeviceId::new(self.device.unwrap_or_default()));
                let words = [Some(format!("({expression})")), self.device.map(|device| format!("for {device:?}"))];
                let text = words.into_iter().flatten().chain(self.mode.map(|mode| format!("in {mode:?}")));
                let text = text.collect::<Vec<_>>().join(" ");
                let none = config::Inputs::default();
                let asked = Predicate::new(&text, move || expression.eval(&view.of(&none, &device)) != 0.0);
                Ok(Some(Condition::Predicate(asked)))
            }
            _ => Ok(None),
        }
    }

    /// Whose value a condition asks for.
    fn owner(&self, variable: &Variable, device: Option<&str>) -> Result<Key, String> {
        let name = &variable.declaration().name;
        match (variable.declaration().scope, device.or(self.device)) {
            (Scope::Device, None) => {
                Err(format!("each device has a value of {name:?} for itself: give `device`, here or in the trigger"))
            }
            (_, device) => Ok(self.view.owner(variable, device.unwrap_or_default())),
        }
    }

    /// A condition in explanations, with whose value it asks for: what is called alike is the same condition.
    fn called(&self, text: String, variable: &Variable, device: Option<&str>) -> String {
        match (variable.declaration().scope, device.or(self.device), self.mode) {
            (Scope::Device, Some(device), _) => format!("{text} for {device:?}"),
            (Scope::Mode, _, Some(mode)) => format!("{text} in {mode:?}"),
            _ => text,
        }
    }
}

/// Whether an action, or one in it, goes on to another mode from the one that is active.
pub(super) fn steps_mode(action: &config::Action) -> bool {
    match action {
        config::Action::NextMode(_) | config::Action::PreviousMode(_) => true,
        config::Action::Sequence(sequence) => sequence.actions.iter().any(steps_mode),
        config::Action::Repeat(repeat) => steps_mode(&repeat.action),
        config::Action::Conditional(conditional) => {
            steps_mode(&conditional.then) || conditional.otherwise.as_deref().is_some_and(steps_mode)
        }
        _ => false,
    }
}
