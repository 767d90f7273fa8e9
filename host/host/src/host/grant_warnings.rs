//! Warnings about grants of a configuration that give nothing, and about names that stand for something else than
//! they seem to.

use std::ops::Range;

use conductor_config::{self as config, Diagnostic, Diagnostics, Loaded, PathStep};
use conductor_package::admission::{ConfiguredGrants, Mismatch};
use conductor_package::capability::CapabilityRequest;
use conductor_registry::{Identity, Registry};

use super::assembler::configured_grants;

/// Adds a warning for each `[features.NAME]` whose grants are not those of the package that has the name in
/// `registry`, or have more than it asks for, or that puts another package in the place of one that comes with the host.
pub(super) fn push(loaded: &Loaded, registry: &Registry, warnings: &mut Diagnostics) {
    for (name, feature) in &loaded.config.features {
        let path: [PathStep<'_>; 2] = ["features".into(), name.as_str().into()];
        let place = |key: &str| loaded.source.place(&[&path[..], &[PathStep::Key(key)]].concat());
        if feature.enabled && feature.path.is_some() && registry.displaces(name) {
            let message = format!("displaces builtin:{name}, which is not loaded");
            warnings.push(Diagnostic::warning(place("path"), message).with_help(format!(
                "to have both, give the package another name in its feature.toml; for builtin:{name}, remove `path`"
            )));
        }
        // What is switched off uses nothing. It may be switched on again as it is.
        let Some(configured) = configured_grants(name, feature).filter(|_| feature.enabled) else { continue };
        let warning = match registry.identity(name) {
            Some(package) => match configured.meant_for(&package.id, &package.digest) {
                Ok(()) => match not_asked_for(name, feature, registry, place("grants")) {
                    Some(warning) => warning,
                    None => continue,
                },
                Err(why) => mismatch(name, &configured, &package, &why, place),
            },
            None if registry.has(name) && feature.path.is_some() => Diagnostic::warning(
                place("grants"),
                format!("the grants of {name} have no effect: its package can't be read"),
            )
            .with_help(format!("`conductor feature list` says why; then `conductor feature pin {name}`")),
            // It was said already that there is none.
            None if warnings.iter().any(|known| known.place == loaded.source.place(&path)) => continue,
            None => {
                let names = registry.names();
                let known = names.iter().map(String::as_str).filter(|known| known != name);
                Diagnostic::warning(
                    place("grants"),
                    format!("the grants of {name} have no effect: no feature of that name is loaded"),
                )
                .with_nearest(config::nearest(name, known))
                .with_help(format!(
                    "remove [features.{name}]; or install the feature, or switch it on, and `conductor feature pin {name}`"
                ))
            }
        };
        warnings.push(warning);
    }
}

/// The feature has the grants, and there are some that it has no use for.
fn not_asked_for(
    name: &str,
    feature: &config::Feature,
    registry: &Registry,
    place: Range<usize>,
) -> Option<Diagnostic> {
    let requests = registry.requests(name)?;
    let left = feature.grants.not_asked_for(requests);
    let asked: Vec<String> = requests.iter().map(CapabilityRequest::key).collect();
    let help = match asked.as_slice() {
        [] => "it asks for nothing".to_owned(),
        asked => format!("it asks for {}", asked.join(", ")),
    };
    let message = format!("the grants {} have no effect: {name} does not ask for them", left.join(", "));
    (!left.is_empty()).then(|| Diagnostic::warning(place, message).with_help(help))
}

fn mismatch(
    name: &str,
    configured: &ConfiguredGrants,
    package: &Identity,
    why: &Mismatch,
    place: impl Fn(&str) -> Range<usize>,
) -> Diagnostic {
    let (meant, found) = (&configured.id, &package.id);
    let short = |digest: &str| format!("sha256:{}...", digest.get(..12).unwrap_or(digest));
    let digest = configured.digest.as_deref().unwrap_or_default();
    let (at, message) = match why {
        Mismatch::Id => {
            ("grants", format!("these grants are for {meant}; {found} has the name {name} and gets none of them"))
        }
        Mismatch::NoDigest => (
            "grants",
            format!("these grants are for {meant} without saying for which package of that id; it gets none of them"),
        ),
        Mismatch::Digest => (
            "digest",
            format!(
                "these grants are for {}, and {found} is {} now; it gets none of them",
                short(digest),
                short(&package.digest)
            ),
        ),
    };
    Diagnostic::warning(place(at), message).with_help(if found.is_builtin() {
        format!("remove `id` and `digest` to grant this to {found}")
    } else {
        format!("`conductor feature pin {name}` shows what they grant to the current package, and binds them to it")
    })
}
