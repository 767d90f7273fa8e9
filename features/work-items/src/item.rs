//! A work item, and what can happen to it. Pure: no store, no clock.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The longest title, in characters.
const MAX_TITLE: usize = 120;
/// The longest description or comment, in characters.
const MAX_TEXT: usize = 4000;
/// The most comments of one item.
const MAX_COMMENTS: usize = 100;

/// A work item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Item {
    /// Its number, from 1.
    pub number: u32,
    /// One line.
    pub title: String,
    /// Its description.
    pub description: String,
    /// When it was opened: milliseconds since 1970-01-01 UTC.
    pub opened: u64,
    /// When it was done.
    pub done: Option<u64>,
    /// What was said since, oldest first.
    pub comments: Vec<String>,
}

impl Item {
    /// Opens an item.
    ///
    /// # Errors
    /// A sentence: a title or a description that is empty or too long.
    pub fn open(number: u32, title: &str, description: &str, now: u64) -> Result<Self, String> {
        let title = text("title", title, MAX_TITLE)?;
        if title.contains('\n') {
            return Err("a title is one line".into());
        }
        let description =
            if description.trim().is_empty() { String::new() } else { text("description", description, MAX_TEXT)? };
        Ok(Self { number, title, description, opened: now, done: None, comments: Vec::new() })
    }

    /// Adds a comment.
    ///
    /// # Errors
    /// A sentence: an empty comment, one too long, or one too many.
    pub fn comment(&mut self, comment: &str) -> Result<(), String> {
        if self.comments.len() >= MAX_COMMENTS {
            return Err(format!("item {} has {MAX_COMMENTS} comments already", self.number));
        }
        self.comments.push(text("comment", comment, MAX_TEXT)?);
        Ok(())
    }

    /// Marks it as done.
    ///
    /// # Errors
    /// A sentence when it is done already.
    pub fn complete(&mut self, now: u64) -> Result<(), String> {
        if self.done.is_some() {
            return Err(format!("item {} is done already", self.number));
        }
        self.done = Some(now);
        Ok(())
    }
}

fn text(what: &str, text: &str, most: usize) -> Result<String, String> {
    let text = text.trim();
    let length = text.chars().count();
    if length == 0 || length > most {
        return Err(format!("a {what} has 1 to {most} characters, not {length}"));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn an_item_is_opened_talked_about_and_done_once() {
        let mut item = Item::open(1, " Tune the pads ", "", 10).unwrap();
        assert_eq!(item.title, "Tune the pads");
        item.comment("Left one first.").unwrap();
        item.complete(20).unwrap();
        assert_eq!(item.complete(30).unwrap_err(), "item 1 is done already");
        assert_eq!((item.done, item.comments.len()), (Some(20), 1));
    }

    #[test]
    fn what_is_empty_or_too_long_is_refused() {
        assert!(Item::open(1, "  ", "", 0).unwrap_err().contains("1 to 120"));
        assert!(Item::open(1, &"x".repeat(121), "", 0).is_err());
        assert!(Item::open(1, "a\nb", "", 0).unwrap_err().contains("one line"));
        let mut item = Item::open(1, "a", "", 0).unwrap();
        for _ in 0..MAX_COMMENTS {
            item.comment("x").unwrap();
        }
        assert!(item.comment("x").unwrap_err().contains("already"));
    }
}
