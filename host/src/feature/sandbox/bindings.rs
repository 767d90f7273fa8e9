//! What `wasmtime` makes of the contract, and which of it a feature's linker holds.

use wasmtime::component::{HasSelf, Linker};

use super::state::InstanceState;
use crate::feature::descriptor::Descriptor;

#[expect(missing_docs, reason = "generated; the contract's own text documents it")]
mod generated {
    wasmtime::component::bindgen!({
        path: "../wit/v0.1",
        world: "action-feature",
        imports: { default: trappable },
        with: {
            "conductor:feature/install.context": crate::service::install::Context,
            "conductor:feature/action-registrar.registrar": crate::service::install::ActionRegistrar,
            "conductor:feature/diagnostics.sink": crate::service::sinks::DiagnosticSink,
            "conductor:feature/alerts.sink": crate::service::sinks::AlertSink,
            "conductor:feature/notifications.sink": crate::service::sinks::NotificationSink,
            "conductor:feature/udp.network": crate::service::udp::Network,
            "conductor:feature/udp.target": crate::service::udp::Target,
        },
    });
}

pub use generated::conductor::feature as imports;
pub use generated::conductor::feature::types::{Error, Event};
pub use generated::exports::conductor::feature as exports;

/// Puts into `linker` what every feature may call and what `descriptor` requests. Nothing else is
/// there to be called.
///
/// # Errors
/// When an interface is put in twice, which would be a mistake here.
pub fn link_requested(linker: &mut Linker<InstanceState>, descriptor: &Descriptor) -> wasmtime::Result<()> {
    type Data = HasSelf<InstanceState>;
    imports::types::add_to_linker::<_, Data>(linker, |state| state)?;
    imports::install::add_to_linker::<_, Data>(linker, |state| state)?;
    imports::devices::add_to_linker::<_, Data>(linker, |state| state)?;
    imports::diagnostics::add_to_linker::<_, Data>(linker, |state| state)?;
    if !descriptor.actions.is_empty() {
        imports::action_registrar::add_to_linker::<_, Data>(linker, |state| state)?;
    }
    if descriptor.requests("alert") {
        imports::alerts::add_to_linker::<_, Data>(linker, |state| state)?;
    }
    if descriptor.requests("notify") {
        imports::notifications::add_to_linker::<_, Data>(linker, |state| state)?;
    }
    if descriptor.requests("network") {
        crate::service::udp::add_to_linker(linker)?;
    }
    Ok(())
}
