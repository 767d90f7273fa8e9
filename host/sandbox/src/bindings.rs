//! What `wasmtime` makes of the contract, once per lane, and which of its interfaces a feature imports.
//!
//! The lanes share every interface in which nothing waits: it is in the bindings of the real-time lane. Where something
//! does, the control lane has its own, asynchronous, bindings; `with` shares what the signatures of these and of its
//! exports name.

use conductor_package::descriptor::{Descriptor, Tier};
use conductor_package::interface::Import;

#[expect(missing_docs, reason = "generated; the contract's own text documents it")]
mod realtime {
    wasmtime::component::bindgen!({
        path: "../../wit/v0.1",
        world: "realtime-lane",
        imports: { default: trappable },
        with: {
            "conductor:feature/install.context": crate::handles::Context,
            "conductor:feature/action-registrar.registrar": crate::handles::ActionRegistrar,
            "conductor:feature/tool-registrar.registrar": crate::handles::ToolRegistrar,
            "conductor:feature/hook-registrar.registrar": crate::handles::HookRegistrar,
            "conductor:feature/task-registrar.registrar": crate::handles::TaskRegistrar,
            "conductor:feature/skill-registrar.registrar": crate::handles::SkillRegistrar,
            "conductor:feature/provider-registrar.registrar": crate::handles::ProviderRegistrar,
            "conductor:feature/chat-hook-registrar.registrar": crate::handles::ChatHookRegistrar,
            "conductor:feature/diagnostics.sink": crate::handles::DiagnosticSink,
            "conductor:feature/alerts.sink": crate::handles::AlertSink,
            "conductor:feature/notifications.sink": crate::handles::NotificationSink,
            "conductor:feature/udp.network": crate::handles::Network,
            "conductor:feature/udp.target": crate::handles::Target,
            "conductor:feature/http.client": crate::handles::Client,
            "conductor:feature/store.table": crate::handles::Table,
            "conductor:feature/files.folder": crate::handles::Folder,
            "conductor:feature/git.repository": crate::handles::Repository,
            "conductor:feature/git.snapshot": crate::handles::Snapshot,
            "conductor:feature/programs.access": crate::handles::ProgramAccess,
            "conductor:feature/programs.process": crate::handles::Process,
            "conductor:feature/midi-out.output": crate::handles::Output,
            "conductor:feature/host-state.reader": crate::handles::Reader,
            "conductor:feature/planning.planner": crate::handles::Planner,
            "conductor:feature/runtime-controls.controls": crate::handles::Controls,
            "conductor:feature/hardware.access": crate::handles::HardwareAccess,
            "conductor:feature/privileges.authority": crate::handles::Authority,
            "conductor:feature/invocations.invocation": crate::handles::Invocation,
            "conductor:feature/runs.run": crate::handles::Run,
            "conductor:feature/models.access": crate::handles::ModelAccess,
            "conductor:feature/timers.scheduler": crate::handles::Scheduler,
            "conductor:feature/task-control.controller": crate::handles::Controller,
        },
    });
}

#[expect(missing_docs, reason = "generated; the contract's own text documents it")]
mod control {
    wasmtime::component::bindgen!({
        path: "../../wit/v0.1",
        world: "control-lane",
        imports: {
            "conductor:feature/http.[method]client.send": async | trappable,
            "conductor:feature/models.[method]access.ask": async | trappable,
            "conductor:feature/parallel-models.ask-all": async | trappable,
            "conductor:feature/programs.[method]process.wait": async | trappable,
            "conductor:feature/runs.[method]run.wait": async | trappable,
            default: trappable,
        },
        exports: { default: async },
        with: {
            "conductor:feature/types": super::realtime::conductor::feature::types,
            "conductor:feature/install": super::realtime::conductor::feature::install,
            "conductor:feature/store": super::realtime::conductor::feature::store,
            "conductor:feature/host-state": super::realtime::conductor::feature::host_state,
            "conductor:feature/planning": super::realtime::conductor::feature::planning,
            "conductor:feature/runtime-controls": super::realtime::conductor::feature::runtime_controls,
            "conductor:feature/hardware": super::realtime::conductor::feature::hardware,
            "conductor:feature/privileges": super::realtime::conductor::feature::privileges,
            "conductor:feature/invocations": super::realtime::conductor::feature::invocations,
            "conductor:feature/chat": super::realtime::conductor::feature::chat,
            "conductor:feature/http.client": crate::handles::Client,
            "conductor:feature/runs.run": crate::handles::Run,
            "conductor:feature/models.access": crate::handles::ModelAccess,
            "conductor:feature/programs.access": crate::handles::ProgramAccess,
            "conductor:feature/programs.process": crate::handles::Process,
        },
    });
}

pub use control::conductor::feature::{
    http as waiting_http, models as waiting_models, parallel_models as waiting_parallel_models,
    programs as waiting_programs, runs as waiting_runs,
};
pub use control::exports::conductor::feature as control_exports;
pub use realtime::conductor::feature as imports;
pub use realtime::conductor::feature::types::{Error, Event};
pub use realtime::exports::conductor::feature as realtime_exports;

/// Where an instance runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    /// Actions and event hooks: nothing waits.
    RealTime,
    /// Everything else.
    Control,
}

impl From<Tier> for imports::types::Tier {
    fn from(tier: Tier) -> Self {
        match tier {
            Tier::ReadOnly => Self::ReadOnly,
            Tier::Stateful => Self::Stateful,
            Tier::ConfigChange => Self::ConfigChange,
            Tier::HardwareIo => Self::HardwareIo,
            Tier::Privileged => Self::Privileged,
        }
    }
}

/// The interfaces whose conditions `descriptor` meets.
pub fn requested(descriptor: &Descriptor) -> impl Iterator<Item = Import> {
    Import::ALL.iter().copied().filter(|import| import.is_met(descriptor))
}

/// The record of an event, as it crosses into guests. `device` is its number, `position` that within the
/// trigger's range.
pub fn record(at: conductor_event::Nanos, device: u32, event: &conductor_event::Event, position: u16) -> Event {
    Event {
        at,
        device,
        kind: event.kind() as u8,
        channel: event.channel().unwrap_or(u8::MAX),
        number: event.number(),
        position,
        value: event.value(),
        unit: event.unit(),
    }
}
