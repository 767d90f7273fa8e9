//! The configuration front-end: parsing and schema validation, from the text of a TOML file to a [`Config`], or to all
//! of its mistakes.
//!
//! ```text
//! text ─▶ spanned tree ─▶ upgrade (old forms) ─▶ merge (included files) ─▶ check (against the schema) ─▶ serde ─▶ Config
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
mod condition;
mod desktop_action;
mod diagnostic;
pub mod include;
mod light;
mod llm;
pub mod migrate;
mod model;
mod names;
mod parts;
pub mod pin;
mod place;
mod process_action;
pub mod reader;
mod schema;
mod shape;
mod shared;
mod spelling;
#[cfg(test)]
mod tests;
mod trigger;
mod upgrade;
mod variable;

use std::ops::Range;

use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, Deserializer};

pub use action::{
    Action, CancelOn, Conditional, Curve, Delay, HOST_ACTIONS, Lasts, Lut, MidiForward, MidiMessage, MidiTransform,
    ModeChange, Repeat, SendMidi, Sequence, Smoothing, Suppress, Takeover,
};
pub use api::{Api, Elicitation, Mcp, ToolList};
pub use binding::{ArtNetInput, Binding, Connection, Destination, Matcher, OscInput, OscTransport, Side, VirtualPort};
pub use chat::Chat;
pub use clock::{CLOCK_VARIABLES, Clock, Quantize, TapTempo, TransportChange};
pub use condition::{Condition, Day};
pub use conductor_keyboard::{Key, NamedKey};
pub use conductor_quantity::{
    BUTTON, Bounds, Button, ButtonRange, CHANNEL, CONTROLLER, Channel, ChannelExpr, CoarseRange, Controller,
    ControllerExpr, ControllerRange, DATA_MAX, DataBounds, DmxBounds, DmxRange, Inputs, KEY, KeyNumber, KeyRange,
    Malformed, NOTE, Note, NoteExpr, NoteRange, NumberExpr, NumberRange, PLAIN, STICK, Single, Span, StickRange,
    TRIGGER, TriggerRange, WIDE_MAX, WideBounds,
};
pub use conductor_stdx::nearest::nearest;
pub use conductor_text_formats::{HexBytes, IpNetwork, SysExMessage, SysExPrefix, TimeOfDay};
pub use desktop_action::{
    Axis, Keystroke, Motion, MouseButton, MouseClick, MouseMove, Scroll, Stroke, TypeText, VirtualGamepad,
    VolumeControl, VolumeOperation,
};
pub use diagnostic::{Diagnostic, Diagnostics, Severity};
pub use light::Light;
pub use llm::Llm;
pub use model::{
    Access, AdvancedSettings, AgentAccess, CallsPerMinute, Config, ConfirmedAccess, Effort, Feature, Feedback,
    ListenMode, Mapping, Mode, Model, ModelPrice, Profile, Retry, Tools,
};
pub use place::{Location, PathStep, Source};
pub use process_action::{Launch, Shell};
pub use schema::{action_schemas, json_schema};
pub use trigger::{Direction, Edge, EncoderMode, Readings, Trigger, TriggerEvent, Turn};
pub use variable::{
    AddToVariable, CycleVariable, SetVariable, StepMode, ToggleVariable, Variable, VariableKind, VariableScope,
    VariableValue,
};

use check::{check, leave_out};
use include::{Included, SetTwice, merge, shifted};
use names::Names;
use parts::source_of;
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

/// Reads a configuration that includes no file; `file_name` is the name of the file as messages show it.
///
/// # Errors
/// Everything that is wrong, in the order of the file. If the text is not TOML, that is all syntax errors,
/// and of the other mistakes those before the first of them: what comes after could only be guessed.
pub fn parse(text: &str, file_name: &str) -> Result<Loaded, Diagnostics> {
    parse_with(text, file_name, &Included::default())
}

/// Reads the configuration `text`, which is in the file `file_name`, and the files that it includes.
///
/// # Errors
/// As [`parse`], and what is wrong with `include`.
pub fn read(text: &str, file_name: &str) -> Result<Loaded, Diagnostics> {
    parse_with(text, file_name, &Included::read(text, file_name))
}

/// Reads a configuration whose other files were read before.
///
/// # Errors
/// As [`parse`], and what is wrong with `include`.
pub fn parse_with(text: &str, file_name: &str, included: &Included) -> Result<Loaded, Diagnostics> {
    let (source, wrong) = source_of(file_name, text, included);
    let Examined { tree, mut found, names, twice } = examine(places(&source));
    found.extend(wrong);
    for SetTwice { key, place, first } in twice {
        let help = format!("it is set at {} already; keep one of the two", source.location(first.start));
        found.push(Diagnostic::error(place, format!("`{key}` is set in two files")).with_help(help));
    }
    if let Some(names) = names {
        names.check(std::iter::empty(), &source, &mut |diagnostic| found.push(diagnostic));
    }
    let mut diagnostics = Diagnostics::new(source.clone());
    diagnostics.extend(found);
    let warnings = diagnostics.into_result()?;
    match Config::deserialize(Deserializer::from(tree)) {
        Ok(config) => Ok(Loaded { config, source: source.clone(), warnings }),
        // The checker let through what the types do not take. That is a fault here and not in the file,
        // but a person who meets it is helped by the same kind of message.
        Err(error) => {
            let mut diagnostics = warnings;
            diagnostics.push(Diagnostic::error(error.span().unwrap_or(0..0), error.message()));
            Err(diagnostics)
        }
    }
}

impl Source {
    /// Reads another text of the same file. Of other files it includes what this one does, as it was read; no file is
    /// read for it.
    ///
    /// # Errors
    /// As [`parse`].
    pub fn parse(&self, text: &str) -> Result<Loaded, Diagnostics> {
        parse_with(text, self.file(), self.included())
    }

    /// Reads the same configuration with another text in one of its [files](Self::files); no file is read for it.
    ///
    /// # Errors
    /// As [`parse`].
    pub fn with_text(&self, file: &str, text: &str) -> Result<Loaded, Diagnostics> {
        if file == self.file() {
            return self.parse(text);
        }
        parse_with(self.text(), self.file(), &self.included().with_text(file, text))
    }
}

/// What is left of a configuration in which something is wrong, for later stages to look at as well, so that a
/// person hears of all mistakes at once: mappings with a mistake do nothing, and `wrong`, which [`parse`] found, are
/// its warnings, errors included. No host may run with it. `None` if what is wrong is not in mappings alone.
pub fn salvage(wrong: &Diagnostics) -> Option<Loaded> {
    let source = wrong.source().clone();
    let Examined { mut tree, names, .. } = examine(places(&source));
    names?;
    let errors = wrong.iter().filter(|found| found.severity == Severity::Error);
    leave_out(tree.get_mut(), &errors.map(|found| found.place.clone()).collect::<Vec<_>>());
    let mut config = Config::deserialize(Deserializer::from(tree)).ok()?;
    // A second mode of a name is refused already; that there are two is not to be said again.
    for at in 1..config.modes.len() {
        let (before, mode) = config.modes.split_at_mut(at);
        if before.iter().any(|other| other.name == mode[0].name) {
            mode[0].name.push_str(&format!(" ({at})"));
        }
    }
    Some(Loaded { config, source: source.clone(), warnings: wrong.clone() })
}

/// Texts with the places of their first bytes.
fn places(source: &Source) -> impl Iterator<Item = (usize, &str)> {
    source.parts().iter().map(|part| (part.start, &*part.text))
}

/// Texts as far as they can be looked at by themselves.
struct Examined<'t> {
    /// In today's form.
    tree: Spanned<DeTable<'t>>,
    /// What is wrong with it, but for names.
    found: Vec<Diagnostic>,
    /// The names in it, to be held against each other; `None` if a text is not TOML.
    names: Option<Names<'static>>,
    /// What is set in two files.
    twice: Vec<SetTwice>,
}

fn examine<'t>(parts: impl Iterator<Item = (usize, &'t str)>) -> Examined<'t> {
    let Combined { mut tree, mut found, guessed, twice } = combined(parts);
    let names = check(&mut tree, &guessed, &mut |diagnostic| found.push(diagnostic));
    Examined { tree, found, names: guessed.is_empty().then_some(names), twice }
}

/// Texts as one tree, in today's form.
struct Combined<'t> {
    tree: Spanned<DeTable<'t>>,
    found: Vec<Diagnostic>,
    /// What stands behind the first syntax error of a text, where the parser has guessed.
    guessed: Vec<Range<usize>>,
    twice: Vec<SetTwice>,
}

fn combined<'t>(parts: impl Iterator<Item = (usize, &'t str)>) -> Combined<'t> {
    let (mut whole, mut found, mut guessed, mut twice) =
        (None::<Spanned<DeTable<'t>>>, Vec::new(), Vec::new(), Vec::new());
    for (start, text) in parts {
        let (mut tree, syntax_errors) = DeTable::parse_recoverable(text);
        let mut of_part: Vec<_> = syntax_errors.iter().map(|error| syntax_error(error, text)).collect();
        // The parser may meet one mistake on several ways.
        of_part.sort_by_key(|diagnostic| diagnostic.place.start);
        of_part.dedup();
        if let Some(first) = of_part.first() {
            // From the beginning of its line on.
            let before = &text[..text.floor_char_boundary(first.place.start)];
            guessed.push(start + before.rfind('\n').map_or(0, |end| end + 1)..start + text.len() + 1);
        }
        upgrade(&mut tree, &mut |diagnostic| of_part.push(diagnostic));
        found.extend(of_part.into_iter().map(|diagnostic| {
            let Range { start: from, end: to } = diagnostic.place;
            Diagnostic { place: start + from..start + to, ..diagnostic }
        }));
        match &mut whole {
            None => whole = Some(tree),
            Some(whole) => merge(whole.get_mut(), shifted(tree.into_inner(), start), &mut twice),
        }
    }
    Combined { tree: whole.unwrap_or_else(|| Spanned::new(0..0, DeTable::new())), found, guessed, twice }
}

fn syntax_error(error: &toml::de::Error, text: &str) -> Diagnostic {
    let place = error.span().unwrap_or(text.len()..text.len());
    let message = match (error.message(), text.get(place.clone())) {
        ("duplicate key", Some(key)) => format!("duplicate key `{key}`"),
        (message, _) => message.to_owned(),
    };
    Diagnostic::error(place, message)
}
