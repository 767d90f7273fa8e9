//! The screen Flow: from ports over bindings and mappings to actions. An edge that something has just passed is double.

use std::collections::BTreeMap;

use conductor_config_view::Mapping;
use conductor_ports::status::{BindingStatus, SideState};

use super::status::health;
use super::{Part, more_columns, rate, title};
use crate::state::State;
use crate::state::live::HIGHLIGHT_TIMEOUT;
use conductor_screen_text::{Look, Row};

/// Columns of a mapping's name and trigger.
const MAPPING_COLUMNS: usize = 34;

/// A line of the flow, before it is drawn: most are out of sight.
enum Line<'s> {
    Source(&'s BindingStatus),
    Unbound(&'s str, &'static str),
    AnyDevice,
    /// A device that mappings name, and that no binding is called.
    Unknown(&'s str),
    Mapping(usize, &'s Mapping),
    Note(String),
}

pub(super) fn part(state: &State, columns: usize) -> Part {
    let lines = lines(state);
    // What is out of sight is not drawn: a configuration may have thousands of mappings.
    let rows = usize::from(state.size.body());
    let first = state.flow_scroll.min(lines.len().saturating_sub(rows.saturating_sub(1)));
    let drawn = lines
        .iter()
        .enumerate()
        .map(|(at, line)| if at < first || at > first + rows { Row::new() } else { row(state, line, columns) });
    let mut head = title("Signal flow").put(Look::Dim, "port ─▶ binding ─▶ mapping ─▶ action ");
    if !state.mappings.search.is_empty() {
        head = head.put(Look::Plain, "with ").put_cut(Look::Accent, &state.mappings.search, 24).put(Look::Plain, " ");
    }
    Part::text(head, drawn.collect(), state.flow_scroll)
}

fn lines<'s>(state: &'s State) -> Vec<Line<'s>> {
    let mut by_device: BTreeMap<Option<&'s str>, Vec<usize>> = BTreeMap::new();
    let all = state.config.as_ref().map(|config| config.mappings.as_slice()).unwrap_or_default();
    for at in &state.mappings.shown {
        if let Some(mapping) = all.get(*at) {
            by_device.entry(mapping.device.as_deref()).or_default().push(*at);
        }
    }
    let mut out = Vec::new();
    let mut take = |out: &mut Vec<Line<'s>>, device: Option<&'s str>| {
        let found = by_device.remove(&device).unwrap_or_default();
        let is_empty = found.is_empty();
        out.extend(found.into_iter().filter_map(|at| Some(Line::Mapping(at, all.get(at)?))));
        is_empty
    };
    let ports = state.status.as_ref().map(|status| &status.ports);
    for binding in ports.iter().flat_map(|ports| &ports.bindings) {
        out.push(Line::Source(binding));
        if take(&mut out, Some(&binding.alias)) && binding.input.is_some() && state.mappings.search.is_empty() {
            out.push(Line::Note("no mapping names it".to_owned()));
        }
    }
    out.push(Line::AnyDevice);
    if take(&mut out, None) {
        out.push(Line::Note("no mapping is for any device".to_owned()));
    }
    for port in ports.iter().flat_map(|ports| &ports.ports) {
        let is_input = port.port.direction == conductor_ports::Direction::Input;
        if is_input && port.bindings.is_empty() {
            out.push(Line::Unbound(&port.device, if port.connected { "open" } else { "not listened to" }));
            take(&mut out, Some(&port.device));
        }
    }
    for device in all.iter().filter_map(|mapping| mapping.device.as_deref()) {
        let before = out.len();
        out.push(Line::Unknown(device));
        if take(&mut out, Some(device)) {
            out.truncate(before);
        }
    }
    if let Some(left_out) = state.config.as_ref().map(|config| config.left_out).filter(|count| *count > 0) {
        out.push(Line::Note(format!("{left_out} more mappings are not shown")));
    }
    out
}

fn row(state: &State, line: &Line<'_>, columns: usize) -> Row {
    let now = state.now;
    let is_alight = |device: &str| {
        let last = state.live.sources.get(device).and_then(|source| source.last);
        last.is_some_and(|last| now.saturating_sub(last) < HIGHLIGHT_TIMEOUT)
    };
    let edge = |row: Row, is_alight: bool| {
        if is_alight { row.put(Look::Good, " ═▶ ") } else { row.put(Look::Dim, " ─▶ ") }
    };
    match line {
        Line::Source(binding) => {
            let side = binding.input.as_ref().or(binding.output.as_ref());
            let (look, sign) = health(binding.health);
            let port = match side {
                Some(side) if side.state != SideState::Unbound && !side.ports.is_empty() => side.ports.join(", "),
                _ => "(no port)".to_owned(),
            };
            let way = if binding.input.is_some() { "" } else { "output " };
            let row = Row::of(look, format!("{sign} ")).put_cut(Look::Plain, port, 34);
            let row =
                edge(row, is_alight(&binding.alias)).put(Look::Dim, way).put_cut(Look::Strong, &binding.alias, 20);
            let health = if binding.muted { "muted" } else { binding.health.as_str() };
            let row = row.put(look, format!(" {health}"));
            match state.live.sources.get(&binding.alias) {
                Some(source) => row.put_rest(Look::Dim, format!(" {}/s", rate(source.rate())), columns),
                None => row,
            }
        }
        Line::Unbound(device, said) => {
            let row = Row::of(Look::Doubt, "? ").put_cut(Look::Plain, device, 34);
            edge(row, is_alight(device)).put_rest(Look::Doubt, format!("no binding ({said})"), columns)
        }
        Line::AnyDevice => Row::of(Look::Dim, "* any device"),
        Line::Unknown(device) => {
            Row::of(Look::Doubt, "? ").put_cut(Look::Plain, device, 34).put(Look::Doubt, " no such binding")
        }
        Line::Mapping(at, mapping) => mapping_row(state, *at, mapping, columns),
        Line::Note(text) => Row::of(Look::Dim, "    ").put_rest(Look::Dim, text, columns),
    }
}

fn mapping_row(state: &State, at: usize, mapping: &Mapping, columns: usize) -> Row {
    let has_fired = state.fired.get(&at).is_some_and(|last| state.now.saturating_sub(*last) < HIGHLIGHT_TIMEOUT);
    let active = state.status.as_ref().and_then(|status| status.mode.as_ref());
    let is_active = mapping.mode.is_none() || mapping.mode.as_ref() == active;
    let (look, edge) = match (has_fired, is_active) {
        (true, _) => (Look::Good, "═▶"),
        (_, true) => (Look::Plain, "─▶"),
        _ => (Look::Dim, "─▶"),
    };
    let mode = mapping.mode.as_ref().map(|mode| format!("[{mode}] ")).unwrap_or_default();
    let name = mapping.name.as_ref().map(|name| format!("{name}: ")).unwrap_or_default();
    let row = Row::of(look, format!("    {edge} ")).put_cut(Look::Dim, mode, 12);
    let row = row.put_cut(look, format!("{name}{}", mapping.trigger), MAPPING_COLUMNS + more_columns(columns));
    row.put(look, format!(" {edge} ")).put_rest(look, &mapping.action, columns)
}
