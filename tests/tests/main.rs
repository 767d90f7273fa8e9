//! The end-to-end tests, as one program: it is linked once, and its hosts share what one of them has compiled
//! (see [`conductor_tests::home`]). Apart from it are the tests that need a machine of their own (`alsa`), a JACK server
//! (`jack`), or a host that nothing else disturbs (`siege`).

mod actions;
mod api;
mod artnet;
mod audit;
mod authors;
#[cfg(target_os = "linux")]
mod bad_servers;
mod clients;
mod elicitation;
mod features;
mod front;
mod gate;
mod gestures;
mod hang_up;
#[cfg(unix)]
mod homes;
mod http;
mod keys;
#[cfg(unix)]
mod kills;
mod machine;
mod mcp;
mod notifications;
mod ola;
mod osc;
mod plans;
#[cfg(unix)]
mod providers;
mod registry;
mod released;
mod run;
mod secrets;
mod terminal;
mod tools;
mod ui;
