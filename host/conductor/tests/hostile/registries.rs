//! Registries that lie, on real sockets. Those that would lead elsewhere are in `host/install/src/download/tests.rs`,
//! over a network on which nothing is dialled.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use conductor_install::download::Timeouts;
use conductor_install::source::Source;
use conductor_services::http::SystemNetwork;

/// A server on this machine that answers every request with what `talk` writes; ends with the test's process.
fn serve(talk: impl Fn(&str, &mut TcpStream) + Send + Sync + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let talk = std::sync::Arc::new(talk);
    std::thread::spawn(move || {
        for peer in listener.incoming().flatten() {
            let talk = std::sync::Arc::clone(&talk);
            std::thread::spawn(move || {
                let mut peer = peer;
                let mut head = BufReader::new(peer.try_clone().unwrap()).lines().map_while(Result::ok);
                let first = head.next().unwrap_or_default();
                let _ = head.find(String::is_empty);
                talk(first.split(' ').nth(1).unwrap_or_default(), &mut peer);
            });
        }
    });
    port
}

const SHORT: Timeouts =
    Timeouts { head: Duration::from_secs(2), stall: Duration::from_secs(1), total: Duration::from_secs(5) };

fn pulled(port: u16) -> String {
    let source = Source::parse(&format!("oci://127.0.0.1:{port}/lamp:1"), None, None).unwrap();
    source.fetch_over(&SystemNetwork::new(), SHORT).map(drop).unwrap_err().to_string()
}

fn say(peer: &mut TcpStream, text: &str) {
    let _ = peer.write_all(text.as_bytes());
}

/// Writes until the other side hangs up.
fn flood(peer: &mut TcpStream, piece: &[u8]) {
    while peer.write_all(piece).is_ok() {}
}

#[test]
fn a_token_without_end() {
    let (sender, ports) = std::sync::mpsc::channel();
    let ports = std::sync::Mutex::new(ports);
    let port = serve(move |path, peer| {
        if path.starts_with("/v2/") {
            let own: u16 = ports.lock().unwrap().recv().unwrap();
            say(
                peer,
                &format!(
                    "HTTP/1.1 401 No\r\nwww-authenticate: Bearer realm=\"http://127.0.0.1:{own}/token\"\r\ncontent-length: 0\r\n\r\n"
                ),
            );
        } else {
            say(peer, "HTTP/1.1 200 OK\r\n\r\n{\"token\": \"");
            flood(peer, &[b'x'; 64 * 1024]);
        }
    });
    sender.send(port).unwrap();
    let error = pulled(port);
    assert!(error.contains("more than 65536 bytes"), "{error}");
}

#[test]
fn a_manifest_without_end() {
    let port = serve(|_, peer| {
        say(peer, "HTTP/1.1 200 OK\r\n\r\n");
        flood(peer, &[b' '; 64 * 1024]);
    });
    let error = pulled(port);
    assert!(error.contains("more than 1048576 bytes"), "{error}");
}

#[test]
fn a_head_without_end() {
    let port = serve(|_, peer| {
        say(peer, "HTTP/1.1 200 OK\r\n");
        flood(peer, b"x: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n");
    });
    let error = pulled(port);
    assert!(error.contains("head is too large"), "{error}");
}

#[test]
fn a_registry_that_says_nothing_stops_in_the_middle_or_drips() {
    let wait = |peer: &mut TcpStream| {
        let _ = std::io::Read::read(peer, &mut [0]);
    };
    let port = serve(move |_, peer| wait(peer));
    assert!(pulled(port).contains("no answer in time"));
    let port = serve(move |_, peer| {
        say(peer, "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{");
        wait(peer);
    });
    assert!(pulled(port).contains("did not come in time"));
    let port = serve(|_, peer| {
        say(peer, "HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n");
        while peer.write_all(b" ").is_ok() {
            std::thread::sleep(Duration::from_millis(100));
        }
    });
    assert!(pulled(port).contains("did not come in time"));
}

#[test]
fn a_content_length_that_lies() {
    let port = serve(|_, peer| say(peer, "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n{}"));
    let error = pulled(port);
    assert!(error.contains("127.0.0.1"), "{error}");
    let port = serve(|_, peer| say(peer, "HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999999\r\n\r\n{}"));
    pulled(port);
    let port = serve(|_, peer| say(peer, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{}x"));
    pulled(port);
}

/// A few kilobytes that would be gigabytes, if they were unpacked.
#[test]
fn an_encoding_that_unpacks_to_more() {
    let port =
        serve(|_, peer| say(peer, "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 2\r\n\r\n\x1f{"));
    let error = pulled(port);
    assert!(error.contains("encoding that was not asked for"), "{error}");
}

#[test]
fn a_registry_that_redirects_without_end_or_to_another_port() {
    let port = serve(|_, peer| say(peer, "HTTP/1.1 302 Found\r\nlocation: /again\r\ncontent-length: 0\r\n\r\n"));
    assert!(pulled(port).contains("too many redirects"));
    // The program that listens there is not the registry, and never gets a request.
    let (asked, was_asked) = std::sync::mpsc::channel();
    let asked = std::sync::Mutex::new(asked);
    let other = serve(move |_, _| asked.lock().unwrap().send(()).unwrap());
    let port = serve(move |_, peer| {
        say(peer, &format!("HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:{other}/x\r\ncontent-length: 0\r\n\r\n"));
    });
    let error = pulled(port);
    assert!(error.contains("a loopback address"), "{error}");
    let port = serve(move |_, peer| {
        let realm = format!("Bearer realm=\"http://127.0.0.1:{other}/token\"");
        say(peer, &format!("HTTP/1.1 401 No\r\nwww-authenticate: {realm}\r\ncontent-length: 0\r\n\r\n"));
    });
    let error = pulled(port);
    assert!(error.contains("a loopback address"), "{error}");
    assert!(was_asked.try_recv().is_err());
}
