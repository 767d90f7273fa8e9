//! From the paths of a request to the files that are reviewed: what is in folders, which of it is text, and how much.
//!
//! The rules are those of the request's snapshot: the same commit and paths have the same files in the same order.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use crate::request::Wrong;

/// Files that are reviewed at once.
pub const MAX_FILES: usize = 100;
/// Names that are looked at in folders.
const MAX_NAMES: usize = 20_000;
/// Names that one folder lists; what has as many may have more.
pub const MAX_LISTED: usize = 1000;
/// Folders within folders.
const MAX_DEPTH: usize = 64;
/// The bytes of a file in which a NUL makes it binary.
pub const BINARY_PROBE_BYTES: usize = 512;
/// Names that one warning lists.
const MAX_NAMED: usize = 3;

/// Endings of the names of files in folders that are text, in lower case. Other files are reviewed where they are named.
const TEXT_EXTENSIONS: [&str; 50] = [
    "py", "js", "ts", "jsx", "tsx", "go", "rs", "java", "kt", "c", "cpp", "h", "hpp", "cs", "rb", "php", "swift",
    "scala", "json", "yaml", "yml", "toml", "xml", "ini", "cfg", "env", "md", "rst", "txt", "adoc", "html", "css",
    "scss", "less", "svg", "sh", "bash", "zsh", "fish", "ps1", "bat", "wit", "sql", "proto", "vue", "svelte", "lua",
    "dart", "ex", "hs",
];
/// Names of files that programs write and people do not review, in lower case.
pub const GARBAGE: [&str; 4] = ["package-lock.json", "yarn.lock", "pnpm-lock.yaml", "cargo.lock"];

/// What a name in a commit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
    /// A commit of another repository.
    Module,
}

/// A name in a folder of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The name alone.
    pub name: String,
    /// What it is.
    pub kind: Kind,
}

/// A commit, as far as it is read here. Paths have `/` between names; `.` is the top.
pub trait Tree {
    /// What is in a folder.
    ///
    /// # Errors
    /// Why it can't be listed, for a person.
    fn names(&self, folder: &str) -> Result<Vec<Entry>, String>;

    /// The bytes of a file.
    ///
    /// # Errors
    /// Why it can't be read, for a person.
    fn read(&self, path: &str) -> Result<Vec<u8>, String>;
}

/// The files that paths stand for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Expansion {
    /// Paths of files, in the order of their bytes, each once.
    pub files: Vec<String>,
    /// Whether there are more.
    pub truncated: bool,
    /// What was left out, and why.
    pub warnings: Vec<String>,
}

/// A file that is reviewed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Where it is in the commit.
    pub path: String,
    /// What is in it.
    pub text: String,
}

/// The names that were left out for one reason: how many, and the first of them.
#[derive(Debug, Default)]
pub struct LeftOut(BTreeMap<&'static str, (usize, Vec<String>)>);

impl LeftOut {
    /// Adds one.
    pub fn add(&mut self, why: &'static str, path: &str) {
        let (count, named) = self.0.entry(why).or_default();
        *count += 1;
        if named.len() < MAX_NAMED {
            named.push(format!("{path:?}"));
        }
    }

    /// A sentence for each reason.
    pub fn warnings(self) -> impl Iterator<Item = String> {
        self.0.into_iter().map(|(why, (count, named))| {
            let more = if count > named.len() { ", ..." } else { "" };
            format!("{count} left out, {why}: {}{more}", named.join(", "))
        })
    }
}

const NOT_TEXT: &str = "not the name of a text file";
const WRITTEN_BY_PROGRAMS: &str = "written by programs";
const LINK: &str = "symbolic links are not followed";
const MODULE: &str = "submodules are other repositories";
const TOO_DEEP: &str = "too many folders within folders";
const BINARY: &str = "binary";
/// A compiler may read on after a NUL in a comment.
pub const NUL_IN_TEXT: &str = "binary by what is in it, and text by its name";

/// A commit whose folders are listed once.
struct Listed<'t, T> {
    tree: &'t T,
    folders: RefCell<BTreeMap<String, Result<Vec<Entry>, String>>>,
}

impl<T: Tree> Listed<'_, T> {
    fn names(&self, folder: &str) -> Result<Vec<Entry>, String> {
        let mut folders = self.folders.borrow_mut();
        folders.entry(folder.to_owned()).or_insert_with(|| self.tree.names(folder)).clone()
    }

    /// What a path is; `None` if it is not there.
    fn kind(&self, path: &str) -> Result<Option<Kind>, String> {
        if path == "." {
            return Ok(Some(Kind::Folder));
        }
        let mut folder = ".".to_owned();
        let mut names = path.split('/').peekable();
        while let Some(name) = names.next() {
            let there = self.names(&folder)?.into_iter().find(|entry| entry.name == name).map(|entry| entry.kind);
            match there {
                Some(Kind::Folder) if names.peek().is_some() => folder = joined(&folder, name),
                kind if names.peek().is_none() => return Ok(kind),
                _ => return Ok(None),
            }
        }
        Ok(None)
    }
}

fn joined(folder: &str, name: &str) -> String {
    if folder == "." { name.to_owned() } else { format!("{folder}/{name}") }
}

/// A path as commits have it: no `./` before, no `/` behind. `None` if it leads elsewhere.
pub fn plain(path: &str) -> Option<String> {
    if path.starts_with('/') {
        return None;
    }
    let names: Vec<&str> = path.split('/').filter(|name| !name.is_empty() && *name != ".").collect();
    if names.contains(&"..") {
        return None;
    }
    Some(if names.is_empty() { ".".to_owned() } else { names.join("/") })
}

/// Whether the name of a file is that of a text file. A name that is an ending alone, `.env`, has it.
pub fn is_text_name(name: &str) -> bool {
    let lower = name.to_lowercase();
    lower.rsplit_once('.').is_some_and(|(_, extension)| TEXT_EXTENSIONS.contains(&extension))
}

/// The files that these paths of `tree` stand for; `field` is where the request has them.
///
/// # Errors
/// A path that leads out of the repository, is not there, or is a pattern.
pub fn expand(tree: &impl Tree, field: &str, paths: &[String]) -> Result<Expansion, Wrong> {
    let tree = Listed { tree, folders: RefCell::default() };
    let (mut files, mut left_out, mut warnings) = (BTreeSet::new(), LeftOut::default(), Vec::new());
    let (mut looked, mut truncated) = (0, false);
    for (index, asked) in paths.iter().enumerate() {
        let wrong = |problem: &str| Wrong::new(format!("{field}[{index}] = {asked:?}"), problem);
        let path = plain(asked).ok_or_else(|| {
            wrong("it leads out of the repository; it is a path below its top, with `/` between names, such as \"src\"")
        })?;
        let mut folders = Vec::new();
        match tree.kind(&path).map_err(|why| wrong(&why))? {
            Some(Kind::File) => {
                files.insert(path);
            }
            Some(Kind::Link) => left_out.add(LINK, &path),
            Some(Kind::Module) => left_out.add(MODULE, &path),
            Some(Kind::Folder) => folders.push((path, 0)),
            None if asked.contains(['*', '?', '[', '{']) => {
                return Err(wrong("it is not there, and patterns are not expanded; name the folder, or each file"));
            }
            None => return Err(wrong("there is no such file or folder in this commit")),
        }
        while let Some((folder, depth)) = folders.pop() {
            let names = match tree.names(&folder) {
                Ok(names) => names,
                Err(why) => {
                    warnings.push(format!("{folder:?} can't be listed: {why}"));
                    truncated = true;
                    continue;
                }
            };
            if names.len() >= MAX_LISTED {
                warnings.push(format!("{folder:?} has {MAX_LISTED} names or more, and only the first are looked at"));
                truncated = true;
            }
            for Entry { name, kind } in names {
                looked += 1;
                let path = joined(&folder, &name);
                match kind {
                    Kind::Folder if depth < MAX_DEPTH => folders.push((path, depth + 1)),
                    Kind::Folder => {
                        left_out.add(TOO_DEEP, &path);
                        truncated = true;
                    }
                    Kind::Link => left_out.add(LINK, &path),
                    Kind::Module => left_out.add(MODULE, &path),
                    Kind::File if GARBAGE.contains(&&*name.to_lowercase()) => left_out.add(WRITTEN_BY_PROGRAMS, &path),
                    Kind::File if !is_text_name(&name) => left_out.add(NOT_TEXT, &path),
                    Kind::File => {
                        files.insert(path);
                    }
                }
            }
            if looked > MAX_NAMES && !folders.is_empty() {
                warnings.push(format!("there are more than {MAX_NAMES} names, and not all folders are looked at"));
                truncated = true;
                break;
            }
        }
    }
    let mut files: Vec<String> = files.into_iter().collect();
    if files.len() > MAX_FILES {
        warnings.push(format!("there are {} files, and the first {MAX_FILES} by name are reviewed", files.len()));
        files.truncate(MAX_FILES);
        truncated = true;
    }
    warnings.extend(left_out.warnings());
    Ok(Expansion { files, truncated, warnings })
}

/// Reads the files of an expansion, as long as `fits` has room for them. What is left out is taken from the list, and
/// said.
pub fn read(tree: &impl Tree, expansion: &mut Expansion, mut fits: impl FnMut(&File) -> bool) -> Vec<File> {
    let (mut files, mut left_out) = (Vec::new(), LeftOut::default());
    let mut too_long = LeftOut::default();
    for path in std::mem::take(&mut expansion.files) {
        let bytes = match tree.read(&path) {
            Ok(bytes) => bytes,
            Err(why) => {
                expansion.warnings.push(format!("{path:?} can't be read: {why}"));
                expansion.truncated = true;
                continue;
            }
        };
        if bytes.iter().take(BINARY_PROBE_BYTES).any(|byte| *byte == 0) {
            let is_text = is_text_name(&path);
            left_out.add(if is_text { NUL_IN_TEXT } else { BINARY }, &path);
            expansion.truncated |= is_text;
            continue;
        }
        let text = match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                expansion.warnings.push(format!("{path:?} is not UTF-8; what is not is shown as \u{fffd}"));
                String::from_utf8_lossy(error.as_bytes()).into_owned()
            }
        };
        let file = File { path, text };
        if fits(&file) {
            expansion.files.push(file.path.clone());
            files.push(file);
        } else {
            too_long.add("it does not fit into what may be asked", &file.path);
            expansion.truncated = true;
        }
    }
    expansion.warnings.extend(left_out.warnings());
    expansion.warnings.extend(too_long.warnings());
    files
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    /// A commit in memory: files by their paths, and links and modules beside them.
    #[derive(Default)]
    pub struct Commit(BTreeMap<String, (Option<Kind>, Vec<u8>)>);

    impl Commit {
        pub fn of(paths: &[&str]) -> Self {
            let mut commit = Self::default();
            paths.iter().for_each(|path| commit.file(path, b"text"));
            commit
        }

        pub fn file(&mut self, path: &str, bytes: &[u8]) {
            self.0.insert(path.to_owned(), (None, bytes.to_owned()));
        }

        pub fn other(&mut self, path: &str, kind: Kind) {
            self.0.insert(path.to_owned(), (Some(kind), Vec::new()));
        }
    }

    impl Tree for Commit {
        fn names(&self, folder: &str) -> Result<Vec<Entry>, String> {
            let below = if folder == "." { String::new() } else { format!("{folder}/") };
            let mut found = BTreeMap::new();
            for (path, (kind, _)) in &self.0 {
                let Some(rest) = path.strip_prefix(&below) else { continue };
                match rest.split_once('/') {
                    Some((name, _)) => found.insert(name.to_owned(), Kind::Folder),
                    None => found.insert(rest.to_owned(), kind.unwrap_or(Kind::File)),
                };
            }
            Ok(found.into_iter().map(|(name, kind)| Entry { name, kind }).collect())
        }

        fn read(&self, path: &str) -> Result<Vec<u8>, String> {
            self.0.get(path).map(|(_, bytes)| bytes.clone()).ok_or_else(|| "it is gone".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::testing::Commit;
    use super::*;

    fn expanded(commit: &Commit, paths: &[&str]) -> Expansion {
        expand(commit, "target_paths", &paths.iter().map(|path| (*path).to_owned()).collect::<Vec<_>>())
            .expect("it expands")
    }

    fn refused(commit: &Commit, path: &str) -> String {
        expand(commit, "target_paths", &["a.rs".to_owned(), path.to_owned()]).expect_err("it is refused").to_string()
    }

    /// CNC-3, ADR-034 "Directory Expansion Enhancement", "API Response Enhancement"
    #[test]
    fn folders_become_their_text_files_sorted_and_each_once() {
        let commit = Commit::of(&["src/z.rs", "src/a.py", "src/sub/x.TOML", "b.md", "src/.env", "src/two words\n.rs"]);
        let found = expanded(&commit, &["src/", "./src/sub", "src/a.py", "b.md"]);
        assert_eq!(found.files, ["b.md", "src/.env", "src/a.py", "src/sub/x.TOML", "src/two words\n.rs", "src/z.rs"]);
        assert_eq!((found.truncated, found.warnings.len()), (false, 0));
        assert_eq!(expanded(&commit, &["."]).files.len(), 6);
    }

    /// CNC-3, ADR-034 "Directory Expansion Enhancement", 2: each ending that the record names is that of a text.
    #[test]
    fn every_ending_of_a_text_is_taken_out_of_a_folder() {
        let endings = "py js ts jsx tsx go rs java kt c cpp h hpp cs rb php swift scala json yaml yml toml xml ini cfg env md \
                       rst txt adoc html css scss less svg sh bash zsh fish ps1 bat";
        let mut names: Vec<String> = endings.split_whitespace().map(|ending| format!("docs/a.{ending}")).collect();
        names.sort();
        let commit = Commit::of(&names.iter().map(String::as_str).collect::<Vec<_>>());
        let found = expanded(&commit, &["docs/"]);
        assert_eq!((found.files, found.warnings.len()), (names, 0));
    }

    /// CNC-3, ADR-034 "Directory Expansion Enhancement", 2: lock files, wherever they are and however they are written.
    #[test]
    fn each_lock_file_is_left_out_of_folders() {
        let locks = ["package-lock.json", "yarn.lock", "pnpm-lock.yaml", "cargo.lock", "Cargo.lock"];
        for lock in locks {
            let inner = format!("web/{lock}");
            let found = expanded(&Commit::of(&["a.rs", lock, &inner]), &["."]);
            assert_eq!(found.files, ["a.rs"], "{lock}");
            assert!(found.warnings[0].starts_with("2 left out, written by programs"), "{:?}", found.warnings);
        }
    }

    /// CNC-3, ADR-034 "Directory Expansion Enhancement", 1, 4 and 5
    #[test]
    fn what_is_no_text_or_written_by_programs_is_left_out_of_folders_and_said() {
        let mut commit =
            Commit::of(&["a.rs", "logo.png", "Makefile", "Cargo.lock", "sub/package-lock.json", "x.tar.gz"]);
        commit.other("link.rs", Kind::Link);
        commit.other("vendor", Kind::Module);
        let found = expanded(&commit, &["."]);
        assert_eq!(found.files, ["a.rs"]);
        let all = found.warnings.join("\n");
        for said in [
            "3 left out, not the name of a text file: \"Makefile\", \"logo.png\", \"x.tar.gz\"",
            "2 left out, written by programs: \"Cargo.lock\", \"sub/package-lock.json\"",
            "1 left out, symbolic links are not followed: \"link.rs\"",
            "1 left out, submodules are other repositories: \"vendor\"",
        ] {
            assert!(all.contains(said), "{said} in {all}");
        }
        assert!(!found.truncated);
        assert_eq!(expanded(&commit, &["Makefile", "Cargo.lock"]).files, ["Cargo.lock", "Makefile"], "where named");
        assert_eq!(expanded(&commit, &["link.rs", "vendor"]).files, [""; 0]);
    }

    /// CNC-3, ADR-034 "Directory Expansion Enhancement", 3
    #[test]
    fn at_most_100_files_are_reviewed() {
        let exactly: Vec<String> = (0..MAX_FILES).map(|number| format!("src/{number:03}.rs")).collect();
        let found = expanded(&Commit::of(&exactly.iter().map(String::as_str).collect::<Vec<_>>()), &["src"]);
        assert_eq!((found.files, found.truncated, found.warnings.len()), (exactly, false, 0));
        let names: Vec<String> = (0..130).map(|number| format!("src/{number:03}.rs")).collect();
        let commit = Commit::of(&names.iter().map(String::as_str).collect::<Vec<_>>());
        let found = expanded(&commit, &["src"]);
        assert_eq!((found.files.len(), found.truncated), (MAX_FILES, true));
        assert_eq!(found.files[99], "src/099.rs");
        assert!(found.warnings[0].contains("130 files"), "{:?}", found.warnings);
    }

    /// CNC-3, ADR-034 "Directory Expansion Enhancement", 1
    #[test]
    fn a_path_that_leads_out_is_a_pattern_or_not_there_is_refused() {
        let commit = Commit::of(&["a.rs", "app/[id]/page.tsx"]);
        for (path, why) in [
            ("../x", "it leads out of the repository"),
            ("/etc/passwd", "it leads out of the repository"),
            ("a/../../b", "it leads out of the repository"),
            ("src/*.rs", "patterns are not expanded"),
            ("b.rs", "there is no such file or folder in this commit"),
            ("a.rs/x", "there is no such file or folder in this commit"),
        ] {
            let text = refused(&commit, path);
            assert!(text.starts_with(&format!("target_paths[1] = {path:?}: ")) && text.contains(why), "{text}");
        }
        assert_eq!(expanded(&commit, &["app/[id]"]).files, ["app/[id]/page.tsx"], "a name with brackets is a name");
    }

    /// CNC-3, ADR-034 "Directory Expansion Enhancement", 2: the first 512 bytes say whether a file is binary.
    #[test]
    fn a_nul_counts_within_the_first_512_bytes() {
        for (at, is_text) in [(0, false), (511, false), (512, true)] {
            let mut commit = Commit::of(&["a.rs"]);
            let mut bytes = vec![b'x'; 600];
            bytes[at] = 0;
            commit.file("b.rs", &bytes);
            let mut found = expanded(&commit, &["."]);
            assert_eq!(read(&commit, &mut found, |_| true).len(), 1 + usize::from(is_text), "a NUL at {at}");
        }
    }

    #[test]
    fn binaries_and_what_does_not_fit_are_left_out_when_they_are_read() {
        let mut commit = Commit::of(&["a.rs", "b.rs", "c.rs"]);
        commit.file("a.rs", b"\x7fELF\0\0");
        commit.file("b.rs", &[b'x'; 5000]);
        let mut late = vec![b'x'; 600];
        late[599] = 0;
        commit.file("d.rs", &late);
        commit.file("e.rs", b"caf\xe9");
        let mut found = expanded(&commit, &["."]);
        let files = read(&commit, &mut found, |file| file.text.len() < 1000);
        assert_eq!(found.files, ["c.rs", "d.rs", "e.rs"]);
        assert_eq!(files.iter().map(|file| file.text.len()).collect::<Vec<_>>(), [4, 600, 6]);
        assert!(found.truncated, "a file that does not fit is missing");
        let all = found.warnings.join("\n");
        assert!(
            all.contains("text by its name: \"a.rs\"") && all.contains("fit into what may be asked: \"b.rs\""),
            "{all}"
        );
        assert!(all.contains("\"e.rs\" is not UTF-8"), "{all}");
    }

    #[test]
    fn a_nul_hides_nothing_of_a_text_file() {
        let mut commit = Commit::of(&["a.rs", "data.bin"]);
        commit.file("data.bin", b"\0");
        let mut found = expanded(&commit, &["a.rs", "data.bin"]);
        read(&commit, &mut found, |_| true);
        assert!(!found.truncated && found.warnings[0].contains("binary: \"data.bin\""), "{found:?}");
        commit.file("b.rs", b"// \0\nfn b() {}\n");
        let mut found = expanded(&commit, &["."]);
        read(&commit, &mut found, |_| true);
        assert!(found.truncated && found.files == ["a.rs"], "{found:?}");
    }

    #[test]
    fn a_file_that_can_not_be_read_is_missing() {
        let commit = Commit::of(&["a.rs"]);
        let mut found = expanded(&commit, &["a.rs"]);
        found.files.push("gone.rs".into());
        assert_eq!(read(&commit, &mut found, |_| true).len(), 1);
        assert!(found.truncated && found.warnings[0].contains("\"gone.rs\" can't be read: it is gone"));
    }
}
