//! A server, a host behind it that answers as its paths say, and a browser that sends exactly the given bytes.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

pub use conductor_web::Limits;
use conductor_web::{Links, Pages, Server};
use tokio_util::sync::CancellationToken;

/// How long a test waits for anything.
pub const TEST_TIMEOUT: Duration = Duration::from_secs(60);
/// What a page of ours sends with each request that is not GET.
pub const SHELL: &str = "x-conductor-shell: 1";

/// What the host tells of a connection.
#[derive(Debug, PartialEq, Eq)]
pub enum ConnectionEvent {
    /// It was sent a body of so many bytes.
    Body(usize),
    /// The other side has left.
    Left,
    /// Nothing more could be written after so many bytes.
    Full(usize),
}

/// A host, as far as the server can see.
pub struct Host {
    socket: PathBuf,
    /// The heads of requests that came.
    heads: Arc<Mutex<Vec<String>>>,
    pub told: Receiver<ConnectionEvent>,
    /// Dropped or sent to, it ends an answer that is under way.
    pub end: Sender<()>,
}

impl Host {
    fn new(socket: PathBuf) -> Self {
        let listener = UnixListener::bind(&socket).unwrap();
        let heads: Arc<Mutex<Vec<String>>> = Arc::default();
        let (seen, (tell, told)) = (Arc::clone(&heads), channel());
        let (end, ended) = channel();
        let ended = Arc::new(Mutex::new(ended));
        // It ends with the process.
        thread::spawn(move || {
            for peer in listener.incoming() {
                let (seen, tell, ended) = (Arc::clone(&seen), tell.clone(), Arc::clone(&ended));
                thread::spawn(move || answer(peer.unwrap(), &seen, &tell, &ended));
            }
        });
        Self { socket, heads, told, end }
    }

    /// The heads of the requests that it got.
    pub fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }

    pub fn next(&self) -> ConnectionEvent {
        self.told.recv_timeout(TEST_TIMEOUT).expect("the host tells nothing")
    }
}

/// Bytes up to an empty line, and those behind it that came along.
fn head(peer: &mut impl Read) -> Option<(String, Vec<u8>)> {
    let mut came = Vec::new();
    loop {
        if let Some(end) = came.windows(4).position(|four| four == b"\r\n\r\n") {
            let rest = came.split_off(end + 4);
            return Some((String::from_utf8(came).unwrap().to_ascii_lowercase(), rest));
        }
        let mut piece = [0; 4096];
        let size = peer.read(&mut piece).ok().filter(|size| *size > 0)?;
        came.extend_from_slice(&piece[..size]);
    }
}

fn answer(
    mut peer: UnixStream,
    seen: &Mutex<Vec<String>>,
    tell: &Sender<ConnectionEvent>,
    ended: &Mutex<Receiver<()>>,
) {
    let Some((head, rest)) = head(&mut peer) else { return };
    seen.lock().unwrap().push(head.clone());
    let lines = "HTTP/1.1 200 OK\r\ncontent-type: application/x-ndjson\r\ntransfer-encoding: chunked\r\n\r\n8\r\n{\"n\":1}\n\r\n";
    match head.split([' ', '?']).nth(1).unwrap() {
        "/v1/lines" => {
            peer.write_all(lines.as_bytes()).unwrap();
            let mut watched = peer.try_clone().unwrap();
            let tell = tell.clone();
            thread::spawn(move || {
                if matches!(watched.read(&mut [0; 1]), Ok(0) | Err(_)) {
                    let _ = tell.send(ConnectionEvent::Left);
                }
            });
            let _ = ended.lock().unwrap().recv();
            let _ = peer.shutdown(std::net::Shutdown::Both);
        }
        "/v1/flood" => {
            // The system holds some of it; once it holds no more, the client does not read.
            peer.set_write_timeout(Some(Duration::from_secs(1))).unwrap();
            peer.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
            let mut sent = 0;
            while let Ok(size) = peer.write(&[b'x'; 64 * 1024]) {
                sent += size;
            }
            let _ = tell.send(ConnectionEvent::Full(sent));
            peer.set_read_timeout(None).unwrap();
            if matches!(peer.read(&mut [0; 1]), Ok(0) | Err(_)) {
                let _ = tell.send(ConnectionEvent::Left);
            }
        }
        "/v1/stream" => {
            peer.write_all(b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-accept: abc\r\n\r\n").unwrap();
            peer.write_all(&rest).unwrap();
            let mut piece = [0; 4096];
            while let Ok(size @ 1..) = peer.read(&mut piece) {
                peer.write_all(&piece[..size]).unwrap();
            }
            let _ = tell.send(ConnectionEvent::Left);
        }
        _ => {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let mut body = rest;
            match length.map(|length| length.parse::<usize>().unwrap()) {
                Some(length) => {
                    let mut more = vec![0; length - body.len()];
                    let _ = peer.read_exact(&mut more);
                    body.extend(more);
                }
                None if head.contains("transfer-encoding: chunked") => {
                    let mut piece = [0; 4096];
                    while !body.ends_with(b"0\r\n\r\n") {
                        let Ok(size @ 1..) = peer.read(&mut piece) else { break };
                        body.extend_from_slice(&piece[..size]);
                    }
                }
                None => {}
            }
            if !body.is_empty() {
                let _ = tell.send(ConnectionEvent::Body(body.len()));
            }
            let _ = peer.write_all(
                b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nset-cookie: a=b\r\nserver: secret\r\nx-hop: 1\r\nconnection: x-hop\r\n\
                  cache-control: public\r\naccess-control-allow-origin: *\r\ncontent-length: 11\r\n\r\n{\"ok\":true}",
            );
        }
    }
}

/// An answer, with its head in lower case.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let prefix = format!("{name}: ");
        self.head.lines().find_map(|line| line.strip_prefix(&prefix))
    }

    /// The error's code, if it has the shape of the API's errors.
    pub fn code(&self) -> String {
        let json: serde_json::Value = serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("{self:?}"));
        assert!(json["error"].as_str().is_some_and(|error| !error.is_empty()), "{json}");
        json["code"].as_str().unwrap().to_owned()
    }
}

/// A connection to a server.
pub struct Browser(pub TcpStream);

impl Browser {
    pub fn connect(port: u16) -> Self {
        let stream = TcpStream::connect(SocketAddr::from(([127, 0, 0, 1], port))).unwrap();
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        Self(stream)
    }

    /// Sends a request. Who is refused is not listened to any longer, and that is no error.
    pub fn send(&mut self, line: &str, headers: &[&str], body: &[u8]) {
        let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
        let _ = self.0.write_all(format!("{line} HTTP/1.1\r\n{headers}\r\n").as_bytes());
        let _ = self.0.write_all(body);
    }

    pub fn head(&mut self) -> (String, Vec<u8>) {
        head(&mut self.0).expect("the server hung up")
    }

    /// What comes until the server hangs up.
    pub fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        match self.0.read_to_end(&mut rest) {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => panic!("the server does not hang up"),
            // Who hangs up on bytes that were not read resets the connection.
            _ => rest,
        }
    }
}

/// A server with a host behind it.
pub struct Stage {
    pub port: u16,
    pub host: Host,
    links: Links,
    stop: CancellationToken,
    server: Option<thread::JoinHandle<()>>,
}

impl Stage {
    pub fn new(limits: Limits) -> Self {
        Self::with(limits, Pages::of([]))
    }

    pub fn with(limits: Limits, pages: Pages) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let socket = std::env::temp_dir().join(format!("conductor-web-{}-{number}.sock", std::process::id()));
        let _ = fs::remove_file(&socket);
        let host = Host::new(socket);
        let server = Server::bind(&host.socket, 0, pages, limits).unwrap();
        let (links, stop) = (server.links(), CancellationToken::new());
        let link = links.link().unwrap();
        let port = link.split('/').nth(2).unwrap().strip_prefix("127.0.0.1:").unwrap().parse().unwrap();
        let stopped = stop.clone();
        let server = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                tokio::select! {
                    served = server.serve() => served.unwrap(),
                    () = stopped.cancelled() => {}
                }
            });
        });
        Self { port, host, links, stop, server: Some(server) }
    }

    pub fn host_header(&self) -> String {
        format!("host: 127.0.0.1:{}", self.port)
    }

    pub fn origin(&self) -> String {
        format!("origin: http://127.0.0.1:{}", self.port)
    }

    /// The path of a new link.
    pub fn link(&self) -> String {
        let link = self.links.link().unwrap();
        link.strip_prefix(&format!("http://127.0.0.1:{}", self.port)).unwrap().to_owned()
    }

    /// The header with which a browser comes back that has signed in.
    pub fn sign_in(&self) -> String {
        let answer = self.ask(&format!("GET {}", self.link()), &[], b"");
        assert_eq!((answer.status, answer.header("location")), (303, Some("/")), "{answer:?}");
        let (pair, _) = answer.header("set-cookie").unwrap().split_once(';').unwrap();
        format!("cookie: {pair}")
    }

    /// Asks with our `Host` and these headers, and reads the answer to its end.
    pub fn ask(&self, line: &str, headers: &[&str], body: &[u8]) -> Answer {
        let (host, length) = (self.host_header(), format!("content-length: {}", body.len()));
        let mut all = vec![host.as_str()];
        all.extend(headers);
        if !body.is_empty() {
            all.push(&length);
        }
        self.raw(line, &all, body)
    }

    /// Asks with exactly these headers.
    pub fn raw(&self, line: &str, headers: &[&str], body: &[u8]) -> Answer {
        let mut browser = Browser::connect(self.port);
        let mut all = headers.to_vec();
        all.push("connection: close");
        browser.send(line, &all, body);
        let mut whole = browser.rest();
        let end = whole.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or_else(|| panic!("{line}: no answer"));
        let body = whole.split_off(end + 4);
        let head = String::from_utf8(whole).unwrap().to_ascii_lowercase();
        Answer { status: head.split(' ').nth(1).unwrap().parse().unwrap(), head, body }
    }

    /// Lets the host's socket go, as a host does that stops.
    pub fn host_stops(&self) {
        fs::remove_file(&self.host.socket).unwrap();
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.stop.cancel();
        let ended = self.server.take().unwrap().join();
        let _ = fs::remove_file(&self.host.socket);
        if !thread::panicking() {
            ended.unwrap();
        }
    }
}
