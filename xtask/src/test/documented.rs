//! That what pages name is there. A threat in SECURITY.md or tests/hostile/README.md whose test was renamed or
//! taken away is a threat without one, docs/layers.md compares what is tested, and a link leads somewhere.

#![allow(clippy::unwrap_used, reason = "in a test a panic is a result")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The hostile corpus.
const HOSTILE: &str = "host/conductor/tests/hostile";

/// The tests of every source file, by its path below the repository.
struct Tests(BTreeMap<PathBuf, BTreeSet<String>>);

impl Tests {
    fn of(repo: &Path) -> Self {
        let mut tests = BTreeMap::new();
        let mut folders = ["host", "tests", "xtask", "feature-api"].map(|folder| repo.join(folder)).to_vec();
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap().flatten() {
                let path = entry.path();
                if path.is_dir() && !path.ends_with("target") && !path.ends_with("node_modules") {
                    folders.push(path);
                } else if path.extension().is_some_and(|end| end == "rs") {
                    let found = functions(&fs::read_to_string(&path).unwrap());
                    tests.insert(path.strip_prefix(repo).unwrap().to_owned(), found);
                }
            }
        }
        Self(tests)
    }

    /// Whether a test has this name, which may leave out letters at `...`, in a file whose path ends like this; in any
    /// file if that is `None`.
    fn have(&self, file: Option<&str>, name: &str) -> bool {
        let (start, end) = name.split_once("...").unwrap_or((name, ""));
        let cut = name.contains("...");
        let same = |test: &String| if cut { test.starts_with(start) && test.ends_with(end) } else { test == name };
        self.0.iter().any(|(path, tests)| file.is_none_or(|file| path.ends_with(file)) && tests.iter().any(same))
    }
}

/// The functions of a source that are tests.
fn functions(source: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut is_test = false;
    for line in source.lines().map(str::trim) {
        if line.starts_with("#[test") || line.starts_with("#[tokio::test") {
            is_test = true;
        } else if let Some((before, rest)) = line.split_once("fn ")
            && (before.is_empty() || before == "async ")
        {
            if is_test {
                found.extend(rest.split(['(', '<']).next().map(str::to_owned));
            }
            is_test = false;
        }
    }
    found
}

/// The cells of one column of each table of a page that has it, with the number of their line.
fn column<'p>(page: &'p str, called: &str) -> Vec<(usize, &'p str)> {
    let mut at = None;
    let mut cells = Vec::new();
    for (number, line) in page.lines().enumerate() {
        let row: Vec<&str> = line.trim().trim_matches('|').split('|').map(str::trim).collect();
        if !line.starts_with('|') {
            at = None;
        } else if let Some(found) = row.iter().position(|cell| *cell == called) {
            at = Some(found);
        } else if let Some(at) = at
            && !line.starts_with("| ---")
        {
            cells.push((number + 1, row.get(at).copied().unwrap_or_default()));
        }
    }
    cells
}

/// What stands between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// What is wrong with a word that should be a test, a file or a command.
fn wrong(repo: &Path, tests: &Tests, word: &str) -> Option<String> {
    if word.starts_with("cargo ") {
        return None;
    }
    let places = ["", "tests/tests", "host/host/src", HOSTILE].map(|place| repo.join(place));
    if word.contains('/') || word.ends_with(".rs") {
        let is_there = places.iter().any(|place| place.join(word).exists());
        return (!is_there).then(|| format!("there is no {word}"));
    }
    let is_there = match word.rsplit_once("::") {
        Some((file, "*")) => {
            tests.0.iter().any(|(path, tests)| path.ends_with(format!("hostile/{file}.rs")) && !tests.is_empty())
        }
        Some((file, name)) => {
            ["hostile", "tests"].iter().any(|room| tests.have(Some(&format!("{room}/{file}.rs")), name))
        }
        None => tests.have(None, word),
    };
    (!is_there).then(|| format!("there is no test {word}"))
}

#[test]
fn every_test_that_a_page_names_is_there() {
    let repo = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let tests = Tests::of(repo);
    let mut found = Vec::new();
    let mut rows = 0;
    for (page, columns) in [
        ("SECURITY.md", ["test", "tested in", "defence"].as_slice()),
        ("tests/hostile/README.md", &["test", "what fails then"]),
    ] {
        let text = fs::read_to_string(repo.join(page)).unwrap();
        for called in columns {
            for (line, cell) in column(&text, called) {
                rows += 1;
                // Of defences only the files are looked at: constants and settings are named beside them.
                let words = || quoted(cell).filter(|word| *called != "defence" || word.ends_with(".rs"));
                found.extend(words().filter_map(|word| Some(format!("{page}:{line}: {}", wrong(repo, &tests, word)?))));
                if *called != "defence" && quoted(cell).next().is_none() {
                    found.push(format!("{page}:{line}: no test"));
                }
            }
        }
    }
    assert!(rows > 100, "{rows} rows are not what the pages have");
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

/// What is in the hostile corpus is in its list.
#[test]
fn every_hostile_case_is_listed() {
    let repo = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let list = fs::read_to_string(repo.join("tests/hostile/README.md")).unwrap();
    let tests = Tests::of(repo);
    let hostile = tests.0.iter().filter(|(path, _)| path.starts_with(HOSTILE));
    let missing: Vec<&String> = hostile.flat_map(|(_, tests)| tests).filter(|test| !list.contains(*test)).collect();
    assert!(missing.is_empty(), "not in tests/hostile/README.md: {missing:#?}");
}

/// Each case beside other mappers is a row of the page about them, and each row is a case.
#[test]
fn the_page_about_layers_has_every_case() {
    let repo = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let read = |file: &str| fs::read_to_string(repo.join(file)).unwrap();
    let (cases, page) = (read("host/engine/tests/gestures/10-other-mappers.txt"), read("docs/layers.md"));
    let is_id = |cell: &&str| cell.len() == 3 && cell[1..].bytes().all(|byte| byte.is_ascii_digit());
    let cases = cases.lines().filter_map(|line| line.strip_prefix("test \"")?.split(' ').next());
    let rows = page.lines().filter_map(|line| line.strip_prefix("| ")?.split(' ').next()).filter(is_id);
    let (cases, rows): (Vec<_>, Vec<_>) = (cases.collect(), rows.collect());
    assert_eq!(cases, rows);
    assert!(cases.len() >= 60, "only {}", cases.len());
}

/// The most words that CONTRIBUTING.md's glossary may have: more are not learned.
const MAX_WORDS: usize = 50;

/// The glossary has few words, each once, also of those in brackets, and each with its meaning and its place. That the
/// places are there is tested with the links of pages.
#[test]
fn the_glossary_has_few_words_and_each_once() {
    let repo = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let text = fs::read_to_string(repo.join("CONTRIBUTING.md")).unwrap();
    let [words, meanings, places] = ["word", "meaning", "where"].map(|called| column(&text, called));
    assert!((30..=MAX_WORDS).contains(&words.len()), "{} words", words.len());
    let mut seen = BTreeSet::new();
    for (line, cell) in &words {
        for word in cell.split(['(', ')', ',']).map(str::trim).filter(|word| !word.is_empty()) {
            assert!(seen.insert(word), "CONTRIBUTING.md:{line}: {word} is there twice");
        }
    }
    for (line, meaning) in &meanings {
        assert!(!meaning.is_empty(), "CONTRIBUTING.md:{line}: no meaning");
    }
    assert_eq!(places.len(), words.len());
    for (line, place) in &places {
        assert!(quoted(place).next().is_some(), "CONTRIBUTING.md:{line}: no place");
    }
}

/// Links of pages to files, and the places that the tables of words in CONTRIBUTING.md name.
#[test]
fn every_file_that_a_page_leads_to_is_there() {
    let repo = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut pages =
        ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"].map(|page| repo.join(page)).to_vec();
    let mut folders = vec![repo.join("docs")];
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            match path.extension() {
                Some(end) if end == "md" => pages.push(path),
                _ if path.is_dir() => folders.push(path),
                _ => {}
            }
        }
    }
    let (mut links, mut missing) = (0, Vec::new());
    for page in &pages {
        let text = fs::read_to_string(page).unwrap();
        // What readers write is no link.
        let plain = text.split("```").step_by(2).flat_map(|part| part.split('`').step_by(2));
        for part in plain {
            for link in part.split("](").skip(1).filter_map(|rest| rest.split([')', '#', ' ']).next()) {
                if !link.is_empty() && !link.contains(':') {
                    links += 1;
                    let is_there = page.parent().unwrap().join(link).exists();
                    missing.extend((!is_there).then(|| format!("{}: {link}", page.display())));
                }
            }
        }
    }
    let text = fs::read_to_string(repo.join("CONTRIBUTING.md")).unwrap();
    for (line, cell) in ["where", "start at"].into_iter().flat_map(|called| column(&text, called)) {
        for place in quoted(cell) {
            links += 1;
            let is_there = repo.join(place).exists();
            missing.extend((!is_there).then(|| format!("CONTRIBUTING.md:{line}: {place}")));
        }
    }
    assert!(links > 150, "{links} links are not what the pages have");
    assert!(missing.is_empty(), "\n{}", missing.join("\n"));
}
