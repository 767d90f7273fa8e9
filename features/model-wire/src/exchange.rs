//! One exchange: from what is asked to what the response tells.
//!
//! A response is a stream of events, a whole answer, or a refusal. Which it is, its first byte says, not its
//! `content-type`: servers send one and name the other. What comes otherwise than it was asked for is read all the same,
//! and noted.

use conductor_feature::Error;
use conductor_feature::chat::Event;
use conductor_feature::details::{Abilities, Report};
use conductor_feature::provider::{Outgoing, Request};

use crate::answer::Answer;
use crate::fallback;
use crate::lines::Lines;
use crate::refusal::{MAX_REFUSAL, page_title, refusal};
use crate::request::calls_before;

/// Bytes of an answer that comes whole.
const MAX_WHOLE: usize = 8 * 1024 * 1024;

/// How an API writes its answers.
pub trait Format: Default {
    /// Takes the headers of a response with a status of 2xx; their names are in lower case.
    fn headers(&mut self, _headers: &[(String, String)], _answer: &mut Answer) {}

    /// Takes the data of one event of a stream.
    fn event(&mut self, data: &str, answer: &mut Answer);

    /// Takes a whole answer, JSON.
    fn whole(&mut self, body: &str, answer: &mut Answer);

    /// The stream is at its end. An answer that did not stop by then was cut off.
    fn end(&mut self, _answer: &mut Answer) {}

    /// What to do about a refusal with this status; empty if there is nothing to say.
    fn advice(_status: u16) -> &'static str {
        ""
    }
}

/// An exchange.
#[derive(Debug)]
pub struct Exchange<F> {
    abilities: Abilities,
    stream: bool,
    format: F,
    answer: Answer,
    /// The secret that it is asked with.
    secret: Option<String>,
    body: Body,
}

#[derive(Debug)]
enum Body {
    /// There was no head.
    None,
    /// Its first byte is yet to come.
    Unknown,
    Stream(Lines),
    Whole(Vec<u8>),
    /// With the status and headers that say so.
    Refused(u16, Vec<(String, String)>, Vec<u8>),
    /// A page for a browser.
    Page(Vec<u8>),
}

impl<F: Format> Default for Exchange<F> {
    fn default() -> Self {
        Self {
            abilities: Abilities { tools: true, streams: true, schema: true, output: None },
            stream: true,
            format: F::default(),
            answer: Answer::default(),
            secret: None,
            body: Body::None,
        }
    }
}

impl<F: Format> Exchange<F> {
    /// Takes what the model can do.
    pub fn expect(&mut self, model: Abilities) {
        self.abilities = model;
    }

    /// What to send, by `outgoing`, which gets a request that asks for nothing the model can't do, and may note what it
    /// leaves out.
    ///
    /// # Errors
    /// Those of `outgoing`.
    pub fn begin(
        &mut self,
        mut request: Request,
        outgoing: impl FnOnce(&Request, &Abilities, &mut Answer) -> Result<Outgoing, Error>,
    ) -> Result<Outgoing, Error> {
        self.answer.follow(calls_before(&request.question));
        if !self.abilities.tools {
            if !request.question.tools.is_empty() {
                self.answer.look_for_calls();
                self.answer.note("the model takes no tools; they are described in the instructions");
            }
            request.question = fallback::without_tools(request.question);
        }
        if !self.abilities.schema && request.question.how.schema.is_some() {
            self.answer.note("the model takes no schema; it is in the instructions");
            request.question = fallback::without_schema(request.question);
        }
        request.stream &= self.abilities.streams;
        self.stream = request.stream;
        let outgoing = outgoing(&request, &self.abilities, &mut self.answer)?;
        self.secret = outgoing.secret.as_ref().map(|secret| secret.id.clone());
        Ok(outgoing)
    }

    /// Takes the head of the response.
    pub fn head(&mut self, status: u16, headers: Vec<(String, String)>) {
        self.body = match status {
            200..=299 => {
                self.format.headers(&headers, &mut self.answer);
                Body::Unknown
            }
            _ => Body::Refused(status, headers, Vec::new()),
        };
    }

    /// Takes more of the body, and returns what it tells.
    pub fn body(&mut self, mut bytes: &[u8]) -> Vec<Event> {
        if matches!(self.body, Body::Unknown) {
            bytes = bytes.trim_ascii_start();
            self.body = match bytes.first() {
                None => Body::Unknown,
                Some(b'{' | b'[') => Body::Whole(Vec::new()),
                Some(b'<') => Body::Page(Vec::new()),
                Some(_) => Body::Stream(Lines::default()),
            };
        }
        let (answer, format) = (&mut self.answer, &mut self.format);
        match &mut self.body {
            Body::None => answer.fail(Error::Failed("the answer has no head".into())),
            Body::Unknown => {}
            Body::Stream(lines) => {
                if lines.push(bytes, |data| format.event(data, answer)).is_err() {
                    answer.fail(Error::Failed("the server sends an event without an end".into()));
                    self.body = Body::Unknown;
                }
            }
            Body::Whole(body) => {
                if body.len() + bytes.len() > MAX_WHOLE {
                    answer.fail(Error::Exhausted("the server sends an answer of more than 8 MiB".into()));
                } else {
                    body.extend_from_slice(bytes);
                }
            }
            Body::Refused(_, _, body) | Body::Page(body) => {
                body.extend_from_slice(&bytes[..bytes.len().min(MAX_REFUSAL - body.len())]);
            }
        }
        answer.take()
    }

    /// The body is at its end. Returns what that tells.
    pub fn end(&mut self) -> Vec<Event> {
        let (answer, format) = (&mut self.answer, &mut self.format);
        match &mut self.body {
            Body::None => answer.fail(Error::Failed("the answer has no head".into())),
            Body::Unknown => answer.fail(Error::Failed("the server's answer is empty".into())),
            Body::Stream(lines) => {
                if !self.stream {
                    answer.note("the server sent a stream although the whole answer was asked for");
                }
                lines.end(|data| format.event(data, answer));
                format.end(answer);
            }
            Body::Whole(body) => {
                if self.stream {
                    answer.note("the server sent the answer whole although a stream was asked for");
                }
                answer.cut_in_pieces();
                format.whole(&String::from_utf8_lossy(body), answer);
            }
            Body::Refused(status, headers, body) => {
                answer.fail(refusal(*status, headers, body, self.secret.as_deref(), F::advice(*status)));
            }
            Body::Page(body) => {
                let text = String::from_utf8_lossy(body);
                let title = page_title(&text).unwrap_or_default();
                let title: String = title.chars().take(200).collect();
                answer.fail(Error::Invalid(format!(
                    "the server sent an HTML page instead of an answer: {title:?} (is `url` right?)"
                )));
            }
        }
        answer.take()
    }

    /// What is known of the answer beside its events.
    pub fn report(&mut self) -> Report {
        self.answer.report()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::{read, read_cut_anywhere};
    use conductor_feature::chat::StopReason;

    /// Text alone; `.` ends it.
    #[derive(Debug, Default)]
    struct Plain;

    impl Format for Plain {
        fn event(&mut self, data: &str, answer: &mut Answer) {
            match data {
                "." => answer.stop(StopReason::Done),
                _ => answer.text(data),
            }
        }

        fn whole(&mut self, body: &str, answer: &mut Answer) {
            answer.text(body);
            answer.stop(StopReason::Done);
        }
    }

    #[test]
    fn what_a_response_is_its_first_byte_says() {
        assert_eq!(
            read_cut_anywhere::<Plain>(b"data: a\n\ndata: b\n\ndata: .\n\n"),
            ["text ab", "stop StopReason::Done"]
        );
        assert_eq!(read_cut_anywhere::<Plain>(b" \n{\"a\": 1}"), ["text {\"a\": 1}", "stop StopReason::Done"]);
        let page = read_cut_anywhere::<Plain>(b"<!doctype html><title>Log in</title>");
        assert!(page[0].contains("an HTML page instead of an answer: \\\"Log in\\\""), "{page:?}");
        assert_eq!(read_cut_anywhere::<Plain>(b"\n"), ["failed Error::Failed(\"the server's answer is empty\")"]);
        let endless = read(
            &mut Exchange::<Plain>::default(),
            200,
            &[b"data: ", &vec![b'x'; 5 * 1024 * 1024], b"\n\ndata: y\n\n"],
        );
        assert!(endless[0].contains("without an end") && endless.len() == 1, "{endless:?}");
        let large = vec![b' '; MAX_WHOLE];
        let large = read(&mut Exchange::<Plain>::default(), 200, &[b"{", &large, b"}"]);
        assert!(large[0].contains("more than 8 MiB"), "{large:?}");
        let refused = read(&mut Exchange::<Plain>::default(), 429, &[&vec![b'x'; MAX_REFUSAL * 2], b"more"]);
        assert!(refused[0].contains("Exhausted"), "{refused:?}");
        assert!(Exchange::<Plain>::default().end().len() == 1);
    }

    #[test]
    fn an_answer_that_comes_whole_is_told_in_pieces_and_noted() {
        let mut exchange = Exchange::<Plain>::default();
        exchange.head(200, Vec::new());
        let body = format!("{{{}}}", "some words ".repeat(50));
        assert!(exchange.body(body.as_bytes()).is_empty());
        assert!(exchange.end().len() > 5);
        assert_eq!(exchange.report().notes, ["the server sent the answer whole although a stream was asked for"]);
    }
}
