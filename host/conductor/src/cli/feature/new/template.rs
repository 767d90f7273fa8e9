//! What a new feature can contribute and be written in, and the template of each.

/// What a new feature contributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(in crate::cli) enum Kind {
    /// Something that mappings do
    Action,
    /// A function for models, agents and people
    Tool,
    /// Receives events as they come
    Hook,
    /// Work in the background
    Task,
    /// An API by which models are reached
    Provider,
}

/// What a new feature is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(in crate::cli) enum Language {
    /// Small, fast, and tested with the SDK's harness
    Rust,
    /// With componentize-js, which brings an engine of 12 MB along
    #[value(name = "javascript", alias = "js")]
    JavaScript,
    /// With componentize-py, which brings an engine of 18 MB along
    #[value(alias = "py")]
    Python,
}

/// The templates of one kind.
pub(super) struct Template {
    /// One sentence about the example, for the descriptor's summary.
    pub(super) summary: &'static str,
    /// Of the descriptor: what it asks for.
    pub(super) capabilities: &'static str,
    /// Of the descriptor: what it adds.
    pub(super) contributions: &'static str,
    /// What it can't do without, as lines of TOML: tests of the other kinds grant it, too.
    pub(super) grants: &'static [&'static str],
    /// Whether calls may be made side by side: the key `stateless` of the descriptor.
    pub(super) stateless: bool,
    /// The interface of the contract that it exports.
    pub(super) exports: &'static str,
}

impl Kind {
    /// The word for it, which is also the name of its files.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Action => "action",
            Self::Tool => "tool",
            Self::Hook => "hook",
            Self::Task => "task",
            Self::Provider => "provider",
        }
    }

    pub(super) const fn template(self) -> Template {
        let none =
            Template { summary: "", capabilities: "", contributions: "", grants: &[], stateless: false, exports: "" };
        match self {
            Self::Action => Template {
                summary: "Sends a line of text for every event.",
                capabilities: include_str!("../templates/action/capabilities.toml"),
                contributions: include_str!("../templates/action/contributions.toml"),
                grants: &[r#"udp = ["127.0.0.1:9000"]"#],
                exports: "actions",
                ..none
            },
            Self::Tool => Template {
                summary: "Names MIDI notes.",
                contributions: include_str!("../templates/tool/contributions.toml"),
                stateless: true,
                exports: "read-only-tools",
                ..none
            },
            Self::Hook => Template {
                summary: "Reports very loud notes.",
                capabilities: include_str!("../templates/hook/capabilities.toml"),
                contributions: include_str!("../templates/hook/contributions.toml"),
                grants: &[r#"observe_events = ["*"]"#],
                exports: "event-hooks",
                ..none
            },
            Self::Task => Template {
                summary: "Reminds of breaks.",
                capabilities: include_str!("../templates/task/capabilities.toml"),
                contributions: include_str!("../templates/task/contributions.toml"),
                grants: &["background_task = true", "alert = true"],
                exports: "tasks",
                ..none
            },
            Self::Provider => Template {
                summary: "Models behind a minimal example API.",
                capabilities: include_str!("../templates/provider/capabilities.toml"),
                contributions: include_str!("../templates/provider/contributions.toml"),
                exports: "providers",
                ..none
            },
        }
    }

    /// Source and test in a language; `None` if there are none yet.
    pub(super) const fn sources(self, language: Language) -> Option<[&'static str; 2]> {
        macro_rules! of {
            ($kind:literal, $ending:literal) => {
                Some([
                    include_str!(concat!("../templates/", $kind, "/part", $ending)),
                    include_str!(concat!("../templates/", $kind, "/test", $ending)),
                ])
            };
        }
        match (self, language) {
            (Self::Action, Language::Rust) => of!("action", ".rs"),
            (Self::Tool, Language::Rust) => of!("tool", ".rs"),
            (Self::Hook, Language::Rust) => of!("hook", ".rs"),
            (Self::Task, Language::Rust) => of!("task", ".rs"),
            (Self::Provider, Language::Rust) => of!("provider", ".rs"),
            (Self::Action, Language::JavaScript) => of!("action", ".js"),
            (Self::Tool, Language::JavaScript) => of!("tool", ".js"),
            (Self::Hook, Language::JavaScript) => of!("hook", ".js"),
            (Self::Task, Language::JavaScript) => of!("task", ".js"),
            (Self::Action, Language::Python) => of!("action", ".py"),
            (Self::Tool, Language::Python) => of!("tool", ".py"),
            (Self::Hook, Language::Python) => of!("hook", ".py"),
            (Self::Task, Language::Python) => of!("task", ".py"),
            (Self::Provider, Language::JavaScript | Language::Python) => None,
        }
    }
}

impl Language {
    /// Its name, as people write it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Rust => "Rust",
            Self::JavaScript => "JavaScript",
            Self::Python => "Python",
        }
    }

    /// The files that every kind shares: where each goes, and its template.
    pub(super) const fn common(self) -> &'static [(&'static str, &'static str)] {
        const RUST_IGNORED: &str = "/target/\n";
        const JAVASCRIPT_IGNORED: &str = "/target/\n/node_modules/\n";
        const PYTHON_IGNORED: &str = "/target/\n/.venv/\n__pycache__/\n/wit_world/\n";
        match self {
            Self::Rust => &[
                ("Cargo.toml", include_str!("../templates/rust/Cargo.toml.template")),
                ("rustfmt.toml", include_str!("../templates/rust/rustfmt.toml.template")),
                ("README.md", include_str!("../templates/rust/README.md.template")),
                (".gitignore", RUST_IGNORED),
                ("src/lib.rs", include_str!("../templates/rust/lib.rs.template")),
                ("tests/{{snake}}/main.rs", include_str!("../templates/rust/tests.rs.template")),
            ],
            Self::JavaScript => &[
                ("package.json", include_str!("../templates/javascript/package.json.template")),
                ("build.js", include_str!("../templates/javascript/build.js")),
                ("README.md", include_str!("../templates/javascript/README.md.template")),
                (".gitignore", JAVASCRIPT_IGNORED),
                ("feature.js", include_str!("../templates/javascript/feature.js.template")),
                ("sdk/harness.js", include_str!("../templates/javascript/harness.js")),
            ],
            Self::Python => &[
                ("pyproject.toml", include_str!("../templates/python/pyproject.toml.template")),
                ("README.md", include_str!("../templates/python/README.md.template")),
                (".gitignore", PYTHON_IGNORED),
                ("app.py", include_str!("../templates/python/app.py.template")),
                ("tests/harness.py", include_str!("../templates/python/harness.py")),
            ],
        }
    }
}
