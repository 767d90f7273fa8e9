//! Profiles of controllers: what each control of a device sends, how its lights are set, how its ports are called.
//!
//! A profile is one TOML file that a person can read and check by hand. [`Profile::parse`] reads it, or names every mistake
//! with its line; [`Library`] is the profiles that come with the program. Nothing here does I/O.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod check;
mod fields;
mod library;
mod message;
mod numbers;
mod port;
mod profile;
mod read;
mod schema;
mod setup;
mod suggest;

pub use check::{MAX_FILE, Mistake};
pub use library::{Library, Overlap};
pub use message::Message;
pub use numbers::shortened;
pub use port::{PortFit, fits};
pub use profile::{
    Confidence, Control, ControlKind, Encoding, Identity, Layout, Light, LightMessage, Mode, PortNames, Profile,
    Source, SysExIdentity, UsbId,
};
pub use schema::schema;
pub use setup::{
    SetupPort, alias_for, alias_of, alias_with, aliases, missing, name_regexes, places, setup, setup_ahead,
};
pub use suggest::{SuggestFor, Suggested, suggest};
