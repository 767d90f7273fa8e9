//! Layers: which crates and rooms of the source import which others, held against one table in
//! `docs/architecture.md`.
//!
//! A crate is a folder of `host/`. Some have rooms: a room is a folder or a file right in the crate's `src`, and is called
//! `crate::room`; the crate's own name then stands for its `lib.rs`. The table lists crates and rooms from the lowest to
//! the highest, each with what it may import. The check fails on an import that is not allowed, on an allowed one that
//! is unused, and on an allowed one that leads upward. Crates whose rooms are in no table have rooms, too: what these import
//! of each other must have no circle. What a room takes through a name that its `lib.rs` re-exports is not seen there.
//!
//! Crates have a size: so many code lines for the engine, the sandbox and the host together, and for any other but the
//! program's.

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
/// The crates whose rooms are in the table.
const WITH_ROOMS: [&str; 3] = ["rules", "host", "conductor"];
/// The crates that have one limit together.
const CORE: [&str; 3] = ["engine", "sandbox", "host"];
/// Code lines of [`CORE`] together, at most.
const MAX_CORE_LINES: usize = 17_500;
/// Code lines of any other crate but the program's, at most.
const MAX_CRATE_LINES: usize = 5_000;
/// The program's crate.
const PROGRAM: &str = "conductor";
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
    report(&table(&page)?, &found(root)?)
}

/// Compares a table with what was found.
fn report(table: &[Row], Found { parts, rooms }: &Found) -> Result<String> {
    let in_table = circles(parts.iter().map(|(name, part)| (name, &part.imports)));
    let beside = circles(rooms);
    let sizes = sizes(parts);
    let mut wrong = disagreements(table, parts);
    wrong.extend(in_table.iter().map(|circle| shown(circle, |name| parts.get(name).map(|part| &part.imports))));
    wrong.extend(beside.iter().map(|circle| shown(circle, |name| rooms.get(name))));
    wrong.extend(too_large(&sizes));
    if !wrong.is_empty() {
        bail!("the source and the layers in {PAGE} do not agree:\n{}", wrong.join("\n"));
    }
    let (mut text, mut arrows) = (format!("{:<24} {:>6}  imports\n", "part", "code"), 0);
    for row in table {
        let imports: Vec<&str> = row.imports.iter().map(String::as_str).collect();
        arrows += imports.len();
        text += &format!("{:<24} {:>6}  {}\n", row.name, parts[&row.name].code, imports.join(" "));
    }
    for krate in WITH_ROOMS {
        text += &format!("{krate:<24} {:>6}  in all\n", sizes.get(krate).copied().unwrap_or_default());
    }
    text += &format!("{:<24} {:>6}  in all, of {MAX_CORE_LINES}\n", CORE.join(" + "), core(&sizes));
    let (code, upward): (usize, usize) = (sizes.values().sum(), upward(table, parts));
    text += &format!("{} parts and {} rooms beside them, {code} lines of code, ", table.len(), rooms.len());
    text += &format!("{arrows} imports, {upward} upward arrows, {} circles", in_table.len() + beside.len());
    Ok(text)
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

/// What a crate or a room imports, each with the files that do.
type Imports = BTreeMap<String, BTreeSet<PathBuf>>;

/// A crate or a room as its source is.
#[derive(Default)]
struct Part {
    imports: Imports,
    /// Lines that are neither blank, comments nor tests.
    code: usize,
}

/// What there is in the source.
struct Found {
    /// All crates of the workspace that others of it may import, and the rooms of those [`WITH_ROOMS`].
    parts: BTreeMap<String, Part>,
    /// The rooms of all other crates, and what each imports of those beside it.
    rooms: BTreeMap<String, Imports>,
}

/// Reads the source.
fn found(root: &Path) -> Result<Found> {
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
    let beside = files.iter().filter(|file| file.part == file.krate).filter_map(|file| file.room.clone());
    let mut rooms: BTreeMap<String, Imports> = beside.map(|room| (room, Imports::new())).collect();
    for file in files {
        let part = parts.entry(file.part.clone()).or_default();
        let source = fs::read_to_string(&file.path)?;
        part.code += code_lines(&source);
        let tokens = source.parse().map_err(|error| anyhow!("{}: {error}", file.path.display()))?;
        let mut found = BTreeSet::new();
        imports(tokens, &file, &mut found);
        let inside = file.path.strip_prefix(root).unwrap_or(&file.path);
        for path in found {
            let import = format!("{}::{}", path.0, path.1);
            if let Some(room) = file.room.as_ref().filter(|room| **room != import)
                && rooms.contains_key(&import)
                && let Some(imports) = rooms.get_mut(room)
            {
                imports.entry(import).or_default().insert(inside.to_owned());
            }
            let Some(import) = meant(&path, &names).filter(|import| *import != file.part) else { continue };
            part.imports.entry(import).or_default().insert(inside.to_owned());
        }
    }
    Ok(Found { parts, rooms })
}

/// A source file, and what paths in it begin at.
struct Source {
    path: PathBuf,
    /// The crate that it belongs to.
    krate: String,
    /// The room. `None` if it is the top of its crate.
    room: Option<String>,
    /// The room if those of its crate are in the table, else the crate.
    part: String,
    /// How many `super::` lead from it to the top of its crate.
    depth: usize,
}

impl Source {
    /// The file at `path` of a crate, which lies at `inner` in the crate's `src`.
    fn new(krate: &str, path: PathBuf, inner: &Path) -> Self {
        let mut steps: Vec<_> =
            inner.with_extension("").iter().map(|step| step.to_string_lossy().into_owned()).collect();
        steps.pop_if(|last| last == "mod");
        let is_top = matches!(steps.as_slice(), [only] if only == "lib" || only == "main");
        let room = (!is_top).then(|| format!("{krate}::{}", steps[0]));
        let part = room.clone().filter(|_| WITH_ROOMS.contains(&krate)).unwrap_or_else(|| krate.to_owned());
        Self { path, krate: krate.to_owned(), room, part, depth: if is_top { 0 } else { steps.len() } }
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

/// Where a name stands in the table.
fn place(table: &[Row], name: &str) -> Option<usize> {
    table.iter().position(|row| row.name == name)
}

/// How many imports lead to a row that is not above.
fn upward(table: &[Row], parts: &BTreeMap<String, Part>) -> usize {
    let lead_up = |(at, row): (usize, &Row)| {
        let imports = parts.get(&row.name).into_iter().flat_map(|part| part.imports.keys());
        imports.filter(|import| place(table, import).is_some_and(|other| other >= at)).count()
    };
    table.iter().enumerate().map(lead_up).sum()
}

/// The circles of what imports what: sets of names of which each leads to all of its set.
fn circles<'f>(found: impl IntoIterator<Item = (&'f String, &'f Imports)>) -> BTreeSet<BTreeSet<String>> {
    let found: BTreeMap<&str, &Imports> = found.into_iter().map(|(name, imports)| (name.as_str(), imports)).collect();
    let lead_to: BTreeMap<&str, BTreeSet<&str>> = found.keys().map(|&name| (name, reached(&found, name))).collect();
    let mut circles = BTreeSet::new();
    for (name, others) in &lead_to {
        let leads_back = |other: &&&str| lead_to.get(**other).is_some_and(|reached| reached.contains(*name));
        let circle: BTreeSet<String> = others.iter().filter(leads_back).map(|other| (*other).to_owned()).collect();
        if !circle.is_empty() {
            circles.insert(circle);
        }
    }
    circles
}

/// All names that one leads to.
fn reached<'f>(found: &BTreeMap<&'f str, &'f Imports>, name: &'f str) -> BTreeSet<&'f str> {
    let (mut reached, mut todo) = (BTreeSet::new(), vec![name]);
    while let Some(name) = todo.pop() {
        let Some(&imports) = found.get(name) else { continue };
        for import in imports.keys().map(String::as_str) {
            if reached.insert(import) {
                todo.push(import);
            }
        }
    }
    reached
}

/// A circle with its imports.
fn shown<'f>(circle: &BTreeSet<String>, found: impl Fn(&str) -> Option<&'f Imports>) -> String {
    let names: Vec<_> = circle.iter().map(|name| format!("`{name}`")).collect();
    let mut text = format!("  a circle: {}", names.join(", "));
    for name in circle {
        let imports = found(name).into_iter().flatten().filter(|(import, _)| circle.contains(*import));
        imports.for_each(|(import, files)| text += &format!("\n    `{name}` imports `{import}`: {}", listed(files)));
    }
    text
}

fn listed(files: &BTreeSet<PathBuf>) -> String {
    files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(", ")
}

/// The crate that a part or a room belongs to.
fn crate_of(name: &str) -> &str {
    name.split_once("::").map_or(name, |(krate, _)| krate)
}

/// The code lines of each crate.
fn sizes(parts: &BTreeMap<String, Part>) -> BTreeMap<&str, usize> {
    let mut sizes = BTreeMap::new();
    for (name, part) in parts {
        *sizes.entry(crate_of(name)).or_default() += part.code;
    }
    sizes
}

/// The code lines of [`CORE`] together.
fn core(sizes: &BTreeMap<&str, usize>) -> usize {
    CORE.iter().filter_map(|krate| sizes.get(krate)).sum()
}

/// Which crates have too many code lines, a line each.
fn too_large(sizes: &BTreeMap<&str, usize>) -> Vec<String> {
    let mut wrong = Vec::new();
    let core = core(sizes);
    if core > MAX_CORE_LINES {
        let each = CORE.map(|krate| format!("`{krate}` {}", sizes.get(krate).copied().unwrap_or_default()));
        wrong.push(format!("  {} code lines are {core} together, and {MAX_CORE_LINES} are allowed", each.join(" + ")));
    }
    let has_limit = |krate: &str| krate != PROGRAM && !CORE.contains(&krate);
    for (krate, lines) in sizes.iter().filter(|(krate, lines)| has_limit(krate) && **lines > MAX_CRATE_LINES) {
        wrong.push(format!("  `{krate}` has {lines} code lines, and {MAX_CRATE_LINES} are allowed"));
    }
    wrong
}

/// What does not agree, a line each.
fn disagreements(table: &[Row], parts: &BTreeMap<String, Part>) -> Vec<String> {
    let mut wrong = Vec::new();
    let place = |name: &str| place(table, name);
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
            let upward = if place(import).is_some_and(|above| above > at) { " (an upward arrow)" } else { "" };
            wrong.push(format!(
                "  `{}` imports `{import}`, which its row does not allow{upward}: {}",
                row.name,
                listed(files)
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
                } else if word == "crate" && leads_on(after) {
                    first_steps(&file.krate, after, into);
                } else if word == "super" && leads_on(after) {
                    let mut ups = 1;
                    while matches!(tokens.get(at + 3 * ups), Some(TokenTree::Ident(word)) if word == "super") {
                        ups += 1;
                    }
                    let after = &tokens[at + 3 * ups - 2..];
                    if file.depth == ups && leads_on(after) {
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
        // Two `super`s lead from there to no top.
        assert!(!found(source, &file("host", "rules/deep/inner.rs")).contains(&all[1].to_owned()));
    }

    #[test]
    fn a_file_belongs_to_a_room_or_to_its_crate() {
        let part = |krate: &str, inner: &str| file(krate, inner).part;
        assert_eq!(part("host", "rules/mod.rs"), "host::rules");
        assert_eq!(part("host", "environment.rs"), "host::environment");
        assert_eq!(part("host", "lib.rs"), "host");
        assert_eq!(part("engine", "rules/mod.rs"), "engine");
        let room = |krate: &str, inner: &str| file(krate, inner).room.unwrap_or_default();
        assert_eq!(room("engine", "rules/deep/inner.rs"), "engine::rules");
        assert_eq!(room("engine", "lib.rs"), "");
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
        assert_eq!(upward(&circle, &parts), 1);
        let unlisted = BTreeMap::from([("new".to_owned(), part(&[]))]);
        assert!(disagreements(&[], &unlisted).join("\n").contains("`new` has no row"));
    }

    /// What a report says of these parts, each with its imports and code lines, whose table allows all of it, and of rooms
    /// that are in no table.
    fn reported(parts: &[(&str, &[&str], usize)], rooms: &[(&str, &[&str])]) -> String {
        let row = |(name, imports, _): &(&str, &[&str], usize)| Row {
            name: (*name).to_owned(),
            imports: imports.iter().map(|import| (*import).to_owned()).collect(),
        };
        let table: Vec<Row> = parts.iter().map(row).collect();
        let parts =
            parts.iter().map(|(name, imports, code)| ((*name).to_owned(), Part { code: *code, ..part(imports) }));
        let rooms = rooms.iter().map(|(name, imports)| ((*name).to_owned(), part(imports).imports));
        let found = Found { parts: parts.collect(), rooms: rooms.collect() };
        report(&table, &found).unwrap_or_else(|error| error.to_string())
    }

    #[test]
    fn a_circle_between_rooms_fails_and_circles_are_counted() {
        let [low, high, top]: [(&str, &[&str]); 3] =
            [("api::low", &[]), ("api::high", &["api::low"]), ("api::top", &["api::high"])];
        let api: [(&str, &[&str], usize); 1] = [("api", &[], 1)];
        let text = reported(&api, &[low, high, top]);
        assert!(text.ends_with("0 upward arrows, 0 circles"), "{text}");
        let text = reported(&api, &[("api::low", &["api::top"]), high, top]);
        assert!(text.contains("a circle: `api::high`, `api::low`, `api::top`\n"), "{text}");
        assert!(text.contains("`api::low` imports `api::top`: file.rs"), "{text}");
        // Whichever crate the rooms are of.
        for rooms in [["config::one", "config::two"], ["engine::one", "engine::two"], ["sandbox::one", "sandbox::two"]]
        {
            let text = reported(&api, &[(rooms[0], &rooms[1..]), (rooms[1], &rooms[..1])]);
            assert!(text.contains(&format!("a circle: `{}`, `{}`\n", rooms[0], rooms[1])), "{text}");
        }
        // Of the table, too, whichever way its rows are.
        let text = reported(&[("low", &["high"], 1), ("high", &["low"], 1)], &[]);
        assert!(text.contains("a circle: `high`, `low`\n"), "{text}");
        // One that leads into a circle is not part of it, and two circles are two.
        let (one, other) = (part(&["b", "c"]).imports, part(&["a"]).imports);
        let names = ["a", "b", "c", "d", "e"].map(str::to_owned);
        let (to_e, to_d) = (part(&["e"]).imports, part(&["d"]).imports);
        let all = names.iter().zip([&one, &other, &to_d, &to_e, &to_d]);
        let found: Vec<Vec<String>> = circles(all).into_iter().map(|circle| circle.into_iter().collect()).collect();
        assert_eq!(found, [["a", "b"], ["d", "e"]]);
    }

    #[test]
    fn a_crate_that_is_too_large_fails() {
        let of = |sandbox: usize, api: usize| {
            let parts: [(&str, &[&str], usize); 6] = [
                ("engine", &[], 9_000 - 10),
                ("sandbox", &[], sandbox),
                ("host::host", &[], 7),
                ("host", &[], 3),
                ("api", &[], api),
                ("conductor", &[], 4 * MAX_CRATE_LINES),
            ];
            reported(&parts, &[])
        };
        let most = MAX_CORE_LINES - 9_000;
        let text = of(most, MAX_CRATE_LINES);
        assert!(text.contains("17500  in all, of 17500\n"), "{text}");
        let text = of(most + 1, MAX_CRATE_LINES);
        assert!(text.contains("code lines are 17501 together, and 17500 are allowed"), "{text}");
        let text = of(most, MAX_CRATE_LINES + 1);
        assert!(text.contains("`api` has 5001 code lines, and 5000 are allowed"), "{text}");
    }
}
