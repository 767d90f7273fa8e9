//! The files of a new project: one for each kind of contribution and its tests, and those that bring them together.

use std::fmt::Write as _;

use super::template::{Kind, Language};
use conductor_stdx::template;

/// A project, before it is written.
pub(super) struct Project {
    /// The feature's name: `desk-lamp`.
    name: String,
    /// In their order, each once.
    kinds: Vec<Kind>,
    language: Language,
    /// The folder of the SDK's crate, as the project's manifest names it.
    sdk: String,
}

impl Project {
    /// A project of these kinds, of which each is there once, in whatever order they are named.
    ///
    /// # Errors
    /// A sentence, if a kind has no template in the language.
    pub(super) fn new(name: &str, kinds: &[Kind], language: Language, sdk: &str) -> Result<Self, String> {
        let mut kinds = kinds.to_vec();
        kinds.sort();
        kinds.dedup();
        if let Some(kind) = kinds.iter().find(|kind| kind.sources(language).is_none()) {
            let (kind, language) = (kind.word(), language.name());
            return Err(format!(
                "there is no template for a {kind} in {language}; leave it out, or use `--language rust`"
            ));
        }
        Ok(Self { name: name.to_owned(), kinds, language, sdk: sdk.to_owned() })
    }

    /// All of its files but the SDK's: path and text.
    pub(super) fn files(&self) -> Vec<(String, String)> {
        let mut files = vec![("feature.toml".to_owned(), self.descriptor())];
        for (path, template) in self.language.common() {
            files.push((self.fill(path, None), self.fill(template, None)));
        }
        for &kind in &self.kinds {
            let Some([source, test]) = kind.sources(self.language) else { continue };
            let word = kind.word();
            let [source_path, test_path] = match self.language {
                Language::Rust => [format!("src/{word}.rs"), format!("tests/{}/{word}.rs", self.snake())],
                Language::JavaScript => [format!("{word}.js"), format!("test/{word}.js")],
                Language::Python => [format!("{word}.py"), format!("tests/test_{word}.py")],
            };
            files.push((source_path, self.fill(source, Some(kind))));
            files.push((test_path, self.fill(test, Some(kind))));
        }
        files
    }

    /// The commands that come before the first build.
    pub(super) const fn preparation(&self) -> &'static [&'static str] {
        match self.language {
            Language::Rust => &[],
            Language::JavaScript => &["npm install"],
            Language::Python => &["python3 -m venv .venv", ".venv/bin/pip install \"componentize-py==0.25.*\""],
        }
    }

    fn descriptor(&self) -> String {
        let mut text = include_str!("../templates/feature.toml.template").to_owned();
        if self.kinds.iter().any(|kind| kind.template().stateless) {
            text += "# Tools keep nothing in memory from one call to the next, so the host may make calls side by side.\n\
                     stateless = true\n";
        }
        self.kinds.iter().for_each(|kind| text += kind.template().capabilities);
        self.kinds.iter().for_each(|kind| text += kind.template().contributions);
        self.fill(&text, None)
    }

    /// A template with its blanks filled in: those of every file, and `others` in the tests of a kind.
    fn fill(&self, template: &str, kind: Option<Kind>) -> String {
        template::fill(template, ["{{", "}}"], |blank| {
            Some(match blank {
                "name" => self.name.as_str().into(),
                "snake" => self.snake().into(),
                "Type" => self.type_name().into(),
                "sdk" => self.sdk.replace('\\', "\\\\").replace('"', "\\\"").into(),
                "summary" => self.summary().into(),
                "modules" => self.modules().into(),
                "installs" => self.installs().into(),
                "exports" => self.exports().into(),
                "stub" => self.stub().into(),
                "others" => self.others(kind).into(),
                _ => return None,
            })
        })
    }

    /// For tools and crates.
    fn snake(&self) -> String {
        self.name.replace('-', "_")
    }

    /// For types and actions.
    fn type_name(&self) -> String {
        let words = self.name.split('-').map(|word| {
            let mut letters = word.chars();
            letters.next().map(|first| first.to_ascii_uppercase().to_string() + letters.as_str()).unwrap_or_default()
        });
        words.collect()
    }

    fn summary(&self) -> String {
        let sentences: Vec<_> = self.kinds.iter().map(|kind| kind.template().summary).collect();
        sentences.join(" ")
    }

    /// A line for each kind.
    fn lines(&self, line: impl Fn(Kind) -> String) -> String {
        self.kinds.iter().map(|&kind| line(kind)).collect::<Vec<_>>().join("\n")
    }

    /// What brings the kinds' files in, a line for each, in the order that formatters put them.
    fn modules(&self) -> String {
        let mut words: Vec<_> = self.kinds.iter().map(|kind| kind.word()).collect();
        words.sort_unstable();
        let line = |word: &&str| match self.language {
            Language::Rust => format!("mod {word};"),
            Language::JavaScript => format!("import * as {word} from \"./{word}.js\";"),
            Language::Python => format!("import {word}"),
        };
        words.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    fn installs(&self) -> String {
        match self.language {
            // The last one's result is that of all.
            Language::Rust => self.lines(|kind| {
                let end = if self.kinds.last() == Some(&kind) { "" } else { "?;" };
                format!("        {}::install(ctx){end}", kind.word())
            }),
            Language::JavaScript => self.lines(|kind| format!("    {}.install(ctx);", kind.word())),
            Language::Python => self.lines(|kind| format!("        {}.install(ctx)", kind.word())),
        }
    }

    /// The interfaces that are exported: a list for the SDK's macro, else a line for each.
    fn exports(&self) -> String {
        let interface = |kind: Kind| kind.template().exports;
        match self.language {
            Language::Rust => {
                let names: Vec<_> = self.kinds.iter().map(|&kind| interface(kind).replace('-', "_")).collect();
                names.join(", ")
            }
            Language::JavaScript => self.lines(|kind| {
                let name = camel(interface(kind));
                let name = name[..1].to_ascii_lowercase() + &name[1..];
                format!("export {{ {name} }} from \"./{}.js\";", kind.word())
            }),
            Language::Python => self.lines(|kind| format!("from {} import {}", kind.word(), camel(interface(kind)))),
        }
    }

    /// An argument for componentize-py: on the event path nothing may wait, so WASI must not be imported there.
    fn stub(&self) -> &'static str {
        let on_event_path = self.kinds.iter().any(|kind| matches!(kind, Kind::Action | Kind::Hook));
        if on_event_path { "\"--stub-wasi\", " } else { "" }
    }

    /// The grants that the other kinds can't do without: in Rust calls of the harness, else lines of TOML.
    fn others(&self, kind: Option<Kind>) -> String {
        let others = self.kinds.iter().filter(|&&other| Some(other) != kind);
        others.flat_map(|other| other.template().grants).fold(String::new(), |mut text, grant| {
            let _ = match self.language {
                Language::Rust => write!(text, ".grant(r#\"{grant}\"#)"),
                Language::JavaScript | Language::Python => write!(text, "\n{grant}"),
            };
            text
        })
    }
}

/// `read-only-tools` as `ReadOnlyTools`.
fn camel(name: &str) -> String {
    let words = name.split('-').filter(|word| !word.is_empty());
    words.map(|word| word[..1].to_ascii_uppercase() + &word[1..]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum as _;
    use conductor_package::Descriptor;

    fn file(project: &Project, path: &str) -> String {
        let files = project.files();
        let found = files.iter().find(|(file, _)| file == path);
        found
            .unwrap_or_else(|| panic!("no {path} in {:?}", files.iter().map(|(path, _)| path).collect::<Vec<_>>()))
            .1
            .clone()
    }

    /// Every set of kinds, in every language, is a project without a blank that is left over.
    #[test]
    fn every_set_of_kinds_has_a_descriptor_that_is_one() {
        let all = Kind::value_variants();
        for language in Language::value_variants() {
            for set in 1..1_u32 << all.len() {
                let kinds: Vec<Kind> =
                    all.iter().enumerate().filter(|(at, _)| set & (1 << at) != 0).map(|(_, kind)| *kind).collect();
                let Ok(project) = Project::new("desk-lamp", &kinds, *language, "/sdk") else {
                    assert!(kinds.contains(&Kind::Provider) && *language != Language::Rust, "{kinds:?}");
                    continue;
                };
                for (path, text) in project.files() {
                    let is_left = ["{{name", "{{Type", "{{snake", "{{others", "{{modules", "{{installs", "{{exports"]
                        .into_iter()
                        .find(|blank| text.contains(blank) || path.contains(blank));
                    assert_eq!(is_left, None, "{path}: {text}");
                }
                let descriptor = Descriptor::parse(file(&project, "feature.toml").as_bytes());
                let descriptor = descriptor.unwrap_or_else(|error| panic!("{kinds:?}: {error}"));
                assert_eq!(descriptor.id.as_str(), "project:desk-lamp");
                let has = |kind| kinds.contains(&kind);
                assert_eq!(descriptor.actions.len(), usize::from(has(Kind::Action)));
                assert_eq!(descriptor.tools.len(), usize::from(has(Kind::Tool)));
                assert_eq!(descriptor.hooks.len(), usize::from(has(Kind::Hook)));
                assert_eq!(descriptor.tasks.len(), usize::from(has(Kind::Task)));
                assert_eq!(descriptor.providers.len(), usize::from(has(Kind::Provider)));
            }
        }
    }

    #[test]
    fn several_kinds_are_installed_by_one_feature() {
        let kinds = [Kind::Tool, Kind::Action, Kind::Tool];
        let rust = Project::new("desk-lamp", &kinds, Language::Rust, "sdk").unwrap();
        let lib = file(&rust, "src/lib.rs");
        assert!(lib.contains("mod action;\nmod tool;\n"), "{lib}");
        assert!(lib.contains("        action::install(ctx)?;\n        tool::install(ctx)\n"), "{lib}");
        assert!(lib.contains("[actions, read_only_tools]"), "{lib}");
        let test = file(&rust, "tests/desk_lamp/tool.rs");
        assert!(test.contains(r##"Harness::new()?.grant(r#"udp = ["127.0.0.1:9000"]"#).install()"##), "{test}");
        let script = Project::new("desk-lamp", &kinds, Language::JavaScript, "sdk").unwrap();
        assert!(file(&script, "feature.js").contains("export { readOnlyTools } from \"./tool.js\";"));
        let python = Project::new("desk-lamp", &kinds, Language::Python, "sdk").unwrap();
        assert!(file(&python, "app.py").contains("from tool import ReadOnlyTools"));
        assert!(file(&python, "pyproject.toml").contains("\"--stub-wasi\", \"app\""));
    }

    #[test]
    fn a_kind_without_a_template_is_refused_in_words() {
        let refused = Project::new("x", &[Kind::Provider], Language::Python, "sdk").err().unwrap();
        assert!(refused.contains("provider in Python") && refused.contains("--language rust"), "{refused}");
    }

    #[test]
    fn a_manifest_is_a_workspace_of_its_own() {
        let project = Project::new("desk-lamp", &[Kind::Tool], Language::Rust, "/some \"where\"").unwrap();
        let manifest: toml::Table = file(&project, "Cargo.toml").parse().unwrap();
        assert!(manifest.contains_key("workspace"));
        assert_eq!(manifest["dependencies"]["conductor-feature"]["path"].as_str(), Some("/some \"where\""));
    }
}
