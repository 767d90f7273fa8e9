//! The SDK for feature authors: the contract's bindings, and the macro that turns a type into a
//! component.
//!
//! A feature is a `cdylib` crate with a `feature.toml` beside its `Cargo.toml`. It implements
//! [`Lifecycle`] and the trait of every part that it contributes ([`Actions`], [`ReadOnlyTools`],
//! [`Tasks`], ...), and says [`feature!`] once:
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
//! conductor_feature::feature!(Hello, "../feature.toml", [actions]);
//! ```
//!
//! The contract itself, with every unit and limit, is the WIT package `conductor:feature`.

#[cfg(all(feature = "harness", not(target_arch = "wasm32")))]
pub mod harness;
#[cfg(feature = "json")]
pub mod json;
#[cfg(feature = "json")]
pub mod mapping;
#[cfg(feature = "json")]
pub mod page;
mod prepared;
mod words;

pub use prepared::Prepared;

/// What `wit-bindgen` makes of the contract. The names that authors need are re-exported beside it.
#[allow(missing_docs, clippy::undocumented_unsafe_blocks, clippy::unwrap_used)]
pub mod bindings {
    wit_bindgen::generate!({
        path: "../wit/v0.1",
        world: "parts",
        pub_export_macro: true,
        export_macro_name: "export_lifecycle",
        default_bindings_module: "conductor_feature::bindings",
    });
}

/// One module a part of the contract that a feature may export; each shares the types of [`bindings`].
#[allow(missing_docs, clippy::undocumented_unsafe_blocks, clippy::unwrap_used)]
pub mod parts {
    pub mod actions {
        wit_bindgen::generate!({
            path: "../wit/v0.1",
            world: "part-actions",
            pub_export_macro: true,
            export_macro_name: "export_actions",
            default_bindings_module: "conductor_feature::parts::actions",
            with: {
                "conductor:feature/types@0.1.0": crate::bindings::conductor::feature::types,
                "conductor:feature/install@0.1.0": crate::bindings::conductor::feature::install,
                "conductor:feature/action-registrar@0.1.0": crate::bindings::conductor::feature::action_registrar,
            },
        });
    }
    pub mod timer_events {
        wit_bindgen::generate!({
            path: "../wit/v0.1",
            world: "part-timer-events",
            pub_export_macro: true,
            export_macro_name: "export_timer_events",
            default_bindings_module: "conductor_feature::parts::timer_events",
            with: {
                "conductor:feature/types@0.1.0": crate::bindings::conductor::feature::types,
                "conductor:feature/install@0.1.0": crate::bindings::conductor::feature::install,
                "conductor:feature/timers@0.1.0": crate::bindings::conductor::feature::timers,
            },
        });
    }
    pub mod read_only_tools {
        wit_bindgen::generate!({
            path: "../wit/v0.1",
            world: "part-read-only-tools",
            pub_export_macro: true,
            export_macro_name: "export_read_only_tools",
            default_bindings_module: "conductor_feature::parts::read_only_tools",
            with: {
                "conductor:feature/types@0.1.0": crate::bindings::conductor::feature::types,
                "conductor:feature/install@0.1.0": crate::bindings::conductor::feature::install,
                "conductor:feature/tool-registrar@0.1.0": crate::bindings::conductor::feature::tool_registrar,
                "conductor:feature/invocations@0.1.0": crate::bindings::conductor::feature::invocations,
                "conductor:feature/host-state@0.1.0": crate::bindings::conductor::feature::host_state,
            },
        });
    }
    pub mod stateful_tools {
        wit_bindgen::generate!({
            path: "../wit/v0.1",
            world: "part-stateful-tools",
            pub_export_macro: true,
            export_macro_name: "export_stateful_tools",
            default_bindings_module: "conductor_feature::parts::stateful_tools",
            with: {
                "conductor:feature/types@0.1.0": crate::bindings::conductor::feature::types,
                "conductor:feature/install@0.1.0": crate::bindings::conductor::feature::install,
                "conductor:feature/tool-registrar@0.1.0": crate::bindings::conductor::feature::tool_registrar,
                "conductor:feature/invocations@0.1.0": crate::bindings::conductor::feature::invocations,
                "conductor:feature/host-state@0.1.0": crate::bindings::conductor::feature::host_state,
                "conductor:feature/runtime-controls@0.1.0": crate::bindings::conductor::feature::runtime_controls,
            },
        });
    }
    pub mod config_change_tools {
        wit_bindgen::generate!({
            path: "../wit/v0.1",
            world: "part-config-change-tools",
            pub_export_macro: true,
            export_macro_name: "export_config_change_tools",
            default_bindings_module: "conductor_feature::parts::config_change_tools",
            with: {
                "conductor:feature/types@0.1.0": crate::bindings::conductor::feature::types,
                "conductor:feature/install@0.1.0": crate::bindings::conductor::feature::install,
                "conductor:feature/tool-registrar@0.1.0": crate::bindings::conductor::feature::tool_registrar,
                "conductor:feature/invocations@0.1.0": crate::bindings::conductor::feature::invocations,
                "conductor:feature/host-state@0.1.0": crate::bindings::conductor::feature::host_state,
                "conductor:feature/planning@0.1.0": crate::bindings::conductor::feature::planning,
            },
        });
    }
    pub mod hardware_io_tools {
        wit_bindgen::generate!({
            path: "../wit/v0.1",
            world: "part-hardware-io-tools",
            pub_export_macro: true,
            export_macro_name: "export_hardware_io_tools",
            default_bindings_module: "conductor_feature::parts::hardware_io_tools",
            with: {
                "conductor:feature/types@0.1.0": crate::bindings::conductor::feature::types,
                "conductor:feature/install@0.1.0": crate::bindings::conductor::feature::install,
                "conductor:feature/tool-registrar@0.1.0": crate::bindings::conductor::feature::tool_registrar,
                "conductor:feature/invocations@0.1.0": crate::bindings::conductor::feature::invocations,
                "conductor:feature/host-state@0.1.0": crate::bindings::conductor::feature::host_state,
                "conductor:feature/hardware@0.1.0": crate::bindings::conductor::feature::hardware,
            },
        });
    }
    pub mod privileged_tools {
        wit_bindgen::generate!({
            path: "../wit/v0.1",
            world: "part-privileged-tools",
            pub_export_macro: true,
            export_macro_name: "export_privileged_tools",
            default_bindings_module: "conductor_feature::parts::privileged_tools",
            with: {
                "conductor:feature/types@0.1.0": crate::bindings::conductor::feature::types,
                "conductor:feature/install@0.1.0": crate::bindings::conductor::feature::install,
                "conductor:feature/tool-registrar@0.1.0": crate::bindings::conductor::feature::tool_registrar,
                "conductor:feature/invocations@0.1.0": crate::bindings::conductor::feature::invocations,
                "conductor:feature/host-state@0.1.0": crate::bindings::conductor::feature::host_state,
                "conductor:feature/planning@0.1.0": crate::bindings::conductor::feature::planning,
                "conductor:feature/privileges@0.1.0": crate::bindings::conductor::feature::privileges,
            },
        });
    }
    pub mod tool_hooks {
        wit_bindgen::generate!({
            path: "../wit/v0.1",
            world: "part-tool-hooks",
            pub_export_macro: true,
            export_macro_name: "export_tool_hooks",
            default_bindings_module: "conductor_feature::parts::tool_hooks",
            with: {
                "conductor:feature/types@0.1.0": crate::bindings::conductor::feature::types,
                "conductor:feature/install@0.1.0": crate::bindings::conductor::feature::install,
                "conductor:feature/hook-registrar@0.1.0": crate::bindings::conductor::feature::hook_registrar,
            },
        });
    }
    pub mod event_hooks {
        wit_bindgen::generate!({
            path: "../wit/v0.1",
            world: "part-event-hooks",
            pub_export_macro: true,
            export_macro_name: "export_event_hooks",
            default_bindings_module: "conductor_feature::parts::event_hooks",
            with: {
                "conductor:feature/types@0.1.0": crate::bindings::conductor::feature::types,
                "conductor:feature/install@0.1.0": crate::bindings::conductor::feature::install,
                "conductor:feature/hook-registrar@0.1.0": crate::bindings::conductor::feature::hook_registrar,
            },
        });
    }
    pub mod change_hooks {
        wit_bindgen::generate!({
            path: "../wit/v0.1",
            world: "part-change-hooks",
            pub_export_macro: true,
            export_macro_name: "export_change_hooks",
            default_bindings_module: "conductor_feature::parts::change_hooks",
            with: {
                "conductor:feature/types@0.1.0": crate::bindings::conductor::feature::types,
                "conductor:feature/install@0.1.0": crate::bindings::conductor::feature::install,
                "conductor:feature/hook-registrar@0.1.0": crate::bindings::conductor::feature::hook_registrar,
            },
        });
    }
    pub mod providers {
        wit_bindgen::generate!({
            path: "../wit/v0.1",
            world: "part-providers",
            pub_export_macro: true,
            export_macro_name: "export_providers",
            default_bindings_module: "conductor_feature::parts::providers",
            with: {
                "conductor:feature/types@0.1.0": crate::bindings::conductor::feature::types,
                "conductor:feature/install@0.1.0": crate::bindings::conductor::feature::install,
                "conductor:feature/chat@0.1.0": crate::bindings::conductor::feature::chat,
                "conductor:feature/provider-registrar@0.1.0": crate::bindings::conductor::feature::provider_registrar,
            },
        });
    }
    pub mod chat_hooks {
        wit_bindgen::generate!({
            path: "../wit/v0.1",
            world: "part-chat-hooks",
            pub_export_macro: true,
            export_macro_name: "export_chat_hooks",
            default_bindings_module: "conductor_feature::parts::chat_hooks",
            with: {
                "conductor:feature/types@0.1.0": crate::bindings::conductor::feature::types,
                "conductor:feature/install@0.1.0": crate::bindings::conductor::feature::install,
                "conductor:feature/chat@0.1.0": crate::bindings::conductor::feature::chat,
                "conductor:feature/hook-registrar@0.1.0": crate::bindings::conductor::feature::hook_registrar,
                "conductor:feature/chat-hook-registrar@0.1.0": crate::bindings::conductor::feature::chat_hook_registrar,
            },
        });
    }
    pub mod migration {
        wit_bindgen::generate!({
            path: "../wit/v0.1",
            world: "part-migration",
            pub_export_macro: true,
            export_macro_name: "export_migration",
            default_bindings_module: "conductor_feature::parts::migration",
            with: {
                "conductor:feature/types@0.1.0": crate::bindings::conductor::feature::types,
                "conductor:feature/install@0.1.0": crate::bindings::conductor::feature::install,
                "conductor:feature/store@0.1.0": crate::bindings::conductor::feature::store,
            },
        });
    }
    pub mod state_handover {
        wit_bindgen::generate!({
            path: "../wit/v0.1",
            world: "part-state-handover",
            pub_export_macro: true,
            export_macro_name: "export_state_handover",
            default_bindings_module: "conductor_feature::parts::state_handover",
            with: {
                "conductor:feature/types@0.1.0": crate::bindings::conductor::feature::types,
            },
        });
    }
    pub mod exchange_details {
        wit_bindgen::generate!({
            path: "../wit/v0.1",
            world: "part-exchange-details",
            pub_export_macro: true,
            export_macro_name: "export_exchange_details",
            default_bindings_module: "conductor_feature::parts::exchange_details",
        });
    }
    pub mod tasks {
        wit_bindgen::generate!({
            path: "../wit/v0.1",
            world: "part-tasks",
            pub_export_macro: true,
            export_macro_name: "export_tasks",
            default_bindings_module: "conductor_feature::parts::tasks",
            with: {
                "conductor:feature/types@0.1.0": crate::bindings::conductor::feature::types,
                "conductor:feature/install@0.1.0": crate::bindings::conductor::feature::install,
                "conductor:feature/task-registrar@0.1.0": crate::bindings::conductor::feature::task_registrar,
                "conductor:feature/runs@0.1.0": crate::bindings::conductor::feature::runs,
            },
        });
    }
}

// Services and registrars, a module each.
pub use bindings::conductor::feature::*;

pub use bindings::conductor::feature::hardware::Access;
pub use bindings::conductor::feature::host_state::Reader;
pub use bindings::conductor::feature::install::Context;
pub use bindings::conductor::feature::invocations::Invocation;
pub use bindings::conductor::feature::planning::Planner;
pub use bindings::conductor::feature::privileges::Authority;
pub use bindings::conductor::feature::runtime_controls::Controls;
pub use bindings::conductor::feature::timers::Scheduler;
pub use bindings::conductor::feature::types::{Error, Event, Identity, Risk, Tier};
pub use bindings::exports::conductor::feature::lifecycle::Guest as Lifecycle;
pub use parts::actions::exports::conductor::feature::actions::Guest as Actions;
pub use parts::change_hooks::exports::conductor::feature::change_hooks::Guest as ChangeHooks;
pub use parts::chat_hooks::exports::conductor::feature::chat_hooks::{self as chat_hook_types, Guest as ChatHooks};
pub use parts::config_change_tools::exports::conductor::feature::config_change_tools::Guest as ConfigChangeTools;
pub use parts::event_hooks::exports::conductor::feature::event_hooks::Guest as EventHooks;
pub use parts::exchange_details::exports::conductor::feature::exchange_details::{
    self as details, Guest as ExchangeDetails,
};
pub use parts::hardware_io_tools::exports::conductor::feature::hardware_io_tools::Guest as HardwareIoTools;
pub use parts::migration::exports::conductor::feature::migration::Guest as Migration;
pub use parts::privileged_tools::exports::conductor::feature::privileged_tools::Guest as PrivilegedTools;
pub use parts::providers::exports::conductor::feature::providers::{self as provider, Guest as Providers};
pub use parts::read_only_tools::exports::conductor::feature::read_only_tools::Guest as ReadOnlyTools;
pub use parts::state_handover::exports::conductor::feature::state_handover::Guest as StateHandover;
pub use parts::stateful_tools::exports::conductor::feature::stateful_tools::Guest as StatefulTools;
pub use parts::tasks::exports::conductor::feature::tasks::Guest as Tasks;
pub use parts::timer_events::exports::conductor::feature::timer_events::Guest as TimerEvents;
pub use parts::tool_hooks::exports::conductor::feature::tool_hooks::{Decision, Guest as ToolHooks, ToolCall};

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
    /// Gamepad button.
    pub const GAMEPAD_BUTTON: u8 = 33;
    /// Gamepad stick.
    pub const GAMEPAD_STICK: u8 = 34;
    /// Gamepad trigger.
    pub const GAMEPAD_TRIGGER: u8 = 35;
    /// One channel of an Art-Net universe changed.
    pub const ARTNET: u8 = 36;
    /// A variable changed.
    pub const VARIABLE: u8 = 37;
    /// A beat of the clock begins.
    pub const BEAT: u8 = 38;
    /// The transport of the clock does something.
    pub const TRANSPORT: u8 = 39;
    /// A key of a computer keyboard, or a button of a mouse.
    pub const KEY: u8 = 40;
}

/// Makes a component of a type, and carries the descriptor (a path to `feature.toml`, relative to
/// the calling file) inside it.
///
/// The type implements [`Lifecycle`], and the trait of each part that is listed: `actions`, `timer_events`,
/// `read_only_tools`, `stateful_tools`, `config_change_tools`, `hardware_io_tools`, `privileged_tools`,
/// `tool_hooks`, `event_hooks`, `change_hooks`, `chat_hooks`, `tasks`, `providers`, `migration`,
/// `state_handover`, `exchange_details`.
#[macro_export]
macro_rules! feature {
    ($type:ident, $descriptor:literal, [$($part:ident),* $(,)?]) => {
        #[cfg(target_arch = "wasm32")]
        #[unsafe(link_section = "conductor:feature")]
        #[used]
        static CONDUCTOR_DESCRIPTOR: [u8; include_bytes!($descriptor).len()] =
            *include_bytes!($descriptor);

        #[cfg(target_arch = "wasm32")]
        $crate::bindings::export_lifecycle!($type with_types_in $crate::bindings);
        $(
            #[cfg(target_arch = "wasm32")]
            $crate::export_part!($part, $type);
        )*

        // Off the sandbox (in `cargo test`) nothing is exported, but the type is still checked.
        #[cfg(not(target_arch = "wasm32"))]
        const _: fn() = || {
            let _ = <$type as $crate::Lifecycle>::install;
            $($crate::check_part!($part, $type);)*
        };
    };
}

/// Exports one part of [`feature!`].
#[doc(hidden)]
#[macro_export]
macro_rules! export_part {
    (actions, $type:ident) => {
        $crate::parts::actions::export_actions!($type with_types_in $crate::parts::actions);
    };
    (timer_events, $type:ident) => {
        $crate::parts::timer_events::export_timer_events!($type with_types_in $crate::parts::timer_events);
    };
    (read_only_tools, $type:ident) => {
        $crate::parts::read_only_tools::export_read_only_tools!($type with_types_in $crate::parts::read_only_tools);
    };
    (stateful_tools, $type:ident) => {
        $crate::parts::stateful_tools::export_stateful_tools!($type with_types_in $crate::parts::stateful_tools);
    };
    (config_change_tools, $type:ident) => {
        $crate::parts::config_change_tools::export_config_change_tools!($type with_types_in $crate::parts::config_change_tools);
    };
    (hardware_io_tools, $type:ident) => {
        $crate::parts::hardware_io_tools::export_hardware_io_tools!($type with_types_in $crate::parts::hardware_io_tools);
    };
    (privileged_tools, $type:ident) => {
        $crate::parts::privileged_tools::export_privileged_tools!($type with_types_in $crate::parts::privileged_tools);
    };
    (tool_hooks, $type:ident) => {
        $crate::parts::tool_hooks::export_tool_hooks!($type with_types_in $crate::parts::tool_hooks);
    };
    (event_hooks, $type:ident) => {
        $crate::parts::event_hooks::export_event_hooks!($type with_types_in $crate::parts::event_hooks);
    };
    (change_hooks, $type:ident) => {
        $crate::parts::change_hooks::export_change_hooks!($type with_types_in $crate::parts::change_hooks);
    };
    (chat_hooks, $type:ident) => {
        $crate::parts::chat_hooks::export_chat_hooks!($type with_types_in $crate::parts::chat_hooks);
    };
    (providers, $type:ident) => {
        $crate::parts::providers::export_providers!($type with_types_in $crate::parts::providers);
    };
    (migration, $type:ident) => {
        $crate::parts::migration::export_migration!($type with_types_in $crate::parts::migration);
    };
    (state_handover, $type:ident) => {
        $crate::parts::state_handover::export_state_handover!($type with_types_in $crate::parts::state_handover);
    };
    (exchange_details, $type:ident) => {
        $crate::parts::exchange_details::export_exchange_details!($type with_types_in $crate::parts::exchange_details);
    };
    (tasks, $type:ident) => {
        $crate::parts::tasks::export_tasks!($type with_types_in $crate::parts::tasks);
    };
}

/// Checks that a type can be exported as one part of [`feature!`].
#[doc(hidden)]
#[macro_export]
macro_rules! check_part {
    (actions, $type:ident) => {
        let _ = <$type as $crate::Actions>::perform;
    };
    (timer_events, $type:ident) => {
        let _ = <$type as $crate::TimerEvents>::due;
    };
    (read_only_tools, $type:ident) => {
        let _ = <$type as $crate::ReadOnlyTools>::call;
    };
    (stateful_tools, $type:ident) => {
        let _ = <$type as $crate::StatefulTools>::call;
    };
    (config_change_tools, $type:ident) => {
        let _ = <$type as $crate::ConfigChangeTools>::call;
    };
    (hardware_io_tools, $type:ident) => {
        let _ = <$type as $crate::HardwareIoTools>::call;
    };
    (privileged_tools, $type:ident) => {
        let _ = <$type as $crate::PrivilegedTools>::call;
    };
    (tool_hooks, $type:ident) => {
        let _ = <$type as $crate::ToolHooks>::before_call;
    };
    (event_hooks, $type:ident) => {
        let _ = <$type as $crate::EventHooks>::events;
    };
    (change_hooks, $type:ident) => {
        let _ = <$type as $crate::ChangeHooks>::config_applied;
    };
    (chat_hooks, $type:ident) => {
        let _ = <$type as $crate::ChatHooks>::before_request;
    };
    (providers, $type:ident) => {
        let _ = <$type as $crate::Providers>::begin;
    };
    (migration, $type:ident) => {
        let _ = <$type as $crate::Migration>::migrate;
    };
    (state_handover, $type:ident) => {
        let _ = <$type as $crate::StateHandover>::export_state;
    };
    (exchange_details, $type:ident) => {
        let _ = <$type as $crate::ExchangeDetails>::get_report;
    };
    (tasks, $type:ident) => {
        let _ = <$type as $crate::Tasks>::start;
    };
}
