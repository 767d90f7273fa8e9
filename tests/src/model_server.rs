//! A server in the place of an API of models: what it does with each request is written as steps, so that it can do what
//! servers do that are broken, busy or hostile.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

/// How long the server goes on with something that has no end. Who asked is expected to hang up before.
const ENDLESS: Duration = Duration::from_secs(120);

/// What the server does next. After the last step it hangs up.
#[derive(Debug, Clone)]
pub enum Step {
    /// Sends this.
    Send(Vec<u8>),
    /// Does nothing for as long.
    Pause(Duration),
    /// Sends this again and again, with a pause before each, until the other side hangs up.
    Repeat(Vec<u8>, Duration),
    /// Waits until the other side hangs up.
    Hold,
    /// Breaks the connection off (RST).
    Reset,
}

/// A request that came.
#[derive(Debug, Clone)]
pub struct Request {
    /// `/v1/messages?x=y`.
    pub path: String,
    /// All header lines, as they came.
    pub head: String,
    /// The body; `null` if it is no JSON.
    pub body: Value,
}

/// The server. It ends with the process.
#[derive(Debug)]
pub struct Server {
    /// Its port on 127.0.0.1.
    pub port: u16,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    /// A server that does with every request what `answer` says.
    pub fn start(answer: impl Fn(&Request) -> Vec<Step> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (seen, answer) = (Arc::clone(&requests), Arc::new(answer));
        thread::spawn(move || {
            for peer in listener.incoming().flatten() {
                let (seen, answer) = (Arc::clone(&seen), Arc::clone(&answer));
                thread::spawn(move || serve(peer, &seen, &*answer));
            }
        });
        Self { port, requests }
    }

    /// The requests so far, in the order in which they came.
    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How many came so far.
    pub fn count(&self) -> usize {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

/// An answer with this status line, these header lines and a body of known length.
pub fn response(status: &str, headers: &[&str], body: &str) -> Vec<Step> {
    let mut text = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n", body.len());
    headers.iter().for_each(|line| text += &format!("{line}\r\n"));
    vec![Step::Send((text + "\r\n" + body).into_bytes())]
}

/// A stream of server-sent events that ends when the server hangs up.
pub fn stream(events: impl Into<Vec<u8>>) -> Vec<Step> {
    vec![Step::Send(STREAM.into()), Step::Send(events.into())]
}

/// The head of such a stream.
pub const STREAM: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

fn serve(mut peer: TcpStream, seen: &Mutex<Vec<Request>>, answer: &dyn Fn(&Request) -> Vec<Step>) {
    let _ = peer.set_nodelay(true);
    // The last byte is left unread for now: a socket that is closed with something unread breaks the connection off.
    let Some(request) = request(&mut peer) else { return };
    let steps = answer(&request);
    seen.lock().unwrap_or_else(PoisonError::into_inner).push(request);
    if matches!(steps.first(), Some(Step::Reset)) {
        return;
    }
    let _ = peer.read_exact(&mut [0]);
    for step in steps {
        match step {
            Step::Send(bytes) => {
                if peer.write_all(&bytes).is_err() {
                    return;
                }
            }
            Step::Pause(time) => thread::sleep(time),
            Step::Repeat(bytes, pause) => {
                let began = Instant::now();
                while began.elapsed() < ENDLESS {
                    thread::sleep(pause);
                    if peer.write_all(&bytes).is_err() {
                        return;
                    }
                }
            }
            Step::Hold => {
                let _ = peer.set_read_timeout(Some(ENDLESS));
                while peer.read(&mut [0; 64]).is_ok_and(|size| size > 0) {}
            }
            Step::Reset => return,
        }
    }
    // What the other side still sends must not turn the end into a break.
    let _ = peer.shutdown(Shutdown::Write);
    let _ = peer.set_read_timeout(Some(Duration::from_secs(1)));
    while peer.read(&mut [0; 4096]).is_ok_and(|size| size > 0) {}
}

/// A request but for the last byte of its body, which is not needed to understand it. `None` if the other side hangs up
/// before, or sends no body.
fn request(peer: &mut TcpStream) -> Option<Request> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        peer.read_exact(&mut byte).ok()?;
        head.extend_from_slice(&byte);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let length = |line: &str| line.to_ascii_lowercase().strip_prefix("content-length: ")?.trim().parse::<usize>().ok();
    let length = head.lines().find_map(length)?;
    let mut body = vec![0; length.checked_sub(1)?];
    peer.read_exact(&mut body).ok()?;
    body.push(b'}');
    let path = head.split(' ').nth(1)?.to_owned();
    Some(Request { path, body: serde_json::from_slice(&body).unwrap_or_default(), head })
}
