//! Lines of the Model Context Protocol: however they are cut, the same lines come out, as many as went in, and
//! none is nested deeper than may be.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use conductor_mcp::lines::{Lines, MAX_DEPTH, MAX_LINE};
use tokio::io::{AsyncRead, ReadBuf};

pub fn run(data: &[u8]) {
    let Some((&portion, said)) = data.split_first() else { return };
    let (whole, refused) = read(said, said.len());
    assert_eq!((&whole, refused), (&read(said, usize::from(portion) + 1).0, refused));

    let lines = |bytes: &[u8]| bytes.iter().filter(|byte| **byte == b'\n').count();
    assert_eq!(lines(&whole), lines(said), "each line that ended has an answer");
    assert!(refused <= lines(said));
    let (came, went) = (said.split_inclusive(|byte| *byte == b'\n'), whole.split_inclusive(|byte| *byte == b'\n'));
    let changed = came.zip(went).filter(|(came, went)| came != went).count();
    assert!(changed <= refused, "the others pass as they are");
    for line in whole.split(|byte| *byte == b'\n') {
        assert!(line.len() <= MAX_LINE && brackets(line) <= MAX_DEPTH);
    }
}

/// What comes out, and how many lines were refused.
fn read(said: &[u8], portion: usize) -> (Vec<u8>, usize) {
    let mut refused = 0;
    let mut lines = Lines::new(Portions { said, portion: portion.max(1) }, |_: &str| refused += 1);
    let mut out = Vec::new();
    let mut context = Context::from_waker(Waker::noop());
    loop {
        let mut bytes = [0; 512];
        let mut buffer = ReadBuf::new(&mut bytes);
        match Pin::new(&mut lines).poll_read(&mut context, &mut buffer) {
            Poll::Ready(Ok(())) if !buffer.filled().is_empty() => out.extend_from_slice(buffer.filled()),
            Poll::Ready(_) => break,
            Poll::Pending => unreachable!("there is always something, or the end"),
        }
    }
    drop(lines);
    (out, refused)
}

/// How deep the brackets of a line go that are in no text.
fn brackets(line: &[u8]) -> usize {
    let (mut depth, mut deepest, mut in_text, mut escaped) = (0_usize, 0, false, false);
    for byte in line {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            b'[' | b'{' if !in_text => depth += 1,
            b']' | b'}' if !in_text => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

/// A reader that hands out so many bytes at once.
struct Portions<'s> {
    said: &'s [u8],
    portion: usize,
}

impl AsyncRead for Portions<'_> {
    fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let (now, rest) = self.said.split_at(self.portion.min(buffer.remaining()).min(self.said.len()));
        buffer.put_slice(now);
        self.said = rest;
        Poll::Ready(Ok(()))
    }
}
