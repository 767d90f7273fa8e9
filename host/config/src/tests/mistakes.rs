//! Configurations that are refused, and the exact words in which they are.

use super::super::*;

/// Each case is a configuration, a line `-----`, and the messages about it; a line `=====` ends the case.
/// After a change of the words on purpose, set `CONFIG_MISTAKES` to a path: the new text is written there.
const CASES: &str = include_str!("mistakes.txt");

fn refusal(text: &str) -> String {
    match parse(text, "config.toml") {
        Ok(_) => "accepted".to_owned(),
        Err(wrong) => wrong.to_string(),
    }
}

#[test]
fn every_mistake_is_reported_in_its_words() {
    let cases = CASES.split_terminator("=====\n");
    let cases: Vec<_> = cases.map(|case| case.split_once("-----\n").unwrap()).collect();
    if let Ok(path) = std::env::var("CONFIG_MISTAKES") {
        let written = cases.iter().map(|(text, _)| format!("{text}-----\n{}=====\n", refusal(text)));
        std::fs::write(path, written.collect::<String>()).unwrap();
    }
    for (text, expected) in &cases {
        assert_eq!(refusal(text), *expected, "for\n{text}");
    }
}

#[test]
fn many_mistakes_come_at_once_and_in_the_order_of_the_file() {
    let cases = CASES.split_terminator("=====\n");
    let texts = cases.filter_map(|case| case.split_once("-----\n"));
    let text: String = texts.map(|(text, _)| text).filter(|text| text.contains("[[global_mappings]]")).collect();
    let wrong = parse(&text, "config.toml").unwrap_err();
    assert!(wrong.count(Severity::Error) > 30);
    let starts: Vec<usize> = wrong.iter().map(|found| found.place.start).collect();
    assert!(starts.is_sorted());
}

#[test]
fn a_later_stage_reports_at_the_same_places() {
    let text = "[[global_mappings]]\ntrigger = { type = 'MidiAny' }\naction = { type = 'Snd', x = 1 }\n";
    let loaded = parse(text, "config.toml").map_err(|wrong| wrong.to_string()).unwrap();
    let mut diagnostics = Diagnostics::new(loaded.source.clone());
    let path = ["global_mappings".into(), 0.into(), "action".into(), "type".into()];
    let names = ["Send", "Receive"];
    diagnostics.push(
        Diagnostic::error(loaded.source.place(&path), "no feature has this action").with_nearest(nearest("Snd", names)),
    );
    let expected = "\
error: config.toml:3:19: no feature has this action
 3 | action = { type = 'Snd', x = 1 }
   |                   ^^^^^
     did you mean \"Send\"?

1 error in config.toml
";
    assert_eq!(diagnostics.into_result().unwrap_err().to_string(), expected);
}
