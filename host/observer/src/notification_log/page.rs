//! Pagination of the notification log: a page of notifications after a cursor, over the files of all features.
//!
//! Files are read while they are written. No lock is needed for that: what is not a whole line is skipped, a file that
//! is rotated meanwhile is read twice and its lines taken once, and what is written after the reading began is left
//! for the next page, so that a cursor never passes by a notification that comes to light later.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::ops::ControlFlow;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Line, MAX_TEXT, Notification, NotificationPage, current_file, folder, old_file};
use conductor_package::FeatureId;
use conductor_stdx::plain_file;

/// Notifications of one page, at most.
pub const MAX_PAGE: usize = 1000;
/// Bytes of the notifications of one page, as JSON, at most (2 MiB).
pub const MAX_PAGE_BYTES: usize = 2 * 1024 * 1024;
/// Bytes of a line, at most: each byte of the text may take six in JSON. What is longer is not ours.
const MAX_LINE: u64 = 32 * 1024;
/// Bytes at the end of a file in which its last line is looked for: room for it, and for one that is incomplete.
const TAIL_BYTES: u64 = 2 * MAX_LINE;

/// The order of a page.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// The oldest first: those right after the cursor.
    #[default]
    Oldest,
    /// The newest first.
    Newest,
}

impl Order {
    /// The word that the API uses.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Oldest => "oldest",
            Self::Newest => "newest",
        }
    }
}

/// Which notifications are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotificationQuery {
    /// Only those with a larger sequence number.
    pub after: u64,
    /// At most this many; no more than [`MAX_PAGE`] are returned.
    pub limit: usize,
    /// Only those of the feature with this name or whole id.
    pub feature: Option<String>,
    /// Which of them first.
    pub order: Order,
    /// As many as take up this many bytes as JSON, but at least one; no more than [`MAX_PAGE_BYTES`] are returned.
    pub max_bytes: usize,
}

impl Default for NotificationQuery {
    /// The first page of all notifications.
    fn default() -> Self {
        Self { after: 0, limit: MAX_PAGE, feature: None, order: Order::default(), max_bytes: MAX_PAGE_BYTES }
    }
}

impl NotificationQuery {
    /// Whether notifications of this feature are asked for.
    pub fn is_of(&self, feature: &FeatureId) -> bool {
        self.feature.as_deref().is_none_or(|wanted| wanted == feature.as_str() || wanted == feature.name())
    }
}

/// Reads notifications of this home. Whether a host runs there makes no difference.
///
/// # Errors
/// The file system's. A home without notifications is none.
pub fn read(home: &Path, query: &NotificationQuery) -> io::Result<NotificationPage> {
    let folder = folder(home);
    // Before the files are listed: a number that is on disk by now is in one of them.
    let last = last(&folder)?;
    let mut window = Window::new(query);
    if last > query.after {
        for feature in features(&folder)?.iter().filter(|feature| query.is_of(feature)) {
            each(&folder, feature, |notification, bytes| {
                if notification.sequence > last {
                    return ControlFlow::Break(());
                }
                if notification.sequence > query.after {
                    window.take(notification, bytes)
                } else {
                    ControlFlow::Continue(())
                }
            })?;
        }
    }
    Ok(window.page(last))
}

/// The part of what is asked for that fits into a page.
struct Window<'q> {
    query: &'q NotificationQuery,
    /// By sequence number, with the bytes that each takes up.
    kept: BTreeMap<u64, (Notification, usize)>,
    bytes: usize,
    /// The number of the last notification that had no room: all beyond it have none either.
    edge: Option<u64>,
}

impl<'q> Window<'q> {
    fn new(query: &'q NotificationQuery) -> Self {
        Self { query, kept: BTreeMap::new(), bytes: 0, edge: None }
    }

    /// Takes one if it fits. Breaks if no later one can.
    fn take(&mut self, notification: Notification, bytes: usize) -> ControlFlow<()> {
        let (order, sequence) = (self.query.order, notification.sequence);
        match (order, self.edge) {
            (Order::Oldest, Some(edge)) if sequence > edge => return ControlFlow::Break(()),
            (Order::Newest, Some(edge)) if sequence < edge => return ControlFlow::Continue(()),
            _ => {}
        }
        self.bytes += bytes;
        self.kept.insert(sequence, (notification, bytes));
        let (limit, max_bytes) = (self.query.limit.min(MAX_PAGE), self.query.max_bytes.min(MAX_PAGE_BYTES));
        while self.kept.len() > limit || (self.bytes > max_bytes && self.kept.len() > 1) {
            let beyond = match order {
                Order::Oldest => self.kept.pop_last(),
                Order::Newest => self.kept.pop_first(),
            };
            let Some((sequence, (_, bytes))) = beyond else { break };
            self.bytes -= bytes;
            self.edge = Some(sequence);
        }
        ControlFlow::Continue(())
    }

    fn page(self, last: u64) -> NotificationPage {
        let Self { query, kept, edge, .. } = self;
        let (first, end) = (kept.keys().next().copied(), kept.keys().next_back().copied());
        // The numbers that the page is about.
        let numbers = match (query.order, edge) {
            (_, None) => last.saturating_sub(query.after),
            (Order::Oldest, Some(_)) => end.unwrap_or(query.after) - query.after,
            (Order::Newest, Some(_)) => last - first.map_or(last, |first| first - 1),
        };
        let lost = query.feature.is_none().then(|| numbers.saturating_sub(kept.len() as u64));
        let mut notifications: Vec<Notification> = kept.into_values().map(|(notification, _)| notification).collect();
        if query.order == Order::Newest {
            notifications.reverse();
        }
        NotificationPage { notifications, more: edge.is_some(), lost, last, left_out: BTreeMap::new() }
    }
}

/// The features that have a log there.
pub(super) fn features(folder: &Path) -> io::Result<BTreeSet<FeatureId>> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
        entries => entries?,
    };
    let mut features = BTreeSet::new();
    for entry in entries {
        let name = entry?.file_name();
        let stem = name.to_str().and_then(|name| name.strip_suffix(".jsonl"));
        let stem = stem.map(|stem| stem.strip_suffix(".old").unwrap_or(stem));
        features.extend(stem.and_then(|stem| FeatureId::try_from(stem.replace('_', ":")).ok()));
    }
    Ok(features)
}

/// The largest sequence number there; 0 if there is none.
pub(super) fn last(folder: &Path) -> io::Result<u64> {
    let mut last = 0;
    for feature in features(folder)? {
        last = last.max(last_of(folder, &feature)?);
    }
    Ok(last)
}

/// The largest sequence number of a feature; 0 if it has none.
pub(super) fn last_of(folder: &Path, feature: &FeatureId) -> io::Result<u64> {
    for path in [current_file(folder, feature), old_file(folder, feature)] {
        let Some(mut file) = opened(&path)? else { continue };
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
        let mut tail = Vec::new();
        (&mut file).take(TAIL_BYTES).read_to_end(&mut tail)?;
        match tail.rsplit(|byte| *byte == b'\n').find_map(|line| parsed(line, feature)) {
            Some(notification) => return Ok(notification.sequence),
            None if length > TAIL_BYTES => break,
            None => {}
        }
    }
    // Several lines in a row that are none, or no line at all.
    let mut last = 0;
    each(folder, feature, |notification, _| {
        last = notification.sequence;
        ControlFlow::Continue(())
    })?;
    Ok(last)
}

/// Calls `take` with every notification of a feature, oldest first, and the bytes that it takes up, until that breaks.
fn each(
    folder: &Path,
    feature: &FeatureId,
    mut take: impl FnMut(Notification, usize) -> ControlFlow<()>,
) -> io::Result<()> {
    // In this order: with the file that is written open, what is in it is not missed if it becomes the old one.
    let current = opened(&current_file(folder, feature))?;
    let old = opened(&old_file(folder, feature))?;
    let (mut last, mut line) = (0, Vec::new());
    for file in [old, current].into_iter().flatten() {
        let mut reader = BufReader::new(file);
        loop {
            line.clear();
            if reader.by_ref().take(MAX_LINE).read_until(b'\n', &mut line)? == 0 {
                break;
            }
            let Some(notification) = parsed(&line, feature).filter(|notification| notification.sequence > last) else {
                continue;
            };
            last = notification.sequence;
            // In an answer it has its name beside its id.
            let bytes = line.len() + feature.name().len() + 16;
            if take(notification, bytes).is_break() {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// `None` if there is no such file.
fn opened(path: &Path) -> io::Result<Option<File>> {
    match plain_file::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        file => file.map(Some),
    }
}

/// The notification in a line of the log of this feature; `None` if it is no whole one, or another feature's.
fn parsed(line: &[u8], feature: &FeatureId) -> Option<Notification> {
    let Line { sequence, at, feature: of, mut text, left_out } = serde_json::from_slice(line).ok()?;
    text.truncate(text.floor_char_boundary(MAX_TEXT));
    let name = of.name().to_owned();
    (of == *feature && sequence > 0).then_some(Notification { sequence, at, feature: of, name, text, left_out })
}
