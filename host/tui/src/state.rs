//! What the shell knows and what it shows of it: a value that events change, without input or output.
//!
//! Keys, clicks and what the host says come in through [`State::input`] and [`State::receive`]; what is to be asked of the
//! host goes out through [`State::take_requests`]. Time comes in with them, too. Texts are as they came; the view escapes.

use std::collections::HashMap;
use std::time::Duration;

use conductor_config_view::ConfigView;
use conductor_host::host::status::Status;

use crate::api::{Query, Request};
use crate::input::{Key, Screen, lookup};
use chat::Chat;
use features::Features;
use layout::Size;
use learn::Learn;
use live::{HIGHLIGHT_TIMEOUT, Live};
use mappings::Mappings;
use overlay::{Explanation, Overlay};
use plans::Plans;
use requests::Requests;

pub(crate) mod chat;
mod commands;
mod event_control;
mod features;
mod form;
mod from_host;
pub(crate) mod layout;
pub(crate) mod learn;
pub(crate) mod light;
pub(crate) mod live;
mod mappings;
mod mouse;
pub(crate) mod overlay;
mod plans;
mod requests;

/// How long a notice stays.
const NOTICE_TIMEOUT: Duration = Duration::from_secs(8);

/// What a person does.
#[derive(Debug, Clone)]
pub(crate) enum Input {
    Key(Key),
    Paste(String),
    /// A click at a column and a row.
    Click(u16, u16),
    /// The wheel at a row: this many steps down.
    Wheel(u16, isize),
    Resize(u16, u16),
}

/// Whether there is a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Link {
    Connecting,
    Up,
    Lost { since: Duration, why: String },
}

/// How far a person can scroll: lines before the last page.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Extent {
    /// In what is in front.
    pub(crate) overlay: usize,
    /// In the lower part of the screen.
    pub(crate) lower: usize,
}

/// A sentence that is shown for a while.
#[derive(Debug)]
pub(crate) struct Notice {
    pub(crate) text: String,
    pub(crate) is_wrong: bool,
    until: Duration,
}

/// All of it.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) size: Size,
    /// Whether colours are shown.
    pub(crate) has_colour: bool,
    /// Since the program started.
    pub(crate) now: Duration,
    pub(crate) screen: Screen,
    pub(crate) overlay: Option<Overlay>,
    pub(crate) notice: Option<Notice>,
    pub(crate) link: Link,
    pub(crate) status: Option<Box<Status>>,
    /// How long the host had been running, and when that was.
    host_clock: Option<(Duration, Duration)>,
    pub(crate) config: Option<Box<ConfigView>>,
    /// When each mapping fired last, by its place in the list.
    pub(crate) fired: HashMap<usize, Duration>,
    /// The place of the chosen mode.
    pub(crate) mode_at: usize,
    pub(crate) status_scroll: usize,
    pub(crate) live: Live,
    pub(crate) flow_scroll: usize,
    pub(crate) mappings: Mappings,
    pub(crate) plans: Plans,
    pub(crate) features: Features,
    pub(crate) chat: Chat,
    pub(crate) learn: Learn,
    requests: Requests,
    last_status: Duration,
    is_changed: bool,
    pub(crate) has_ended: bool,
}

impl State {
    /// A state that knows nothing yet, for a terminal of this size.
    pub(crate) fn new(width: u16, height: u16, has_colour: bool) -> Self {
        Self {
            size: Size { width, height },
            has_colour,
            now: Duration::ZERO,
            screen: Screen::Status,
            overlay: None,
            notice: None,
            link: Link::Connecting,
            status: None,
            host_clock: None,
            config: None,
            fired: HashMap::new(),
            mode_at: 0,
            status_scroll: 0,
            live: Live::new(),
            flow_scroll: 0,
            mappings: Mappings::default(),
            plans: Plans::default(),
            features: Features::default(),
            chat: Chat::default(),
            learn: Learn::default(),
            requests: Requests::default(),
            last_status: Duration::ZERO,
            is_changed: true,
            has_ended: false,
        }
    }

    /// What is to be asked of the host from now on.
    pub(crate) fn take_requests(&mut self) -> Vec<Request> {
        std::mem::take(&mut self.requests.out)
    }

    /// Whether anything that is shown changed since this was asked last.
    pub(crate) fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.is_changed)
    }

    /// What is under way, for people.
    pub(crate) fn is_acting(&self) -> bool {
        !self.requests.acts.is_empty()
    }

    /// Lets time pass: rates, notices, and what is asked for again and again.
    pub(crate) fn tick(&mut self, now: Duration) {
        self.now = now;
        if self.live.tick(now) {
            self.is_changed |= matches!(self.screen, Screen::Live | Screen::Flow | Screen::Status);
        }
        self.fired.retain(|_, at| now.saturating_sub(*at) < HIGHLIGHT_TIMEOUT * 2);
        if self.notice.as_ref().is_some_and(|notice| now >= notice.until) {
            self.notice = None;
            self.is_changed = true;
        }
        // Ages are shown.
        self.is_changed |= matches!(self.link, Link::Lost { .. });
        let every = match self.screen {
            _ if self.session().is_some() => Duration::from_millis(200),
            Screen::Status | Screen::Features | Screen::Live => Duration::from_secs(1),
            _ => Duration::from_secs(3),
        };
        if self.link == Link::Up && now.saturating_sub(self.last_status) >= every {
            self.last_status = now;
            self.requests.ask(Query::Status);
        }
    }

    pub(crate) fn notice(&mut self, text: String, is_wrong: bool) {
        self.is_changed = true;
        self.notice = Some(Notice { text, is_wrong, until: self.now + NOTICE_TIMEOUT });
    }

    /// Takes in how far what is shown reaches: scrolling ends there.
    pub(crate) fn seen(&mut self, extent: Extent) {
        match &mut self.overlay {
            Some(Overlay::Keys { scroll } | Overlay::Explanation(Explanation { scroll, .. })) => {
                *scroll = (*scroll).min(extent.overlay);
            }
            Some(Overlay::Question(question)) => question.scroll = question.scroll.min(extent.overlay),
            Some(Overlay::Line(_)) | None => {}
        }
        let scroll = match self.screen {
            Screen::Flow => Some(&mut self.flow_scroll),
            Screen::Chat => self.chat.open.as_mut().map(|open| &mut open.back),
            _ => self.lower_scroll(),
        };
        if let Some(scroll) = scroll {
            *scroll = (*scroll).min(extent.lower);
        }
    }

    /// Takes in what a person does.
    pub(crate) fn input(&mut self, input: Input, now: Duration) {
        self.now = now;
        self.is_changed = true;
        match input {
            Input::Key(key) => {
                if let Some(command) = lookup(self.contexts(), key) {
                    self.command(command);
                } else if let (Some(Overlay::Line(prompt)), Some(letter)) = (&mut self.overlay, key.typed()) {
                    prompt.line.insert(letter.encode_utf8(&mut [0; 4]));
                    self.typed();
                }
            }
            Input::Paste(text) => {
                if let Some(Overlay::Line(prompt)) = &mut self.overlay {
                    prompt.line.insert(&text);
                    self.typed();
                }
            }
            Input::Click(column, row) => self.click(column, row),
            Input::Wheel(row, by) => self.wheel(row, by),
            Input::Resize(width, height) => self.size = Size { width, height },
        }
    }
}
