//! Elgato Stream Decks as MIDI: keys and dials play, and messages and texts light the keys.
//!
//! A deck is a grid of pads with lights, and so everything that is for pads is for it: triggers, gestures, feedback, pages of
//! modes, learning, the picture of the shells. [`layout`] says which message is which key. The device itself is behind
//! `elgato-streamdeck`, over the system's HID.

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "in a test a panic is a result"))]

pub mod colour;
mod device;
pub mod layout;
mod picture;

pub use self::device::{Deck, Decks, Error, Found, Lights, Reader};
pub use elgato_streamdeck::info::Kind;
