//! Conversations with models, as a person has them: over the Unix socket of a host that runs.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// The person.
#[derive(Debug, Clone)]
pub struct Person {
    socket: PathBuf,
}

impl Person {
    /// Who talks to the host that listens there.
    pub fn at(socket: &Path) -> Self {
        Self { socket: socket.to_owned() }
    }

    /// Sends a request; what comes back is the status and a reader of the body, chunks taken apart.
    fn send(&self, method: &str, path: &str, body: Option<&Value>) -> std::io::Result<(u16, BufReader<UnixStream>)> {
        let mut stream = UnixStream::connect(&self.socket)?;
        let body = body.map(Value::to_string).unwrap_or_default();
        // HTTP/1.0 has no chunks: the body ends with the connection.
        let head = format!(
            "{method} {path} HTTP/1.0\r\nhost: conductor\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all((head + &body).as_bytes())?;
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.ok_or_else(|| std::io::Error::other(format!("no status line: {line:?}")))?;
        while line.trim_end() != "" {
            line.clear();
            reader.read_line(&mut line)?;
        }
        Ok((status, reader))
    }

    /// What the host answers, with the status.
    ///
    /// # Errors
    /// If the host does not answer.
    pub fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> std::io::Result<(u16, Value)> {
        let (status, mut reader) = self.send(method, path, body)?;
        let mut text = String::new();
        reader.read_to_string(&mut text)?;
        Ok((status, serde_json::from_str(&text).unwrap_or(Value::String(text))))
    }

    /// The same, where the host has to agree.
    pub fn asks(&self, method: &str, path: &str, body: Option<&Value>) -> Value {
        let (status, answer) = self.ask(method, path, body).unwrap();
        assert!((200..300).contains(&status), "{method} {path}: {status}: {answer}");
        answer
    }

    /// Begins a conversation, and returns its number.
    pub fn begin(&self) -> u64 {
        self.asks("POST", "/v1/conversations", Some(&json!({})))["id"].as_u64().unwrap()
    }

    /// Says something. Returns after which event the turn's come.
    pub fn say(&self, conversation: u64, text: &str, model: Option<&str>) -> u64 {
        let say = json!({ "text": text, "model": model });
        let path = format!("/v1/conversations/{conversation}/turns");
        self.asks("POST", &path, Some(&say))["after"].as_u64().unwrap()
    }

    /// Calls `each` with the events of a conversation as they come, until it returns false, or the host is gone.
    pub fn follow(&self, conversation: u64, after: u64, follow: bool, mut each: impl FnMut(Value) -> bool) {
        let path = format!("/v1/conversations/{conversation}/events?after={after}&follow={follow}");
        let Ok((status, reader)) = self.send("GET", &path, None) else { return };
        assert_eq!(status, 200);
        for line in reader.lines() {
            // A line that was cut off by the end of the host was not shown.
            let Some(event) = line.ok().and_then(|line| serde_json::from_str(&line).ok()) else { return };
            if !each(event) {
                return;
            }
        }
    }

    /// The events of a conversation so far.
    pub fn events(&self, conversation: u64) -> Vec<Value> {
        let mut events = Vec::new();
        self.follow(conversation, 0, false, |event| {
            events.push(event);
            true
        });
        events
    }

    /// Says something, and returns the events of the whole turn.
    pub fn turn(&self, conversation: u64, text: &str, model: Option<&str>) -> Vec<Value> {
        let after = self.say(conversation, text, model);
        let mut events = Vec::new();
        self.follow(conversation, after, true, |event| {
            let is_over = event["kind"] == "turn_ended";
            events.push(event);
            !is_over
        });
        events
    }
}

/// What the model said in these events.
pub fn said(events: &[Value]) -> String {
    let texts = events.iter().filter(|event| event["kind"] == "text");
    texts.map(|event| event["text"].as_str().unwrap_or_default()).collect()
}

/// How the turn ended, and why. Both are empty if it did not.
pub fn end(events: &[Value]) -> (String, String) {
    let Some(end) = events.iter().rev().find(|event| event["kind"] == "turn_ended") else { return Default::default() };
    let text = |key: &str| end[key].as_str().unwrap_or_default().to_owned();
    (text("outcome"), text("why"))
}
