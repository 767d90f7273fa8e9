//! Host functions: the interfaces of the contract that guests import, one file each.
//!
//! The resource behind the guest's handle holds its scope, and whether the grant still holds is looked at on every
//! call. What works on the disk or over the network is in [`conductor_services`]; what the host itself knows and can do
//! comes through [`HostView`](crate::host_view::HostView). [`link_all`] puts the interfaces into a feature's linker.

use wasmtime::component::{HasSelf, Linker};

use crate::bindings::{
    Error, Lane, imports, waiting_http, waiting_models, waiting_parallel_models, waiting_programs, waiting_runs,
};
use crate::state::InstanceState;
use conductor_package::interface::Import;
use conductor_stdx::first_step;

pub mod clock;
pub mod devices;
pub mod event_details;
pub mod file_folder;
pub mod hardware;
pub mod host_state;
pub mod http_client;
pub mod install;
pub mod invocation;
pub mod midi_out;
pub mod models;
pub mod planning;
pub mod privileges;
pub mod programs;
pub mod repository;
pub mod runs;
pub mod runtime_controls;
pub mod signing;
pub mod sinks;
pub mod store_table;
pub mod task_control;
pub mod timers;
pub mod udp;

/// Work that waits for the disk, on a thread of the control lane: the others go on. On the thread that brings a call it is
/// only what is short: see [`actor`](crate::actor).
fn waiting<T>(work: impl FnOnce() -> T) -> T {
    if first_step::is_under_way() { work() } else { tokio::task::block_in_place(work) }
}

/// What a handle answers after its grant was taken back.
fn revoked() -> Error {
    Error::Denied("the grant was revoked".into())
}

/// What a service answers in the real-time lane that may take its time.
fn waits(what: &str) -> Error {
    Error::Unavailable(format!("{what} takes its time, and nothing may wait in the real-time lane"))
}

/// Puts `imports` into `linker`. Guests can call nothing else.
///
/// # Errors
/// When an interface is put in twice, which would be a mistake here.
pub fn link_all(linker: &mut Linker<InstanceState>, imports: &[Import], lane: Lane) -> wasmtime::Result<()> {
    imports.iter().try_for_each(|import| link(linker, *import, lane))
}

/// Puts one interface into `linker`, as it is in this lane.
fn link(linker: &mut Linker<InstanceState>, import: Import, lane: Lane) -> wasmtime::Result<()> {
    type Data = HasSelf<InstanceState>;
    macro_rules! put {
        ($module:path) => {{
            use $module as interface;
            interface::add_to_linker::<_, Data>(linker, |state| state)
        }};
    }
    match (import, lane) {
        (Import::Types, _) => put!(imports::types),
        (Import::Install, _) => put!(imports::install),
        (Import::Devices, _) => put!(imports::devices),
        (Import::EventDetails, _) => put!(imports::event_details),
        (Import::Clock, _) => put!(imports::clock),
        (Import::Random, _) => put!(imports::random),
        (Import::Signing, _) => put!(imports::signing),
        (Import::Diagnostics, _) => put!(imports::diagnostics),
        (Import::Alerts, _) => put!(imports::alerts),
        (Import::Notifications, _) => put!(imports::notifications),
        (Import::Udp, _) => udp::add_to_linker(linker),
        (Import::Http, Lane::RealTime) => put!(imports::http),
        (Import::Http, Lane::Control) => put!(waiting_http),
        (Import::Store, _) => put!(imports::store),
        (Import::Files, _) => put!(imports::files),
        (Import::Git, _) => put!(imports::git),
        (Import::Programs, Lane::RealTime) => put!(imports::programs),
        (Import::Programs, Lane::Control) => put!(waiting_programs),
        (Import::MidiOut, _) => put!(imports::midi_out),
        (Import::Timers, _) => put!(imports::timers),
        (Import::Models, Lane::RealTime) => put!(imports::models),
        (Import::Models, Lane::Control) => put!(waiting_models),
        (Import::ParallelModels, Lane::RealTime) => put!(imports::parallel_models),
        (Import::ParallelModels, Lane::Control) => put!(waiting_parallel_models),
        (Import::Chat, _) => put!(imports::chat),
        (Import::HostState, _) => put!(imports::host_state),
        (Import::Planning, _) => put!(imports::planning),
        (Import::RuntimeControls, _) => put!(imports::runtime_controls),
        (Import::Hardware, _) => put!(imports::hardware),
        (Import::Privileges, _) => put!(imports::privileges),
        (Import::Invocations, _) => put!(imports::invocations),
        (Import::Runs, Lane::RealTime) => put!(imports::runs),
        (Import::Runs, Lane::Control) => put!(waiting_runs),
        (Import::TaskControl, _) => put!(imports::task_control),
        (Import::ActionRegistrar, _) => put!(imports::action_registrar),
        (Import::ToolRegistrar, _) => put!(imports::tool_registrar),
        (Import::HookRegistrar, _) => put!(imports::hook_registrar),
        (Import::ChatHookRegistrar, _) => put!(imports::chat_hook_registrar),
        (Import::ProviderRegistrar, _) => put!(imports::provider_registrar),
        (Import::TaskRegistrar, _) => put!(imports::task_registrar),
        (Import::SkillRegistrar, _) => put!(imports::skill_registrar),
    }
}
