//! Keyboards, macro pads and mice of Linux, read by evdev; and a gamepad that is made for other programs.
//!
//! [`Devices`] says which there are, from sysfs alone: no device is opened for that. [`Reader`] opens one and hands on
//! what its keys do, from a thread of its own. It may grab the device, so that other programs do not get its keys; the
//! room `grab` says when it does, and which keys always end it.
//!
//! [`VirtualGamepad`] is a gamepad without hardware.
//!
//! The crate does not depend on Conductor.

#![cfg(target_os = "linux")]
#![deny(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "in a test a panic is a result"))]

mod capabilities;
mod grab;
mod reader;
mod sysfs;
mod virtual_gamepad;

pub use self::capabilities::Class;
pub use self::reader::{Input, OpenError, Reader};
pub use self::sysfs::{Device, Devices};
pub use self::virtual_gamepad::VirtualGamepad;
