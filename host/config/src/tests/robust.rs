//! Any text is either read or rejected, and every place in an error can be shown.

use proptest::prelude::*;

use super::super::*;
use super::EVERYTHING;

/// Reads a text, and shows what is wrong with it in every way there is.
fn shown(text: &str) -> Result<(), TestCaseError> {
    if let Err(wrong) = parse(text, "config.toml") {
        prop_assert!(wrong.count(Severity::Error) > 0);
        for diagnostic in wrong.iter() {
            prop_assert!(diagnostic.place.start <= diagnostic.place.end);
            prop_assert!(text.get(diagnostic.place.clone()).is_some());
        }
        prop_assert!(wrong.render(true).contains(" in config.toml"));
        prop_assert!(serde_json::to_string(&wrong).is_ok());
    }
    Ok(())
}

/// One change to a text: at about this share of its length, drop so many characters and put in a word.
fn mutated(text: &str, (share, dropped, word): (f64, usize, &str)) -> String {
    let characters: Vec<char> = text.chars().collect();
    let from = ((characters.len() as f64) * share) as usize;
    let to = (from + dropped).min(characters.len());
    let (before, after) = (&characters[..from], &characters[to..]);
    before.iter().copied().chain(word.chars()).chain(after.iter().copied()).collect()
}

/// Words that make a difference in a configuration.
const WORDS: &[&str] = &[
    "",
    " ",
    "\n",
    "\"",
    "'",
    "[",
    "]",
    "[[",
    "]]",
    "{",
    "}",
    "=",
    ",",
    ".",
    "#",
    "\\",
    "é",
    "\u{1b}",
    "0",
    "-1",
    "128",
    "1e999",
    "nan",
    "inf",
    "99999999999999999999",
    "1979-05-27",
    "true",
    "\"\"",
    "\"x\"",
    "[]",
    "{}",
    "[1, 2]",
    "type",
    "note",
    "modes",
    "[device]\n",
    "[[devices]]\n",
    "[modes]\n",
    "\"\"\"",
    "\u{feff}",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_text_is_read_or_refused(text in any::<String>()) {
        shown(&text)?;
    }

    #[test]
    fn text_in_the_letters_of_toml_is_read_or_refused(
        pieces in prop::collection::vec(prop::sample::select(WORDS), 0..40),
    ) {
        shown(&pieces.concat())?;
    }

    #[test]
    fn a_mutated_configuration_is_read_or_refused(
        mutations in prop::collection::vec((0.0..1.0, 0_usize..12, prop::sample::select(WORDS)), 1..5),
    ) {
        let text = mutations.into_iter().fold(EVERYTHING.to_owned(), |text, change| mutated(&text, change));
        shown(&text)?;
    }

    #[test]
    fn any_value_in_the_place_of_another_is_read_or_refused(
        line in 0_usize..100,
        value in prop::sample::select(WORDS),
    ) {
        let replaced = EVERYTHING.lines().enumerate().map(|(at, text)| match text.split_once(" = ") {
            Some((key, _)) if at == line => format!("{key} = {value}\n"),
            _ => format!("{text}\n"),
        });
        shown(&replaced.collect::<String>())?;
    }

    #[test]
    fn every_byte_has_a_line_and_a_column(text in any::<String>(), byte in 0_usize..200) {
        let source = Source::new("x", text.as_str());
        let Location { line, column, .. } = source.location(byte);
        prop_assert!(line >= 1 && line <= text.matches('\n').count() + 1);
        prop_assert!(column >= 1 && column <= text.chars().count() + 1);
    }
}

/// What the checker lets through, serde takes: otherwise a person would meet serde's words.
#[test]
fn no_single_change_of_a_value_gets_past_the_checker() {
    let lines: Vec<&str> = EVERYTHING.lines().collect();
    for (at, line) in lines.iter().enumerate() {
        for (from, to) in values(line) {
            for word in WORDS {
                let changed = format!("{}{word}{}", &line[..from], &line[to..]);
                let mut lines = lines.clone();
                lines[at] = &changed;
                if let Err(wrong) = parse(&lines.join("\n"), "config.toml") {
                    let text = wrong.to_string();
                    for words_of_serde in ["invalid type", "invalid value", "did not match", "field `"] {
                        assert!(!text.contains(words_of_serde), "{changed}\n{text}");
                    }
                }
            }
        }
    }
}

/// Where the values on a line are: roughly, what stands between ` = ` and the next separator.
fn values(line: &str) -> Vec<(usize, usize)> {
    let starts = line.match_indices(" = ").map(|(at, found)| at + found.len());
    let value = |from: usize| {
        let length = line[from..].find([',', '}', ']']).unwrap_or(line.len() - from);
        (from, from + length)
    };
    starts.map(value).collect()
}
