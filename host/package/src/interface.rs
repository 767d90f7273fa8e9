//! The interfaces of the contract: which there are, and what a descriptor must hold for each.
//!
//! One table for imports and one for exports. The check of a package goes by both, and the sandbox's linker
//! offers what the first lets in. A test holds them against `wit/`.

use super::capability::CapabilityKind;
use super::descriptor::{CONTRACT, Descriptor, HookPoint, Tier};

/// The contract's package, without the version.
pub const PACKAGE: &str = "conductor:feature/";

/// Something that a descriptor may hold, by which an interface may be imported or must be exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// Nothing has to be there: every feature.
    Always,
    /// A capability of this kind is requested.
    Requests(CapabilityKind),
    /// An action is declared.
    Action,
    /// A tool is declared.
    Tool,
    /// A tool of this tier is declared; its calls are handed what is in the interface.
    ToolOf(Tier),
    /// A hook is declared.
    Hook,
    /// A hook at this point is declared.
    HookAt(HookPoint),
    /// A background task is declared.
    Task,
    /// A provider is declared.
    Provider,
    /// A provider is declared that takes and reports the details of exchanges.
    ExchangeDetails,
    /// A skill is declared.
    Skill,
    /// The version of the data is above 1, so that there may be data to migrate.
    Migration,
    /// It says that it hands its state over.
    StateHandover,
}

impl Condition {
    /// What in the descriptor meets it, as text: `the action Lamp`. `None` if nothing does.
    pub fn met_by(self, descriptor: &Descriptor) -> Option<String> {
        match self {
            Self::Always => Some("a feature".to_owned()),
            Self::Requests(kind) => descriptor.requests(kind).then(|| format!("the capability {kind}")),
            Self::Action => descriptor.actions.first().map(|action| format!("the action {}", action.name)),
            Self::Tool => descriptor.tools.first().map(|tool| format!("the tool {}", tool.name)),
            Self::ToolOf(tier) => {
                let tool = descriptor.tools.iter().find(|tool| tool.tier == tier)?;
                Some(format!("the {} tool {}", tier.as_str(), tool.name))
            }
            Self::Hook => descriptor.hooks.first().map(|hook| format!("the hook {}", hook.point.as_str())),
            Self::HookAt(point) => descriptor.hooks_at(point).then(|| format!("the hook {}", point.as_str())),
            Self::Task => descriptor.tasks.first().map(|task| format!("the task {}", task.name)),
            Self::Provider => descriptor.providers.first().map(|provider| format!("the provider {}", provider.name)),
            Self::ExchangeDetails => descriptor.has_exchange_details().then(|| "a provider with `details`".to_owned()),
            Self::Migration => {
                let version = descriptor.data_version();
                (version > 1).then(|| format!("the version {version} of its data"))
            }
            Self::StateHandover => descriptor.state_handover.then(|| "`state_handover`".to_owned()),
            Self::Skill => descriptor.skills.first().map(|skill| format!("the skill {}", skill.name)),
        }
    }

    /// Whether the descriptor meets it.
    pub fn is_met(self, descriptor: &Descriptor) -> bool {
        self.met_by(descriptor).is_some()
    }

    /// The section of the descriptor that would meet it.
    pub const fn section(self) -> &'static str {
        match self {
            Self::Always | Self::Requests(_) => "capabilities",
            Self::Action => "actions",
            Self::Tool | Self::ToolOf(_) => "tools",
            Self::Hook | Self::HookAt(_) => "hooks",
            Self::Task => "tasks",
            Self::Provider | Self::ExchangeDetails => "providers",
            Self::Skill => "skills",
            Self::Migration => "store",
            Self::StateHandover => "state_handover",
        }
    }
}

/// A table of interfaces: a name in Rust, the name in the contract, and the conditions of which one suffices.
macro_rules! interfaces {
    ($(#[$about:meta])* $table:ident { $($variant:ident $name:literal: $($condition:expr),+;)+ }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[expect(missing_docs, reason = "the contract's own text documents the interface of this name")]
        pub enum $table {
            $($variant,)+
        }

        impl $table {
            /// Every one of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The name in the contract, such as `udp`.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            /// What a descriptor must hold: one of these.
            pub const fn conditions(self) -> &'static [Condition] {
                use Condition::*;
                match self {
                    $(Self::$variant => &[$($condition),+],)+
                }
            }

            /// What in the descriptor meets the conditions, as text. `None` if nothing does.
            pub fn met_by(self, descriptor: &Descriptor) -> Option<String> {
                self.conditions().iter().find_map(|condition| condition.met_by(descriptor))
            }

            /// Whether the descriptor meets one of the conditions.
            pub fn is_met(self, descriptor: &Descriptor) -> bool {
                self.conditions().iter().any(|condition| condition.is_met(descriptor))
            }

            /// The name with package and version, as components write it: `conductor:feature/udp@0.1.0`.
            pub fn full_name(self) -> String {
                format!("{PACKAGE}{}@{CONTRACT}.0", self.name())
            }
        }
    };
}

interfaces! {
    /// What a feature may import: each of these where its descriptor meets a condition, and nothing else.
    Import {
        Types "types": Always;
        Install "install": Always;
        Devices "devices": Always;
        EventDetails "event-details": Always;
        Clock "clock": Always;
        Random "random": Always;
        Signing "signing": Always;
        Diagnostics "diagnostics": Always;
        Alerts "alerts": Requests(CapabilityKind::Alert);
        Notifications "notifications": Requests(CapabilityKind::Notify);
        Udp "udp": Requests(CapabilityKind::Network);
        Http "http": Requests(CapabilityKind::Network);
        Store "store": Requests(CapabilityKind::Store);
        Files "files": Requests(CapabilityKind::Files);
        Git "git": Requests(CapabilityKind::GitSnapshot);
        Programs "programs": Requests(CapabilityKind::RunProgram);
        MidiOut "midi-out": Requests(CapabilityKind::MidiOut);
        Timers "timers": Requests(CapabilityKind::Timers);
        Models "models": Requests(CapabilityKind::UseModel);
        ParallelModels "parallel-models": Requests(CapabilityKind::UseModel);
        Chat "chat":
            Requests(CapabilityKind::UseModel),
            Provider,
            HookAt(HookPoint::PreRequest),
            HookAt(HookPoint::PostAssistant),
            HookAt(HookPoint::TurnEnd);
        HostState "host-state":
            Requests(CapabilityKind::ConfigRead),
            Requests(CapabilityKind::DiscoverPorts),
            Tool;
        Planning "planning":
            Requests(CapabilityKind::ConfigPropose),
            ToolOf(Tier::ConfigChange),
            ToolOf(Tier::Privileged);
        RuntimeControls "runtime-controls": ToolOf(Tier::Stateful);
        Hardware "hardware": ToolOf(Tier::HardwareIo);
        Privileges "privileges": ToolOf(Tier::Privileged);
        Invocations "invocations": Tool;
        Runs "runs": Task;
        TaskControl "task-control": Requests(CapabilityKind::BackgroundTask);
        ActionRegistrar "action-registrar": Action;
        ToolRegistrar "tool-registrar": Tool;
        HookRegistrar "hook-registrar": Hook;
        ChatHookRegistrar "chat-hook-registrar":
            HookAt(HookPoint::PreRequest),
            HookAt(HookPoint::PostAssistant),
            HookAt(HookPoint::TurnEnd);
        ProviderRegistrar "provider-registrar": Provider;
        TaskRegistrar "task-registrar": Task;
        SkillRegistrar "skill-registrar": Skill;
    }
}

interfaces! {
    /// What a feature must export: each of these where its descriptor meets a condition, and nothing else.
    Export {
        Lifecycle "lifecycle": Always;
        Actions "actions": Action;
        ReadOnlyTools "read-only-tools": ToolOf(Tier::ReadOnly);
        StatefulTools "stateful-tools": ToolOf(Tier::Stateful);
        ConfigChangeTools "config-change-tools": ToolOf(Tier::ConfigChange);
        HardwareIoTools "hardware-io-tools": ToolOf(Tier::HardwareIo);
        PrivilegedTools "privileged-tools": ToolOf(Tier::Privileged);
        ToolHooks "tool-hooks": HookAt(HookPoint::PreToolCall), HookAt(HookPoint::PostToolCall);
        TimerEvents "timer-events": Requests(CapabilityKind::Timers);
        EventHooks "event-hooks": HookAt(HookPoint::Events);
        ChangeHooks "change-hooks":
            HookAt(HookPoint::PortChange),
            HookAt(HookPoint::ModeChange),
            HookAt(HookPoint::ConfigApplied);
        ChatHooks "chat-hooks":
            HookAt(HookPoint::PreRequest),
            HookAt(HookPoint::PostAssistant),
            HookAt(HookPoint::TurnEnd);
        Tasks "tasks": Task;
        Providers "providers": Provider;
        ExchangeDetails "exchange-details": ExchangeDetails;
        Migration "migration": Migration;
        StateHandover "state-handover": StateHandover;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use wit_parser::{Resolve, WorldItem};

    use super::*;

    fn contract() -> Resolve {
        let mut resolve = Resolve::default();
        resolve.push_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../wit/v0.1")).unwrap();
        resolve
    }

    fn names(list: impl IntoIterator<Item = &'static str>) -> BTreeSet<String> {
        list.into_iter().map(str::to_owned).collect()
    }

    #[test]
    fn the_tables_hold_every_interface_of_the_contract_and_no_other() {
        let resolve = contract();
        let all: BTreeSet<String> = resolve.interfaces.iter().filter_map(|(_, it)| it.name.clone()).collect();
        let exported: BTreeSet<String> = resolve
            .worlds
            .iter()
            .flat_map(|(_, world)| world.exports.values())
            .filter_map(|item| match item {
                WorldItem::Interface { id, .. } => resolve.interfaces[*id].name.clone(),
                _ => None,
            })
            .collect();
        assert_eq!(names(Export::ALL.iter().map(|it| it.name())), exported);
        assert_eq!(names(Import::ALL.iter().map(|it| it.name())), &all - &exported);
    }

    /// The interfaces that were published, each with the SHA-256 of its text as [`interfaces_in`] has it. Worlds are not
    /// among them: bindings are made from them, and no component carries one.
    const FROZEN: &str = include_str!("interface/frozen.txt");

    /// The interfaces of a file of the contract: names, and texts without comments and with single blanks.
    fn interfaces_in(file: &str) -> Vec<(String, String)> {
        let code: Vec<&str> = file.lines().map(|line| line.split("//").next().unwrap()).collect();
        let words: Vec<String> = code.join(" ").split_whitespace().map(str::to_owned).collect();
        let text = format!(" {}", words.join(" "));
        let whole = |rest: &str| {
            let mut depth = 0;
            let end = rest.find(|letter| {
                depth += i32::from(letter == '{') - i32::from(letter == '}');
                letter == '}' && depth == 0
            });
            rest[..=end.unwrap()].to_owned()
        };
        let parts = text.split(" interface ").skip(1);
        parts.map(|rest| (rest.split(' ').next().unwrap().to_owned(), whole(rest))).collect()
    }

    /// What of a contract is not as `frozen` says: which interfaces were changed or are gone, and of each one that is new
    /// the line that freezes it.
    fn differences(files: &[String], frozen: &str) -> (Vec<String>, Vec<String>) {
        let frozen: Vec<(&str, &str)> = frozen.lines().filter_map(|line| line.split_once(' ')).collect();
        let there: Vec<(String, String)> = files.iter().flat_map(|file| interfaces_in(file)).collect();
        let gone = frozen.iter().filter(|(name, _)| there.iter().all(|(there, _)| there != name));
        let mut broken: Vec<String> = gone.map(|(name, _)| format!("{name} is gone")).collect();
        let mut new = Vec::new();
        for (name, text) in &there {
            let digest = conductor_stdx::digest::sha256(text.as_bytes());
            match frozen.iter().find(|(frozen, _)| frozen == name) {
                Some((_, published)) if *published == digest => {}
                Some(_) => broken.push(format!("{name} was changed")),
                None => new.push(format!("{name} {digest}")),
            }
        }
        (broken, new)
    }

    /// `CONDUCTOR_WRITE_DOCS` has new ones written down. What is written is never replaced.
    #[test]
    fn the_interfaces_of_the_contract_are_frozen() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../wit/v0.1");
        let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let files: Vec<String> = paths.map(|path| std::fs::read_to_string(path).unwrap()).collect();
        let (broken, new) = differences(&files, FROZEN);
        assert!(
            broken.is_empty(),
            "wit/v0.1 is not what is in interface/frozen.txt. Features that were built for an interface that was changed \
             or is gone may not link any more: that belongs into a folder of its own, for the next version of the \
             contract.\n{}",
            broken.join("\n")
        );
        let known: BTreeSet<String> = files.iter().flat_map(|file| interfaces_in(file)).map(|(name, _)| name).collect();
        let all = contract().interfaces.iter().filter_map(|(_, it)| it.name.clone()).collect();
        assert_eq!(known, all, "each is looked at");
        if std::env::var_os("CONDUCTOR_WRITE_DOCS").is_some() {
            let file = concat!(env!("CARGO_MANIFEST_DIR"), "/src/interface/frozen.txt");
            std::fs::write(file, with(FROZEN, &new)).unwrap();
        } else {
            assert!(new.is_empty(), "not frozen: write them with CONDUCTOR_WRITE_DOCS=1\n{}", new.join("\n"));
        }
    }

    /// The list with new lines in it, in the order of names.
    fn with(frozen: &str, new: &[String]) -> String {
        let lines: BTreeSet<&str> = frozen.lines().chain(new.iter().map(String::as_str)).collect();
        lines.into_iter().map(|line| format!("{line}\n")).collect()
    }

    #[test]
    fn a_changed_interface_is_named_and_a_new_one_or_a_comment_is_no_change() {
        let lamp =
            "package a:b;\n/// A lamp.\ninterface lamp {\n    on: func(brightness: u8);\n    record r { x: u8 }\n}\n";
        let of = |files: &[&str], frozen: &str| {
            differences(&files.iter().map(|file| (*file).to_owned()).collect::<Vec<_>>(), frozen)
        };
        let same = (Vec::new(), Vec::new());
        let (broken, new) = of(&[lamp], "");
        let frozen = with("", &new);
        assert!(broken.is_empty() && frozen.starts_with("lamp ") && of(&[lamp], &frozen) == same, "{frozen}");
        let commented = lamp.replace("on:", "// Comments: interface x {\n    on:").replace("A lamp", "Some lamp");
        assert_eq!(of(&[&commented.replace("    ", "\t")], &frozen), same);
        let both = format!("{lamp}interface fan {{\n    on: func();\n}}\n");
        let (broken, new) = of(&[&both], &frozen);
        assert!(broken.is_empty() && new.len() == 1 && new[0].starts_with("fan "), "{new:?}");
        let frozen_both = with(&frozen, &new);
        assert!(frozen_both.starts_with("fan ") && frozen_both.ends_with(&frozen), "{frozen_both}");
        assert_eq!(of(&[&both], &frozen_both), same);
        let changed = |files: &[&str]| of(files, &frozen).0;
        for params in ["u16", "u8, colour: u8"] {
            assert_eq!(changed(&[&lamp.replace("u8)", &format!("{params})"))]), ["lamp was changed"]);
        }
        assert_eq!(changed(&[&lamp.replace("x: u8", "x: u8, y: u8")]), ["lamp was changed"]);
        assert_eq!(changed(&[]), ["lamp is gone"]);
    }

    #[test]
    fn the_contract_names_the_capabilities_by_which_an_interface_is_imported() {
        let resolve = contract();
        for import in Import::ALL {
            let (_, interface) =
                resolve.interfaces.iter().find(|(_, it)| it.name.as_deref() == Some(import.name())).unwrap();
            let docs = interface.functions.values().map(|function| &function.docs).chain([&interface.docs]);
            let about: String = docs.filter_map(|docs| docs.contents.as_deref()).collect();
            for condition in import.conditions() {
                if let Condition::Requests(kind) = condition {
                    assert!(about.contains(&format!("`{kind}`")), "{} does not say `{kind}`", import.name());
                }
            }
        }
    }
}
