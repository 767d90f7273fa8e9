//! A tool: what a MIDI note is called, and how it sounds.

use conductor_feature::tool_registrar::Registrar;
use conductor_feature::{Context, Error, Invocation, ReadOnlyTools, Reader, json};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{{Type}};

const NAMES: [&str; 12] = ["C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B"];

/// What the tool takes. Models read the comments: they are part of the schema.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The note's number; 60 is middle C.
    #[schemars(range(max = 127))]
    note: u8,
}

/// What it gives.
#[derive(Serialize, JsonSchema)]
struct Note {
    /// Such as C4.
    name: String,
    /// In Hz, with A4 at 440.
    frequency: f64,
}

/// Registers the tool that feature.toml declares.
pub fn install(ctx: &Context) -> Result<(), Error> {
    json::register::<Args, Note>(&Registrar::open(ctx)?, "{{snake}}")
}

impl ReadOnlyTools for {{Type}} {
    // `name` tells several tools of one feature apart. `_call` says whether the answer is still wanted and
    // takes progress; `_host` shows ports, mode, configuration and events.
    fn call(_name: String, args: String, _call: &Invocation, _host: &Reader) -> Result<String, Error> {
        json::answer(&args, |Args { note }| {
            if note > 127 {
                return Err(Error::Invalid(format!("{note} is no MIDI note; they go from 0 to 127")));
            }
            let (octave, tone) = (i16::from(note) / 12 - 1, usize::from(note) % 12);
            let frequency = 440.0 * 2_f64.powf((f64::from(note) - 69.0) / 12.0);
            Ok(Note { name: format!("{}{octave}", NAMES[tone]), frequency: (frequency * 100.0).round() / 100.0 })
        })
    }
}
