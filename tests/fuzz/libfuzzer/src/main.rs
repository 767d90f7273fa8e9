//! libFuzzer on one of the targets: the one that `CONDUCTOR_FUZZ_TARGET` names.

#![no_main]

use std::sync::OnceLock;

use conductor_fuzz::Target;
use libfuzzer_sys::fuzz_target;

static TARGET: OnceLock<Target> = OnceLock::new();

fn chosen() -> Target {
    let name = std::env::var("CONDUCTOR_FUZZ_TARGET").unwrap_or_default();
    match conductor_fuzz::target(&name) {
        Some(target) => target,
        None => {
            eprintln!("CONDUCTOR_FUZZ_TARGET={name}: there is no such target; `cargo xtask fuzz` sets it");
            std::process::exit(2);
        }
    }
}

fuzz_target!(|data: &[u8]| (TARGET.get_or_init(chosen).run)(data));
