//! What clicks and the wheel do.

use super::State;
use super::layout::{self, List};
use super::live::Pane;
use crate::input::Command;

/// Lines that one step of the wheel moves by.
const WHEEL: isize = 3;

impl State {
    pub(super) fn click(&mut self, column: u16, row: u16) {
        if let Some(command) = layout::help_at(self, column, row) {
            self.command(command);
            return;
        }
        if self.overlay.is_some() || !self.size.is_enough() {
            return;
        }
        if let Some(screen) = layout::tab_at(self, column, row) {
            self.go(screen);
            return;
        }
        let Some((list, at)) = layout::list_at(self, row) else { return };
        match list {
            List::Modes => self.mode_at = at,
            List::Sources => {
                self.live.pane = Pane::Sources;
                self.live.source_at = at;
            }
            List::Rows => {
                let shown = layout::live_rows(self, layout::lower_rows(self));
                let number = shown.get(at).map(|row| row.number);
                self.live.pane = Pane::Rows;
                match number {
                    // A second click on the same opens it.
                    Some(number) if self.live.chosen == Some(number) => self.command(Command::Open),
                    Some(number) => self.live.choose_row(number),
                    None => {}
                }
            }
            List::Mappings => (self.mappings.at, self.mappings.scroll) = (at, 0),
            List::Plans => {
                (self.plans.at, self.plans.scroll) = (at, 0);
                self.ask_for_chosen_plan();
            }
            List::Features => (self.features.at, self.features.scroll) = (at, 0),
            List::Conversations if self.chat.at == at => self.command(Command::Open),
            List::Conversations => self.chat.at = at,
            List::Controls => self.learn.at = at,
        }
    }

    /// The wheel moves what it is over: the text of the lower part, or else what keys move.
    pub(super) fn wheel(&mut self, row: u16, by: isize) {
        let is_lower = self.overlay.is_none() && self.size.is_enough() && layout::is_in_lower(self, row);
        match self.lower_scroll().filter(|_| is_lower) {
            Some(scroll) => *scroll = scroll.saturating_add_signed(by * WHEEL),
            None => self.step(by * WHEEL),
        }
    }
}
