//! What keys do: which commands would do something now, and what each does.

use conductor_terminal::typed::Line;

use super::State;
use super::chat::Conversation;
use super::learn::Listening;
use super::live::{Pane, RowKind};
use super::overlay::{About, Explanation, Overlay, Then};
use crate::api::{Act, Query};
use crate::input::{Command, Context, Screen};

impl State {
    /// Where keys are typed now, the innermost first.
    pub(crate) fn contexts(&self) -> &'static [Context] {
        use Context as X;
        if !self.size.is_enough() {
            return &[X::TooSmall];
        }
        match &self.overlay {
            Some(Overlay::Keys { .. }) => &[X::Keys],
            Some(Overlay::Question(_)) => &[X::Question],
            Some(Overlay::Line(_)) => &[X::Line],
            Some(Overlay::Explanation(_)) => &[X::Explanation],
            None => match self.screen {
                Screen::Status => &[X::Status, X::Everywhere],
                Screen::Live => &[X::Live, X::Everywhere],
                Screen::Flow => &[X::Flow, X::Everywhere],
                Screen::Mappings => &[X::Mappings, X::Everywhere],
                Screen::Plans => &[X::Plans, X::Everywhere],
                Screen::Features => &[X::Features, X::Everywhere],
                Screen::Chat if self.chat.open.is_none() => &[X::Conversations, X::Everywhere],
                Screen::Chat => &[X::Conversation, X::Everywhere],
                Screen::Learn => &[X::Learn, X::Everywhere],
            },
        }
    }

    /// Whether a command would do something now. The help line leaves out those that would not.
    pub(crate) fn is_available(&self, command: Command) -> bool {
        let conversation = self.chat.open.as_ref();
        match command {
            Command::SwitchMode => self.status.as_ref().is_some_and(|status| status.modes.len() > 1),
            Command::Lock => self.status.is_some(),
            Command::Open if self.screen == Screen::Live => self.row_to_open().is_some(),
            Command::Open => !self.chat.list.is_empty(),
            Command::Map if self.screen == Screen::Live => self.chosen_source().is_some(),
            Command::Map => !self.learn.learned.controls.is_empty(),
            Command::SetUp => self.source_to_set_up().is_some(),
            Command::Mute => self.live.pane == Pane::Sources && self.chosen_source().is_some(),
            Command::Clear => match self.screen {
                Screen::Live => !self.live.filter.is_empty() || self.live.only.is_some() || self.live.paused.is_some(),
                _ => !self.mappings.search.is_empty(),
            },
            Command::Apply | Command::Reject => self.plan_to_decide().is_some(),
            Command::PageDown if self.screen == Screen::Plans && self.overlay.is_none() => {
                self.plan_to_decide().is_some()
            }
            Command::Undo => !matches!(&self.plans.steps, Some((Err(_), _))),
            Command::Redo => !matches!(&self.plans.steps, Some((_, Err(_)))),
            Command::Lift => self.chosen_feature().is_some_and(|feature| feature.quarantine.is_some()),
            Command::Enable => self.chosen_disabled().is_some(),
            Command::Disable => self.chosen_feature().is_some(),
            Command::Agree | Command::Decline => conversation.is_some_and(|open| open.approval.is_some()),
            Command::CancelTurn => conversation.is_some_and(|open| open.is_turn),
            Command::Write => conversation.is_some(),
            Command::ListenStart => self.learn.listening == Listening::No,
            Command::ListenStop => self.session().is_some(),
            Command::Gesture => self.has_gesture(),
            Command::ChangeMapping => self.written_mapping().is_some(),
            Command::LightMapping => self.light_of_mapping().is_some(),
            Command::RemoveMapping => self.chosen_mapping().is_some(),
            Command::Complete => self.can_complete(),
            Command::AsLine => self.typed_field().is_some(),
            Command::NextMode | Command::AnyDevice => !self.learn.learned.controls.is_empty(),
            _ => true,
        }
    }

    /// Does what a key asks for.
    pub(crate) fn command(&mut self, command: Command) {
        if !self.is_available(command) {
            if command == Command::Map {
                self.notice("move a control first".into(), true);
            }
            return;
        }
        match command {
            Command::Quit => self.has_ended = true,
            Command::Keys => self.overlay = Some(Overlay::Keys { scroll: 0 }),
            Command::Show(screen) => self.go(screen),
            Command::NextScreen => self.go(self.screen.step(1)),
            Command::PreviousScreen => self.go(self.screen.step(Screen::ALL.len() - 1)),
            Command::OtherPane => {
                self.live.pane = if self.live.pane == Pane::Rows { Pane::Sources } else { Pane::Rows };
            }
            Command::Up => self.step(-1),
            Command::Down => self.step(1),
            Command::PageUp => self.page(-1),
            Command::PageDown => self.page(1),
            Command::First => self.end(isize::MIN),
            Command::Last => self.end(isize::MAX),
            Command::Open => self.open(),
            Command::Back => self.back(),
            Command::Pause => self.live.pause(self.live.paused.is_none()),
            Command::Filter => self.ask_filter(),
            Command::Kinds => self.live.kinds = self.live.kinds.next(),
            Command::OnlyDevice => {
                let only = self.chosen_source().filter(|only| self.live.only.as_ref() != Some(only));
                self.live.only = only;
            }
            Command::Clear => {
                if self.screen == Screen::Live {
                    self.live.filter.clear();
                    self.live.only = None;
                    self.live.pause(false);
                } else {
                    self.mappings.search.clear();
                    self.search();
                }
            }
            Command::Map if self.screen == Screen::Live => {
                if !self.map_event() {
                    self.map_source();
                }
            }
            Command::Map => {
                (self.learn.refused, self.learn.form, self.learn.changed) = (None, None, None);
                self.learn.light_text.clear();
                self.ask_action("");
            }
            Command::SetUp => {
                if let Some(device) = self.source_to_set_up() {
                    self.requests.act(Act::SetUp { device });
                }
            }
            Command::ChangeMapping => self.change_mapping(),
            Command::LightMapping => self.ask_mapping_light(),
            Command::RemoveMapping => self.remove_mapping(),
            Command::Mute => self.mute(),
            Command::SwitchMode => {
                let mode = self.status.as_ref().and_then(|status| status.modes.get(self.mode_at)).cloned();
                mode.into_iter().for_each(|mode| self.requests.act(Act::SwitchMode { mode }));
            }
            Command::Lock => self.ask_lock(),
            Command::Apply => self.ask_apply(),
            Command::Reject => self.ask_reject(),
            Command::Undo => self.ask_step(true),
            Command::Redo => self.ask_step(false),
            Command::Lift => self.lift(),
            Command::Enable => self.enable(),
            Command::Disable => self.disable(),
            Command::Begin => self.requests.act(Act::Begin),
            Command::Write => {
                if let Some(id) = self.chat.open.as_ref().map(|open| open.id) {
                    self.write(id, "", None);
                }
            }
            Command::CancelTurn => {
                if let Some(id) = self.chat.open.as_ref().map(|open| open.id) {
                    self.requests.act(Act::CancelTurn { id });
                }
            }
            Command::Agree => self.ask_agree(),
            Command::Decline => self.decline(),
            Command::ListenStart => self.listen(None),
            Command::ListenStop => self.stop_listening(),
            Command::NextMode => {
                let modes = self.status.as_ref().map(|status| status.modes.as_slice()).unwrap_or_default();
                let next = match &self.learn.mode {
                    None => 0,
                    Some(mode) => modes.iter().position(|known| known == mode).map_or(modes.len(), |at| at + 1),
                };
                self.learn.mode = modes.get(next).cloned();
            }
            Command::AnyDevice => self.learn.any = !self.learn.any,
            Command::Gesture => self.learn.is_plain = !self.learn.is_plain,
            Command::Yes => self.agreed(),
            Command::No => self.overlay = None,
            Command::Submit => self.submit(),
            Command::Complete => self.complete(),
            Command::AsLine => self.show_as_line(),
            Command::EraseBack => self.edit(Line::erase_back),
            Command::EraseAhead => self.edit(Line::erase_ahead),
            Command::EraseAll => self.edit(Line::erase_all),
            Command::Left => self.edit(|line| _ = line.left()),
            Command::Right => self.edit(Line::right),
        }
    }

    pub(super) fn go(&mut self, screen: Screen) {
        self.screen = screen;
        self.requests.ask(Query::Status);
        match screen {
            Screen::Plans => self.ask_for_chosen_plan(),
            Screen::Features => self.requests.ask(Query::DisabledFeatures),
            Screen::Chat => self.requests.ask(Query::Conversations),
            Screen::Learn if self.learn.actions.is_empty() => self.requests.ask(Query::Actions),
            _ => {}
        }
    }

    /// One up or down: in what is in front, else in the list of the screen.
    pub(super) fn step(&mut self, by: isize) {
        let move_by = |at: usize, count: usize| at.saturating_add_signed(by).min(count.saturating_sub(1));
        match &mut self.overlay {
            Some(Overlay::Keys { scroll } | Overlay::Explanation(Explanation { scroll, .. })) => {
                *scroll = scroll.saturating_add_signed(by);
            }
            Some(Overlay::Question(question)) => question.scroll = question.scroll.saturating_add_signed(by),
            Some(Overlay::Line(_)) => self.step_line(by),
            None => match self.screen {
                Screen::Status => {
                    let count = self.status.as_ref().map_or(0, |status| status.modes.len());
                    self.mode_at = move_by(self.mode_at, count);
                }
                Screen::Live if self.live.pane == Pane::Sources => {
                    self.live.source_at = move_by(self.live.source_at, self.sources().len());
                }
                Screen::Live => self.live.choose(by),
                Screen::Flow => self.flow_scroll = self.flow_scroll.saturating_add_signed(by),
                Screen::Mappings => {
                    self.mappings.at = move_by(self.mappings.at, self.mappings.shown.len());
                    self.mappings.scroll = 0;
                }
                Screen::Plans => {
                    self.plans.at = move_by(self.plans.at, self.plans.list.len());
                    self.plans.scroll = 0;
                    self.ask_for_chosen_plan();
                }
                Screen::Features => {
                    self.features.at = move_by(self.features.at, self.feature_count());
                    self.features.scroll = 0;
                }
                Screen::Chat => match &mut self.chat.open {
                    Some(open) => open.back = open.back.saturating_add_signed(0_isize.saturating_sub(by)),
                    None => self.chat.at = move_by(self.chat.at, self.chat.list.len()),
                },
                Screen::Learn => self.learn.at = move_by(self.learn.at, self.learn.learned.controls.len()),
            },
        }
    }

    /// How far the lower part is scrolled, of a screen that has a list above it.
    pub(super) fn lower_scroll(&mut self) -> Option<&mut usize> {
        match self.screen {
            Screen::Status => Some(&mut self.status_scroll),
            Screen::Mappings => Some(&mut self.mappings.scroll),
            Screen::Plans => Some(&mut self.plans.scroll),
            Screen::Features => Some(&mut self.features.scroll),
            Screen::Live | Screen::Flow | Screen::Chat | Screen::Learn => None,
        }
    }

    /// A page up or down: of the lower part of the screen where it has two.
    fn page(&mut self, by: isize) {
        let page = isize::try_from(self.size.page()).unwrap_or(1) * by;
        let is_free = self.overlay.is_none();
        match self.lower_scroll().filter(|_| is_free) {
            Some(scroll) => *scroll = scroll.saturating_add_signed(page),
            None => self.step(page),
        }
    }

    /// To the first or the last.
    pub(super) fn end(&mut self, by: isize) {
        match (&mut self.overlay, self.screen, by) {
            (Some(Overlay::Line(prompt)), _, isize::MIN) => prompt.line.first(),
            (Some(Overlay::Line(prompt)), ..) => prompt.line.last(),
            // Events go on as they come.
            (None, Screen::Live, isize::MAX) if self.live.pane == Pane::Rows => self.live.pause(false),
            _ => self.step(by),
        }
    }

    fn ask_lock(&mut self) {
        let locked = self.status.as_ref().is_some_and(|status| status.lock.is_some());
        if locked {
            self.ask(
                "Unlock the show?",
                About::Text("Agents and lent tokens may change things again.".into()),
                Then::Do(Act::Lock { locked: false }),
            );
        } else {
            let about = "Until it is unlocked, or the host stops, agents and lent tokens change nothing. You still do.";
            self.ask("Lock the show?", About::Text(about.into()), Then::Do(Act::Lock { locked: true }));
        }
    }

    pub(super) fn open(&mut self) {
        if self.screen == Screen::Live {
            let Some(row) = self.row_to_open() else { return };
            let row = row.clone();
            let explain = Query::Explain { device: row.source.clone(), event: row.text.clone() };
            let is_event = row.kind == RowKind::Event;
            self.live.choose_row(row.number);
            self.overlay = Some(Overlay::Explanation(Explanation { row, rules: None, scroll: 0 }));
            // Of what is no event there is nothing to explain: it is all in the row.
            if is_event {
                self.requests.ask(explain);
            }
        } else if let Some(view) = self.chat.list.get(self.chat.at) {
            self.chat.open = Some(Conversation::new(view.id));
            self.ask_for_conversation();
        }
    }
}
