//! The check: a component's type against its descriptor, before anything in it runs.
//!
//! A component can only call what it imports and only be called through what it exports, so its
//! imports must all be covered by the descriptor and its exports must be just the contributions
//! that the descriptor declares.

use super::descriptor::{CONTRACT, Descriptor};
use super::package::PackageInfo;

/// The contract's package, without the version.
const PACKAGE: &str = "conductor:feature/";

/// An import, and what the descriptor must hold for it.
enum Needs {
    /// Always there: it opens nothing.
    Nothing,
    /// A capability of this kind.
    Capability(&'static str),
    /// A declared action.
    Actions,
}

/// Every interface that a component may import.
const IMPORTS: &[(&str, Needs)] = &[
    ("types", Needs::Nothing),
    ("install", Needs::Nothing),
    ("devices", Needs::Nothing),
    ("diagnostics", Needs::Nothing),
    ("alerts", Needs::Capability("alert")),
    ("notifications", Needs::Capability("notify")),
    ("udp", Needs::Capability("network")),
    ("action-registrar", Needs::Actions),
];

/// Why a component does not fit its descriptor.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CheckError {
    /// It imports something that this host does not offer.
    #[error("imports {import}, which this host does not offer; a feature may import only {offered}")]
    UnknownImport {
        /// The import.
        import: String,
        /// What there is.
        offered: String,
    },
    /// It imports a service without requesting the capability.
    #[error(
        "imports {import}, but its descriptor does not request the capability \"{capability}\"; add it to [[capabilities]], with a reason"
    )]
    NotRequested {
        /// The import.
        import: String,
        /// The kind of capability that it needs.
        capability: &'static str,
    },
    /// It imports a registrar without declaring a contribution for it.
    #[error("imports {import}, but its descriptor declares no contribution for it; add it to [[{section}]]")]
    NotDeclared {
        /// The import.
        import: String,
        /// The section of the descriptor.
        section: &'static str,
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

    let mut expected = vec![(interface("lifecycle"), "a feature".to_owned())];
    if let Some(first) = descriptor.actions.first() {
        expected.push((interface("actions"), format!("the action {}", first.name)));
    }
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

fn check_import(import: &str, descriptor: &Descriptor) -> Option<CheckError> {
    let Some((_, needs)) = IMPORTS.iter().find(|(name, _)| interface(name) == import) else {
        let offered = IMPORTS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        return Some(CheckError::UnknownImport {
            import: import.to_owned(),
            offered: format!("{PACKAGE}{{{offered}}}@{CONTRACT}.0"),
        });
    };
    match needs {
        Needs::Capability(capability) if !descriptor.requests(capability) => {
            Some(CheckError::NotRequested { import: import.to_owned(), capability })
        }
        Needs::Actions if descriptor.actions.is_empty() => {
            Some(CheckError::NotDeclared { import: import.to_owned(), section: "actions" })
        }
        _ => None,
    }
}

/// The full name of an interface of the contract.
fn interface(name: &str) -> String {
    format!("{PACKAGE}{name}@{CONTRACT}.0")
}
