//! The stream: in order, from a cursor, of some kinds; and a client that does not read slows no other down.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::client::{Lines, Socket, get, raw};
use super::{SHOW, Stage};

/// What a fader's move is called.
fn moved(told: &Value) -> u8 {
    let event = told["event"].as_str().unwrap();
    event.rsplit(' ').next().unwrap().parse().unwrap()
}

fn number(told: &Value) -> u64 {
    told["cursor"].as_str().unwrap().split_once('.').unwrap().1.parse().unwrap()
}

// API-1: a client that was away gets what it missed, once and in order.
#[test]
fn whoever_comes_back_with_a_cursor_gets_what_they_missed() {
    let stage = Stage::new(SHOW);
    let mut lines = Lines::open(stage.home(), "?kinds=event");
    stage.fader(1);
    let first = lines.next();
    assert_eq!((moved(&first), &first["device"]), (1, &json!("pads")), "{first}");
    drop(lines);
    (2..10).for_each(|value| stage.fader(value));
    let after = format!("?after={}&kinds=event", first["cursor"].as_str().unwrap());
    let mut again = Lines::open(stage.home(), &after);
    let mut socket = Socket::open(stage.home(), &after);
    stage.fader(10);
    for value in 2..=10 {
        let told = again.next();
        assert_eq!(moved(&told), value);
        // Word for word the same, however it is asked for.
        assert_eq!(socket.next(), told);
    }
    // From the beginning there is more than events.
    let mut start = Lines::open(stage.home(), "?after=start");
    let mut before = 0;
    loop {
        let told = start.next();
        assert_eq!(number(&told), before + 1, "nothing was lost");
        before += 1;
        if told["kind"] == "event" && moved(&told) == 10 {
            break;
        }
    }
}

/// A person's own profile of the controller that is there.
const PROFILE: &str = r#"
schema = 1
id = "acme-pads"
vendor = "Acme"
name = "Pads"
kinds = ["faders"]
[[sources]]
id = "manual"
title = "Manual"
publisher = "Acme"
[identity]
ports = { any = ["Pads"] }
source = "manual"
confidence = "high"
[[controls]]
name = "volume"
kind = "fader"
cc = 7
source = "manual"
confidence = "high"
"#;

// LRN-4: an event says which control it is of, where the profile of its device is known.
#[test]
fn a_control_is_called_by_its_name() {
    let stage = Stage::new(SHOW);
    std::fs::create_dir(stage.home().join("devices")).unwrap();
    std::fs::write(stage.home().join("devices/acme-pads.toml"), PROFILE).unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    while !stage.host().ports().ports.iter().any(|port| port.bindings.iter().any(|binding| binding == "pads")) {
        assert!(Instant::now() < deadline, "the port is not bound");
        std::thread::yield_now();
    }
    let (mut lines, mut socket) =
        (Lines::open(stage.home(), "?kinds=event"), Socket::open(stage.home(), "?kinds=event"));
    stage.fader(1);
    let told = lines.next();
    assert_eq!((&told["event"], &told["control"]), (&json!("cc 7 1"), &json!("volume")), "{told}");
    assert_eq!(socket.next(), told);
}

#[test]
fn only_the_kinds_that_were_asked_for_are_told() {
    let stage = Stage::new(SHOW);
    let mut both = Lines::open(stage.home(), "?kinds=mode,event");
    let mut modes = Lines::open(stage.home(), "?kinds=mode");
    stage.fader(1);
    stage.host().set_mode("Mix");
    assert_eq!((both.next()["kind"].as_str(), both.next()["kind"].as_str()), (Some("event"), Some("mode")));
    assert_eq!(modes.next()["mode"], "Mix");
}

// API-1: a cursor of another run can't be continued; what there is is sent, after a gap.
#[test]
fn a_cursor_of_another_run_is_a_gap_of_unknown_size() {
    let stage = Stage::new(SHOW);
    let mut lines = Lines::open(stage.home(), "?after=00000000.77");
    let told = lines.next();
    assert_eq!((&told["kind"], &told["lost"]), (&json!("gap"), &Value::Null), "{told}");
    let mut whole = Lines::open(stage.home(), "?after=start");
    assert_eq!(lines.next(), whole.next());
    // One from the future is none of this run, either.
    let run = told["cursor"].as_str().unwrap().split_once('.').unwrap().0.to_owned();
    assert_eq!(Lines::open(stage.home(), &format!("?after={run}.99999")).next()["kind"], "gap");
}

// API-1: a client that does not read gets the number of observations that it missed, and the others miss none.
#[test]
fn a_client_that_does_not_read_misses_something_and_holds_up_nobody() {
    let stage = Stage::new(SHOW);
    let mut slow = [Lines::open(stage.home(), "?kinds=event"), Lines::open(stage.home(), "?kinds=event")];
    let mut slow_socket = Socket::open(stage.home(), "?kinds=event");
    let mut quick: Vec<Lines> = (0..8).map(|_| Lines::open(stage.home(), "?kinds=event")).collect();
    // More than the ring and every buffer on the way hold.
    const MOVES: u32 = 30_000;
    let value = |turn: u32| u8::try_from(turn % 128).unwrap();
    for turn in 0..MOVES {
        stage.fader(value(turn));
        if turn % 1000 == 999 {
            for lines in &mut quick {
                (turn - 999..=turn).for_each(|turn| assert_eq!(moved(&lines.next()), value(turn)));
            }
        }
    }
    let newest = stage.host().observed().recorded();
    assert_eq!(newest, u64::from(MOVES));
    let told = |next: &mut dyn FnMut() -> Value| {
        let (mut events, mut lost) = (0, 0);
        while events + lost < u64::from(MOVES) {
            let told = next();
            match told["kind"].as_str() {
                Some("gap") => lost += told["lost"].as_u64().unwrap(),
                Some("event") => events += 1,
                _ => panic!("{told}"),
            }
        }
        assert_eq!(events + lost, u64::from(MOVES), "each was sent or counted");
        lost
    };
    for lines in &mut slow {
        assert!(told(&mut || lines.next()) > 10_000);
    }
    assert!(told(&mut || slow_socket.next()) > 10_000);
}

// RFC 6455: pings are answered, what is too long ends it, a close is answered.
#[test]
fn a_websocket_speaks_as_the_protocol_has_it() {
    let stage = Stage::new(SHOW);
    let mut socket = Socket::open(stage.home(), "?kinds=mode");
    socket.say(0x9, b"there?");
    assert_eq!(socket.frame(), (0x8A, b"there?".to_vec()));
    socket.say(0x1, b"what a client says is left alone");
    stage.host().set_mode("Mix");
    assert_eq!(socket.next()["mode"], "Mix");
    socket.say(0x8, &1000_u16.to_be_bytes());
    assert_eq!(socket.frame().0, 0x88);
    let mut long = Socket::open(stage.home(), "");
    long.say(0x1, &[b'x'; 5000]);
    while !long.is_over() {}
    let (status, _, _) = raw(stage.home(), "GET /v1/stream", "connection: upgrade\r\nupgrade: h2c\r\n", b"");
    assert_eq!(status, 426);
}

#[test]
fn the_number_of_streams_is_bounded() {
    let stage = Stage::new(SHOW);
    let mut open: Vec<Lines> = (0..192).map(|_| Lines::open(stage.home(), "")).collect();
    let (status, said) = get(stage.home(), "/v1/events");
    assert_eq!((status, &said["code"]), (429, &json!("too_many")), "{said}");
    stage.fader(5);
    assert_eq!(moved(&open[191].next()), 5);
    // A place becomes free as soon as a client leaves.
    open.truncate(150);
    let deadline = Instant::now() + Duration::from_secs(60);
    while stage.host().observed().history().watched() > 150 {
        assert!(Instant::now() < deadline, "those that left still have their places");
        stage.fader(6);
        std::thread::yield_now();
    }
    Lines::open(stage.home(), "");
}
