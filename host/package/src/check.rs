//! The check: a component's type against its descriptor, before anything in it runs.
//!
//! A component can only call what it imports and only be called through what it exports, so its
//! imports must all be covered by the descriptor and its exports must be just the contributions
//! that the descriptor declares.

use super::wasi;
use crate::descriptor::{CONTRACT, Descriptor, Tier};
use crate::file::PackageInfo;

use conductor_stdx::nearest::nearest;
use conductor_terminal::excerpt;

/// The contract's package, without the version.
const PACKAGE: &str = "conductor:feature/";

/// How much of a name that is not known is shown, in bytes.
const MAX_IMPORT_SHOWN: usize = 128;

/// An import, and what the descriptor must hold for it.
enum Needs {
    /// Always there: it opens nothing.
    Nothing,
    /// A capability of one of these kinds.
    Capability(&'static [&'static str]),
    /// A contribution in this section.
    Section(&'static str, fn(&Descriptor) -> bool),
    /// Tools of this tier, which are handed what is in it.
    Tier(Tier),
}

/// Every interface that a component may import.
const IMPORTS: &[(&str, &[Needs])] = &[
    ("types", &[Needs::Nothing]),
    ("install", &[Needs::Nothing]),
    ("devices", &[Needs::Nothing]),
    ("clock", &[Needs::Nothing]),
    ("random", &[Needs::Nothing]),
    ("diagnostics", &[Needs::Nothing]),
    ("alerts", &[Needs::Capability(&["alert"])]),
    ("notifications", &[Needs::Capability(&["notify"])]),
    ("udp", &[Needs::Capability(&["network"])]),
    ("http", &[Needs::Capability(&["network"])]),
    ("store", &[Needs::Capability(&["store"])]),
    ("files", &[Needs::Capability(&["files"])]),
    ("git", &[Needs::Capability(&["git-snapshot"])]),
    ("midi-out", &[Needs::Capability(&["midi-out"])]),
    ("models", &[Needs::Capability(&["use-model"])]),
    (
        "chat",
        &[
            Needs::Capability(&["use-model"]),
            Needs::Section("providers", |descriptor| !descriptor.providers.is_empty()),
            Needs::Section("hooks", Descriptor::has_chat_hooks),
        ],
    ),
    (
        "host-state",
        &[
            Needs::Capability(&["config-read", "discover-ports"]),
            Needs::Section("tools", |descriptor| !descriptor.tools.is_empty()),
        ],
    ),
    (
        "planning",
        &[Needs::Capability(&["config-propose"]), Needs::Tier(Tier::ConfigChange), Needs::Tier(Tier::Privileged)],
    ),
    ("runtime-controls", &[Needs::Tier(Tier::Stateful)]),
    ("hardware", &[Needs::Tier(Tier::HardwareIo)]),
    ("privileges", &[Needs::Tier(Tier::Privileged)]),
    ("invocations", &[Needs::Section("tools", |descriptor| !descriptor.tools.is_empty())]),
    ("runs", &[Needs::Section("tasks", |descriptor| !descriptor.tasks.is_empty())]),
    ("action-registrar", &[Needs::Section("actions", |descriptor| !descriptor.actions.is_empty())]),
    ("tool-registrar", &[Needs::Section("tools", |descriptor| !descriptor.tools.is_empty())]),
    ("hook-registrar", &[Needs::Section("hooks", |descriptor| !descriptor.hooks.is_empty())]),
    ("chat-hook-registrar", &[Needs::Section("hooks", Descriptor::has_chat_hooks)]),
    ("provider-registrar", &[Needs::Section("providers", |descriptor| !descriptor.providers.is_empty())]),
    ("task-registrar", &[Needs::Section("tasks", |descriptor| !descriptor.tasks.is_empty())]),
    ("skill-registrar", &[Needs::Section("skills", |descriptor| !descriptor.skills.is_empty())]),
];

impl Needs {
    fn met(&self, descriptor: &Descriptor) -> bool {
        match self {
            Self::Nothing => true,
            Self::Capability(kinds) => kinds.iter().any(|kind| descriptor.requests(kind)),
            Self::Section(_, declared) => declared(descriptor),
            Self::Tier(tier) => descriptor.tools.iter().any(|tool| tool.tier == *tier),
        }
    }
}

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

    let mut expected = vec![(interface("lifecycle"), "a feature".to_owned())];
    let mut expect = |name: &str, declared: String| {
        let name = interface(name);
        if !expected.iter().any(|(there, _)| *there == name) {
            expected.push((name, declared));
        }
    };
    for action in &descriptor.actions {
        expect("actions", format!("the action {}", action.name));
    }
    for tool in &descriptor.tools {
        expect(tool.tier.interface(), format!("the {} tool {}", tool.tier.as_str(), tool.name));
    }
    for hook in &descriptor.hooks {
        expect(hook.point.interface(), format!("the hook {}", hook.point.as_str()));
    }
    for task in &descriptor.tasks {
        expect("tasks", format!("the task {}", task.name));
    }
    for provider in &descriptor.providers {
        expect("providers", format!("the provider {}", provider.name));
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

/// The world of a feature that is just what its descriptor says, in WIT: bindings made from it import
/// nothing that would be refused.
pub fn world(name: &str, descriptor: &Descriptor) -> String {
    use std::fmt::Write as _;
    let allowed = IMPORTS.iter().filter(|(_, needs)| needs.iter().any(|needs| needs.met(descriptor)));
    let mut exports = vec!["lifecycle"];
    exports.extend(descriptor.actions.first().map(|_| "actions"));
    exports.extend(descriptor.tools.iter().map(|tool| tool.tier.interface()));
    exports.extend(descriptor.hooks.iter().map(|hook| hook.point.interface()));
    exports.extend(descriptor.tasks.first().map(|_| "tasks"));
    exports.extend(descriptor.providers.first().map(|_| "providers"));
    let mut world = format!("/// {} {}\nworld {name} {{\n", descriptor.id, descriptor.version);
    // Writing to a String can't fail.
    for (import, _) in allowed {
        // Writing to a String can't fail.
        let _ = writeln!(world, "    import {import};");
    }
    let mut seen = Vec::new();
    for export in exports {
        if !seen.contains(&export) {
            let _ = writeln!(world, "    export {export};");
            seen.push(export);
        }
    }
    world.push_str("}\n");
    world
}

fn check_import(import: &str, descriptor: &Descriptor) -> Option<CheckError> {
    if wasi::offers(import) {
        let import = import.to_owned();
        return descriptor.has_realtime().then_some(CheckError::WaitsOnEventPath { import });
    }
    let Some((_, needs)) = IMPORTS.iter().find(|(name, _)| interface(name) == import) else {
        let shown = excerpt(import, MAX_IMPORT_SHOWN);
        return Some(CheckError::UnknownImport { import: shown, hint: instead_of(import) });
    };
    if needs.iter().any(|needs| needs.met(descriptor)) {
        return None;
    }
    let import = import.to_owned();
    Some(match needs.first() {
        Some(Needs::Capability(kinds)) => CheckError::NotRequested { import, capability: kinds.join("\" or \"") },
        Some(Needs::Section(section, _)) => CheckError::NotDeclared { import, section },
        _ => CheckError::NotDeclared { import, section: "tools" },
    })
}

/// What to import instead of something that there is not.
fn instead_of(import: &str) -> String {
    let name = import.strip_prefix(PACKAGE).unwrap_or(import);
    let (name, version) = name.split_once('@').map_or((name, None), |(name, version)| (name, Some(version)));
    let is_ours = import.starts_with(PACKAGE);
    if is_ours && IMPORTS.iter().any(|(known, _)| *known == name) {
        let asked = version.map_or_else(|| "one without a version".to_owned(), |version| excerpt(version, 32));
        return format!("it has {name} {CONTRACT}.0, not {asked}; build it for the contract {CONTRACT}");
    }
    let near = nearest(name, IMPORTS.iter().map(|(known, _)| *known)).filter(|_| is_ours);
    match near {
        Some(near) => format!("the nearest is {}", interface(&near)),
        None => format!("docs/contract.md has what a feature of the contract {CONTRACT} may import"),
    }
}

/// The full name of an interface of the contract.
fn interface(name: &str) -> String {
    format!("{PACKAGE}{name}@{CONTRACT}.0")
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
