//! What a change can reach: from the files that differ, over the dependencies between the crates, to the steps that
//! could now end otherwise.
//!
//! A file belongs to the crate whose folder it is in, and reaches that crate and all that depend on it. Where a file is
//! read by others, such as a page of docs/, the rules below name these. A file that no rule knows reaches everything.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    process::Command,
};

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::{process, repo::Repo};

/// The crate of the end-to-end tests, and of what they are given: hosts, agents' scripts.
const END_TO_END: &str = "conductor-tests";
/// The program.
const PROGRAM: &str = "conductor";
/// The crate that runs guests.
const SANDBOX: &str = "conductor-sandbox";
/// This crate; what it does wrong, any step may do wrong.
const XTASK: &str = "xtask";
/// Files, and folders, that a crate reads though they are not in its folder and it depends on no crate that has them.
const READ_ACROSS: [(&str, &str); 7] = [
    ("README.md", PROGRAM),
    ("docs/schemas/council", "conductor-council-tests"),
    ("features/device-library/devices", "conductor-device-profile"),
    ("host/stdx/src/strand.rs", "conductor-models"),
    ("host/conductor/tests/terminal/pty.rs", "conductor-tui"),
    ("host/conductor/tests/terminal/pty.rs", END_TO_END),
    ("tests/model-sdks", "conductor-bench"),
];

/// What is reached.
#[derive(Debug, PartialEq)]
pub enum Reach {
    /// Everything.
    All,
    /// These crates.
    Crates(BTreeSet<String>),
}

impl Reach {
    /// What the difference between `base`, or else the merge base with `main`, and the files as they are now reaches.
    ///
    /// # Errors
    /// git's, such as for a base that does not exist.
    pub fn since(repo: &Repo, base: Option<&str>) -> Result<Self> {
        let git = |arguments: &[&str]| process::read(Command::new("git").args(arguments).current_dir(repo.root()));
        let base = match base {
            Some(base) => base.to_owned(),
            None => git(&["merge-base", "HEAD", "main"]).unwrap_or_else(|_| "HEAD".to_owned()),
        };
        let differ = git(&["diff", "--name-only", "--no-renames", "-z", &base, "--"])?;
        let new = git(&["ls-files", "--others", "--exclude-standard", "-z"])?;
        let files: BTreeSet<&str> = differ.split('\0').chain(new.split('\0')).filter(|file| !file.is_empty()).collect();
        let reach = Graph::read(repo)?.reach(&files);
        let said = match &reach {
            Self::All => "everything".to_owned(),
            Self::Crates(crates) if crates.is_empty() => "no crate".to_owned(),
            Self::Crates(crates) => crates.iter().map(String::as_str).collect::<Vec<_>>().join(", "),
        };
        println!("{} files differ from {base}; they reach {said}", files.len());
        Ok(reach)
    }

    /// Whether everything is reached.
    pub fn all(&self) -> bool {
        *self == Self::All
    }

    /// Whether a crate is reached.
    pub fn has(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Crates(crates) => crates.contains(name),
        }
    }

    /// Whether one of these crates is.
    pub fn has_any(&self, names: &BTreeSet<String>) -> bool {
        names.iter().any(|name| self.has(name))
    }

    /// Whether what the end-to-end tests see could be otherwise: the program, its features, or the tests.
    pub fn end_to_end(&self) -> bool {
        self.has(PROGRAM) || self.has(END_TO_END)
    }
}

/// The crates of all workspaces.
struct Graph {
    /// Their folders below the repository, and names.
    folders: BTreeMap<String, String>,
    /// Who depends on each, by name, for its tests alone included.
    users: BTreeMap<String, BTreeSet<String>>,
}

impl Graph {
    fn read(repo: &Repo) -> Result<Self> {
        let mut graph = Self { folders: BTreeMap::new(), users: BTreeMap::new() };
        let workspaces = [repo.root().to_owned()].into_iter().chain(repo.guest_workspaces()?);
        for folder in workspaces {
            for package in repo.packages(&folder)? {
                graph.add(repo.root(), &package, folder != repo.root())?;
            }
        }
        Ok(graph)
    }

    fn add(&mut self, root: &Path, package: &Value, is_guest: bool) -> Result<()> {
        let name = package["name"].as_str().context("a package has no name")?;
        let folder = package["manifest_path"].as_str().map(Path::new).and_then(Path::parent);
        let folder = folder.and_then(|folder| folder.strip_prefix(root).ok()).context("a package lies elsewhere")?;
        self.folders.insert(folder.to_string_lossy().into_owned(), name.to_owned());
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            if let (Some(used), true) = (dependency["name"].as_str(), dependency["path"].is_string()) {
                self.user(used, name);
            }
        }
        // Built guests are loaded by the sandbox's tests, and by those of all that use it.
        if is_guest {
            self.user(name, SANDBOX);
        }
        Ok(())
    }

    fn user(&mut self, used: &str, by: &str) {
        self.users.entry(used.to_owned()).or_default().insert(by.to_owned());
    }

    /// The crate that a file belongs to: that of the innermost folder.
    fn owner(&self, file: &str) -> Option<&str> {
        let folders = self.folders.iter().filter(|(folder, _)| Path::new(file).starts_with(folder));
        folders.max_by_key(|(folder, _)| folder.len()).map(|(_, name)| name.as_str())
    }

    /// The crates that read a file; `None` if that is not known.
    fn readers(&self, file: &str) -> Option<Vec<&str>> {
        let mut readers = self.usual_readers(file)?;
        let across = READ_ACROSS.iter().filter(|(read, _)| Path::new(file).starts_with(read));
        readers.extend(across.map(|(_, reader)| *reader));
        Some(readers)
    }

    /// Those by the folder that the file is in.
    fn usual_readers(&self, file: &str) -> Option<Vec<&str>> {
        let (top, name) = (file.split('/').next().unwrap_or_default(), file.rsplit('/').next().unwrap_or_default());
        // They decide what is built how, and with what.
        if ["Cargo.toml", "Cargo.lock", "build.rs", "clippy.toml", "rustfmt.toml"].contains(&name) {
            return None;
        }
        let owner = self.owner(file);
        match (top, owner) {
            (_, Some(XTASK)) => None,
            // Agents read some of them from the host, and tests hold others against the source.
            // They are in the program.
            ("skills", None) => Some(vec!["conductor-skills"]),
            ("docs", None) => Some(vec!["conductor-mcp", XTASK]),
            _ if owner.is_none() && name.ends_with(".md") => Some(vec![XTASK]),
            ("tests", Some(owner)) if name.ends_with(".md") => Some(vec![owner, XTASK]),
            (_, Some(owner)) => Some(vec![owner]),
            (_, None) => None,
        }
    }

    fn reach(&self, files: &BTreeSet<&str>) -> Reach {
        let mut reached = BTreeSet::new();
        let mut waiting = Vec::new();
        for file in files {
            let Some(readers) = self.readers(file) else { return Reach::All };
            // A reader that is no crate (any more) is a rule that is wrong.
            if readers.iter().any(|reader| !self.folders.values().any(|name| name == reader)) {
                return Reach::All;
            }
            waiting.extend(readers);
        }
        while let Some(name) = waiting.pop() {
            if reached.insert(name.to_owned()) {
                waiting.extend(self.users.get(name).into_iter().flatten().map(String::as_str));
            }
        }
        Reach::Crates(reached)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "in a test a panic is a result")]
mod tests {
    use super::*;

    const GUEST_LIBRARY: &str = "conductor-feature";

    fn graph() -> Graph {
        Graph::read(&Repo::open(true).unwrap()).unwrap()
    }

    fn reach(files: &[&str]) -> Reach {
        graph().reach(&files.iter().copied().collect())
    }

    #[test]
    fn a_source_reaches_its_crate_and_all_that_depend_on_it_but_not_what_it_uses() {
        let reach = reach(&["host/mcp/src/lib.rs"]);
        for name in ["conductor-mcp", "conductor-api", PROGRAM, "conductor-fuzz", "conductor-mcp-fixtures"] {
            assert!(reach.has(name), "{name} of {reach:?}");
        }
        for name in ["conductor-engine", SANDBOX, "conductor-host", GUEST_LIBRARY] {
            assert!(!reach.has(name), "{name} of {reach:?}");
        }
        assert!(reach.end_to_end());
    }

    #[test]
    fn what_the_engine_is_built_from_reaches_the_program() {
        let reach = reach(&["host/engine/tests/overlap.rs"]);
        assert!(reach.has("conductor-engine") && reach.end_to_end());
        assert!(!reach.has("conductor-terminal") && !reach.has(GUEST_LIBRARY));
    }

    #[test]
    fn a_guest_reaches_what_runs_guests() {
        for file in ["features/osc-output/src/lib.rs", "tests/guests/hostile/src/lib.rs", "feature-api/src/lib.rs"] {
            let reach = reach(&[file]);
            assert!(reach.has(SANDBOX) && reach.has("conductor-host") && reach.end_to_end(), "{file}: {reach:?}");
            assert!(!reach.has("conductor-engine"), "{file}: {reach:?}");
        }
    }

    #[test]
    fn an_end_to_end_test_reaches_nothing_else() {
        let reach = reach(&["tests/tests/run.rs", "tests/mcp/agent.py"]);
        assert_eq!(reach, Reach::Crates([END_TO_END.to_owned()].into()));
        assert!(reach.end_to_end());
    }

    #[test]
    fn a_page_reaches_what_reads_it() {
        let reach = |file: &str| reach(&[file]);
        assert_eq!(reach("CHANGELOG.md"), Reach::Crates([XTASK.to_owned()].into()));
        assert!(reach("docs/mcp.md").has("conductor-mcp") && reach("docs/mcp.md").has(XTASK));
        assert!(reach("tests/hostile/README.md").has(XTASK));
    }

    /// Sources that read from the repository's folder, with a file that each of them reads.
    const FROM_THE_TOP: [(&str, &str); 4] = [
        // What is built into the program, and README.md; the tests that are named there for a command are looked
        // through for a word only.
        ("host/conductor/build.rs", "feature-api/src/lib.rs"),
        ("host/conductor/tests/readme.rs", "README.md"),
        ("host/conductor/tests/council/main.rs", "docs/ci/council.toml"),
        ("tests/src/bin/model-sdks.rs", "tests/model-sdks/ask.py"),
    ];

    /// The paths out of its folder or its crate that a source names: those of `include_str!`, `include_bytes!` and `#[path]`
    /// begin in the folder of the source, and those behind `CARGO_MANIFEST_DIR` in that of the crate.
    fn paths_out(source: &str) -> Vec<(bool, String)> {
        let mut found = Vec::new();
        for (marker, by_crate) in
            [("include_str!(", false), ("include_bytes!(", false), ("#[path = ", false), ("CARGO_MANIFEST_DIR\"", true)]
        {
            for rest in source.split(marker).skip(1) {
                let end = if by_crate { rest.find([';', '}']) } else { rest.find([')', ']']) };
                let statement = &rest[..end.unwrap_or(rest.len())];
                let quoted = statement.split('"').skip(1).step_by(2).map(|path| path.trim_start_matches('/'));
                found.extend(quoted.filter(|path| path.starts_with("..")).map(|path| (by_crate, path.to_owned())));
                if by_crate && statement.contains(".parent()") {
                    found.push((true, "..".to_owned()));
                }
            }
        }
        found
    }

    /// A path below a folder, without `..`.
    fn below(folder: &Path, path: &str) -> String {
        let mut parts: Vec<&str> = folder.iter().filter_map(|part| part.to_str()).collect();
        for part in path.split('/') {
            match part {
                ".." => drop(parts.pop()),
                part => parts.push(part),
            }
        }
        parts.join("/")
    }

    #[test]
    fn what_a_source_names_outside_of_its_folder_is_found() {
        let source = r#"
            const A: &str = include_str!("../a.txt");
            #[path = "../../b.rs"]
            let c = Path::new(&env::var("CARGO_MANIFEST_DIR")?)
                .join("../../c");
            let d = concat!(env!("CARGO_MANIFEST_DIR"), "/../d");
            let e = Path::new(env!("CARGO_MANIFEST_DIR")).join("e");
            let f = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
        "#;
        let found = paths_out(source);
        let found: Vec<(bool, &str)> = found.iter().map(|(by_crate, path)| (*by_crate, path.as_str())).collect();
        assert_eq!(
            found,
            [(false, "../a.txt"), (false, "../../b.rs"), (true, "../../c"), (true, "../d"), (true, "..")]
        );
        assert_eq!(below(Path::new("host/x/src"), "../../y/c.rs"), "host/y/c.rs");
        assert_eq!(below(Path::new("host/x"), "../.."), "");
    }

    #[test]
    fn what_a_crate_reads_elsewhere_reaches_it() {
        let repo = Repo::open(true).unwrap();
        let mut list = Command::new("git");
        list.args(["ls-files", "-z"]).current_dir(repo.root());
        let list = process::read(&mut list).unwrap();
        let files: Vec<&str> = list.split('\0').filter(|file| repo.root().join(file).is_file()).collect();
        let (graph, mut checked, mut missed) = (graph(), 0, Vec::new());
        for source in files.iter().filter(|file| file.ends_with(".rs")) {
            // Its own tests always run.
            let Some(owner) = graph.owner(source).filter(|owner| *owner != XTASK) else { continue };
            let home = graph.folders.iter().find(|(_, name)| *name == owner).unwrap().0;
            let text = std::fs::read_to_string(repo.root().join(source)).unwrap();
            for (by_crate, path) in paths_out(&text) {
                let folder = if by_crate { Path::new(home) } else { Path::new(source).parent().unwrap() };
                let read = match below(folder, &path) {
                    top if top.is_empty() => match FROM_THE_TOP.iter().find(|(known, _)| known == source) {
                        Some((_, file)) => (*file).to_owned(),
                        None => panic!("{source} reads from the top: say in FROM_THE_TOP what"),
                    },
                    read => read,
                };
                // Of a folder, its first file.
                let Some(file) = files.iter().find(|file| Path::new(file).starts_with(&read)) else { continue };
                checked += 1;
                let reach = graph.reach(&[*file].into());
                missed.extend((!reach.has(owner)).then(|| format!("{file} does not reach {owner}, see {source}")));
            }
        }
        assert!(checked > 50, "{checked} paths are not all");
        assert!(missed.is_empty(), "put them into READ_ACROSS:\n{}", missed.join("\n"));
    }

    #[test]
    fn a_file_that_no_rule_knows_reaches_everything() {
        for file in [
            "Cargo.lock",
            "host/engine/Cargo.toml",
            "features/examples/scales-py/app.py",
            "xtask/src/test.rs",
            ".cargo/config.toml",
            "wit/v0.1/types.wit",
            "rust-toolchain.toml",
            "no/such/file",
        ] {
            assert_eq!(reach(&["tests/tests/run.rs", file]), Reach::All, "{file}");
        }
        assert_eq!(reach(&[]), Reach::Crates(BTreeSet::new()));
    }
}
