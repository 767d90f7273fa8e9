//! The SDK for feature authors: the contract's bindings, and the macro that turns a type into a
//! component.
//!
//! A feature is a `cdylib` crate with a `feature.toml` beside its `Cargo.toml`. It implements
//! [`Lifecycle`] and, for actions, [`Actions`], and says [`feature!`] once:
//!
//! ```ignore
//! use conductor_feature::{Actions, Context, Error, Event, Lifecycle, action_registrar::Registrar};
//!
//! struct Hello;
//!
//! impl Lifecycle for Hello {
//!     fn install(ctx: &Context) -> Result<(), Error> {
//!         Registrar::open(ctx)?.register("Hello", r#"{"type":"object"}"#)
//!     }
//! }
//!
//! impl Actions for Hello {
//!     fn prepare(_name: String, _params: String) -> Result<u32, Error> { Ok(0) }
//!     fn perform(_action: u32, _event: Event) -> Result<(), Error> { Ok(()) }
//!     fn release(_action: u32) {}
//! }
//!
//! conductor_feature::feature!(Hello, "../feature.toml");
//! ```
//!
//! The contract itself, with every unit and limit, is the WIT package `conductor:feature`.

/// What `wit-bindgen` makes of the contract. The names that authors need are re-exported beside it.
#[allow(missing_docs, clippy::undocumented_unsafe_blocks, clippy::unwrap_used)]
pub mod bindings {
    wit_bindgen::generate!({
        path: "../wit/v0.1",
        world: "action-feature",
        pub_export_macro: true,
        default_bindings_module: "conductor_feature::bindings",
    });
}

pub use bindings::conductor::feature::install::Context;
pub use bindings::conductor::feature::types::{Error, Event};
pub use bindings::conductor::feature::{action_registrar, alerts, devices, diagnostics, notifications, udp};
pub use bindings::exports::conductor::feature::actions::Guest as Actions;
pub use bindings::exports::conductor::feature::lifecycle::Guest as Lifecycle;

/// The numbers of [`Event::kind`], as the contract gives them.
pub mod kind {
    /// MIDI note-off, or note-on with velocity 0.
    pub const NOTE_OFF: u8 = 1;
    /// MIDI note-on with a velocity of 1-127.
    pub const NOTE_ON: u8 = 2;
    /// MIDI polyphonic aftertouch.
    pub const POLY_AFTERTOUCH: u8 = 3;
    /// MIDI control change.
    pub const CONTROL_CHANGE: u8 = 4;
    /// MIDI program change.
    pub const PROGRAM_CHANGE: u8 = 5;
    /// MIDI channel aftertouch.
    pub const AFTERTOUCH: u8 = 6;
    /// MIDI pitch bend.
    pub const PITCH_BEND: u8 = 7;
    /// MIDI system exclusive.
    pub const SYSEX: u8 = 8;
    /// MIDI time code quarter frame.
    pub const TIME_CODE: u8 = 9;
    /// MIDI song position pointer.
    pub const SONG_POSITION: u8 = 10;
    /// MIDI song select.
    pub const SONG_SELECT: u8 = 11;
    /// MIDI tune request.
    pub const TUNE_REQUEST: u8 = 12;
    /// MIDI timing clock.
    pub const CLOCK: u8 = 13;
    /// MIDI start.
    pub const START: u8 = 14;
    /// MIDI continue.
    pub const CONTINUE: u8 = 15;
    /// MIDI stop.
    pub const STOP: u8 = 16;
    /// MIDI active sensing.
    pub const ACTIVE_SENSING: u8 = 17;
    /// MIDI system reset.
    pub const RESET: u8 = 18;
    /// OSC message.
    pub const OSC: u8 = 32;
}

/// Makes a component of a type that implements [`Lifecycle`] and [`Actions`], and carries the
/// descriptor (a path to `feature.toml`, relative to the calling file) inside it.
#[macro_export]
macro_rules! feature {
    ($type:ident, $descriptor:literal) => {
        #[cfg(target_arch = "wasm32")]
        #[unsafe(link_section = "conductor:feature")]
        #[used]
        static CONDUCTOR_DESCRIPTOR: [u8; include_bytes!($descriptor).len()] =
            *include_bytes!($descriptor);

        #[cfg(target_arch = "wasm32")]
        $crate::bindings::export!($type with_types_in $crate::bindings);

        // Off the sandbox (in `cargo test`) nothing is exported, but the type is still checked.
        #[cfg(not(target_arch = "wasm32"))]
        const _: fn() = || {
            fn exported<T: $crate::Lifecycle + $crate::Actions>() {
                let _ = (T::install, T::prepare, T::perform, T::release);
            }
            exported::<$type>();
        };
    };
}
