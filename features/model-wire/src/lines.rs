//! Server-sent events: from bytes in chunks of any size to the data of each event.
//!
//! Of the format (WHATWG HTML, "Server-sent events", 9.2.6, 2026) only `data` is looked at: the APIs repeat in the data
//! what they say in `event`. An event that lies in one chunk is handed over as it lies there, without a copy.

use std::borrow::Cow;

use memchr::memchr2;

/// Bytes of one event. The largest are those that repeat a whole answer at its end.
pub const MAX_EVENT: usize = 4 * 1024 * 1024;

/// What came, as far as it is no whole event yet.
#[derive(Debug, Default)]
pub struct Lines {
    /// The line that is not at its end.
    line: Vec<u8>,
    /// The data of the event that is not at its end. `None` if no line of data came.
    data: Option<String>,
    /// The last line ended with a carriage return: a line feed belongs to it.
    returned: bool,
    /// Bytes came before: a byte order mark may only be the first.
    begun: bool,
}

/// An event is larger than [`MAX_EVENT`].
#[derive(Debug, PartialEq, Eq)]
pub struct TooLong;

impl Lines {
    /// Takes more bytes, and hands over the data of each event that is whole now.
    ///
    /// # Errors
    /// [`TooLong`]; what comes after is not looked at.
    pub fn push(&mut self, bytes: &[u8], mut event: impl FnMut(&str)) -> Result<(), TooLong> {
        let mut rest = bytes;
        while !rest.is_empty() {
            if std::mem::take(&mut self.returned) && rest[0] == b'\n' {
                rest = &rest[1..];
                continue;
            }
            let Some(end) = memchr2(b'\n', b'\r', rest) else {
                self.line.extend_from_slice(rest);
                return self.bounded();
            };
            let (line, after) = (&rest[..end], &rest[end + 1..]);
            self.returned = rest[end] == b'\r';
            rest = after;
            if self.line.is_empty() {
                let line = self.unmarked(line);
                // Most events are one line of data and an empty one.
                if self.data.is_none()
                    && let Some(data) = value(line)
                    && rest.first() == Some(&b'\n')
                    && !self.returned
                {
                    rest = &rest[1..];
                    hand_over(&text(data), &mut event);
                    continue;
                }
                self.end_of_line(line, &mut event);
            } else {
                let mut kept = std::mem::take(&mut self.line);
                kept.extend_from_slice(line);
                let whole = self.unmarked(&kept);
                self.end_of_line(whole, &mut event);
                kept.clear();
                self.line = kept;
            }
            self.bounded()?;
        }
        Ok(())
    }

    /// What came is all: an event without its empty line counts, for some servers forget it.
    pub fn end(&mut self, mut event: impl FnMut(&str)) {
        let line = std::mem::take(&mut self.line);
        let line = self.unmarked(&line);
        self.end_of_line(line, &mut event);
        self.end_of_line(b"", &mut event);
    }

    fn bounded(&self) -> Result<(), TooLong> {
        let size = self.line.len() + self.data.as_ref().map_or(0, String::len);
        if size > MAX_EVENT { Err(TooLong) } else { Ok(()) }
    }

    fn end_of_line(&mut self, line: &[u8], event: &mut impl FnMut(&str)) {
        if line.is_empty() {
            if let Some(data) = self.data.take() {
                hand_over(&data, event);
            }
        } else if let Some(data) = value(line) {
            match &mut self.data {
                Some(before) => {
                    before.push('\n');
                    before.push_str(&text(data));
                }
                None => self.data = Some(text(data).into_owned()),
            }
        }
    }

    /// The line without the byte order mark that a stream may begin with.
    fn unmarked<'l>(&mut self, line: &'l [u8]) -> &'l [u8] {
        if std::mem::replace(&mut self.begun, true) { line } else { line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line) }
    }
}

/// The value of a line `data: ...`. `None` if it is another.
fn value(line: &[u8]) -> Option<&[u8]> {
    let value = line.strip_prefix(b"data")?;
    match value.strip_prefix(b":") {
        Some(value) => Some(value.strip_prefix(b" ").unwrap_or(value)),
        // A name alone is an empty value.
        None => value.is_empty().then_some(value),
    }
}

fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// Events without data are ignored.
fn hand_over(data: &str, event: &mut impl FnMut(&str)) {
    if !data.is_empty() {
        event(data);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pieces: &[&[u8]]) -> Vec<String> {
        let (mut lines, mut got) = (Lines::default(), Vec::new());
        for piece in pieces {
            lines.push(piece, |data| got.push(data.to_owned())).unwrap();
        }
        lines.end(|data| got.push(data.to_owned()));
        got
    }

    #[test]
    fn events_come_out_whole_wherever_bytes_are_cut() {
        let text = "\u{feff}data: a\n\n: ping\r\n\r\nevent: x\rdata:b\rdata: ü\r\rid: 3\n\ndata\n\ndata:  two\r\n\r\ndatum: 1\n\n\
                    data: c"
            .as_bytes();
        let expected = ["a", "b\nü", " two", "c"];
        for cut in 0..=text.len() {
            assert_eq!(read(&[&text[..cut], &text[cut..]]), expected, "{cut}");
        }
        let single: Vec<&[u8]> = text.chunks(1).collect();
        assert_eq!(read(&single), expected);
    }

    #[test]
    fn an_event_has_an_end() {
        let mut lines = Lines::default();
        assert_eq!(lines.push(&vec![b'x'; MAX_EVENT + 1], |_| ()), Err(TooLong));
        let mut lines = Lines::default();
        let line = [b"data: ".as_slice(), &vec![b'x'; 1024 * 1024], b"\n"].concat();
        let refused = (0..5).find(|_| lines.push(&line, |_| ()).is_err());
        assert_eq!(refused, Some(3), "lines of data without an empty one add up");
    }

    #[test]
    fn bytes_that_are_no_text_are_marked() {
        assert_eq!(read(&[b"data: \xff\xfe!\n\n"]), ["\u{fffd}\u{fffd}!"]);
    }
}
