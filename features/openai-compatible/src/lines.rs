//! Server-sent events: from bytes in chunks of any size to the data of each event.
//!
//! Of the format (WHATWG HTML, 9.2.6) only `data` is looked at: the API uses nothing else.

/// Bytes of one event.
const MAX_EVENT: usize = 192 * 1024;

/// What came, as far as it is no whole event yet.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    /// The line that is not at its end.
    line: Vec<u8>,
    /// The data of the event that is not at its end.
    data: String,
    /// The last line ended with a carriage return: a line feed belongs to it.
    returned: bool,
}

/// An event is larger than any that makes sense.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

impl Lines {
    /// Takes more bytes, and hands over the data of each event that is whole now.
    pub(crate) fn push(&mut self, bytes: &[u8], mut event: impl FnMut(&str)) -> Result<(), TooLong> {
        for &byte in bytes {
            if std::mem::take(&mut self.returned) && byte == b'\n' {
                continue;
            }
            match byte {
                b'\r' | b'\n' => {
                    self.returned = byte == b'\r';
                    self.end_of_line(&mut event);
                }
                _ => self.line.push(byte),
            }
            if self.line.len() + self.data.len() > MAX_EVENT {
                return Err(TooLong);
            }
        }
        Ok(())
    }

    /// What came is all: an event without its empty line counts, for some servers forget it.
    pub(crate) fn end(&mut self, mut event: impl FnMut(&str)) {
        self.end_of_line(&mut event);
        self.end_of_line(&mut event);
    }

    fn end_of_line(&mut self, event: &mut impl FnMut(&str)) {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            let data = std::mem::take(&mut self.data);
            if !data.is_empty() {
                event(&data);
            }
        } else if let Some(data) = String::from_utf8_lossy(&line).strip_prefix("data:") {
            if !self.data.is_empty() {
                self.data.push('\n');
            }
            self.data.push_str(data.strip_prefix(' ').unwrap_or(data));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_out_whole_wherever_bytes_are_cut() {
        let text = "data: a\n\n: ping\r\n\r\nevent: x\rdata:b\rdata: ü\r\rid: 3\n\ndata: c".as_bytes();
        for cut in 0..=text.len() {
            let (mut lines, mut got) = (Lines::default(), Vec::new());
            lines.push(&text[..cut], |data| got.push(data.to_owned())).unwrap();
            lines.push(&text[cut..], |data| got.push(data.to_owned())).unwrap();
            lines.end(|data| got.push(data.to_owned()));
            assert_eq!(got, ["a", "b\nü", "c"], "{cut}");
        }
    }

    #[test]
    fn an_event_has_an_end() {
        let mut lines = Lines::default();
        assert_eq!(lines.push(&[b'x'; MAX_EVENT + 1], |_| ()), Err(TooLong));
    }
}
