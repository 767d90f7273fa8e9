//! What a call into a guest costs: nothing else is in it than the call, or one small call back.
wit_bindgen::generate!({ path: "../../../wit/v0.1", world: "action-feature" });

use conductor::feature::{
    action_registrar::Registrar,
    devices,
    install::Context,
    types::{Error, Event},
};

struct Bench;

const NOTHING: u32 = 0;
const ASK_DEVICE: u32 = 1;

impl exports::conductor::feature::lifecycle::Guest for Bench {
    fn install(ctx: &Context) -> Result<(), Error> {
        let registrar = Registrar::open(ctx)?;
        registrar.register("Nothing", r#"{"type": "object"}"#)?;
        registrar.register("AskDevice", r#"{"type": "object"}"#)
    }
}

impl exports::conductor::feature::actions::Guest for Bench {
    fn prepare(name: String, _params: String) -> Result<u32, Error> {
        Ok(if name == "AskDevice" { ASK_DEVICE } else { NOTHING })
    }
    fn perform(action: u32, _event: Event) -> Result<(), Error> {
        match action {
            NOTHING => Ok(()),
            // No host gives out this number, so no name has to be copied.
            ASK_DEVICE if devices::name(u32::MAX).is_none() => Ok(()),
            _ => Err(Error::Failed("there is such a device".into())),
        }
    }
    fn release(_action: u32) {}
}

#[unsafe(link_section = "conductor:feature")]
#[used]
static DESCRIPTOR: [u8; include_bytes!("../feature.toml").len()] = *include_bytes!("../feature.toml");
export!(Bench);
