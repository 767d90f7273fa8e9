//! Pages of a tool's answer: as many entries as a result has room for, and how to get those that follow.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Error;

/// Entries of one page, at most.
pub const MAX_ENTRIES: usize = 1000;
/// Bytes of the entries of one page, as JSON. A result has at most 256 KiB; the rest is for what stands beside them.
pub const MAX_BYTES: usize = 192 * 1024;
/// Bytes of a list that stands beside a page's entries, as JSON.
pub const MAX_BYTES_BESIDE: usize = 48 * 1024;

/// The arguments of a tool that takes nothing but where its page begins.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct After {
    /// Entries to skip.
    pub after: Option<i64>,
}

/// A page of entries.
#[derive(Debug)]
pub struct Page<T> {
    /// The entries, in their order.
    pub entries: Vec<T>,
    /// How many there are in all; `None` if the page has all of them.
    pub total: Option<usize>,
    /// How to get those that follow; `None` if none do.
    pub next: Option<String>,
}

impl<T: Serialize> Page<T> {
    /// The entries behind the first `after` ones, at most `most`, and at most [`MAX_BYTES`]. `shown` makes an entry; it
    /// is not called for those before the page.
    ///
    /// # Errors
    /// `invalid` if there are fewer than `after`; `exhausted` if the first entry has no room, with how to skip it.
    pub fn of<S>(
        all: impl IntoIterator<Item = S, IntoIter: ExactSizeIterator>,
        after: Option<i64>,
        most: usize,
        mut shown: impl FnMut(S) -> T,
    ) -> Result<Self, Error> {
        let all = all.into_iter();
        let total = all.len();
        let after = match after.map(usize::try_from) {
            None => 0,
            Some(Ok(after)) if after <= total => after,
            _ => return Err(Error::Invalid(format!("after = {} is not from 0 to {total}", after.unwrap_or(0)))),
        };
        let (mut entries, mut room) = (Vec::new(), MAX_BYTES);
        for entry in all.skip(after).take(most) {
            let entry = shown(entry);
            let size = size(&entry)?;
            if size > room {
                if entries.is_empty() {
                    return Err(Error::Exhausted(format!(
                        "entry {} of {total} has {size} bytes, of which an answer has at most {MAX_BYTES}; after = {} \
                         has those that follow",
                        after + 1,
                        after + 1
                    )));
                }
                break;
            }
            room -= size;
            entries.push(entry);
        }
        let end = after + entries.len();
        let next = (end < total).then(|| format!("after = {end} has the next ones, of {total} in all"));
        Ok(Self { total: (entries.len() < total).then_some(total), entries, next })
    }
}

/// How many entries a caller wants: from 1 to `most`, `usual` if nothing is said.
///
/// # Errors
/// `invalid`, with what is allowed.
pub fn limit(limit: Option<i64>, usual: usize, most: usize) -> Result<usize, Error> {
    let Some(limit) = limit else { return Ok(usual) };
    let wanted = usize::try_from(limit).ok().filter(|wanted| (1..=most).contains(wanted));
    wanted.ok_or_else(|| Error::Invalid(format!("the limit {limit} is not from 1 to {most}")))
}

/// The first entries, as many as have at most `bytes` as JSON, and how many were left out; `None` if none were.
///
/// # Errors
/// `failed` if an entry can't be written as JSON.
pub fn within<T: Serialize>(mut entries: Vec<T>, bytes: usize) -> Result<(Vec<T>, Option<usize>), Error> {
    let (all, mut room) = (entries.len(), bytes);
    for at in 0..all {
        let size = size(&entries[at])?;
        if size > room {
            entries.truncate(at);
            return Ok((entries, Some(all - at)));
        }
        room -= size;
    }
    Ok((entries, None))
}

/// Bytes of an entry in a list, as JSON.
fn size(entry: &impl Serialize) -> Result<usize, Error> {
    let text = serde_json::to_vec(entry).map_err(|error| Error::Failed(error.to_string()))?;
    Ok(text.len() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The page of the numbers below `total` that begins at `after`.
    fn numbers(total: usize, after: Option<i64>, most: usize) -> Result<Page<usize>, Error> {
        Page::of(0..total, after, most, |number| number)
    }

    fn refused<T>(result: Result<T, Error>) -> String {
        match result {
            Err(Error::Invalid(text) | Error::Exhausted(text)) => text,
            _ => panic!("it is taken"),
        }
    }

    #[test]
    fn what_fits_is_one_page_and_says_nothing_of_others() {
        let page = numbers(3, None, 10).expect("a page");
        assert_eq!((page.entries, page.total, page.next), (vec![0, 1, 2], None, None));
        assert!(numbers(0, None, 10).expect("a page").entries.is_empty());
    }

    #[test]
    fn pages_follow_each_other_by_count() {
        let page = numbers(5, None, 2).expect("a page");
        assert_eq!((page.entries, page.total), (vec![0, 1], Some(5)));
        assert_eq!(page.next.as_deref(), Some("after = 2 has the next ones, of 5 in all"));
        let page = numbers(5, Some(4), 2).expect("a page");
        assert_eq!((page.entries, page.total, page.next), (vec![4], Some(5), None));
        assert!(numbers(5, Some(5), 2).expect("a page").entries.is_empty());
    }

    #[test]
    fn a_page_has_no_more_bytes_than_there_is_room_for() {
        let text = "x".repeat(1000);
        let page = Page::of(0..1000, None, 1000, |_| text.as_str()).expect("a page");
        assert_eq!(page.entries.len(), MAX_BYTES / (text.len() + "\"\",".len()));
        let long = |number| if number == 1 { "x".repeat(MAX_BYTES) } else { String::new() };
        let page = Page::of(0..3, None, 10, long).expect("the entries before the long one");
        assert_eq!(page.entries.len(), 1);
        let said = refused(Page::of(0..3, Some(1), 10, long));
        assert!(said.starts_with("entry 2 of 3 has 196611 bytes") && said.contains("after = 2 has"), "{said}");
        assert_eq!(Page::of(0..3, Some(2), 10, long).expect("a page").entries.len(), 1);
    }

    #[test]
    fn what_is_out_of_range_is_refused_with_what_is_allowed() {
        assert_eq!(refused(numbers(5, Some(6), 2)), "after = 6 is not from 0 to 5");
        assert_eq!(refused(numbers(5, Some(-1), 2)), "after = -1 is not from 0 to 5");
        assert_eq!(refused(limit(Some(0), 10, 20)), "the limit 0 is not from 1 to 20");
        assert_eq!(refused(limit(Some(21), 10, 20)), "the limit 21 is not from 1 to 20");
        assert_eq!((limit(None, 10, 20).ok(), limit(Some(20), 10, 20).ok()), (Some(10), Some(20)));
    }

    #[test]
    fn what_stands_beside_a_page_is_cut_and_what_was_left_out_is_counted() {
        let texts = || vec!["ab"; 4];
        assert_eq!(within(texts(), 100).ok(), Some((texts(), None)));
        assert_eq!(within(texts(), 11).ok(), Some((vec!["ab"; 2], Some(2))));
    }
}
