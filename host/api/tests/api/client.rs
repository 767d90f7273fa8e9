//! A client at the API's doors that implements HTTP/1.1 and WebSocket without the library that the server uses.

use std::fs;
use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

/// How long an answer may take before a test calls it missing.
const TEST_TIMEOUT: Duration = Duration::from_secs(60);
/// The header of a request whose body is JSON.
const JSON: &str = "content-type: application/json\r\n";

/// An answer: its status, and its body as JSON.
pub type Answer = (u16, Value);

fn connect(home: &Path) -> UnixStream {
    let stream = UnixStream::connect(home.join("conductor.sock")).unwrap();
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    stream
}

/// Sends a request with any head and body; returns the status, the head and the body.
pub fn raw(home: &Path, request: &str, head: &str, body: &[u8]) -> (u16, String, Vec<u8>) {
    exchange(&mut connect(home), request, &format!("host: x\r\n{head}"), body)
}

fn exchange(stream: &mut (impl Read + Write), request: &str, head: &str, body: &[u8]) -> (u16, String, Vec<u8>) {
    let length = body.len();
    let head = format!("{request} HTTP/1.1\r\nconnection: close\r\ncontent-length: {length}\r\n{head}\r\n");
    // At once, so that a body that the server does not look at is there when it answers. A server that does not take so
    // much may hang up before all of it has come.
    let _ = stream.write_all(&[head.as_bytes(), body].concat());
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let end = answer.windows(4).position(|at| at == b"\r\n\r\n").unwrap();
    let head = String::from_utf8(answer[..end].to_vec()).unwrap();
    (head[9..12].parse().unwrap(), head, answer[end + 4..].to_vec())
}

fn json((status, _, body): (u16, String, Vec<u8>)) -> Answer {
    (
        status,
        serde_json::from_slice(&body).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&body))),
    )
}

pub fn get(home: &Path, path: &str) -> Answer {
    json(raw(home, &format!("GET {path}"), "", b""))
}

pub fn post(home: &Path, path: &str, body: &Value) -> Answer {
    json(raw(home, &format!("POST {path}"), JSON, body.to_string().as_bytes()))
}

/// The same over TCP, with the token that this file of the home has.
pub fn post_by(home: &Path, token: &str, path: &str, body: &Value) -> Answer {
    by(home, token, &format!("POST {path}"), JSON, body.to_string().as_bytes())
}

/// [`get`] over TCP, with such a token.
pub fn get_by(home: &Path, token: &str, path: &str) -> Answer {
    by(home, token, &format!("GET {path}"), "", b"")
}

fn by(home: &Path, token: &str, request: &str, head: &str, body: &[u8]) -> Answer {
    let told: Value = serde_json::from_slice(&fs::read(home.join("api.json")).unwrap()).unwrap();
    let address = told["url"].as_str().unwrap().strip_prefix("http://").unwrap();
    let token = fs::read_to_string(home.join(token)).unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    let head = format!("host: {address}\r\nauthorization: Bearer {token}\r\n{head}");
    json(exchange(&mut stream, request, &head, body))
}

/// A stream of lines.
pub struct Lines(BufReader<UnixStream>);

impl Lines {
    /// Begins to listen, and does not read yet.
    pub fn open(home: &Path, query: &str) -> Self {
        let mut stream = connect(home);
        stream.write_all(format!("GET /v1/events{query} HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes()).unwrap();
        let mut lines = Self(BufReader::new(stream));
        let head = lines.line();
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        while lines.line() != "\r\n" {}
        lines
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        assert_ne!(self.0.read_line(&mut line).unwrap(), 0, "the stream has ended");
        line
    }

    /// The next message. What is between messages is the lengths of chunks.
    pub fn next(&mut self) -> Value {
        loop {
            let line = self.line();
            if line.starts_with('{') {
                return serde_json::from_str(&line).unwrap();
            }
        }
    }
}

/// A WebSocket.
pub struct Socket(BufReader<UnixStream>);

impl Socket {
    pub fn open(home: &Path, query: &str) -> Self {
        let mut stream = connect(home);
        let shake = "host: x\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
                     sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
        stream.write_all(format!("GET /v1/stream{query} HTTP/1.1\r\n{shake}\r\n").as_bytes()).unwrap();
        let mut socket = Self(BufReader::new(stream));
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(socket.0.read_line(&mut head).unwrap(), 0, "{head}");
        }
        assert!(head.starts_with("HTTP/1.1 101"), "{head}");
        assert!(head.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "{head}");
        socket
    }

    /// The next frame: its first byte, and what is in it.
    pub fn frame(&mut self) -> (u8, Vec<u8>) {
        let mut head = [0; 2];
        self.0.read_exact(&mut head).unwrap();
        let length = match head[1] {
            126 => {
                let mut long = [0; 2];
                self.0.read_exact(&mut long).unwrap();
                u16::from_be_bytes(long).into()
            }
            127 => panic!("a message that is longer than any that the server sends"),
            short => usize::from(short),
        };
        let mut payload = vec![0; length];
        self.0.read_exact(&mut payload).unwrap();
        (head[0], payload)
    }

    /// The next message of text.
    pub fn next(&mut self) -> Value {
        let (head, payload) = self.frame();
        assert_eq!(head, 0x81, "one whole message of text");
        serde_json::from_slice(&payload).unwrap()
    }

    /// Says something, as clients do: under a mask, here of zeros.
    pub fn say(&mut self, opcode: u8, payload: &[u8]) {
        let mut frame = vec![0x80 | opcode];
        match payload.len() {
            short @ 0..126 => frame.push(0x80 | short as u8),
            long => {
                frame.push(0x80 | 126);
                frame.extend(u16::try_from(long).unwrap().to_be_bytes());
            }
        }
        frame.extend([0; 4]);
        frame.extend(payload);
        self.0.get_mut().write_all(&frame).unwrap();
    }

    /// Whether the host has hung up.
    pub fn is_over(&mut self) -> bool {
        matches!(self.0.read(&mut [0; 64]), Ok(0) | Err(_))
    }
}
