//! What the end-to-end tests share: a home, a conductor in it, and the peers that it talks to.
//!
//! Nothing here knows the host's code: it is started as a program and asked as a person or another
//! program would. Nothing sleeps to give something time: see [`wait`].
//!
//! | module | is |
//! |---|---|
//! | [`home`] | a folder with a configuration, gone afterwards |
//! | [`conductor`] | the program under test: commands that end, and a host that runs |
//! | [`osc`] | OSC peers of our own: a sender, and a listener |
//! | [`liblo`] | OSC peers of others: `oscsend` and `oscdump` |
//! | [`ola`] | an Art-Net peer of others: `olad` |
//! | [`instrument`] | MIDI peers: controllers and synthesizers on virtual ports |
//! | [`screen`] | an X server, and a window that records keys and buttons |
//! | [`windows`] | windows on it, and a window manager that says which one is active |
//! | [`compositor`] | Wayland compositors: sway, and KDE's |
//! | [`wayland_window`] | a window on one of them |
//! | [`bus`] | a desktop's session bus |
//! | [`keyring`] | a desktop's keyring, on a bus |
//! | [`registry`] | an OCI registry of others |
//! | [`folder`] | a folder for as long as it is needed |
//! | [`full_disk`] | a process whose files can't grow |
//! | [`model_server`] | a server in the place of an API of models, with the faults that a test asks for |
//! | [`aimock`] | models of others: aimock in the place of those APIs, and LiteLLM's proxy in front of it |
//! | [`wire`] | how those APIs write their answers |
//! | [`scripted`] | a scripted model behind each of them, and what a question hands back |
//! | [`exchanges`] | answers of those APIs, recorded and made up |
//! | [`random`] | numbers from a seed |
//! | [`conversation`] | a person who talks with a model |
//! | [`kills`] | hosts that are killed while models talk, and what is left |
//! | [`siege`] | clients that misbehave at every door of a host, and what came of it |
//! | [`process`] | any program, with what it has printed so far |

#![allow(clippy::unwrap_used, reason = "in a test a panic is a result")]

#[cfg(unix)]
pub mod aimock;
#[cfg(unix)]
pub mod bus;
#[cfg(target_os = "linux")]
pub mod compositor;
pub mod conductor;
#[cfg(unix)]
pub mod conversation;
pub mod exchanges;
#[cfg(unix)]
pub mod folder;
#[cfg(target_os = "linux")]
pub mod full_disk;
pub mod home;
#[cfg(unix)]
pub mod instrument;
#[cfg(target_os = "linux")]
pub mod keyring;
#[cfg(unix)]
pub mod kills;
pub mod liblo;
pub mod model_server;
#[cfg(target_os = "linux")]
pub mod ola;
pub mod osc;
pub mod process;
pub mod random;
#[cfg(unix)]
pub mod registry;
pub mod screen;
pub mod scripted;
#[cfg(target_os = "linux")]
pub mod siege;
pub mod wait;
#[cfg(target_os = "linux")]
pub mod wayland_window;
#[cfg(all(unix, not(target_os = "macos")))]
pub mod windows;
pub mod wire;
