//! Framing of the MCP socket: lines of JSON from an agent, bounded in length and nesting before they are parsed.
//!
//! A line beyond the bounds takes no memory beyond them. It is replaced by one that the protocol answers with an error,
//! so that the agent is notified and the connection goes on.

use std::io::Result;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncBufRead, AsyncRead, BufReader, ReadBuf};

/// Bytes of a line: the most that a tool takes, however much of it JSON has to escape.
pub const MAX_LINE: usize = 2 * 1024 * 1024;
/// Brackets within brackets.
pub const MAX_DEPTH: usize = 100;

/// What stands for a line that is not passed on: JSON, and no message of the protocol.
const INSTEAD: &[u8] = b"{\"jsonrpc\":\"2.0\",\"refused\":true}\n";

/// The lines of a reader, which are read from it. `refused` is called with the reason why a line is not passed on.
#[derive(Debug)]
pub struct Lines<R, F> {
    inner: BufReader<R>,
    refused: F,
    line: Vec<u8>,
    /// What of `line` is passed on already, once it is whole.
    passed: Option<usize>,
    /// Why the line that is being read is not passed on.
    why: Option<&'static str>,
    depth: usize,
    in_text: bool,
    escaped: bool,
}

impl<R: AsyncRead, F: FnMut(&str)> Lines<R, F> {
    /// The lines of `inner`.
    pub fn new(inner: R, refused: F) -> Self {
        let (line, inner) = (Vec::new(), BufReader::new(inner));
        Self { inner, refused, line, passed: None, why: None, depth: 0, in_text: false, escaped: false }
    }

    /// The next bytes of a line, up to its end.
    fn take(&mut self, bytes: &[u8]) {
        if self.why.is_none() {
            let deepest = self.deepest(bytes);
            if self.line.len() + bytes.len() > MAX_LINE {
                self.why = Some("the message is too long: at most 2 MiB are taken");
            } else if deepest > MAX_DEPTH {
                self.why = Some("the message is nested too deeply: at most 100 brackets within brackets are taken");
            } else {
                self.line.extend_from_slice(bytes);
            }
        }
        if self.why.is_some() {
            self.line = Vec::new();
        }
        if bytes.last() == Some(&b'\n') {
            if let Some(why) = self.why.take() {
                (self.refused)(why);
                self.line.extend_from_slice(INSTEAD);
            }
            (self.depth, self.in_text, self.escaped) = (0, false, false);
            self.passed = Some(0);
        }
    }

    /// How deep the brackets in these bytes go.
    fn deepest(&mut self, bytes: &[u8]) -> usize {
        let mut deepest = self.depth;
        for byte in bytes {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.in_text => self.escaped = true,
                b'"' => self.in_text = !self.in_text,
                b'[' | b'{' if !self.in_text => {
                    self.depth += 1;
                    deepest = deepest.max(self.depth);
                }
                b']' | b'}' if !self.in_text => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
        deepest
    }
}

impl<R: AsyncRead + Unpin, F: FnMut(&str) + Unpin> AsyncRead for Lines<R, F> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<Result<()>> {
        let this = self.get_mut();
        loop {
            if let Some(passed) = &mut this.passed {
                let rest = &this.line[*passed..];
                let count = rest.len().min(buffer.remaining());
                buffer.put_slice(&rest[..count]);
                *passed += count;
                if *passed == this.line.len() {
                    this.passed = None;
                    // What a long line took is given back.
                    this.line = Vec::new();
                }
                return Poll::Ready(Ok(()));
            }
            let available = ready!(Pin::new(&mut this.inner).poll_fill_buf(context))?;
            // The end: what is left of a line is none.
            if available.is_empty() {
                return Poll::Ready(Ok(()));
            }
            let end = available.iter().position(|byte| *byte == b'\n').map_or(available.len(), |at| at + 1);
            let bytes = available[..end].to_vec();
            Pin::new(&mut this.inner).consume(end);
            this.take(&bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt as _;

    fn read(said: &[u8]) -> (String, Vec<String>) {
        let (mut refused, mut out) = (Vec::new(), String::new());
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let mut lines = Lines::new(said, |why: &str| refused.push(why.to_owned()));
        runtime.block_on(lines.read_to_string(&mut out)).unwrap();
        drop(lines);
        (out, refused)
    }

    #[test]
    fn lines_that_may_be_pass_as_they_are() {
        let text = format!("{{\"a\": \"[[\\\"[[{}\"}}\n\n{}1{}\n", "[".repeat(500), "[".repeat(100), "]".repeat(100));
        assert_eq!(read(text.as_bytes()), (text.clone(), vec![]));
    }

    #[test]
    fn a_line_that_may_not_be_is_replaced_and_the_next_one_passes() {
        for wrong in ["[".repeat(101), "x".repeat(MAX_LINE), "[".repeat(10_000_000)] {
            let (out, refused) = read(format!("{wrong}\n{{}}\n").as_bytes());
            assert_eq!(out, format!("{}{{}}\n", String::from_utf8_lossy(INSTEAD)));
            assert_eq!(refused.len(), 1, "{refused:?}");
        }
    }
}
