//! Servers of models that are broken, busy or hostile. Whatever one does, the turn ends within its limits and says why, the
//! key gets nowhere, and the conversation goes on afterwards.

#![allow(clippy::unwrap_used, reason = "in a test a panic is a result")]

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use conductor_tests::conductor::{Host, command};
use conductor_tests::conversation::{Person, end, said};
use conductor_tests::home::Home;
use conductor_tests::model_server::{Request, STREAM, Server, Step, response, stream};
use conductor_tests::wire::{INPUT, OUTPUT, Wire};
use serde_json::{Value, json};

/// What must get nowhere but to the server.
const KEY: &str = "sk-Hunter2-of-the-bad-servers";
/// KiB that the host's memory may have more at its highest than before: answers that are being read, and no bomb unpacked.
const MAX_GROWTH: u64 = 192 * 1024;
/// Tokens that the host takes an answer to have at most if nothing says how many.
const MAX_OUTPUT: u64 = 32_768;
/// What a server says that is well.
const FINE: &str = "All is well.";

/// How a turn ends.
#[derive(Debug, Clone, Copy)]
enum Ends {
    /// With an answer that says this.
    Says(&'static str),
    /// Without one; why has all these words.
    Fails(&'static [&'static str]),
    /// At the limit of its time.
    Late,
}
use Ends::{Fails, Late, Says};

/// What a server does, by the format that it speaks and the number of the attempt, from 0.
type Plays = fn(Wire, usize) -> Vec<Step>;

fn send(text: impl Into<Vec<u8>>) -> Vec<Step> {
    vec![Step::Send(text.into())]
}

fn fine(wire: Wire) -> Vec<Step> {
    stream(wire.says(FINE))
}

fn begun(wire: Wire, text: &str) -> String {
    wire.begin() + &wire.text(text)
}

/// A refusal once, and then an answer.
fn once(wire: Wire, attempt: usize, status: &str, headers: &[&str]) -> Vec<Step> {
    if attempt > 0 {
        return fine(wire);
    }
    response(status, headers, &wire.refusal("slow down"))
}

fn redirect(status: &str, to: &str) -> Vec<Step> {
    response(status, &[&format!("location: {to}")], "")
}

const METADATA: &str = "http://169.254.169.254/latest/meta-data/iam/security-credentials/";

/// `text` in as many chunks as bytes.
fn in_chunks(text: &[u8]) -> Vec<u8> {
    let mut all = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    text.iter().for_each(|byte| all.extend([&b"1\r\n"[..], &[*byte], b"\r\n"].concat()));
    all.extend(b"0\r\n\r\n");
    all
}

/// Bits as deflate packs them.
#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    used: u32,
}

impl Bits {
    /// The lowest `count` bits of `code`, the highest first.
    fn push(&mut self, code: u32, count: u32) {
        for at in (0..count).rev() {
            if self.used.is_multiple_of(8) {
                self.bytes.push(0);
            }
            let last = self.bytes.len() - 1;
            self.bytes[last] |= u8::try_from(code >> at & 1).unwrap() << (self.used % 8);
            self.used += 1;
        }
    }
}

/// Half a megabyte of gzip that unpacks to 80 MB of zeros.
fn bomb() -> Vec<u8> {
    const REPEATS: usize = 310_000;
    let mut bits = Bits::default();
    // The last block, with the fixed codes; a zero; the 258 bytes before, again and again; the end.
    bits.push(0b110, 3);
    bits.push(0b0011_0000, 8);
    for _ in 0..REPEATS {
        bits.push(0b1100_0101, 8);
        bits.push(0, 5);
    }
    bits.push(0, 7);
    let size = u32::try_from(1 + 258 * REPEATS).unwrap();
    [&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3][..], &bits.bytes, &[0; 4], &size.to_le_bytes()].concat()
}

/// A name, what the server does, and how the turn ends.
type Scene = (&'static str, Plays, Ends);

/// Every one.
#[rustfmt::skip]
const SCENES: &[Scene] = &[
    // Connections.
    ("hangs-up-at-once", |_, _| vec![], Fails(&["connection"])),
    ("resets", |_, _| vec![Step::Reset], Fails(&["connection"])),
    ("speaks-ssh", |_, _| send("SSH-2.0-OpenSSH_9.2\r\n"), Fails(&["invalid HTTP"])),
    ("hangs-up-within-the-head", |_, _| send("HTTP/1.1 200 OK\r\ncontent-ty"), Fails(&["connection"])),
    ("resets-within-the-answer", |wire, _| [stream(begun(wire, "Half")), vec![Step::Reset]].concat(), Fails(&["cut off"])),
    ("never-answers", |_, _| vec![Step::Hold], Late),
    ("stalls-within-the-head", |_, _| [send("HTTP/1.1 200 OK\r\n"), vec![Step::Hold]].concat(), Late),
    ("stalls-after-the-head", |_, _| [send(STREAM), vec![Step::Hold]].concat(), Late),
    ("stalls-within-the-answer", |wire, _| [stream(begun(wire, "Half")), vec![Step::Hold]].concat(), Late),
    ("stalls-within-an-event", |wire, _| [stream(begun(wire, "Half") + "data: {\"ty"), vec![Step::Hold]].concat(), Late),
    ("drips-without-end", |wire, _| [stream(begun(wire, "Half") + ":"), vec![Step::Repeat(b" ".into(), Duration::from_millis(100))]].concat(), Late),
    ("drips-an-answer", |wire, _| {
        let answer = wire.says(FINE);
        let mut steps = send(STREAM);
        for byte in answer.bytes() {
            steps.extend([Step::Send(vec![byte]), Step::Pause(Duration::from_micros(200))]);
        }
        steps
    }, Says(FINE)),
    // Heads.
    ("has-a-head-without-end", |_, _| [send("HTTP/1.1 200 OK\r\n"), vec![Step::Repeat(format!("x: {}\r\n", "y".repeat(4000)).into(), Duration::ZERO)]].concat(), Fails(&["head"])),
    ("has-too-many-headers", |wire, _| response("200 OK", &["x: y"; 101], &wire.whole("Half")), Fails(&["head"])),
    ("has-too-long-headers", |wire, _| response("200 OK", &[&format!("x: {}", "y".repeat(70_000))], &wire.whole("Half")), Fails(&["head"])),
    ("has-a-status-beyond-http", |wire, _| response("799 Odd", &[], &wire.whole("Half")), Fails(&["799"])),
    ("has-an-early-hint", |wire, _| [send("HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n"), fine(wire)].concat(), Says(FINE)),
    ("speaks-http-1-0", |wire, _| send(format!("HTTP/1.0 200 OK\r\n\r\n{}", wire.says(FINE))), Says(FINE)),
    ("says-two-lengths", |wire, _| send(format!("HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 7\r\n\r\n{}", wire.whole("Half"))), Fails(&["invalid"])),
    ("says-an-absurd-chunk", |_, _| send("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\n{"), Fails(&["chunk"])),
    ("ends-before-its-length", |wire, _| {
        let body = wire.whole("Half");
        send(format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len() + 100))
    }, Fails(&["body"])),
    ("ends-within-a-chunk", |wire, _| send(format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nfff\r\n{}", begun(wire, "Half"))), Fails(&["body"])),
    // Bodies.
    ("is-empty", |_, _| response("200 OK", &[], ""), Fails(&["empty"])),
    ("has-no-content", |_, _| send("HTTP/1.1 204 No Content\r\n\r\n"), Fails(&["empty"])),
    ("sends-a-page", |_, _| response("200 OK", &["content-type: text/html"], "<!doctype html><title>Please log in</title>"), Fails(&["an HTML page", "Please log in", "is `url` right?"])),
    ("sends-a-page-as-an-error", |_, _| response("404 Not Found", &["content-type: text/html"], "<html><head><title>nginx</title></head></html>"), Fails(&["404", "an HTML page: nginx"])),
    ("sends-plain-text", |_, _| response("200 OK", &[], "upstream connect error"), Fails(&["cut off"])),
    ("sends-an-empty-object", |_, _| response("200 OK", &[], "{}"), Fails(&["not understood"])),
    ("sends-an-empty-list", |_, _| response("200 OK", &[], "[]"), Fails(&["not understood"])),
    ("sends-half-a-json", |wire, _| {
        let body = wire.whole("Half");
        response("200 OK", &[], &body[..body.len() / 2])
    }, Fails(&["not understood"])),
    ("sends-json-that-is-deep", |_, _| response("200 OK", &[], &("{\"a\":".repeat(50_000) + "1" + &"}".repeat(50_000))), Fails(&["not understood"])),
    ("streams-json-that-is-deep", |wire, _| stream(wire.begin() + "data: " + &"[".repeat(200_000) + "\n\n"), Fails(&["not understood"])),
    ("streams-half-a-json", |wire, _| stream(begun(wire, "Half") + "data: {\"type\": \"content_blo\n\n"), Fails(&["not understood"])),
    ("streams-a-number-for-an-event", |wire, _| stream(begun(wire, "Half") + "data: 17\n\n"), Fails(&["not understood"])),
    ("stops-without-an-end", |wire, _| stream(begun(wire, "Half")), Fails(&["cut off"])),
    ("stops-within-an-event", |wire, _| stream(begun(wire, "Half") + "data: {\"type\":\"mess"), Fails(&[])),
    ("stops-within-a-character", |wire, _| {
        let mut text = begun(wire, "Grü").into_bytes();
        let at = text.windows(2).position(|two| two == "ü".as_bytes()).unwrap();
        text.truncate(at + 1);
        stream(text)
    }, Fails(&[])),
    ("cuts-every-character", |wire, _| send(in_chunks(wire.says("Grün — 音").as_bytes())), Says("Grün — 音")),
    ("sends-bytes-that-are-no-text", |wire, _| {
        let text = wire.says("All @ well.").into_bytes();
        stream(text.iter().map(|byte| if *byte == b'@' { 0xff } else { *byte }).collect::<Vec<u8>>())
    }, Says("All \u{fffd} well.")),
    ("breaks-lines-in-all-ways", |wire, _| stream(format!("\u{feff}: hello\r\nretry: 10\r\rid: 7\n{}", wire.says(FINE).replace("\n\n", "\r\n\r\n").replace("data: ", "data:"))), Says(FINE)),
    ("sends-an-answer-whole", |wire, _| response("200 OK", &["content-type: application/json"], &wire.whole(FINE)), Says(FINE)),
    ("calls-a-stream-something-else", |wire, _| response("200 OK", &["content-type: image/png"], &wire.says(FINE)), Says(FINE)),
    ("sends-events-to-come", |wire, _| stream(wire.begin() + &wire.unknown() + &wire.text(FINE) + &wire.unknown() + &wire.end()), Says(FINE)),
    ("goes-on-after-its-end", |wire, _| stream(wire.says(FINE) + &wire.text(" And more.") + &wire.says("Again.")), Says(FINE)),
    ("says-nothing", |wire, _| stream(wire.begin() + &wire.end()), Says("")),
    ("breaks-off", |wire, _| stream(begun(wire, "Half") + &wire.broken_off("we are overloaded")), Fails(&["broke off", "we are overloaded"])),
    ("packs-what-was-not-asked-for", |_, _| {
        let packed = bomb();
        let head = format!("HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\n\r\n", packed.len());
        send([head.as_bytes(), &packed].concat())
    }, Fails(&[])),
    ("packs-a-refusal", |_, _| {
        let packed = bomb();
        let head = format!("HTTP/1.1 400 No\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\n\r\n", packed.len());
        send([head.as_bytes(), &packed].concat())
    }, Fails(&["400"])),
    // Too much.
    ("talks-without-end", |wire, _| [stream(wire.begin()), vec![Step::Repeat(wire.text(&"bla ".repeat(4000)).into(), Duration::ZERO)]].concat(), Fails(&["more than 2 MiB"])),
    ("talks-without-end-in-one-event", |wire, _| [stream(wire.begin() + "data: {\"type\":\""), vec![Step::Repeat(vec![b'x'; 32_000], Duration::ZERO)]].concat(), Fails(&["without an end"])),
    ("pings-without-end", |wire, _| [stream(begun(wire, "Half")), vec![Step::Repeat(": ping\n\n".repeat(4000).into(), Duration::ZERO)]].concat(), Fails(&["too large"])),
    ("sends-events-to-come-without-end", |wire, _| [stream(begun(wire, "Half")), vec![Step::Repeat(wire.unknown().repeat(500).into(), Duration::ZERO)]].concat(), Fails(&["too large"])),
    ("sends-a-whole-without-end", |_, _| [send("HTTP/1.1 200 OK\r\n\r\n{\"a\": \""), vec![Step::Repeat(vec![b'x'; 32_000], Duration::ZERO)]].concat(), Fails(&["too large"])),
    ("hangs-up-within-a-refusal", |wire, _| send(format!("HTTP/1.1 403 No\r\ncontent-length: 999\r\n\r\n{}", wire.refusal("not you"))), Fails(&["403", "not you"])),
    ("refuses-without-end", |_, _| [send("HTTP/1.1 400 No\r\n\r\n"), vec![Step::Repeat(vec![b'x'; 32_000], Duration::ZERO)]].concat(), Fails(&["400"])),
    ("calls-ten-thousand-tools", |wire, _| stream(wire.begin() + &(0..10_000).map(|call| wire.call(call, "conductor_get_modes", "{}")).collect::<String>() + &wire.end()), Fails(&["128 tool calls"])),
    // Statuses.
    ("has-no-credit", |wire, _| response("402 Payment Required", &[], &wire.refusal("")), Fails(&["402", "no credit"])),
    ("knows-no-such-model", |wire, _| response("404 Not Found", &[], &wire.refusal("no model m")), Fails(&["404", "no model m"])),
    ("has-too-long-a-question", |wire, _| response("413 Too Large", &[], &wire.refusal("too long")), Fails(&["413", "too long", "/new"])),
    ("fails-always", |wire, _| response("500 Oops", &["retry-after: 0"], &wire.refusal("it broke")), Fails(&["500", "it broke"])),
    ("is-overloaded-always", |wire, _| response("529 Overloaded", &["retry-after: 0"], &wire.refusal("overloaded")), Fails(&["529", "overloaded"])),
    ("is-overloaded-once", |wire, attempt| once(wire, attempt, "529 Overloaded", &[]), Says(FINE)),
    ("is-a-bad-gateway-once", |wire, attempt| once(wire, attempt, "502 Bad Gateway", &["content-type: text/html"]), Says(FINE)),
    ("is-busy-always", |wire, _| response("429 Busy", &["retry-after: 0"], &wire.refusal("slow down")), Fails(&["429", "slow down"])),
    ("is-busy-for-no-time", |wire, attempt| once(wire, attempt, "429 Busy", &["retry-after: 0"]), Says(FINE)),
    ("is-busy-for-a-second", |wire, attempt| once(wire, attempt, "429 Busy", &["Retry-After:   1 "]), Says(FINE)),
    ("is-busy-until-a-day-gone-by", |wire, attempt| once(wire, attempt, "429 Busy", &["retry-after: Sun, 06 Nov 1994 08:49:37 GMT"]), Says(FINE)),
    ("is-busy-until-a-day-gone-by-as-of-old", |wire, attempt| once(wire, attempt, "429 Busy", &["retry-after: Sunday, 06-Nov-94 08:49:37 GMT"]), Says(FINE)),
    ("is-busy-without-a-time", |wire, attempt| once(wire, attempt, "429 Busy", &[]), Says(FINE)),
    ("is-busy-for-nonsense", |wire, attempt| once(wire, attempt, "429 Busy", &["retry-after: soon"]), Says(FINE)),
    ("is-busy-for-less-than-nothing", |wire, attempt| once(wire, attempt, "429 Busy", &["retry-after: -5"]), Says(FINE)),
    ("is-busy-for-a-fraction", |wire, attempt| once(wire, attempt, "429 Busy", &["retry-after: 0.3"]), Says(FINE)),
    ("is-busy-for-a-day", |wire, _| response("429 Busy", &["retry-after: 86400"], &wire.refusal("slow down")), Fails(&["429", "slow down", "try again after 86400 s"])),
    ("is-busy-for-ages", |wire, _| response("429 Busy", &["retry-after: 99999999999999999999"], &wire.refusal("slow down")), Fails(&["429", "slow down"])),
    ("is-busy-until-2093", |wire, _| response("429 Busy", &["retry-after: Fri, 06 Nov 2093 08:49:37 GMT"], &wire.refusal("slow down")), Fails(&["429", "06 Nov 2093"])),
    // Elsewhere.
    ("redirects-301", |_, _| redirect("301 Moved", METADATA), Fails(&["301", "write that address as `url`"])),
    ("redirects-302", |_, _| redirect("302 Found", METADATA), Fails(&["302", "write that address as `url`"])),
    ("redirects-307", |_, _| redirect("307 Moved", METADATA), Fails(&["307", "write that address as `url`"])),
    ("redirects-308", |_, _| redirect("308 Moved", METADATA), Fails(&["308", "write that address as `url`"])),
    ("redirects-beside", |_, _| redirect("307 Moved", &format!("http://127.0.0.1:{}/trap", trap())), Fails(&["307", "write that address as `url`"])),
    // The key.
    ("echoes-the-key", |wire, _| stream(wire.says(&format!("You sent {KEY}."))), Says("You sent ***.")),
    ("echoes-the-key-in-pieces", |wire, _| send(in_chunks(wire.says(&format!("You sent {KEY}.")).as_bytes())), Says("You sent ***.")),
    ("echoes-the-key-whole", |wire, _| response("200 OK", &[], &wire.whole(&format!("You sent {KEY}."))), Says("You sent ***.")),
    ("echoes-the-key-in-a-refusal", |wire, _| response("401 Unauthorized", &[], &wire.refusal(&format!("not a key: {KEY}"))), Fails(&["401", "not a key: ***"])),
    ("echoes-the-key-in-a-header", |wire, _| [send(format!("HTTP/1.1 429 Busy\r\nretry-after: {KEY}\r\nx-{KEY}: {KEY}\r\ncontent-length: 0\r\n\r\n")), fine(wire)].concat(), Fails(&["429", "***"])),
    ("echoes-the-key-in-a-broken-answer", |_, _| response("200 OK", &[], &format!("{{\"{KEY}\": {KEY}")), Fails(&["not understood"])),
    ("echoes-the-key-in-a-call", |wire, attempt| match attempt {
        0 => stream(wire.begin() + &wire.call(0, &format!("tool-{KEY}"), &json!({ "key": KEY }).to_string()) + &wire.end()),
        _ => fine(wire),
    }, Says(FINE)),
    ("echoes-the-key-as-an-error", |wire, _| stream(begun(wire, "Half") + &wire.broken_off(&format!("bad key {KEY}"))), Fails(&["bad key ***"])),
    // Texts that are meant for the terminal or the log.
    ("refuses-with-control-characters", |wire, _| response("400 No", &[], &wire.refusal("\u{1b}[2J\u{1b}]0;owned\u{7}\u{202e}gone")), Fails(&["400"])),
    // Calls.
    ("calls-a-tool-that-is-not-there", |wire, attempt| match attempt {
        0 => stream(wire.begin() + &wire.call(0, "conductor_apply_plan", "{}") + &wire.end()),
        _ => fine(wire),
    }, Says(FINE)),
    ("calls-a-tool-without-a-name", |wire, attempt| match attempt {
        0 => stream(wire.begin() + &wire.call(0, "", "{}") + &wire.end()),
        _ => fine(wire),
    }, Says(FINE)),
    ("calls-with-half-a-json", |wire, attempt| match (attempt, wire) {
        // In this format it is half an event.
        (0, Wire::Gemini) => fine(wire),
        (0, _) => stream(wire.begin() + &wire.call(0, "conductor_get_modes", "{\"mode\": \"Pl") + &wire.end()),
        _ => fine(wire),
    }, Says(FINE)),
    ("calls-with-a-list-of-arguments", |wire, attempt| match attempt {
        0 => stream(wire.begin() + &wire.call(0, "conductor_get_modes", "[1]") + &wire.end()),
        _ => fine(wire),
    }, Says(FINE)),
    // Counts.
    ("counts-in-fractions", |wire, _| stream(begun(wire, FINE) + &wire.end_with(&json!(100.0), &json!(20.0))), Says(FINE)),
    ("counts-below-zero", |wire, _| stream(begun(wire, FINE) + &wire.end_with(&json!(-5), &json!("many"))), Says(FINE)),
    ("counts-nothing", |wire, _| stream(begun(wire, FINE) + &wire.end_with(&Value::Null, &Value::Null)), Says(FINE)),
];

/// A port that must get no connection.
fn trap() -> u16 {
    static TRAP: std::sync::OnceLock<Server> = std::sync::OnceLock::new();
    let server = TRAP.get_or_init(|| Server::start(|_| panic!("a redirect was followed")));
    server.port
}

/// The scene that the last message names, and the bytes of the question.
fn scene_of(request: &Request) -> Option<(String, usize)> {
    let body = request.body.to_string();
    let at = body.rfind("scene:")?;
    Some((body[at + "scene:".len()..].split('!').next()?.to_owned(), body.len()))
}

/// A question as it came to a server: its bytes, and the status of the answer. `None` if the answer has none.
#[derive(Debug, Clone, Copy)]
struct Question {
    size: u64,
    status: Option<u16>,
}

/// The questions of each scene so far.
type Questions = Arc<Mutex<HashMap<String, Vec<Question>>>>;

/// The status that a server's first bytes have.
fn status(steps: &[Step]) -> Option<u16> {
    let Some(Step::Send(bytes)) = steps.first() else { return None };
    std::str::from_utf8(bytes.strip_prefix(b"HTTP/1.1 ")?.get(..3)?).ok()?.parse().ok()
}

/// A server that plays all scenes in this format.
fn server(wire: Wire, questions: Questions) -> Server {
    Server::start(move |request| {
        let Some((name, size)) = scene_of(request) else { return vec![] };
        let attempt = questions.lock().unwrap().get(&name).map_or(0, Vec::len);
        let steps = match SCENES.iter().find(|(scene, ..)| *scene == name) {
            Some((_, plays, _)) => plays(wire, attempt),
            None => fine(wire),
        };
        let question = Question { size: u64::try_from(size).unwrap(), status: status(&steps) };
        questions.lock().unwrap().entry(name).or_default().push(question);
        steps
    })
}

/// What is counted of exchanges.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counted {
    exchanges: u64,
    /// Of these, whose API did not say what they took.
    estimated: u64,
    input: u64,
    output: u64,
}

impl Counted {
    /// One that says so many tokens.
    const fn said(input: u64, output: u64) -> Self {
        Self { exchanges: 1, estimated: 0, input, output }
    }

    /// Those of a conversation so far.
    fn of(person: &Person, conversation: u64) -> Self {
        let usage = person.asks("GET", "/v1/usage?by=conversation", None);
        let number = conversation.to_string();
        let row = usage.as_array().unwrap().iter().find(|row| row["of"] == number.as_str());
        let Some(row) = row else { return Self::default() };
        let number = |value: &Value| value.as_u64().unwrap();
        let (exchanges, estimated) = (number(&row["exchanges"]), number(&row["estimated"]));
        Self { exchanges, estimated, ..Self::said(number(&row["tokens"]["input"]), number(&row["tokens"]["output"])) }
    }

    /// The one of an answer that is whole.
    fn answered(event: &Value) -> Self {
        let number = |value: &Value| value.as_u64().unwrap();
        let one = Self::said(number(&event["usage"]["input"]), number(&event["usage"]["output"]));
        Self { estimated: u64::from(event["estimated"] == true), ..one }
    }

    /// These without those. `None` if those are more.
    fn without(self, those: Self) -> Option<Self> {
        Some(Self {
            exchanges: self.exchanges.checked_sub(those.exchanges)?,
            estimated: self.estimated.checked_sub(those.estimated)?,
            input: self.input.checked_sub(those.input)?,
            output: self.output.checked_sub(those.output)?,
        })
    }

    /// Whether one exchange with an answer of these events is counted as what its answer said before it broke off, and, for
    /// the rest, as the estimate of one attempt at one of these questions.
    fn is_one_estimate(self, wire: Wire, events: &[Value], questions: &[Question]) -> bool {
        // Anthropic's says at its beginning what was read.
        let is_read = wire == Wire::Anthropic && self.input == INPUT;
        // Two bytes of the question's text for a token; the text is most of the request. Twice as many are beyond this.
        let is_input = |question: &Question| (question.size / 3..=question.size * 2 / 3).contains(&self.input);
        if (self.exchanges, self.estimated) != (1, 1) || !(is_read || questions.iter().any(is_input)) {
            return false;
        }
        let text = u64::try_from(said(events).len()).unwrap().div_ceil(2).min(MAX_OUTPUT);
        let is = |kind: &str| events.iter().any(|event| event["kind"] == kind);
        // Arguments of calls that are not whole count, and what a model that is elsewhere may have thought.
        if is("call_begun") || (wire == Wire::Compatible && !is("answered")) {
            return (text..=MAX_OUTPUT).contains(&self.output);
        }
        self.output == text.max(u64::from(is_read))
    }
}

/// What is wrong with what is counted of a turn in this scene: of each exchange what its answer said, or, if it did not say
/// that, the estimate for exactly one attempt.
fn miscounted(
    wire: Wire,
    (name, _, ends): &Scene,
    events: &[Value],
    questions: &[Question],
    counted: Counted,
) -> Option<String> {
    let exchanges: Vec<&[Value]> = events.split(|event| event["kind"] == "asked").skip(1).collect();
    let answer = |exchange: &[Value]| exchange.iter().find(|event| event["kind"] == "answered").map(Counted::answered);
    // Its first event says what was read and written by then; in these scenes the last one does not say anything that counts.
    let is_unsaid = wire == Wire::Anthropic && ["counts-below-zero", "counts-nothing"].contains(name);
    let whole = Counted::said(INPUT, if is_unsaid { 1 } else { OUTPUT });
    let mut rest = counted;
    for exchange in &exchanges {
        let Some(one) = answer(exchange) else { continue };
        if one != whole && !one.is_one_estimate(wire, exchange, questions) {
            return Some(format!("{one:?} is not what was said, nor one attempt of {questions:?}"));
        }
        match rest.without(one) {
            Some(less) => rest = less,
            None => return Some(format!("{counted:?} is less than the turn says")),
        }
    }
    let broken = exchanges.iter().rfind(|exchange| answer(exchange).is_none());
    let Some(broken) = broken.filter(|_| rest != Counted::default()) else {
        let is_begun = broken.is_some_and(|exchange| matches!(ends, Late) || !said(exchange).is_empty());
        return match rest == Counted::default() {
            true if is_begun => Some("an answer that broke off counts nothing".to_owned()),
            true => None,
            false => Some(format!("{rest:?} is counted beside the answers")),
        };
    };
    let is_refused = questions.last().and_then(|question| question.status).is_some_and(|it| (300..600).contains(&it));
    (is_refused || !rest.is_one_estimate(wire, broken, questions))
        .then(|| format!("{rest:?} is not one attempt of {questions:?}"))
}

/// Has a turn in this scene and one after it. Returns what is wrong.
fn play(wire: Wire, person: &Person, scene: &Scene, questions: &Questions) -> Result<(), String> {
    let (name, _, ends) = scene;
    let conversation = person.begin();
    let events = person.turn(conversation, &format!("scene:{name}!"), None);
    let counted = Counted::of(person, conversation);
    let (outcome, why) = end(&events);
    let text = said(&events);
    let told = json!(events).to_string();
    if told.contains(KEY) {
        return Err(format!("the key was passed on: {told}"));
    }
    if why.chars().any(char::is_control) {
        return Err(format!("why has control characters: {why:?}"));
    }
    match ends {
        Says(words) if outcome != "done" || text != *words => {
            return Err(format!("{outcome} {why:?}, {text:?}, and not {words:?}"));
        }
        Fails(words) if outcome != "failed" || why.len() < 20 || words.iter().any(|word| !why.contains(word)) => {
            return Err(format!("{outcome} {why:?}, and not {words:?}"));
        }
        Late if outcome != "limit" || !why.contains("`seconds` under [chat]") => {
            return Err(format!("{outcome} {why:?}, and no limit of time"));
        }
        _ => {}
    }
    let asked = questions.lock().unwrap().get(*name).cloned().unwrap_or_default();
    if let Some(why) = miscounted(wire, scene, &events, &asked, counted) {
        return Err(why);
    }
    // The conversation is whole: it is gone on with, and has all that was said.
    let after = person.turn(conversation, "scene:afterwards!", None);
    if (end(&after).0.as_str(), said(&after).as_str()) != ("done", FINE) {
        return Err(format!("afterwards: {:?}, {:?}", end(&after), said(&after)));
    }
    let more = Counted::of(person, conversation).without(counted);
    if more != Some(Counted::said(INPUT, OUTPUT)) {
        return Err(format!("afterwards {more:?} is counted"));
    }
    let kept = person.events(conversation);
    if kept[..events.len()] != events[..] || kept[kept.len() - after.len()..] != after[..] {
        return Err("what was shown is not what was kept".to_owned());
    }
    Ok(())
}

/// KiB that the process had at its highest.
fn peak(host: &Host) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", host.id())).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().split(' ').next()?.parse().ok()).unwrap_or(0)
}

/// Plays all scenes in one format. Returns what is wrong.
fn all(wire: Wire) -> Vec<String> {
    let questions = Questions::default();
    let server = server(wire, Arc::clone(&questions));
    let config = format!(
        "[chat]\nseconds = 20\n\n[tools.per_minute]\nmodel_requests = 100000\n\n[[modes]]\nname = 'Play'\n\n{}{}",
        wire.model("m", server.port),
        wire.grants(server.port)
    );
    let home = Home::new(&config);
    let mut run = command(home.path(), &["run"]);
    run.env("CONDUCTOR_SECRET_MODEL_KEY", KEY).env("CONDUCTOR_LOG", "debug");
    let host = Host::ready(&mut run, home.socket());
    let person = Person::at(&home.socket());
    person.turn(person.begin(), "scene:afterwards!", None);
    let before = peak(&host);
    let wrong = Mutex::new(Vec::new());
    let one = |scene: &Scene| {
        if let Err(why) = play(wire, &person, scene, &questions) {
            wrong.lock().unwrap().push(format!("{}, {}: {why}", wire.provider(), scene.0));
        }
    };
    thread::scope(|scope| {
        // Those that wait for their limit, beside each other and the others.
        let (late, others): (Vec<_>, Vec<_>) = SCENES.iter().partition(|(_, _, ends)| matches!(ends, Late));
        for scene in late {
            scope.spawn(move || one(scene));
        }
        others.into_iter().for_each(one);
    });
    let mut wrong = wrong.into_inner().unwrap();
    let grown = peak(&host) - before;
    if grown > MAX_GROWTH {
        wrong.push(format!("{}: the host took {grown} KiB more", wire.provider()));
    }
    let leaks = |text: &[u8]| text.windows(KEY.len()).any(|part| part == KEY.as_bytes());
    if !server.requests().first().is_some_and(|request| request.head.contains(KEY)) {
        wrong.push(format!("{}: the server did not get the key", wire.provider()));
    }
    let (ended, _) = host.stop();
    if leaks(ended.err.as_bytes()) || leaks(ended.out.as_bytes()) {
        wrong.push(format!("{}: the key is in the log", wire.provider()));
    }
    let mut folders = vec![home.path().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if leaks(&std::fs::read(&path).unwrap_or_default()) {
                wrong.push(format!("{}: the key is in {}", wire.provider(), path.display()));
            }
        }
    }
    wrong
}

#[test]
fn a_model_without_a_key_or_a_server_says_what_to_do() {
    // Nothing listens there any more.
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let server = server(Wire::OpenAi, Questions::default());
    for (port, key, words) in [
        (server.port, None, ["model-key", "conductor secret set model-key"]),
        (server.port, Some("short"), ["model-key", "fewer than 8 bytes"]),
        (closed, Some(KEY), ["unavailable", "Connection refused"]),
    ] {
        let config = format!("{}{}", Wire::OpenAi.model("m", port), Wire::OpenAi.grants(port));
        let home = Home::new(&config);
        let mut run = command(home.path(), &["run"]);
        if let Some(key) = key {
            run.env("CONDUCTOR_SECRET_MODEL_KEY", key);
        }
        let _host = Host::ready(&mut run, home.socket());
        let person = Person::at(&home.socket());
        let (outcome, why) = end(&person.turn(person.begin(), "scene:afterwards!", None));
        assert!(outcome == "failed" && words.iter().all(|word| why.contains(word)), "{outcome}: {why}");
    }
    assert_eq!(server.count(), 0, "without a key nothing is sent");
}

// LLM-1, LLM-5, LLM-6, REL-1
#[test]
fn a_turn_with_a_bad_server_ends_and_says_why() {
    let wrong: Vec<String> = thread::scope(|scope| {
        let wires = Wire::ALL.map(|wire| scope.spawn(move || all(wire)));
        wires.into_iter().flat_map(|wire| wire.join().unwrap()).collect()
    });
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), 4 * SCENES.len(), wrong.join("\n"));
}
