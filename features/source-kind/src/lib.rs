//! Tells what kind of source sent the events of a window: a keyboard, pads, faders, a clock, several at once.
//!
//! A [`Window`] takes the events of one device, and [`Window::classify`] splits them into groups that were played or
//! moved together: the notes of a channel ([`notes`]), the controllers that stand in a row ([`controls`]), what has no
//! channel ([`system`]). For each group, features of its events give whole points to the kinds that it may be
//! ([`points`]); the one with most points wins, and how far it is ahead, and of how many events, is its confidence.
//! Nothing but whole numbers decides, so the same events have the same answer on every machine.
//!
//! The features and thresholds, and where they come from, are in the README of the feature `fingerprint`; a labelled
//! corpus (`tests/corpus.rs`) measures how often the answer is right.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod controls;
mod heard;
pub mod notes;
pub mod points;
pub mod relative;
pub mod system;
mod window;

use std::fmt;

pub use heard::{Heard, heard};
pub use window::{Moment, Window};

/// A kind of source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Keys, with their wheels and pedals.
    Keyboard,
    /// Pads that are hit with fingers, or a grid of them.
    Pads,
    /// Faders: absolute controllers that are thrown, and several at once.
    Faders,
    /// Knobs with ends: absolute controllers that are turned.
    Knobs,
    /// Endless encoders: controllers that say how far they were turned.
    Encoders,
    /// Switches and pedals under a foot.
    FootController,
    /// Play, stop, record, wind.
    Transport,
    /// A breath or wind controller.
    Breath,
    /// A drum kit with triggers.
    DrumModule,
    /// The clock or time code of a program or a sequencer.
    DawClock,
    /// A gamepad.
    Gamepad,
    /// A program or tablet that sends OSC.
    OscSurface,
    /// A lighting desk that sends Art-Net.
    LightingDesk,
}

impl Kind {
    /// Its name in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Keyboard => "keyboard",
            Self::Pads => "pads",
            Self::Faders => "faders",
            Self::Knobs => "knobs",
            Self::Encoders => "encoders",
            Self::FootController => "foot-controller",
            Self::Transport => "transport",
            Self::Breath => "breath",
            Self::DrumModule => "drum-module",
            Self::DawClock => "daw-clock",
            Self::Gamepad => "gamepad",
            Self::OscSurface => "osc-surface",
            Self::LightingDesk => "lighting-desk",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A source that was found among the events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// What it is.
    pub kind: Kind,
    /// How sure that is, 0 to 100: the lead over the next kind, less where there were few events.
    pub confidence: u8,
    /// What speaks for it, a phrase each, the strongest first.
    pub evidence: Vec<String>,
    /// The kind that it could be instead, where the lead is small.
    pub or_else: Option<Kind>,
    /// The MIDI channels that it sent on, 0-15; empty where it has none.
    pub channels: Vec<u8>,
    /// Its events.
    pub events: usize,
    /// What would make it surer, where something would.
    pub surer: Option<&'static str>,
}

/// What the events of a window come from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fingerprint {
    /// The sources, the one with most confidence first. More than one: several share the port.
    pub sources: Vec<Source>,
    /// Events that are of none of them: too few of their like to tell.
    pub unclear: usize,
}
