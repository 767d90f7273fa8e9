//! Effects as people and agents are shown them, without private values.

use conductor_dispatch::Action;
use conductor_engine::{RuleSet, rule_name};
use conductor_event::Nanos;
use conductor_stdx::hidden::hide_json;
use conductor_timeline::Effect;
use conductor_timeline::player::Sent;
use serde_json::{Value, json};

/// An effect as tests demand it, without private values.
pub fn text(effect: &Effect) -> String {
    match effect {
        Effect::Program(words) => {
            let mut shown = json!(words);
            hide_json(&[], &mut shown);
            let words = shown.as_array().into_iter().flatten().filter_map(Value::as_str);
            Effect::Program(words.map(str::to_owned).collect()).to_string()
        }
        effect => effect.to_string(),
    }
}

/// What went out as a line of a test, with what it is and which rule asked for it as a comment:
/// `=> MIDI synth 90 24 64  # note-on 36 100: C2; kick`.
pub fn line(sent: &Sent, rules: &RuleSet<Action>) -> String {
    let meaning = sent.effect.comment();
    let rule = sent.rule.and_then(|rule| rules.rules().get(rule.0 as usize)).map(rule_name);
    let notes: Vec<String> = meaning.iter().map(|text| text.trim_start_matches("# ").to_owned()).chain(rule).collect();
    let comment = if notes.is_empty() { String::new() } else { format!("  # {}", notes.join("; ")) };
    format!("=> {}{comment}", text(&sent.effect))
}

/// The same of an event that came `at` this time, with how much later it went out.
pub fn line_since(at: Nanos, sent: &Sent, rules: &RuleSet<Action>) -> String {
    let later = if sent.at > at { format!("{} ms later  ", (sent.at - at) as f64 / 1e6) } else { String::new() };
    format!("{later}{}", line(sent, rules))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_shown_without_private_values() {
        let program = |words: &[&str]| Effect::Program(words.iter().map(|&word| word.to_owned()).collect());
        let shown = text(&program(&["say", "hello world", "--token", "hunter2", "API_KEY=x"]));
        assert_eq!(shown, "program say \"hello world\" --token <hidden> API_KEY=<hidden>");
        assert_eq!(text(&Effect::Text("--token hunter2".into())), "text \"--token hunter2\"");
    }
}
