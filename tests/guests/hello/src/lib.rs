//! A third party's feature, written from the contract alone.
wit_bindgen::generate!({ path: "../../../wit/v0.1", world: "action-feature" });

use conductor::feature::{
    action_registrar::Registrar,
    devices, diagnostics,
    install::Context,
    types::{Error, Event},
};
use std::cell::OnceCell;

struct Hello;
thread_local!(static LOG: OnceCell<diagnostics::Sink> = const { OnceCell::new() });

impl exports::conductor::feature::lifecycle::Guest for Hello {
    fn install(ctx: &Context) -> Result<(), Error> {
        Registrar::open(ctx)?.register("Hello", r#"{"type": "object"}"#)?;
        let sink = diagnostics::Sink::open(ctx)?;
        LOG.with(|log| log.set(sink)).map_err(|_| Error::Failed("installed twice".into()))
    }
}

impl exports::conductor::feature::actions::Guest for Hello {
    fn prepare(_name: String, _params: String) -> Result<u32, Error> {
        Ok(0)
    }
    fn perform(_action: u32, event: Event) -> Result<(), Error> {
        let who = devices::name(event.device).unwrap_or_default();
        LOG.with(|log| {
            log.get().map(|log| log.emit(diagnostics::Severity::Info, &format!("hello, {who}: {}", event.value)))
        });
        Ok(())
    }
    fn release(_action: u32) {}
}

#[unsafe(link_section = "conductor:feature")]
#[used]
static DESCRIPTOR: [u8; include_bytes!("../feature.toml").len()] = *include_bytes!("../feature.toml");
export!(Hello);
