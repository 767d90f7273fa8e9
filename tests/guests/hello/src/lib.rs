//! A third party's feature, written from the contract alone.
wit_bindgen::generate!({ path: "../../../wit/v0.1", world: "action-feature" });
use conductor::feature::diagnostics::{Severity, Sink};
use conductor::feature::types::{Error, Event};
use conductor::feature::{action_registrar::Registrar, devices, install::Context};
use exports::conductor::feature::{actions, lifecycle};

struct Hello;
thread_local!(static LOG: std::cell::OnceCell<Sink> = const { std::cell::OnceCell::new() });

impl lifecycle::Guest for Hello {
    fn install(ctx: &Context) -> Result<(), Error> {
        Registrar::open(ctx)?.register("Hello", "{}")?;
        let sink = Sink::open(ctx)?;
        LOG.with(|log| log.set(sink)).map_err(|_| Error::Failed("installed twice".into()))
    }
}

impl actions::Guest for Hello {
    fn prepare(_name: String, _params: String) -> Result<u32, Error> {
        Ok(0)
    }
    fn perform(_action: u32, event: Event) -> Result<(), Error> {
        let text = format!("hello, {}: {}", devices::name(event.device).unwrap_or_default(), event.value);
        LOG.with(|log| log.get().map(|log| log.emit(Severity::Info, &text)));
        Ok(())
    }
    fn release(_action: u32) {}
}

#[unsafe(link_section = "conductor:feature")]
#[used]
static DESCRIPTOR: [u8; include_bytes!("../feature.toml").len()] = *include_bytes!("../feature.toml");
export!(Hello);
