//! Layers: which crates and rooms of the source import which others, held against one table in
//! `docs/architecture.md`.
//!
//! A room is a folder or a file right in `host/src`. The table lists crates and rooms from the lowest to the highest,
//! each with what it may import. The check fails on an import that is not allowed, on an allowed one that nobody uses,
//! and on an allowed one that leads upward; what leads only downward has no circle.

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
/// The crate whose folders and files are rooms.
const HOST: &str = "host/src";
/// How the crates of the workspace are called in sources.
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
    let (mut text, mut arrows) = (format!("{:<16} {:>6}  imports\n", "part", "code"), 0);
    for row in &table {
        let imports: Vec<&str> = row.imports.iter().map(String::as_str).collect();
        arrows += imports.len();
        text += &format!("{:<16} {:>6}  {}\n", row.name, parts[&row.name].code, imports.join(" "));
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
    let host = root.join(HOST);
    let mut places = BTreeMap::new();
    for entry in fs::read_dir(&host)? {
        let path = entry?.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if !matches!(name.as_str(), "lib" | "main") {
            places.entry(name).or_insert_with(Vec::new).push(path);
        }
    }
    for entry in fs::read_dir(root.join("host"))? {
        let folder = entry?.path();
        if folder.join("Cargo.toml").is_file() {
            let name = folder.file_name().unwrap_or_default().to_string_lossy().replace('-', "_");
            places.entry(name).or_insert_with(Vec::new).push(folder.join("src"));
        }
    }
    let names: BTreeSet<String> = places.keys().cloned().collect();
    let mut parts = BTreeMap::new();
    for (name, paths) in places {
        let mut part = Part::default();
        let in_host = paths.iter().all(|path| path.starts_with(&host));
        let mut todo = paths;
        while let Some(path) = todo.pop() {
            let stem = path.file_stem().unwrap_or_default();
            if path.is_dir() {
                todo.extend(
                    fs::read_dir(&path)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>()?,
                );
            } else if path.extension().is_some_and(|end| end == "rs") && !is_test(&path, root) && stem != "tests" {
                let source = fs::read_to_string(&path)?;
                part.code += code_lines(&source);
                let tokens = source.parse().map_err(|error| anyhow!("{}: {error}", path.display()))?;
                let mut found = BTreeSet::new();
                imports(tokens, in_host, &mut found);
                for import in found {
                    if import != name && names.contains(&import) {
                        let files = part.imports.entry(import).or_default();
                        files.insert(path.strip_prefix(root).unwrap_or(&path).to_owned());
                    }
                }
            }
        }
        parts.insert(name, part);
    }
    Ok(parts)
}

/// Whether a file lies in a folder of tests.
fn is_test(path: &Path, root: &Path) -> bool {
    path.strip_prefix(root).unwrap_or(path).iter().any(|step| step == "tests")
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

/// The first steps of paths that lead out of a room or a crate: `x` of `crate::x`, of `crate::{x, y}` and of
/// `conductor_x::`.
fn imports(tokens: TokenStream, in_host: bool, into: &mut BTreeSet<String>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut at = 0;
    while at < tokens.len() {
        if is_test_item(&tokens[at..]) {
            at = end_of_item(&tokens, at + 2);
            continue;
        }
        match &tokens[at] {
            TokenTree::Group(group) => imports(group.stream(), in_host, into),
            TokenTree::Ident(word) if leads_on(&tokens[at + 1..]) => {
                let word = word.to_string();
                if let Some(name) = word.strip_prefix(PREFIX) {
                    into.insert(name.to_owned());
                } else if word == "crate" && in_host {
                    first_steps(tokens.get(at + 3), into);
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

/// The names right after `crate::`.
fn first_steps(next: Option<&TokenTree>, into: &mut BTreeSet<String>) {
    match next {
        Some(TokenTree::Ident(name)) => _ = into.insert(name.to_string()),
        Some(TokenTree::Group(group)) => {
            let mut first = true;
            for token in group.stream() {
                match &token {
                    TokenTree::Ident(name) if first => _ = into.insert(name.to_string()),
                    _ => {}
                }
                first = matches!(&token, TokenTree::Punct(comma) if comma.as_char() == ',');
            }
        }
        _ => {}
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

    fn found(source: &str) -> Vec<String> {
        let mut found = BTreeSet::new();
        imports(source.parse().unwrap(), true, &mut found);
        found.into_iter().collect()
    }

    #[test]
    fn imports_are_found_however_they_are_written() {
        let source = "//! [`crate::comment`]\nuse crate::one::{self, Inner};\nuse crate::{two, three::Thing};\n\
                      fn f() { let x: conductor_engine::Event = vec![crate::four::make(\"crate::text\")]; }\n\
                      pub(crate) fn g() {}\n#[cfg(test)]\nuse crate::five;\n#[cfg(test)]\nmod tests { use crate::six; }\n\
                      #[cfg(unix)] use crate::seven;";
        assert_eq!(found(source), ["engine", "four", "one", "seven", "three", "two"]);
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
