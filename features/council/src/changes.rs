//! The work as the difference between two commits: each file that was changed, as a unified diff.

use std::collections::{BTreeMap, BTreeSet};

use similar::TextDiff;

use crate::request::Wrong;
use crate::snapshot::{
    BINARY_PROBE_BYTES, Entry, Expansion, File, GARBAGE, Kind, LeftOut, MAX_FILES, MAX_LISTED, NUL_IN_TEXT, Tree,
    is_text_name, plain,
};

/// Names of files that are compared.
const MAX_COMPARED: usize = 2000;
/// Lines of a file that differ, from the first to the last, of which a diff is made.
const MAX_DIFFERING: usize = 3000;
/// Lines that are shown before and after one that differs.
const CONTEXT_LINES: usize = 8;
/// Folders within folders.
const MAX_DEPTH: usize = 64;

const WRITTEN_BY_PROGRAMS: &str = "written by programs";
const MODULE: &str = "submodules can't be compared";
const BINARY: &str = "binary";
const TOO_DIFFERENT: &str = "too much of it differs for a diff; name it at the later commit alone";
const NO_ROOM: &str = "it does not fit into what may be asked";

/// What is below paths of a commit.
#[derive(Default)]
struct Found {
    /// Files and links.
    files: BTreeMap<String, Entry>,
    /// Modules.
    left_out: LeftOut,
    /// What of it could not be looked at, a sentence each.
    unseen: BTreeSet<String>,
}

/// Adds what is below a path of a commit. Returns whether the path exists.
///
/// # Errors
/// Folders that are too deep.
fn below<T: Tree>(tree: &T, path: &str, found: &mut Found) -> Result<bool, String> {
    let (folder, name) = path.rsplit_once('/').unwrap_or((".", path));
    let mut folders = Vec::new();
    if path == "." {
        folders.push((path.to_owned(), 0));
    } else {
        // The folder above may not be there at one of the commits, and then neither is the path.
        let names = tree.names(folder).unwrap_or_default();
        match names.into_iter().find(|entry| entry.name == name) {
            None => return Ok(false),
            Some(entry) => match entry.kind {
                Kind::Folder => folders.push((path.to_owned(), 0)),
                Kind::Module => found.left_out.add(MODULE, path),
                Kind::File | Kind::Link => drop(found.files.insert(path.to_owned(), entry)),
            },
        }
    }
    while let Some((folder, depth)) = folders.pop() {
        let names = match tree.names(&folder) {
            Ok(names) => names,
            Err(why) => {
                found.unseen.insert(format!("{folder:?} can't be listed: {why}"));
                continue;
            }
        };
        if names.len() >= MAX_LISTED {
            let first = format!("{folder:?} has {MAX_LISTED} names or more, and only the first are compared");
            found.unseen.insert(first);
        }
        for entry in names {
            let path = if folder == "." { entry.name.clone() } else { format!("{folder}/{}", entry.name) };
            match entry.kind {
                Kind::Folder if depth < MAX_DEPTH => folders.push((path, depth + 1)),
                Kind::Folder => return Err(format!("{path:?} has too many folders above it")),
                Kind::Module => found.left_out.add(MODULE, &path),
                Kind::File | Kind::Link => drop(found.files.insert(path, entry)),
            }
        }
    }
    Ok(true)
}

/// How many lines at the beginning are the same, and how many at the end.
fn same_ends(before: &[&str], after: &[&str]) -> (usize, usize) {
    let begin = before.iter().zip(after).take_while(|(one, other)| one == other).count();
    let rest = before[begin..].iter().rev().zip(after[begin..].iter().rev());
    (begin, rest.take_while(|(one, other)| one == other).count())
}

/// The difference of a file as a unified diff; `None` if it is too large for one.
fn diff(path: &str, before: Option<&str>, after: Option<&str>) -> Option<String> {
    let (old, new) = (before.unwrap_or_default(), after.unwrap_or_default());
    let lines = |text: &'_ str| text.split('\n').count();
    let (before_lines, after_lines): (Vec<&str>, Vec<&str>) = (old.split('\n').collect(), new.split('\n').collect());
    let (begin, end) = same_ends(&before_lines, &after_lines);
    if lines(old).max(lines(new)).saturating_sub(begin + end) > MAX_DIFFERING {
        return None;
    }
    let name =
        |side: &str, text: Option<&str>| text.map_or_else(|| "/dev/null".to_owned(), |_| format!("{side}/{path}"));
    let diff = TextDiff::from_lines(old, new);
    Some(diff.unified_diff().context_radius(CONTEXT_LINES).header(&name("a", before), &name("b", after)).to_string())
}

/// What changed from `base` to `head` in the files that `paths` stand for (all, if there are none), a diff each. Files are left
/// out, and that is said, where `fits` has no room for their diff. The files of the expansion are those that are there.
///
/// # Errors
/// A path that leads out of the repository, or is in neither commit.
pub fn between<T: Tree>(
    (base, head): (&T, &T),
    field: &str,
    paths: &[String],
    mut fits: impl FnMut(&File) -> bool,
) -> Result<(Expansion, Vec<File>), Wrong> {
    let (mut old, mut new) = (Found::default(), Found::default());
    let everything = [".".to_owned()];
    let paths = if paths.is_empty() { &everything[..] } else { paths };
    for (index, asked) in paths.iter().enumerate() {
        let wrong = |problem: &str| Wrong::new(format!("{field}[{index}] = {asked:?}"), problem);
        let path = plain(asked).ok_or_else(|| {
            wrong("it leads out of the repository; it is a path below its top, with `/` between names, such as \"src\"")
        })?;
        let was = below(base, &path, &mut old).map_err(|why| wrong(&why))?;
        let is = below(head, &path, &mut new).map_err(|why| wrong(&why))?;
        if !was && !is {
            return Err(wrong("there is no such file or folder in either commit"));
        }
    }
    let mut unseen = old.unseen;
    unseen.append(&mut new.unseen);
    let (old, new, mut left_out) = (old.files, new.files, new.left_out);
    let mut names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let (mut expansion, mut files) = (Expansion::default(), Vec::new());
    expansion.truncated = !unseen.is_empty();
    expansion.warnings.extend(unseen);
    if names.len() > MAX_COMPARED {
        let warning =
            format!("there are {} files, and the first {MAX_COMPARED} by name are compared; name folders", names.len());
        expansion.warnings.push(warning);
        expansion.truncated = true;
        names = names.into_iter().take(MAX_COMPARED).collect();
    }
    for path in names {
        let read = |tree: &T, entry: Option<&Entry>| entry.map(|_| tree.read(path)).transpose();
        let (before, after) = match (read(base, old.get(path)), read(head, new.get(path))) {
            (Ok(before), Ok(after)) => (before, after),
            (Err(why), _) | (_, Err(why)) => {
                expansion.warnings.push(format!("{path:?} can't be read: {why}"));
                expansion.truncated = true;
                continue;
            }
        };
        let kind = |entry: Option<&Entry>| entry.map(|entry| entry.kind);
        if before == after && kind(old.get(path)) == kind(new.get(path)) {
            continue;
        }
        let name = path.rsplit('/').next().unwrap_or_default().to_lowercase();
        if GARBAGE.contains(&&*name) {
            left_out.add(WRITTEN_BY_PROGRAMS, path);
            continue;
        }
        let is_binary =
            |bytes: &Option<Vec<u8>>| bytes.iter().flatten().take(BINARY_PROBE_BYTES).any(|byte| *byte == 0);
        if is_binary(&before) || is_binary(&after) {
            let is_text = is_text_name(path);
            left_out.add(if is_text { NUL_IN_TEXT } else { BINARY }, path);
            expansion.truncated |= is_text;
            continue;
        }
        let text = |bytes: Option<Vec<u8>>| bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let (before, after) = (text(before), text(after));
        let link =
            if kind(new.get(path)) == Some(Kind::Link) { "this is a symbolic link, and where it leads\n" } else { "" };
        let text = diff(path, before.as_deref(), after.as_deref()).map(|diff| format!("{link}{diff}"));
        let file = text.map(|text| File { path: path.clone(), text });
        match file {
            Some(file) if files.len() < MAX_FILES && fits(&file) => {
                expansion.files.push(file.path.clone());
                files.push(file);
            }
            Some(file) => {
                left_out.add(NO_ROOM, &file.path);
                expansion.truncated = true;
            }
            None => {
                left_out.add(TOO_DIFFERENT, path);
                expansion.truncated = true;
            }
        }
    }
    expansion.warnings.extend(left_out.warnings());
    Ok((expansion, files))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::testing::Commit;

    fn changed(base: &Commit, head: &Commit, paths: &[&str]) -> (Expansion, Vec<File>) {
        let paths: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
        between((base, head), "target_paths", &paths, |_| true).expect("they are compared")
    }

    #[test]
    fn what_changed_is_shown_and_nothing_else() {
        let mut base = Commit::of(&["src/same.rs", "src/gone.rs", "docs/a.md", "src/sub/x.rs"]);
        base.file("src/changed.rs", b"one\ntwo\nthree\n");
        let mut head = Commit::of(&["src/same.rs", "docs/a.md", "src/sub/x.rs", "Makefile"]);
        head.file("src/changed.rs", b"one\n2\nthree\n");
        head.file("docs/a.md", b"other");
        let (expansion, files) = changed(&base, &head, &[]);
        assert_eq!(expansion.files, ["Makefile", "docs/a.md", "src/changed.rs", "src/gone.rs"]);
        assert_eq!(
            files[2].text,
            "--- a/src/changed.rs\n+++ b/src/changed.rs\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"
        );
        assert!(files[0].text.starts_with("--- /dev/null\n+++ b/Makefile\n"), "{}", files[0].text);
        assert!(files[3].text.starts_with("--- a/src/gone.rs\n+++ /dev/null\n"), "{}", files[3].text);
        assert!(!expansion.truncated && expansion.warnings.is_empty());
        assert_eq!(changed(&base, &head, &["docs", "src/gone.rs"]).0.files, ["docs/a.md", "src/gone.rs"]);
        assert!(changed(&base, &base, &[]).1.is_empty());
    }

    #[test]
    fn what_can_not_be_shown_is_said() {
        let base = Commit::of(&["a.rs"]);
        let mut head = Commit::of(&["a.rs", "Cargo.lock", "b.rs"]);
        head.file("logo.png", b"\x89PNG\0");
        head.other("vendor", Kind::Module);
        head.file("nul.rs", b"// \0\nfn a() {}\n");
        let long: String = (0..MAX_DIFFERING + 10).map(|number| format!("{number}\n")).collect();
        head.file("long.rs", long.as_bytes());
        let (expansion, files) = changed(&base, &head, &["."]);
        assert_eq!((files.len(), expansion.truncated), (1, true));
        let all = expansion.warnings.join("\n");
        for said in [
            "binary: \"logo.png\"",
            "written by programs: \"Cargo.lock\"",
            "compared: \"vendor\"",
            "alone: \"long.rs\"",
            "text by its name: \"nul.rs\"",
        ] {
            assert!(all.contains(said), "{said} in {all}");
        }
        let (expansion, files) =
            between((&base, &head), "target_paths", &["b.rs".to_owned()], |_| false).expect("they are compared");
        assert!(files.is_empty() && expansion.truncated && expansion.warnings[0].contains("b.rs"));
    }

    #[test]
    fn a_folder_that_is_not_listed_whole_is_said() {
        let names: Vec<String> = (0..=MAX_LISTED).map(|number| format!("many/{number}.rs")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let (base, mut head) = (Commit::of(&names), Commit::of(&names));
        head.file("few/a.rs", b"new");
        let (expansion, files) = changed(&base, &head, &[]);
        assert_eq!((files.len(), expansion.truncated), (1, true));
        assert!(expansion.warnings[0].contains("\"many\" has 1000 names or more"), "{:?}", expansion.warnings);
    }

    #[test]
    fn a_line_that_changed_in_a_long_file_is_found() {
        let lines =
            |at: usize| (0..20_000).map(move |number| if number == at { "x\n".into() } else { format!("{number}\n") });
        let (mut base, mut head) = (Commit::default(), Commit::default());
        base.file("a.txt", lines(usize::MAX).collect::<String>().as_bytes());
        head.file("a.txt", lines(9999).collect::<String>().as_bytes());
        let (_, files) = changed(&base, &head, &[]);
        assert!(files[0].text.contains("-9999\n+x\n") && files[0].text.lines().count() < 30, "{}", files[0].text);
    }

    #[test]
    fn a_link_that_leads_elsewhere_is_shown_as_one() {
        let (mut base, mut head) = (Commit::default(), Commit::default());
        base.file("data", b"text");
        head.other("data", Kind::Link);
        let (_, files) = changed(&base, &head, &[]);
        assert!(files[0].text.starts_with("this is a symbolic link"), "{}", files[0].text);
    }

    #[test]
    fn a_path_that_leads_out_or_is_nowhere_is_refused() {
        let commit = Commit::of(&["a.rs"]);
        for (path, why) in [("../x", "leads out"), ("nowhere/b.rs", "in either commit")] {
            let wrong =
                between((&commit, &commit), "target_paths", &[path.to_owned()], |_| true).expect_err("it is refused");
            assert!(wrong.to_string().contains(why), "{wrong}");
        }
    }
}
