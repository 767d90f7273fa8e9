//! The example of a desktop program, opened: its window gets the pages and the API of the host within.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "in a test a panic is a result")]

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use conductor::api::client::Client;

#[allow(dead_code, reason = "the program's main is not a test's")]
#[path = "../examples/desktop.rs"]
mod example;

/// What a request is answered with.
fn ask(address: &str, path: &str, cookie: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nhost: {address}\r\ncookie: {cookie}\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

// API-2, SHL-1
#[test]
fn a_window_is_signed_in_at_the_host_within_and_closing_it_ends_both() {
    let home = std::env::temp_dir().join(format!("conductor-desktop-{}", std::process::id()));
    fs::create_dir_all(&home).unwrap();
    fs::write(home.join("config.toml"), "[[modes]]\nname = 'Desk'\n").unwrap();
    let mut opened = None;
    example::run(&home, |link| {
        let (address, path) = link.strip_prefix("http://").unwrap().split_once('/').unwrap();
        let signed_in = ask(address, &format!("/{path}"), "");
        let cookie = signed_in.lines().find_map(|line| line.strip_prefix("set-cookie: ")).expect(&signed_in);
        let cookie = cookie.split(';').next().unwrap();
        let page = ask(address, "/", "");
        assert!(page.starts_with("HTTP/1.1 200"), "{page}");
        assert!(ask(address, "/v1/modes", "").starts_with("HTTP/1.1 401"), "a window that is not signed in");
        let modes = ask(address, "/v1/modes", cookie);
        assert!(modes.contains("\"Desk\""), "{modes}");
        opened = Some(address.to_owned());
        Ok(())
    })
    .unwrap();
    let address = opened.unwrap();
    assert!(TcpStream::connect(&address).is_err(), "the pages are served on");
    assert!(Client::new(&home).status().is_err(), "the host goes on");
    let no_window = example::run(&home, |_| Err(std::io::Error::other("no window here"))).unwrap_err();
    assert_eq!(no_window.to_string(), "no window here");
    fs::remove_dir_all(&home).unwrap();
}
