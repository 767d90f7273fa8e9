//! The screen Mappings: all of them, and one with everything it says.

use conductor_config_view::Mapping;

use super::{Part, action, field, more_columns, paragraph, title};
use crate::input::{Command, Context, Screen, key_of};
use crate::state::State;
use conductor_screen_text::{Look, Row};

pub(super) fn parts(state: &State, columns: usize) -> (Option<Part>, Option<Part>) {
    let Some(config) = &state.config else {
        let why = "the configuration is not known yet";
        return (Some(Part::list(title("Mappings"), Vec::new(), 0, why)), None);
    };
    let (shown, all) = (&state.mappings.shown, &config.mappings);
    let mut head = title("Mappings").put(Look::Dim, format!("{} of {} ", shown.len(), all.len() + config.left_out));
    if !state.mappings.search.is_empty() {
        head = head.put(Look::Plain, "with ").put_cut(Look::Accent, &state.mappings.search, 24).put(Look::Plain, " ");
    }
    // Rows far from the chosen one are out of sight.
    let near = usize::from(state.size.height);
    let rows = shown.iter().enumerate().map(|(at, index)| match all.get(*index) {
        Some(mapping) if at.abs_diff(state.mappings.at) <= near => row(mapping, columns),
        _ => Row::new(),
    });
    let learn = key_of(Context::Everywhere, Command::Show(Screen::Learn));
    let none = format!("there is no mapping; {learn} learns one");
    let why = if all.is_empty() { none.as_str() } else { "no mapping has this text" };
    let above = Part::list(head, rows.collect(), state.mappings.at, why);
    let chosen = shown.get(state.mappings.at).and_then(|at| all.get(*at));
    let below = chosen.map(|mapping| {
        let mut lines = field("place", Look::Plain, &mapping.place, columns);
        lines.extend(field("mode", Look::Plain, mapping.mode.as_deref().unwrap_or("every mode"), columns));
        lines.extend(paragraph(Look::Plain, &mapping.text, columns));
        Part::text(title("Mapping"), lines, state.mappings.scroll)
    });
    (Some(above), action::part(state, columns).or(below))
}

fn row(mapping: &Mapping, columns: usize) -> Row {
    let row = Row::of(Look::Plain, " ").cell(Look::Dim, mapping.mode.as_deref().unwrap_or("*"), 8);
    let more = more_columns(columns);
    let row = row.cell(Look::Strong, mapping.called(), 18 + more);
    let row = row.cell(Look::Plain, mapping.device.as_deref().unwrap_or("any"), 10);
    let row = row.cell(Look::Plain, &mapping.trigger, 20 + more);
    row.put_rest(Look::Accent, &mapping.action, columns)
}
