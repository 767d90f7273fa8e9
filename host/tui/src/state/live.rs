//! What happens: the last events and other things that came, and how fast each source sends.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::time::Duration;

use conductor_learn_mapping::Note;
use conductor_observation::ObservationView;
use conductor_observer::PlanStep;
use conductor_ports::status::{PortState, PortsStatus};
use conductor_ports::{Direction, Protocol};
use conductor_screen_text::beginning;
use conductor_terminal::typed::Line;

use super::State;
use super::overlay::{Overlay, Prompt, Purpose};
use crate::api::Act;
use crate::input::Screen;

/// Rows that are kept.
pub(crate) const MAX_ROWS: usize = 2000;
/// Sources that are counted.
const MAX_SOURCES: usize = 256;
/// Bytes of a text that is kept.
const MAX_TEXT: usize = 1024;
/// Kinds of events that are kept of a source.
const MAX_KINDS: usize = 8;
/// How long a source, a mapping or a port shows that something came.
pub(crate) const HIGHLIGHT_TIMEOUT: Duration = Duration::from_secs(2);
/// Ticks that a rate is taken over.
const RATE_TICKS: usize = 8;
/// The time between two of them.
pub(crate) const TICK_INTERVAL: Duration = Duration::from_millis(250);

/// What a row is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowKind {
    Event,
    /// Something is wrong.
    Trouble,
    /// A feature says something.
    Message,
    /// The host or its configuration changed.
    Change,
    /// Something is missing here.
    Gap,
}

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    /// Which one, counted by this program.
    pub(crate) number: u64,
    /// Of an event and a failure: nanoseconds since the host started.
    pub(crate) at: Option<u64>,
    pub(crate) kind: RowKind,
    /// The device, the worker or the feature.
    pub(crate) source: String,
    pub(crate) text: String,
    /// Whether there was more text.
    pub(crate) is_cut: bool,
    /// What the control is called.
    pub(crate) control: String,
    /// The rules that fired.
    pub(crate) rules: Vec<String>,
    /// What is searched, in lower case.
    searched: String,
}

impl Row {
    /// The protocol of an event.
    pub(crate) fn badge(&self) -> &'static str {
        match self.kind {
            RowKind::Event => match self.text.split(' ').next().unwrap_or_default() {
                "osc" => "OSC",
                "artnet" => "DMX",
                kind if kind == "key" || kind.starts_with("gamepad") => "HID",
                "variable" | "beat" | "transport" => "-",
                _ => "MIDI",
            },
            RowKind::Trouble => "!!",
            RowKind::Message => "says",
            RowKind::Change => "host",
            RowKind::Gap => "gap",
        }
    }

    /// The MIDI channel of an event, from 1.
    pub(crate) fn channel(&self) -> Option<u32> {
        if self.kind != RowKind::Event || self.badge() != "MIDI" {
            return None;
        }
        match self.text.rsplit_once(" ch ") {
            Some((_, channel)) => channel.parse::<u32>().ok().map(|channel| channel + 1),
            // Of the first it is not written.
            None => has_channel(&self.text).then_some(1),
        }
    }
}

fn has_channel(event: &str) -> bool {
    let kind = event.split(' ').next().unwrap_or_default();
    matches!(kind, "note-on" | "note-off" | "poly-aftertouch" | "cc" | "program" | "aftertouch" | "pitch-bend")
}

/// Which rows are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kinds {
    All,
    Events,
    Fired,
    Others,
    Trouble,
}

impl Kinds {
    pub(crate) fn next(self) -> Self {
        match self {
            Self::All => Self::Events,
            Self::Events => Self::Fired,
            Self::Fired => Self::Others,
            Self::Others => Self::Trouble,
            Self::Trouble => Self::All,
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Events => "events",
            Self::Fired => "events that fired",
            Self::Others => "all but events",
            Self::Trouble => "trouble",
        }
    }

    fn has(self, row: &Row) -> bool {
        match self {
            Self::All => true,
            Self::Events => row.kind == RowKind::Event,
            Self::Fired => row.kind == RowKind::Event && !row.rules.is_empty(),
            Self::Others => row.kind != RowKind::Event,
            Self::Trouble => matches!(row.kind, RowKind::Trouble | RowKind::Gap),
        }
    }
}

/// What came from one device.
#[derive(Debug, Clone, Default)]
pub(crate) struct Source {
    pub(crate) total: u64,
    /// Events of the last ticks, the present one first.
    recent: [u32; RATE_TICKS],
    pub(crate) kinds: BTreeSet<String>,
    pub(crate) last: Option<Duration>,
}

impl Source {
    /// Events a second, over the last two.
    pub(crate) fn rate(&self) -> f64 {
        f64::from(self.recent.iter().sum::<u32>()) / (TICK_INTERVAL.as_secs_f64() * RATE_TICKS as f64)
    }
}

/// Where keys go on this screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pane {
    Sources,
    Rows,
}

/// All of it.
#[derive(Debug)]
pub(crate) struct Live {
    rows: VecDeque<Row>,
    next: u64,
    /// While it pauses, the number of the first row that is not shown.
    pub(crate) paused: Option<u64>,
    /// The number of the chosen row; `None` if it is the last that comes.
    pub(crate) chosen: Option<u64>,
    /// What rows have to have, in lower case.
    pub(crate) filter: String,
    pub(crate) kinds: Kinds,
    /// The only device that is shown.
    pub(crate) only: Option<String>,
    pub(crate) sources: BTreeMap<String, Source>,
    /// What the counters of ports said last, when, and events a second since then.
    counted: BTreeMap<String, (u64, Duration, f64)>,
    pub(crate) pane: Pane,
    /// The place of the chosen source in the list.
    pub(crate) source_at: usize,
}

/// A source as it is listed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Listed {
    /// What its events are called.
    pub(crate) device: String,
    pub(crate) protocol: Option<Protocol>,
    /// Whether no binding has it.
    pub(crate) is_unbound: bool,
    pub(crate) is_muted: bool,
    /// What is to be said of it; empty if nothing.
    pub(crate) state: String,
    pub(crate) rate: f64,
    pub(crate) total: u64,
    pub(crate) kinds: String,
    pub(crate) is_alight: bool,
}

impl Live {
    pub(crate) fn new() -> Self {
        Self {
            rows: VecDeque::new(),
            next: 0,
            paused: None,
            chosen: None,
            filter: String::new(),
            kinds: Kinds::All,
            only: None,
            sources: BTreeMap::new(),
            counted: BTreeMap::new(),
            pane: Pane::Rows,
            source_at: 0,
        }
    }

    /// Takes in what happened so long ago.
    pub(crate) fn take(&mut self, what: &ObservationView, now: Duration, age: Duration) {
        let (mut at, mut control, mut rules) = (None, "", &[][..]);
        let (kind, source, text) = match what {
            ObservationView::Event { at: when, device, event, control: called, rules: fired } => {
                (at, control, rules) = (Some(*when), called.as_deref().unwrap_or_default(), fired);
                self.count(device, event, now, age);
                (RowKind::Event, device.as_str(), event.clone())
            }
            ObservationView::Failure { at: when, rule, worker, reason } => {
                at = Some(*when);
                (RowKind::Trouble, worker.as_str(), format!("FAILED {rule}: {reason}"))
            }
            ObservationView::Mode { mode } => (RowKind::Change, "", format!("mode {mode}")),
            ObservationView::Message { feature, sink, text, .. } => {
                (RowKind::Message, feature.as_str(), format!("({sink}) {text}"))
            }
            ObservationView::Port { text, trouble } | ObservationView::Reload { text, trouble } => {
                (if *trouble { RowKind::Trouble } else { RowKind::Change }, "", text.clone())
            }
            ObservationView::Plan { step, plan, who, description } => {
                let step = step_name(*step);
                let plan = plan.as_deref().map(|plan| format!(" {plan:.12}")).unwrap_or_default();
                (RowKind::Change, "", format!("plan{plan} {step} ({who}): {description}"))
            }
            ObservationView::Lock { locked, by } => {
                (RowKind::Change, "", format!("the show was {} by {by}", if *locked { "locked" } else { "unlocked" }))
            }
            // The conversation itself is on its own screen; lights are not drawn.
            ObservationView::Chat { .. } | ObservationView::Lights { .. } => return,
            ObservationView::Model { model, error: None } => {
                (RowKind::Change, "", format!("the model {model} answers"))
            }
            ObservationView::Model { model, error: Some(error) } => {
                (RowKind::Trouble, "", format!("the model {model} gives no answer: {error}"))
            }
            ObservationView::Gap { lost: Some(lost) } => {
                (RowKind::Gap, "", format!("{lost} more, which came too fast"))
            }
            ObservationView::Gap { lost: None } => (RowKind::Gap, "", "the host was started anew".to_owned()),
        };
        let kept = |text: &str| beginning(text, MAX_TEXT).to_owned();
        let rules: Vec<String> = rules.iter().take(16).map(|rule| kept(rule)).collect();
        let searched = format!("{source} {} {control} {}", beginning(&text, MAX_TEXT), rules.join(" ")).to_lowercase();
        let row = Row {
            number: self.next,
            at,
            kind,
            source: kept(source),
            is_cut: text.len() > MAX_TEXT,
            text: kept(&text),
            control: kept(control),
            rules,
            searched: beginning(&searched, MAX_TEXT).to_owned(),
        };
        self.next += 1;
        if self.rows.len() == MAX_ROWS {
            self.rows.pop_front();
        }
        self.rows.push_back(row);
    }

    fn count(&mut self, device: &str, event: &str, now: Duration, age: Duration) {
        if !self.sources.contains_key(device) {
            if self.sources.len() >= MAX_SOURCES {
                let oldest = self.sources.iter().min_by_key(|(_, source)| source.last).map(|(name, _)| name.clone());
                oldest.map(|oldest| self.sources.remove(&oldest));
            }
            self.sources.insert(device.to_owned(), Source::default());
        }
        let Some(source) = self.sources.get_mut(device) else { return };
        source.total += 1;
        let tick = usize::try_from(age.as_nanos() / TICK_INTERVAL.as_nanos()).unwrap_or(usize::MAX);
        if let Some(recent) = source.recent.get_mut(tick) {
            *recent = recent.saturating_add(1);
            source.last = Some(now.saturating_sub(age));
        }
        let kind = event.split(' ').next().unwrap_or_default();
        if !source.kinds.contains(kind) && source.kinds.len() < MAX_KINDS {
            source.kinds.insert(beginning(kind, 32).to_owned());
        }
    }

    /// A tick of the clock that rates go by. Returns whether what is shown is another by that.
    pub(crate) fn tick(&mut self, now: Duration) -> bool {
        let mut changed = false;
        for source in self.sources.values_mut() {
            changed |= source.recent.iter().any(|count| *count > 0);
            source.recent.rotate_right(1);
            source.recent[0] = 0;
            // The sign that something came goes out.
            changed |= source.last.is_some_and(|last| now.saturating_sub(last) < HIGHLIGHT_TIMEOUT + TICK_INTERVAL * 2);
        }
        changed
    }

    /// Takes in what ports counted.
    pub(crate) fn counters(&mut self, ports: &PortsStatus, now: Duration) {
        let inputs = ports.ports.iter().filter(|port| port.port.direction == Direction::Input);
        let before = std::mem::take(&mut self.counted);
        for port in inputs.take(MAX_SOURCES) {
            let count = port.events + port.unheard;
            let passed = |then: &Duration| now.saturating_sub(*then).as_secs_f64();
            let counted = match before.get(&port.device) {
                Some((was, then, rate)) if passed(then) < 0.2 => (*was, *then, *rate),
                Some((was, then, _)) => (count, now, count.saturating_sub(*was) as f64 / passed(then)),
                None => (count, now, 0.0),
            };
            self.counted.insert(port.device.clone(), counted);
        }
    }

    /// Every source: those that no binding has first, then bindings, then what else sent.
    pub(crate) fn listed(&self, ports: Option<&PortsStatus>, now: Duration) -> Vec<Listed> {
        let is_alight = |source: &Source| source.last.is_some_and(|last| now.saturating_sub(last) < HIGHLIGHT_TIMEOUT);
        let listed = |device: &str, protocol: Option<Protocol>| {
            let source = self.sources.get(device);
            let kinds = source.map(|source| source.kinds.iter().cloned().collect::<Vec<_>>().join(" "));
            Listed {
                device: device.to_owned(),
                protocol,
                is_unbound: false,
                is_muted: false,
                state: String::new(),
                rate: source.map_or(0.0, Source::rate),
                total: source.map_or(0, |source| source.total),
                kinds: kinds.unwrap_or_default(),
                is_alight: source.is_some_and(is_alight),
            }
        };
        let mut all: Vec<Listed> = Vec::new();
        for port in ports.iter().flat_map(|ports| &ports.ports) {
            let is_source = port.port.direction == Direction::Input && port.bindings.is_empty();
            if !is_source || port.state == PortState::Ignored {
                continue;
            }
            let mut one = listed(&port.device, Some(port.port.protocol));
            one.is_unbound = true;
            one.is_muted = port.muted;
            if let Some((count, _, rate)) = self.counted.get(&port.device) {
                one.is_alight |= *rate > 0.0;
                (one.rate, one.total) = (one.rate.max(*rate), one.total.max(*count));
            }
            one.state = match &port.state {
                PortState::Open => String::new(),
                PortState::Idle | PortState::Ignored => "not listened to".to_owned(),
                PortState::Ambiguous(alias) => format!("could be {alias}"),
                PortState::OverLimit => "not open: there are `max_midi_ports` already".to_owned(),
                PortState::Failed(why) => format!("failed: {why}"),
            };
            all.push(one);
        }
        for binding in ports.iter().flat_map(|ports| &ports.bindings).filter(|binding| binding.input.is_some()) {
            let mut one = listed(&binding.alias, Some(binding.protocol));
            one.is_muted = binding.muted;
            one.state = binding.help.clone().unwrap_or_default();
            all.push(one);
        }
        let known: HashSet<&str> = all.iter().map(|one| one.device.as_str()).collect();
        let others = self.sources.keys().filter(|device| !known.contains(device.as_str()));
        let others: Vec<Listed> = others.map(|device| listed(device, None)).collect();
        all.extend(others);
        all
    }

    /// The rows that are shown, oldest first.
    pub(crate) fn shown(&self) -> Vec<&Row> {
        self.rows.iter().filter(|row| self.shows(row)).collect()
    }

    /// The last of them, at most this many, oldest first.
    pub(crate) fn last_shown(&self, count: usize) -> Vec<&Row> {
        let mut last: Vec<&Row> = self.rows.iter().rev().filter(|row| self.shows(row)).take(count).collect();
        last.reverse();
        last
    }

    fn shows(&self, row: &Row) -> bool {
        self.paused.is_none_or(|end| row.number < end)
            && self.kinds.has(row)
            && self.only.as_ref().is_none_or(|only| row.source == *only)
            && (self.filter.is_empty() || row.searched.contains(&self.filter))
    }

    /// How many rows came since it was paused, of those that are kept.
    pub(crate) fn waiting(&self) -> u64 {
        self.paused.map_or(0, |end| self.next - end)
    }

    /// The row that is chosen.
    pub(crate) fn chosen_row(&self) -> Option<&Row> {
        match self.chosen {
            Some(number) => self.rows.iter().find(|row| row.number == number),
            None => self.rows.iter().rev().find(|row| self.shows(row)),
        }
    }

    /// What the control is called that an event of a device is of, if such an event came with its name.
    pub(crate) fn control_of(&self, device: &str, event: &str) -> Option<&str> {
        let note = Note::named(event);
        let is_its = |row: &&Row| {
            let is_same = row.text == event || (note.is_some() && Note::named(&row.text) == note);
            row.source == device && !row.control.is_empty() && is_same
        };
        self.rows.iter().rev().find(is_its).map(|row| row.control.as_str())
    }

    /// Stops or goes on.
    pub(crate) fn pause(&mut self, pause: bool) {
        if pause {
            self.paused.get_or_insert(self.next);
        } else {
            (self.paused, self.chosen) = (None, None);
        }
    }

    /// Chooses the row this many further down. What is chosen stands still.
    pub(crate) fn choose(&mut self, by: isize) {
        self.pause(true);
        let shown = self.shown();
        let at = self.chosen.and_then(|number| shown.iter().position(|row| row.number >= number));
        let last = shown.len().saturating_sub(1);
        let at = at.unwrap_or(last).saturating_add_signed(by).min(last);
        self.chosen = shown.get(at).map(|row| row.number);
    }

    /// Chooses a row by its number.
    pub(crate) fn choose_row(&mut self, number: u64) {
        self.pause(true);
        self.chosen = Some(number);
    }
}

impl State {
    /// The chosen row, if it can be opened. An event is explained, for which its text has to be whole.
    pub(super) fn row_to_open(&self) -> Option<&Row> {
        let row = if self.live.pane == Pane::Rows { self.live.chosen_row() } else { None };
        row.filter(|row| row.kind != RowKind::Event || !row.is_cut)
    }

    /// Every source, as it is listed.
    pub(crate) fn sources(&self) -> Vec<Listed> {
        self.live.listed(self.status.as_ref().map(|status| &status.ports), self.now)
    }

    /// The device of the chosen source, or of the chosen event.
    pub(super) fn chosen_source(&self) -> Option<String> {
        match self.live.pane {
            Pane::Sources => self.sources().into_iter().nth(self.live.source_at).map(|source| source.device),
            Pane::Rows => {
                let row = self.live.chosen_row().filter(|row| row.kind == RowKind::Event);
                row.map(|row| row.source.clone())
            }
        }
    }

    /// The device of the chosen source or event, if no binding has it.
    pub(super) fn source_to_set_up(&self) -> Option<String> {
        let device = self.chosen_source()?;
        self.sources().iter().any(|source| source.is_unbound && source.device == device).then_some(device)
    }

    pub(super) fn map_source(&mut self) {
        let device = self.chosen_source();
        self.go(Screen::Learn);
        self.stop_listening();
        self.listen(device);
    }

    pub(super) fn mute(&mut self) {
        if let Some(source) = self.sources().into_iter().nth(self.live.source_at) {
            self.requests.act(Act::Mute { device: source.device, muted: !source.is_muted });
        }
    }

    pub(super) fn ask_filter(&mut self) {
        let (asks, text) = match self.screen {
            Screen::Live => ("only events with", &self.live.filter),
            _ => ("only mappings with", &self.mappings.search),
        };
        self.overlay = Some(Overlay::Line(Prompt::new(asks, Line::new(text), Purpose::Filter)));
    }

    pub(super) fn filter(&mut self, text: &str) {
        if self.screen == Screen::Live {
            self.live.filter = text.to_lowercase();
        } else {
            self.mappings.search = text.to_lowercase();
            self.search();
        }
    }
}

/// The word for a step of a plan.
fn step_name(step: PlanStep) -> &'static str {
    match step {
        PlanStep::Proposed => "proposed",
        PlanStep::Applied => "applied",
        PlanStep::Rejected => "rejected",
        PlanStep::Expired => "expired",
        PlanStep::Undone => "undone",
        PlanStep::Redone => "redone",
    }
}
