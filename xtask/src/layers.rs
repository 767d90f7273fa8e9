//! Layers: which crates and rooms of the source import which others, held against one table in
//! `docs/architecture.md`.
//!
//! A crate is a folder of `host/`. Some have rooms: a room is a folder or a file right in the crate's `src`, and is called
//! `crate::room`; the crate's own name then stands for its `lib.rs`. The table lists crates and rooms from the lowest to
//! the highest, each with what it may import. The check fails on an import that is not allowed, on an allowed one that
//! is unused, and on an allowed one that leads upward; imports that all lead downward have no cycle.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, Result, anyhow, bail};
use proc_macro2::{Delimiter, TokenStream, TokenTree};

use crate::repo::Repo;

const PAGE: &str = "docs/architecture.md";
/// The heading above the table.
const HEADING: &str = "## Layers";
/// The folder whose folders are crates.
const CRATES: &str = "host";
/// The crates whose folders and files are rooms.
const WITH_ROOMS: [&str; 3] = ["rules", "host", "conductor"];
/// How the crates of the workspace are called in sources; the program's is called `conductor` alone.
const PREFIX: &str = "conductor_";

/// Check who imports whom in the source against the table in docs/architecture.md, and print it with code lines.
#[derive(clap::Args)]
pub struct Args {}

/// The chore.
pub fn run(repo: &Repo, _: Args) -> Result<ExitCode> {
    let report = check(repo.root())?;
    println!("{report}");
    Ok(ExitCode::SUCCESS)
}

/// Compares the source of the repository in `root` with its table, and returns a table of what there is.
///
/// # Errors
/// Every import that is not allowed, and everything else that does not agree.
pub fn check(root: &Path) -> Result<String> {
    let page = fs::read_to_string(root.join(PAGE)).with_context(|| format!("cannot read {PAGE}"))?;
    let table = table(&page)?;
    let parts = parts(root)?;
    let wrong = disagreements(&table, &parts);
    if !wrong.is_empty() {
        bail!("the source and the table of layers in {PAGE} do not agree:\n{}", wrong.join("\n"));
    }
    let (mut text, mut arrows) = (format!("{:<24} {:>6}  imports\n", "part", "code"), 0);
    for row in &table {
        let imports: Vec<&str> = row.imports.iter().map(String::as_str).collect();
        arrows += imports.len();
        text += &format!("{:<24} {:>6}  {}\n", row.name, parts[&row.name].code, imports.join(" "));
    }
    for krate in WITH_ROOMS {
        let of_it = |name: &str| name == krate || name.strip_prefix(krate).is_some_and(|room| room.starts_with("::"));
        let code: usize = parts.iter().filter(|(name, _)| of_it(name)).map(|(_, part)| part.code).sum();
        text += &format!("{krate:<24} {code:>6}  in all\n");
    }
    let code: usize = parts.values().map(|part| part.code).sum();
    Ok(format!("{text}{} parts, {code} lines of code, {arrows} imports, 0 upward arrows, 0 circles", table.len()))
}

/// A row of the table.
struct Row {
    name: String,
    imports: BTreeSet<String>,
}

/// The rows below the heading: `| \`name\` | \`import\`, \`import\` | what it is |`.
fn table(page: &str) -> Result<Vec<Row>> {
    let (_, section) = page.split_once(HEADING).with_context(|| format!("{PAGE} has no heading {HEADING:?}"))?;
    let lines = section.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    let words = |cell: &str| -> BTreeSet<String> { cell.split('`').skip(1).step_by(2).map(str::to_owned).collect() };
    let rows = lines.skip(2).map(|line| {
        let mut cells = line.split('|').skip(1);
        let (name, imports) = (cells.next().unwrap_or_default(), cells.next().unwrap_or_default());
        let name = words(name).pop_first().with_context(|| format!("{PAGE}: no name in {line:?}"))?;
        Ok(Row { name, imports: words(imports) })
    });
    rows.collect()
}

/// A crate or a room as its source is.
#[derive(Default)]
struct Part {
    /// What it imports, each with the files that do.
    imports: BTreeMap<String, BTreeSet<PathBuf>>,
    /// Lines that are neither blank, comments nor tests.
    code: usize,
}

/// All crates of the workspace that others of it may import, and all rooms.
fn parts(root: &Path) -> Result<BTreeMap<String, Part>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(root.join(CRATES))? {
        let folder = entry?.path();
        if folder.join("Cargo.toml").is_file() {
            let name = folder.file_name().unwrap_or_default().to_string_lossy().replace('-', "_");
            sources(&folder.join("src"), &mut |path, inner| files.push(Source::new(&name, path, inner)))?;
        }
    }
    let names: BTreeSet<String> = files.iter().map(|file| file.part.clone()).collect();
    let mut parts: BTreeMap<String, Part> = BTreeMap::new();
    for file in files {
        let part = parts.entry(file.part.clone()).or_default();
        let source = fs::read_to_string(&file.path)?;
        part.code += code_lines(&source);
        let tokens = source.parse().map_err(|error| anyhow!("{}: {error}", file.path.display()))?;
        let mut found = BTreeSet::new();
        imports(tokens, &file, &mut found);
        for path in found {
            let Some(import) = meant(&path, &names).filter(|import| *import != file.part) else { continue };
            let files = part.imports.entry(import).or_default();
            files.insert(file.path.strip_prefix(root).unwrap_or(&file.path).to_owned());
        }
    }
    Ok(parts)
}

/// A source file, and what paths in it begin at.
struct Source {
    path: PathBuf,
    /// The crate that it belongs to.
    krate: String,
    /// The crate or the room.
    part: String,
    /// How many `super::` lead from it to the top of its crate; `None` if its crate has no rooms.
    depth: Option<usize>,
}

impl Source {
    /// The file at `path` of a crate, which lies at `inner` in the crate's `src`.
    fn new(krate: &str, path: PathBuf, inner: &Path) -> Self {
        let mut steps: Vec<_> =
            inner.with_extension("").iter().map(|step| step.to_string_lossy().into_owned()).collect();
        steps.pop_if(|last| last == "mod");
        let krate = krate.to_owned();
        if !WITH_ROOMS.contains(&krate.as_str()) {
            return Self { path, part: krate.clone(), krate, depth: None };
        }
        let is_top = matches!(steps.as_slice(), [only] if only == "lib" || only == "main");
        let part = if is_top { krate.clone() } else { format!("{krate}::{}", steps[0]) };
        Self { path, part, krate, depth: Some(if is_top { 0 } else { steps.len() }) }
    }
}

/// Calls `each` with every source file below `folder` that is not a test, and where it lies in there.
fn sources(folder: &Path, each: &mut impl FnMut(PathBuf, &Path)) -> Result<()> {
    let mut todo = vec![folder.to_owned()];
    while let Some(path) = todo.pop() {
        let inner = path.strip_prefix(folder).unwrap_or(&path).to_owned();
        if inner.iter().any(|step| Path::new(step).file_stem().is_some_and(|stem| stem == "tests")) {
            continue;
        }
        if path.is_dir() {
            todo.extend(
                fs::read_dir(&path)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>()?,
            );
        } else if path.extension().is_some_and(|end| end == "rs") {
            each(path, &inner);
        }
    }
    Ok(())
}

/// The part that a path of a crate and what comes next leads to: the room if there is one, else the crate.
fn meant(path: &(String, String), names: &BTreeSet<String>) -> Option<String> {
    let room = format!("{}::{}", path.0, path.1);
    [room, path.0.clone()].into_iter().find(|name| names.contains(name))
}

/// What does not agree, a line each.
fn disagreements(table: &[Row], parts: &BTreeMap<String, Part>) -> Vec<String> {
    let mut wrong = Vec::new();
    let place = |name: &str| table.iter().position(|row| row.name == name);
    for (at, row) in table.iter().enumerate() {
        if place(&row.name) != Some(at) {
            wrong.push(format!("  `{}` has two rows", row.name));
        }
        let Some(part) = parts.get(&row.name) else {
            wrong.push(format!("  `{}` has a row and no source", row.name));
            continue;
        };
        for import in &row.imports {
            if place(import).is_none_or(|below| below >= at) {
                wrong.push(format!(
                    "  the row of `{}` allows `{import}`, which is no row above it: an upward arrow",
                    row.name
                ));
            } else if !part.imports.contains_key(import) {
                wrong.push(format!("  the row of `{}` allows `{import}`, which it does not import", row.name));
            }
        }
        for (import, files) in part.imports.iter().filter(|(import, _)| !row.imports.contains(*import)) {
            let files: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
            let upward = if place(import).is_some_and(|above| above > at) { " (an upward arrow)" } else { "" };
            wrong.push(format!(
                "  `{}` imports `{import}`, which its row does not allow{upward}: {}",
                row.name,
                files.join(", ")
            ));
        }
    }
    let unlisted = parts.keys().filter(|name| place(name).is_none());
    wrong.extend(unlisted.map(|name| format!("  `{name}` has no row")));
    wrong
}

/// Lines of a source that are neither blank nor comments nor tests; unit tests stand at the end of a file.
fn code_lines(source: &str) -> usize {
    let code = source.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    code.lines().map(str::trim_start).filter(|line| !line.is_empty() && !line.starts_with("//")).count()
}

/// The first two steps of paths that lead out of a room or a crate: (`this`, `x`) of `crate::x`, of `crate::{x, y}` and
/// of as many `super::x` as lead to the top; (`x`, `y`) of `conductor_x::y`; (`x`, ``) of `conductor_x` alone.
fn imports(tokens: TokenStream, file: &Source, into: &mut BTreeSet<(String, String)>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut at = 0;
    while at < tokens.len() {
        if is_test_item(&tokens[at..]) {
            at = end_of_item(&tokens, at + 2);
            continue;
        }
        match &tokens[at] {
            TokenTree::Group(group) => imports(group.stream(), file, into),
            TokenTree::Ident(word) => {
                let word = word.to_string();
                let after = &tokens[at + 1..];
                if let Some(name) = word.strip_prefix(PREFIX) {
                    first_steps(name, after, into);
                } else if word == "crate" && leads_on(after) && file.depth.is_some() {
                    first_steps(&file.krate, after, into);
                } else if word == "super" && leads_on(after) {
                    let mut ups = 1;
                    while matches!(tokens.get(at + 3 * ups), Some(TokenTree::Ident(word)) if word == "super") {
                        ups += 1;
                    }
                    let after = &tokens[at + 3 * ups - 2..];
                    if file.depth == Some(ups) && leads_on(after) {
                        first_steps(&file.krate, after, into);
                    }
                    at += 3 * ups;
                    continue;
                }
            }
            _ => {}
        }
        at += 1;
    }
}

/// Whether `::` comes next.
fn leads_on(tokens: &[TokenTree]) -> bool {
    matches!(tokens, [TokenTree::Punct(one), TokenTree::Punct(other), ..] if one.as_char() == ':' && other.as_char() == ':')
}

/// The crate with each of the names right after its own; with an empty name if it stands alone.
fn first_steps(krate: &str, after: &[TokenTree], into: &mut BTreeSet<(String, String)>) {
    let mut add = |name: String| _ = into.insert((krate.to_owned(), name));
    match after.get(2) {
        Some(TokenTree::Ident(name)) if leads_on(after) => add(name.to_string()),
        Some(TokenTree::Group(group)) if leads_on(after) => {
            let mut first = true;
            for token in group.stream() {
                match &token {
                    TokenTree::Ident(name) if first => add(name.to_string()),
                    _ => {}
                }
                first = matches!(&token, TokenTree::Punct(comma) if comma.as_char() == ',');
            }
        }
        _ => add(String::new()),
    }
}

/// Whether `#[cfg(test)]` comes next.
fn is_test_item(tokens: &[TokenTree]) -> bool {
    matches!(tokens, [TokenTree::Punct(hash), TokenTree::Group(cfg), ..]
        if hash.as_char() == '#' && cfg.stream().to_string().replace(' ', "") == "cfg(test)")
}

/// Where the item at `at` is over: behind its `;` or its braces.
fn end_of_item(tokens: &[TokenTree], at: usize) -> usize {
    let ends = |token: &TokenTree| match token {
        TokenTree::Punct(mark) => mark.as_char() == ';',
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        _ => false,
    };
    let length = tokens.get(at..).and_then(|rest| rest.iter().position(ends));
    length.map_or(tokens.len(), |length| at + length + 1)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "in a test a panic is a result")]

    use super::*;

    fn found(source: &str, file: &Source) -> Vec<String> {
        let mut found = BTreeSet::new();
        imports(source.parse().unwrap(), file, &mut found);
        found.into_iter().map(|(krate, next)| format!("{krate} {next}")).collect()
    }

    fn file(krate: &str, inner: &str) -> Source {
        Source::new(krate, PathBuf::from(inner), Path::new(inner))
    }

    #[test]
    fn imports_are_found_however_they_are_written() {
        let source = "//! [`crate::comment`]\nuse crate::one::{self, Inner};\nuse crate::{two, three::Thing};\n\
                      fn f() { let x: conductor_engine::Event = vec![crate::four::make(\"crate::text\")]; }\n\
                      pub(crate) fn g() {}\n#[cfg(test)]\nuse crate::five;\n#[cfg(test)]\nmod tests { use crate::six; }\n\
                      #[cfg(unix)] use crate::seven;\nuse conductor_net as net;\n\
                      use super::beside;\nuse super::super::eight::{self};\npub(in super::super) fn h() {}";
        let all =
            ["engine Event", "host eight", "host four", "host one", "host seven", "host three", "host two", "net "];
        assert_eq!(found(source, &file("host", "rules/inner.rs")), all);
        // Two `super`s lead from there to no top, and a crate without rooms has no imports of its own.
        assert!(!found(source, &file("host", "rules/deep/inner.rs")).contains(&all[1].to_owned()));
        assert_eq!(found(source, &file("engine", "rules/inner.rs")), [all[0], all[7]]);
    }

    #[test]
    fn a_file_belongs_to_a_room_or_to_its_crate() {
        let part = |krate: &str, inner: &str| file(krate, inner).part;
        assert_eq!(part("host", "rules/mod.rs"), "host::rules");
        assert_eq!(part("host", "environment.rs"), "host::environment");
        assert_eq!(part("host", "lib.rs"), "host");
        assert_eq!(part("engine", "rules/mod.rs"), "engine");
        let names = BTreeSet::from(["host".to_owned(), "host::rules".to_owned()]);
        let meant = |krate: &str, next: &str| meant(&(krate.to_owned(), next.to_owned()), &names).unwrap_or_default();
        assert_eq!(meant("host", "rules"), "host::rules");
        assert_eq!(meant("host", "Host"), "host");
        assert_eq!(meant("anything", "else"), "");
    }

    fn part(imports: &[&str]) -> Part {
        let files = |name: &&str| ((*name).to_owned(), BTreeSet::from([PathBuf::from("file.rs")]));
        Part { imports: imports.iter().map(files).collect(), code: 1 }
    }

    #[test]
    fn an_upward_arrow_a_circle_and_what_is_not_so_fail() {
        let page =
            "## Layers\n\nText.\n\n| part | imports | what |\n|---|---|---|\n| `low` | | x |\n| `high` | `low` | x |\n";
        let rows = table(page).unwrap();
        let wrong = |low: &[&str], high: &[&str]| {
            disagreements(&rows, &BTreeMap::from([("low".to_owned(), part(low)), ("high".to_owned(), part(high))]))
                .join("\n")
        };
        assert_eq!(wrong(&[], &["low"]), "");
        assert!(
            wrong(&["high"], &["low"])
                .contains("`low` imports `high`, which its row does not allow (an upward arrow): file.rs")
        );
        assert!(wrong(&[], &[]).contains("the row of `high` allows `low`, which it does not import"));
        let circle = table(&page.replace("| `low` | |", "| `low` | `high` |")).unwrap();
        let parts = BTreeMap::from([("low".to_owned(), part(&["high"])), ("high".to_owned(), part(&["low"]))]);
        assert!(disagreements(&circle, &parts).join("\n").contains("no row above it: an upward arrow"));
        let unlisted = BTreeMap::from([("new".to_owned(), part(&[]))]);
        assert!(disagreements(&[], &unlisted).join("\n").contains("`new` has no row"));
    }
}
