//! The configuration front-end: parsing and schema validation, from the text of a TOML file to a [`Config`], or to all
//! of its mistakes.
//!
//! ```text
//! text ─▶ spanned tree ─▶ upgrade (old forms) ─▶ check (against the schema) ─▶ serde ─▶ Config
//! ```
//!
//! The types in [`model`](Config) are the one source of truth: the JSON Schema is generated from them,
//! and the file is validated against that schema. Later stages (compiling rules, preparing features) report
//! through the same [`Diagnostics`], at places that [`Source`] finds for them.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::disallowed_macros))]

mod action;
mod api;
mod binding;
mod chat;
mod check;
mod clock;
mod composite_action;
mod condition;
mod desktop_action;
mod diagnostic;
mod light;
mod llm;
pub mod migrate;
mod model;
mod names;
pub mod pin;
mod place;
mod process_action;
pub mod reader;
mod schema;
mod shape;
mod shared;
#[cfg(test)]
mod tests;
mod text;
mod trigger;
mod upgrade;
mod variable;

use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, Deserializer};

pub use action::{
    Action, Curve, HOST_ACTIONS, Lasts, Lut, MidiForward, MidiMessage, MidiTransform, ModeChange, SendMidi, Smoothing,
    Suppress, Takeover,
};
pub use api::{Api, Elicitation, Mcp, ToolList};
pub use binding::{ArtNetInput, Binding, Connection, Destination, Matcher, OscInput, OscTransport, Side, VirtualPort};
pub use chat::Chat;
pub use clock::{CLOCK_VARIABLES, Clock, Quantize, TapTempo, TransportChange};
pub use composite_action::{CancelOn, Conditional, Delay, Repeat, Sequence};
pub use condition::{Condition, Day};
pub use conductor_keyboard::{Key, NamedKey};
pub use conductor_quantity::{
    BUTTON, Bounds, Button, ButtonRange, CHANNEL, CONTROLLER, Channel, ChannelExpr, CoarseRange, Controller,
    ControllerExpr, ControllerRange, DATA_MAX, DataBounds, DmxBounds, DmxRange, Inputs, Malformed, NOTE, Note,
    NoteExpr, NoteRange, NumberExpr, NumberRange, PLAIN, STICK, Single, Span, StickRange, TRIGGER, TriggerRange,
    WIDE_MAX, WideBounds,
};
pub use conductor_stdx::nearest::nearest;
pub use desktop_action::{
    Axis, Keystroke, MouseButton, MouseClick, Scroll, Stroke, TypeText, VolumeControl, VolumeOperation,
};
pub use diagnostic::{Diagnostic, Diagnostics, Severity};
pub use light::Light;
pub use llm::Llm;
pub use model::{
    Access, AdvancedSettings, AgentAccess, CallsPerMinute, Config, ConfirmedAccess, Feature, Feedback, ListenMode,
    Mapping, Mode, Model, ModelPrice, Profile, Retry, Tools,
};
pub use place::{PathStep, Source};
pub use process_action::{Launch, Shell};
pub use schema::{action_schemas, json_schema};
pub use text::{HexBytes, IpNetwork, SysExMessage, SysExPrefix, TimeOfDay};
pub use trigger::{Direction, Edge, EncoderMode, Readings, Trigger, TriggerEvent, Turn};
pub use variable::{
    AddToVariable, CycleVariable, SetVariable, StepMode, ToggleVariable, Variable, VariableKind, VariableScope,
    VariableValue,
};

use check::{Trust, check};
use names::Names;
use upgrade::upgrade;

/// A configuration without mistakes, and where it comes from.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The configuration, old forms already brought to today's.
    pub config: Config,
    /// Its text, for diagnostics of later stages.
    pub source: Source,
    /// What is doubtful in it. A later stage may go on adding to them.
    pub warnings: Diagnostics,
}

/// Reads a configuration; `file_name` is the name of the file as messages show it.
///
/// # Errors
/// Everything that is wrong, in the order of the file. If the text is not TOML, that is all syntax errors,
/// and of the other mistakes those before the first of them: what comes after could only be guessed.
pub fn parse(text: &str, file_name: &str) -> Result<Loaded, Diagnostics> {
    let source = Source::new(file_name, text);
    let Examined { tree, mut found, names } = examine(text);
    if let Some(names) = names {
        names.check(&source, &mut |diagnostic| found.push(diagnostic));
    }
    let mut diagnostics = Diagnostics::new(source.clone());
    diagnostics.extend(found);
    let warnings = diagnostics.into_result()?;
    match Config::deserialize(Deserializer::from(tree)) {
        Ok(config) => Ok(Loaded { config, source, warnings }),
        // The checker let through what the types do not take. That is a fault here and not in the file,
        // but a person who meets it is helped by the same kind of message.
        Err(error) => {
            let mut diagnostics = warnings;
            diagnostics.push(Diagnostic::error(error.span().unwrap_or(0..0), error.message()));
            Err(diagnostics)
        }
    }
}

/// What is left of a configuration in which something is wrong, for later stages to look at as well, so that a
/// person hears of all mistakes at once: mappings with a mistake do nothing, and `wrong`, which [`parse`] found, are
/// its warnings, errors included. No host may run with it. `None` if what is wrong is not in mappings alone.
pub fn salvage(wrong: &Diagnostics) -> Option<Loaded> {
    let source = wrong.source().clone();
    let Examined { tree, names, .. } = examine(source.text());
    names?;
    let config = Config::deserialize(Deserializer::from(tree)).ok()?;
    Some(Loaded { config, source: source.clone(), warnings: wrong.clone() })
}

/// A text as far as it can be looked at by itself.
struct Examined<'t> {
    /// In today's form.
    tree: Spanned<DeTable<'t>>,
    /// What is wrong with it, but for names.
    found: Vec<Diagnostic>,
    /// The names in it, to be held against each other; `None` if the text is not TOML.
    names: Option<Names<'static>>,
}

fn examine(text: &str) -> Examined<'_> {
    let (mut tree, syntax_errors) = DeTable::parse_recoverable(text);
    let mut found: Vec<_> = syntax_errors.iter().map(|error| syntax_error(error, text)).collect();
    // The parser may meet one mistake on several ways.
    found.sort_by_key(|diagnostic| diagnostic.place.start);
    found.dedup();
    let trust = match found.first() {
        None => Trust::Whole,
        // From the beginning of its line on.
        Some(first) => {
            let before = &text[..text.floor_char_boundary(first.place.start)];
            Trust::Until(before.rfind('\n').map_or(0, |end| end + 1))
        }
    };
    upgrade(&mut tree, &mut |diagnostic| found.push(diagnostic));
    let names = check(&mut tree, trust, &mut |diagnostic| found.push(diagnostic));
    Examined { tree, found, names: (trust == Trust::Whole).then_some(names) }
}

fn syntax_error(error: &toml::de::Error, text: &str) -> Diagnostic {
    let place = error.span().unwrap_or(text.len()..text.len());
    let message = match (error.message(), text.get(place.clone())) {
        ("duplicate key", Some(key)) => format!("duplicate key `{key}`"),
        (message, _) => message.to_owned(),
    };
    Diagnostic::error(place, message)
}
