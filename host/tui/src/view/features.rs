//! The screen Features: what each uses now, which is in quarantine, and why one is not at work.

use conductor_registry::FeatureReport;

use super::{Part, field, megabytes, rate, title};
use crate::state::State;
use conductor_screen_text::{Look, Row};

pub(super) fn parts(state: &State, columns: usize) -> (Option<Part>, Option<Part>) {
    let features = state.status.as_ref().map(|status| status.features.as_slice()).unwrap_or_default();
    let head = Row::of(Look::Dim, "─ ").cell(Look::Strong, format!("Features ({})", state.feature_count()), 20);
    let head = ["AT WORK", "CPU", "MEMORY", "CALLS/S", "EVENTS/S", "FAILED", "QUEUE"]
        .iter()
        .zip([7, 6, 9, 7, 8, 6, 5])
        .fold(head, |row, (name, columns)| row.right(Look::Dim, name, columns));
    let disabled = state.features.disabled.iter().map(|name| Row::of(Look::Dim, "  ").cell(Look::Dim, name, 20));
    let lines = features.iter().map(|feature| row(state, feature, columns));
    let lines: Vec<Row> = lines.chain(disabled.map(|row| row.put_rest(Look::Dim, "disabled", columns))).collect();
    let above = Part::list(head, lines, state.features.at, "none is known yet");
    let lines = match state.chosen_disabled() {
        Some(name) => Some(details_of_disabled(name, columns)),
        None => state.chosen_feature().map(|feature| details(feature, columns)),
    };
    (Some(above), lines.map(|lines| Part::text(title("Feature"), lines, state.features.scroll)))
}

fn row(state: &State, feature: &FeatureReport, columns: usize) -> Row {
    let rates = state.features.rates.get(&feature.name).copied().unwrap_or_default();
    let (look, said) = match (feature.quarantine, &feature.refused) {
        (Some(left), _) => (Look::Bad, format!("QUARANTINE {left} s")),
        (_, Some(_)) => (Look::Doubt, "refused".to_owned()),
        _ if feature.package.is_none() => (Look::Dim, "off".to_owned()),
        _ => (Look::Plain, String::new()),
    };
    let failed = feature.failed + feature.calls_failed;
    let row = Row::of(look, if said.is_empty() { "  " } else { "! " }).cell(look, &feature.name, 20);
    let row =
        row.right(Look::Plain, format!("{:.1}%", rates.busy), 7).right(Look::Plain, format!("{:.1}%", rates.cpu), 6);
    let row = row.right(Look::Plain, megabytes(feature.memory), 9).right(Look::Plain, rate(rates.calls), 7);
    let row = row.right(Look::Plain, rate(rates.events), 8);
    let row =
        row.right(if failed > 0 { Look::Doubt } else { Look::Plain }, failed, 6).right(Look::Plain, feature.waiting, 5);
    if said.is_empty() { row } else { row.put_rest(look, said, columns) }
}

fn details_of_disabled(name: &str, columns: usize) -> Vec<Row> {
    let mut lines = field("feature", Look::Strong, name, columns);
    lines.extend(field("disabled", Look::Dim, "no host loads it until it is enabled", columns));
    lines
}

fn details(feature: &FeatureReport, columns: usize) -> Vec<Row> {
    let mut lines = Vec::new();
    let mut say = |about: &str, look: Look, text: &str| lines.extend(field(about, look, text, columns));
    match &feature.package {
        Some(package) => {
            let came = if feature.bundled { ", came with the host" } else { "" };
            say("feature", Look::Strong, &format!("{} {}{came}", package.id, package.version));
        }
        None => say("feature", Look::Strong, &feature.name),
    }
    if let Some(left) = feature.quarantine {
        say(
            "quarantine",
            Look::Bad,
            &format!("it kept trapping; it is not called for {left} s more, unless that is lifted"),
        );
    }
    if let Some(why) = &feature.refused {
        say("refused", Look::Doubt, why);
    }
    if let Some(last) = &feature.last_failure {
        say("last", Look::Doubt, &format!("failure: {last}"));
    }
    let said = format!(
        "{} actions done, {} failed, {} trapped, {} without room; {} calls, {} failed",
        feature.performed, feature.failed, feature.trapped, feature.queue_full, feature.calls, feature.calls_failed
    );
    say("work", Look::Plain, &said);
    if feature.throttled_ms > 0 {
        say("throttled", Look::Doubt, &format!("made to wait {} ms in all", feature.throttled_ms));
    }
    if let Some(package) = &feature.package {
        let tools: Vec<String> = package.tools.iter().map(ToString::to_string).collect();
        for (about, list) in [
            ("actions", &package.actions),
            ("tools", &tools),
            ("hooks", &package.hooks),
            ("providers", &package.providers),
            ("skills", &package.skills),
        ] {
            if !list.is_empty() {
                say(about, Look::Plain, &list.join(", "));
            }
        }
    }
    if !feature.denied.is_empty() {
        say("denied", Look::Doubt, &feature.denied.join("; "));
    }
    if !feature.skipped.is_empty() {
        say("left out", Look::Doubt, &feature.skipped.join("; "));
    }
    lines
}
