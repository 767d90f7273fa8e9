//! The server of the web shell on real sockets: what a browser gets, and what a page of others, another user and a client
//! that misbehaves don't.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "in a test a panic is a result")]

mod forwarding;
mod guarding;
mod pages;
mod stage;

use stage::{Answer, Limits, Stage};
