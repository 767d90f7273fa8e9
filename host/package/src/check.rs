//! The check: a component's type against its descriptor, before anything in it runs.
//!
//! A component can only call what it imports and only be called through what it exports, so its
//! imports must all be covered by the descriptor and its exports must be just the contributions
//! that the descriptor declares. Which interface takes what is in the tables of [`interface`](crate::interface).

use super::wasi;
use crate::descriptor::{CONTRACT, Descriptor};
use crate::file::PackageInfo;
use crate::interface::{Condition, Export, Import, PACKAGE};

use conductor_stdx::nearest::nearest;
use conductor_terminal::excerpt;

/// How much of a name that is not known is shown, in bytes.
const MAX_IMPORT_SHOWN: usize = 128;

/// Why a component does not fit its descriptor.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CheckError {
    /// It imports something that this host does not offer.
    #[error("imports {import}, which this host does not offer; {hint}")]
    UnknownImport {
        /// The import, as far as it is shown.
        import: String,
        /// What this host has instead: the same interface in another version, the nearest one, or where all are
        /// listed.
        hint: String,
    },
    /// It imports a service without requesting the capability.
    #[error(
        "imports {import}, but its descriptor does not request the capability \"{capability}\"; add it to [[capabilities]], with a reason"
    )]
    NotRequested {
        /// The import.
        import: String,
        /// The kind of capability that it needs.
        capability: String,
    },
    /// It imports a registrar without declaring a contribution for it.
    #[error("imports {import}, but its descriptor declares no contribution for it; add it to [[{section}]]")]
    NotDeclared {
        /// The import.
        import: String,
        /// The section of the descriptor.
        section: &'static str,
    },
    /// It imports WASI, which can wait, and contributes where nothing may.
    #[error(
        "imports {import}, and contributes to the path of events, where nothing waits: build what has actions or a hook on events for wasm32-unknown-unknown, without WASI, and the rest as a feature of its own"
    )]
    WaitsOnEventPath {
        /// The import.
        import: String,
    },
    /// It declares something that it can't do.
    #[error("declares {declared}, but does not export {export}")]
    MissingExport {
        /// What the descriptor declares.
        declared: String,
        /// The interface that would do it.
        export: String,
    },
    /// It exports something that it does not declare.
    #[error("exports {export}, which its descriptor does not declare")]
    UndeclaredExport {
        /// The export.
        export: String,
    },
}

/// Compares imports and exports with the descriptor. Reports everything that does not fit.
///
/// # Errors
/// At least one [`CheckError`].
pub fn check(info: &PackageInfo) -> Result<(), Vec<CheckError>> {
    let descriptor = &info.descriptor;
    let mut errors: Vec<CheckError> =
        info.imports.iter().filter_map(|import| check_import(import, descriptor)).collect();

    let expected: Vec<(String, String)> =
        Export::ALL.iter().filter_map(|export| Some((export.full_name(), export.met_by(descriptor)?))).collect();
    for (export, declared) in &expected {
        if !info.exports.contains(export) {
            errors.push(CheckError::MissingExport { declared: declared.clone(), export: export.clone() });
        }
    }
    for export in &info.exports {
        if !expected.iter().any(|(name, _)| name == export) {
            errors.push(CheckError::UndeclaredExport { export: export.clone() });
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// The world of a feature that is just what its descriptor says, in WIT: bindings made from it import
/// nothing that would be refused.
pub fn world(name: &str, descriptor: &Descriptor) -> String {
    use std::fmt::Write as _;
    let mut world = format!("/// {} {}\nworld {name} {{\n", descriptor.id, descriptor.version);
    // Writing to a String can't fail.
    for import in Import::ALL.iter().filter(|import| import.is_met(descriptor)) {
        let _ = writeln!(world, "    import {};", import.name());
    }
    for export in Export::ALL.iter().filter(|export| export.is_met(descriptor)) {
        let _ = writeln!(world, "    export {};", export.name());
    }
    world.push_str("}\n");
    world
}

fn check_import(import: &str, descriptor: &Descriptor) -> Option<CheckError> {
    if wasi::offers(import) {
        let import = import.to_owned();
        return descriptor.has_realtime().then_some(CheckError::WaitsOnEventPath { import });
    }
    let Some(known) = Import::ALL.iter().find(|known| known.full_name() == import) else {
        let shown = excerpt(import, MAX_IMPORT_SHOWN);
        return Some(CheckError::UnknownImport { import: shown, hint: instead_of(import) });
    };
    if known.is_met(descriptor) {
        return None;
    }
    let import = import.to_owned();
    let kinds: Vec<&str> = known
        .conditions()
        .iter()
        .filter_map(|condition| if let Condition::Requests(kind) = condition { Some(kind.as_str()) } else { None })
        .collect();
    if !kinds.is_empty() {
        return Some(CheckError::NotRequested { import, capability: kinds.join("\" or \"") });
    }
    let section = known.conditions().first().map_or("capabilities", |condition| condition.section());
    Some(CheckError::NotDeclared { import, section })
}

/// What to import instead of something that there is not.
fn instead_of(import: &str) -> String {
    let name = import.strip_prefix(PACKAGE).unwrap_or(import);
    let (name, version) = name.split_once('@').map_or((name, None), |(name, version)| (name, Some(version)));
    let is_ours = import.starts_with(PACKAGE);
    if is_ours && Import::ALL.iter().any(|known| known.name() == name) {
        let asked = version.map_or_else(|| "one without a version".to_owned(), |version| excerpt(version, 32));
        return format!("it has {name} {CONTRACT}.0, not {asked}; build it for the contract {CONTRACT}");
    }
    let near = nearest(name, Import::ALL.iter().map(|known| known.name())).filter(|_| is_ours);
    match near {
        Some(near) => format!("the nearest is {PACKAGE}{near}@{CONTRACT}.0"),
        None => format!("docs/contract.md has what a feature of the contract {CONTRACT} may import"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_import_that_is_not_there_is_told_with_the_nearest_one() {
        let hint = |import: &str| {
            let text = instead_of(import);
            assert!(text.len() < 200, "{text}");
            text
        };
        assert!(hint("conductor:feature/udp@0.1.1").starts_with("it has udp 0.1.0, not 0.1.1;"));
        assert!(hint("conductor:feature/udp").starts_with("it has udp 0.1.0, not one without a version;"));
        assert_eq!(hint("conductor:feature/stor@0.1.0"), "the nearest is conductor:feature/store@0.1.0");
        assert!(hint("wasi:sockets/tcp@0.2.0").contains("docs/contract.md"));
        assert!(hint(&format!("conductor:feature/udp@{}", "9".repeat(5000))).contains("not 9999"));
    }
}
