//! Names of what MIDI, gamepads and keyboards number: notes, channels, controllers, buttons and axes, keys, machine control.
//!
//! A note is called so that C4 is middle C, number 60; other makers call it C3 or C5. Channels count from 1 where they
//! are named (`ch1`), and from 0 as numbers, as on the wire.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod channel;
pub mod controller;
pub mod gamepad;
pub mod key;
pub mod machine_control;
pub mod note;

/// A name in small letters, with one space where there were spaces, `_` or `-`.
fn plain(name: &str) -> String {
    let words = name.split([' ', '_', '-', '\t']).filter(|word| !word.is_empty());
    words.map(str::to_ascii_lowercase).collect::<Vec<_>>().join(" ")
}
