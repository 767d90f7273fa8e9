//! PERF-7: what answers of models cost on their way: a stream through each provider's guest, a piece from the server to who
//! follows the conversation, whole turns beside the vendor's SDK, many of them at once, and what events feel of that.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail};
use conductor_api::client::Client as Api;
use conductor_api::types::{ConversationEvents, Say};
use conductor_chat::record::{ChatEvent, Outcome};
use conductor_chat::{Message, Parameters, Part, Question, Speaker, ToolChoice};
use conductor_sandbox::PreparedFeature;
use conductor_sandbox::exchange::{Abilities, Endpoint, Exchange, Request};
use model_wire::Format;
use serde_json::{Value, json};

use crate::arguments::Arguments;
use crate::components::Lane;
use crate::measure::{give_way, median, quantile};
use crate::process::{self, resident};
use crate::report::{Limit, Section, Unit};
use crate::round_trip::client::Client as Player;
use crate::round_trip::peers::{self, Peer, free_port};
use crate::scratch::Folder;
use crate::sdk::Sdk;

/// Bytes of a stream that goes through a guest.
const STREAM: usize = 4 << 20;
/// Bytes that come from a socket at once.
const READ: usize = 16 * 1024;
/// Turns that a guest and the same code natively take.
const ROUNDS: usize = 9;
/// Pieces that are given one at a time.
const SINGLE: usize = 5000;
/// What a piece of a stream says: a word or two, as APIs send them.
const WORDS: &str = "of the pads, ";
/// Pieces of an answer whose way through the host is timed, and the time between them.
const PIECES: (usize, Duration) = (400, Duration::from_millis(4));
/// Conversations that are open, and turns at once.
pub const MANY: usize = 100;
/// Pieces of an answer in each of those turns.
const SHORT: usize = 25;
/// Turns that the host, the bare request and the SDK take where they are compared.
const COMPARED: usize = 21;
/// Between two events that a controller plays meanwhile: 1000 a second.
const PACE: Duration = Duration::from_millis(1);
/// For how long it plays.
const PLAYED: Duration = Duration::from_secs(4);
/// Nothing takes longer.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Measures the row.
pub fn measure(arguments: &Arguments, section: &mut Section<'_>) -> Result<()> {
    guests(arguments, section)?;
    turns(arguments, section)?;
    // Last: it needs what may not be there.
    beside_sdk(arguments, section)
}

/// How an API streams: a beginning, a piece with this text, and an end.
struct Wire {
    provider: &'static str,
    feature: &'static str,
    begin: fn() -> Value,
    piece: fn(&str) -> Value,
}

const WIRES: [Wire; 4] = [
    Wire {
        provider: "anthropic",
        feature: "anthropic",
        begin: || json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "" } }),
        piece: |text| json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": text } }),
    },
    Wire {
        provider: "gemini",
        feature: "gemini",
        begin: || json!({ "candidates": [], "modelVersion": "m" }),
        piece: |text| {
            let content = json!({ "parts": [{ "text": text }], "role": "model" });
            let usage = json!({ "promptTokenCount": 31, "candidatesTokenCount": 2, "totalTokenCount": 33 });
            json!({ "candidates": [{ "content": content, "index": 0 }], "usageMetadata": usage, "modelVersion": "m" })
        },
    },
    Wire {
        provider: "openai",
        feature: "openai",
        begin: || json!({ "type": "response.created", "response": { "id": "r", "status": "in_progress" } }),
        piece: |text| {
            json!({
                "type": "response.output_text.delta", "sequence_number": 7, "item_id": "msg_68a1b2c3d4", "output_index": 0,
                "content_index": 0, "delta": text, "logprobs": [],
            })
        },
    },
    Wire { provider: "openai-compatible", feature: "openai-compatible", begin: compatible_begin, piece: compatible },
];

fn compatible_begin() -> Value {
    json!({ "id": "c", "model": "m", "choices": [{ "index": 0, "delta": { "role": "assistant", "content": "" } }] })
}

/// A piece of an answer of Chat Completions.
pub fn compatible(text: &str) -> Value {
    json!({
        "id": "chatcmpl-68a1b2c3d4", "object": "chat.completion.chunk", "created": 1_790_000_000, "model": "m",
        "choices": [{ "index": 0, "delta": { "content": text }, "finish_reason": null }],
    })
}

/// An event of a stream.
pub fn event(value: &Value) -> String {
    match value["type"].as_str() {
        Some(kind) => format!("event: {kind}\ndata: {value}\n\n"),
        None => format!("data: {value}\n\n"),
    }
}

/// An exchange with a guest that has begun and got the head of the answer.
async fn begun(feature: &PreparedFeature, wire: &Wire) -> Result<Exchange> {
    let how = Parameters { max_tokens: None, temperature: None, top_p: None, stop: vec![], schema: None, effort: None };
    let messages = vec![Message { speaker: Speaker::User, parts: vec![Part::Text("Go on.".into())] }];
    let question = Question { instructions: String::new(), messages, tools: Vec::new(), choice: ToolChoice::Auto, how };
    let endpoint = Endpoint { url: Some("http://127.0.0.1:9/v1".into()), secret: None };
    let request = Request { provider: wire.provider.into(), model: "m".into(), endpoint, question, stream: true };
    let abilities = Abilities { tools: true, streams: true, schema: true, output: None };
    let wrong = |error| anyhow!("{}: {error:?}", wire.provider);
    let (mut exchange, _) = Exchange::begin(feature, &request, abilities).await.map_err(wrong)?;
    exchange.head(200, &[("content-type".into(), "text/event-stream".into())]).await.map_err(wrong)?;
    exchange.body(event(&(wire.begin)()).as_bytes()).await.map_err(wrong)?;
    Ok(exchange)
}

/// Seconds that a guest takes for these pieces of a stream.
fn guest(feature: &PreparedFeature, wire: &Wire, pieces: &[&[u8]]) -> Result<f64> {
    feature.runtime().clone().block_on(async {
        let mut exchange = begun(feature, wire).await?;
        let start = Instant::now();
        for piece in pieces {
            let told = exchange.body(piece).await.map_err(|error| anyhow!("{}: {error:?}", wire.provider))?;
            if told.is_empty() && piece.len() == READ {
                bail!("{} told nothing", wire.provider);
            }
        }
        Ok(start.elapsed().as_secs_f64())
    })
}

/// The same for the guest's own code, compiled for this machine.
fn native<F: Format>(wire: &Wire, pieces: &[&[u8]]) -> f64 {
    let mut exchange = model_wire::Exchange::<F>::default();
    exchange.head(200, Vec::new());
    exchange.body(event(&(wire.begin)()).as_bytes());
    let start = Instant::now();
    for piece in pieces {
        std::hint::black_box(exchange.body(piece));
    }
    start.elapsed().as_secs_f64()
}

fn guests(arguments: &Arguments, section: &mut Section<'_>) -> Result<()> {
    let home = Folder::new()?;
    let lane = Lane::new(home.path())?;
    for wire in &WIRES {
        let feature = lane.prepare(&arguments.features()?.join(format!("{}.wasm", wire.feature)))?;
        let one = event(&(wire.piece)(WORDS));
        let stream = one.repeat(STREAM / one.len());
        let pieces: Vec<&[u8]> = stream.as_bytes().chunks(READ).collect();
        let single = vec![one.as_bytes(); SINGLE];
        let natively = |pieces: &[&[u8]]| match wire.feature {
            "anthropic" => native::<anthropic::answer::Messages>(wire, pieces),
            "gemini" => native::<gemini::answer::Content>(wire, pieces),
            "openai" => native::<openai::answer::Responses>(wire, pieces),
            _ => native::<openai_compatible::answer::ChatCompletions>(wire, pieces),
        };
        let mut samples: [Vec<f64>; 4] = Default::default();
        for round in 0..=ROUNDS {
            let seconds = [
                guest(&feature, wire, &pieces)?,
                natively(&pieces),
                guest(&feature, wire, &single)?,
                natively(&single),
            ];
            // The first round is the warm-up.
            if round > 0 {
                samples.iter_mut().zip(seconds).for_each(|(samples, seconds)| samples.push(seconds));
            }
        }
        let [sandboxed, native, piece, native_piece] = samples.map(|samples| median(&samples));
        let megabytes = |seconds: f64| stream.len() as f64 / 1e6 / seconds;
        let micros = |seconds: f64| seconds * 1e6 / SINGLE as f64;
        let name = wire.provider;
        let what = format!("{name}, MB of stream a second ({} bytes an event)", one.len());
        section.beside(what, megabytes(sandboxed), Unit::Megabytes, "natively", megabytes(native));
        let what = format!("{name}, a piece by itself");
        section.beside(what, micros(piece), Unit::Microseconds, "natively", micros(native_piece));
        let what = format!("{name}, MB of stream a second");
        section.target(what, megabytes(sandboxed), Unit::Megabytes, Limit::AtLeast(100.0));
        section.target(format!("{name}, added per piece"), micros(piece), Unit::Microseconds, Limit::AtMost(100.0));
    }
    Ok(())
}

/// A server of Chat Completions: answers of so many pieces with so much time between them. It notes when each was sent;
/// the pieces are their numbers.
struct Server {
    port: u16,
    sent: Arc<Mutex<Vec<Instant>>>,
}

impl Server {
    fn start(pieces: usize, pause: Duration) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        let sent = Arc::new(Mutex::new(Vec::new()));
        let notes = Arc::clone(&sent);
        thread::spawn(move || {
            for peer in listener.incoming().flatten() {
                let notes = Arc::clone(&notes);
                // Who has hung up does not read the rest.
                thread::spawn(move || drop(answer(peer, pieces, pause, &notes)));
            }
        });
        Ok(Self { port, sent })
    }

    /// Microseconds from sending to `seen`, of all pieces of the last answer.
    fn delays(&self, seen: &[(usize, Instant)]) -> Vec<f64> {
        let sent = self.sent.lock().map(|sent| sent.clone()).unwrap_or_default();
        let delay = |(number, at): &(usize, Instant)| Some(at.duration_since(*sent.get(*number)?).as_secs_f64() * 1e6);
        seen.iter().filter_map(delay).collect()
    }
}

/// The body of a request.
pub fn read_request(peer: &TcpStream) -> Result<Vec<u8>> {
    let mut reader = BufReader::new(peer);
    let (mut line, mut length) = (String::new(), 0);
    while line != "\r\n" {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            bail!("who asked has hung up");
        }
        let value = line.to_ascii_lowercase().strip_prefix("content-length: ").and_then(|it| it.trim().parse().ok());
        length = value.unwrap_or(length);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(body)
}

fn answer(mut peer: TcpStream, pieces: usize, pause: Duration, notes: &Mutex<Vec<Instant>>) -> Result<()> {
    peer.set_nodelay(true)?;
    read_request(&peer)?;
    peer.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")?;
    if let Ok(mut notes) = notes.lock() {
        notes.clear();
    }
    for piece in 0..pieces {
        thread::sleep(pause);
        if let Ok(mut notes) = notes.lock() {
            notes.push(Instant::now());
        }
        peer.write_all(event(&compatible(&format!("{piece} "))).as_bytes())?;
    }
    let stop = json!({ "choices": [{ "delta": {}, "finish_reason": "stop" }] });
    let usage = json!({ "choices": [], "usage": { "prompt_tokens": 100, "completion_tokens": pieces } });
    peer.write_all(format!("{}{}data: [DONE]\n\n", event(&stop), event(&usage)).as_bytes())?;
    Ok(())
}

/// A request as the host would send it, without the host: when each piece came.
fn bare(port: u16) -> Result<Vec<(usize, Instant)>> {
    let mut peer = TcpStream::connect(("127.0.0.1", port))?;
    peer.set_nodelay(true)?;
    peer.write_all(b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}")?;
    let mut seen = Vec::new();
    for line in BufReader::new(peer).lines() {
        let line = line?;
        let Some(data) = line.strip_prefix("data: ") else { continue };
        let Ok(value) = serde_json::from_str::<Value>(data) else { continue };
        let text = value["choices"][0]["delta"]["content"].as_str().unwrap_or_default();
        seen.extend(text.trim().parse::<usize>().ok().map(|number| (number, Instant::now())));
    }
    Ok(seen)
}

/// Has a turn in a conversation: when each piece was seen.
fn turn(api: &Api, conversation: u64) -> Result<Vec<(usize, Instant)>> {
    heard(api, conversation, said(api, conversation)?)
}

/// Has a turn begin in a conversation. Returns the number of the event before it.
pub fn said(api: &Api, conversation: u64) -> Result<u64> {
    let say = Say { text: "Go on.".into(), model: None };
    Ok(api.say(conversation, &say)?.after)
}

/// Follows a turn to its end: when each piece was seen.
pub fn heard(api: &Api, conversation: u64, after: u64) -> Result<Vec<(usize, Instant)>> {
    let (mut seen, mut end) = (Vec::new(), None);
    api.conversation_events(conversation, &ConversationEvents { after, follow: true }, |one| match one.event {
        ChatEvent::Text { text } => {
            let numbers = text.split_whitespace().filter_map(|number| number.parse().ok());
            seen.extend(numbers.map(|number| (number, Instant::now())));
            true
        }
        ChatEvent::TurnEnded { outcome, why } => {
            end = Some((outcome, why));
            false
        }
        _ => true,
    })?;
    match end {
        Some((Outcome::Done, _)) => Ok(seen),
        other => bail!("a turn ended otherwise: {other:?}"),
    }
}

/// A host whose model gives short answers, and a controller that plays to it.
pub struct Scene {
    pub api: Api,
    pub player: Player,
    pub peer: Peer,
    server: Server,
    // Removed when the process has ended.
    home: Folder,
}

impl Scene {
    /// Starts them, and waits until events have their answers.
    pub fn start(program: &Path, features: &Path) -> Result<Self> {
        // It stands for another machine: its threads, which begin as the one that starts them, give way to what is measured.
        let server = thread::spawn(|| {
            give_way();
            Server::start(SHORT, PIECES.1)
        });
        let server = server.join().map_err(|_| anyhow!("the model's server panicked"))??;
        let home = Folder::new()?;
        let (mut player, events) = (Player::new()?, free_port()?);
        let config = configuration(server.port, events, player.port()?);
        let (process, _) = process::conductor(program, features, home.path(), &config)?;
        let peer = Peer::conductor(process, events);
        player.wait_for(&peer)?;
        Ok(Self { api: Api::new(home.path()), player, peer, server, home })
    }
}

/// A host with a model at this port, and one rule for events of a controller.
fn configuration(model: u16, events: u16, answers: u16) -> String {
    format!(
        r#"
        [tools.per_minute]
        model_requests = 1000000

        [models.m]
        provider = "openai-compatible"
        model = "m"
        url = "http://127.0.0.1:{model}/v1"

        [features.openai-compatible.grants]
        http = ["127.0.0.1:{model}"]

        [[bindings]]
        alias = "in"
        protocol = "osc"
        input = {{ host = "127.0.0.1", port = {events} }}

        [[global_mappings]]
        trigger = {{ type = "OscMessage", address = "/in/fader" }}
        action = {{ type = "OscSend", target = "127.0.0.1:{answers}", address = "/out/level", args = ["{{value:i}}"] }}
        "#
    )
}

/// Microseconds from each event of a controller that plays 1000 a second to its answer at the controller's socket, until `stop` or
/// its time is over.
pub fn played(player: &mut Player, peer: &Peer, time: Duration, stop: impl Fn() -> bool) -> Result<Vec<f64>> {
    // So that it plays in time.
    conductor_scheduling::time_slice::shorten();
    let (start, mut trips) = (Instant::now(), Vec::new());
    while start.elapsed() < time && !stop() {
        let due = start + PACE * u32::try_from(trips.len()).unwrap_or(u32::MAX);
        thread::sleep(due.saturating_duration_since(Instant::now()));
        trips.push(player.ask(peer)?.arrived.as_secs_f64() * 1e6);
    }
    Ok(trips)
}

fn turns(arguments: &Arguments, section: &mut Section<'_>) -> Result<()> {
    let (program, features) = (arguments.conductor()?, arguments.features()?);
    single(program, features, section)?;
    many(program, features, section)
}

/// One answer, piece by piece.
fn single(program: &Path, features: &Path, section: &mut Section<'_>) -> Result<()> {
    let (home, server) = (Folder::new()?, Server::start(PIECES.0, PIECES.1)?);
    let config = configuration(server.port, free_port()?, 9);
    let (_process, _) = process::conductor(program, features, home.path(), &config)?;
    let api = Api::new(home.path());
    let conversation = api.begin_conversation(None)?.id;
    turn(&api, conversation)?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        let seen = turn(&api, api.begin_conversation(None)?.id)?;
        ours.extend(server.delays(&seen));
        let seen = bare(server.port)?;
        theirs.extend(server.delays(&seen));
    }
    for (what, share) in [("p50", 0.5), ("p99", 0.99)] {
        section.beside(
            format!("a piece, from the server to who follows, on the disk, {what}"),
            quantile(&ours, share),
            Unit::Microseconds,
            "without the host",
            quantile(&theirs, share),
        );
    }
    Ok(())
}

/// Milliseconds of a turn in a conversation that is new.
fn timed_turn(api: &Api) -> Result<f64> {
    let conversation = api.begin_conversation(None)?.id;
    let start = Instant::now();
    turn(api, conversation)?;
    Ok(start.elapsed().as_secs_f64() * 1e3)
}

/// A turn of one short answer, and the same answer streamed by the vendor's own SDK.
fn beside_sdk(arguments: &Arguments, section: &mut Section<'_>) -> Result<()> {
    const PEER: &str = "OpenAI's SDK";
    let python = arguments.sdk_python()?;
    let scene = Scene::start(arguments.conductor()?, arguments.features()?)?;
    let mut sdk = Sdk::start(python, &format!("http://127.0.0.1:{}/v1", scene.server.port))?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..=COMPARED {
        let took = (timed_turn(&scene.api)?, sdk.turn(SHORT)?);
        // The first round is the warm-up.
        if round > 0 {
            ours.push(took.0);
            theirs.push(took.1);
        }
    }
    let (ours, theirs) = (median(&ours), median(&theirs));
    section.beside(format!("a turn of one short answer, median of {COMPARED}"), ours, Unit::Milliseconds, PEER, theirs);
    // The server waits before each piece.
    let waits = PIECES.1.as_secs_f64() * 1e3 * SHORT as f64;
    let what = "the same, more than the server's own time";
    section.beside(what, ours - waits, Unit::Milliseconds, PEER, theirs - waits);
    section.target("a turn, more than OpenAI's SDK takes", ours - theirs, Unit::Milliseconds, Limit::AtMost(20.0));
    Ok(())
}

/// Many conversations, and many turns at once.
fn many(program: &Path, features: &Path, section: &mut Section<'_>) -> Result<()> {
    let mut scene = Scene::start(program, features)?;
    let Scene { api, player, peer, server, home } = &mut scene;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..COMPARED {
        ours.push(timed_turn(api)?);
        let start = Instant::now();
        bare(server.port)?;
        theirs.push(start.elapsed().as_secs_f64() * 1e3);
    }
    let (one, bare) = (median(&ours), median(&theirs));
    section.beside("a turn of one short answer", one, Unit::Milliseconds, "the bare request", bare);
    section.target("a turn, more than the bare request", one - bare, Unit::Milliseconds, Limit::AtMost(20.0));

    let alone = played(player, peer, PLAYED, || false)?;
    let pid = peer.process.id().to_string();
    let before = resident(&pid)?;
    let open: Vec<u64> = (0..MANY).map(|_| Ok(api.begin_conversation(None)?.id)).collect::<Result<_>>()?;
    let followers: Vec<_> = open.iter().map(|id| follower(home.path(), *id)).collect::<Result<_>>()?;
    let after = resident(&pid)?;
    let each = (after.total - before.total) / 1e3 / MANY as f64;
    section.figure(format!("memory of an open conversation that is followed (of {MANY})"), each, Unit::Kilobytes);

    let (beside, took) = beside_turns(api, &open, followers, player, peer)?;
    section.beside(format!("{MANY} turns at once, all ended"), took, Unit::Milliseconds, "one turn", one);
    let peak = resident(&pid)?;
    let growth = (peak.total - after.total) / 1e6;
    section.figure(format!("memory more after {MANY} turns at once"), growth, Unit::Megabytes);
    // What of it is this machine's, with as much going on.
    let echo = peers::echo()?;
    player.wait_for(&echo)?;
    let open: Vec<u64> = (0..MANY).map(|_| Ok(api.begin_conversation(None)?.id)).collect::<Result<_>>()?;
    let followers: Vec<_> = open.iter().map(|id| follower(home.path(), *id)).collect::<Result<_>>()?;
    let (echoed, _) = beside_turns(api, &open, followers, player, &echo)?;
    for (what, share) in [("p50", 0.5), ("p99", 0.99), ("longest", 1.0)] {
        let row = format!("round trip of events, 1000 a second, {MANY} turns beside, {what}");
        let ours = quantile(&beside, share);
        section.beside(row.as_str(), ours, Unit::Microseconds, "without", quantile(&alone, share));
        section.beside(row.as_str(), ours, Unit::Microseconds, "an echo beside as many", quantile(&echoed, share));
    }
    Ok(())
}

/// Has a turn run in each conversation while events are played to `peer`. Returns the microseconds of each event's round trip,
/// and the milliseconds until all turns had ended.
fn beside_turns(
    api: &Api,
    conversations: &[u64],
    followers: Vec<thread::JoinHandle<Result<()>>>,
    player: &mut Player,
    peer: &Peer,
) -> Result<(Vec<f64>, f64)> {
    let start = Instant::now();
    thread::scope(|scope| {
        let turns = scope.spawn(|| -> Result<f64> {
            for id in conversations {
                said(api, *id)?;
            }
            for follower in followers {
                follower.join().map_err(|_| anyhow!("a follower panicked"))??;
            }
            Ok(start.elapsed().as_secs_f64() * 1e3)
        });
        let trips = played(player, peer, PLAYED, || turns.is_finished())?;
        Ok((trips, turns.join().map_err(|_| anyhow!("the turns panicked"))??))
    })
}

/// Follows a conversation until its turn has ended.
fn follower(home: &Path, conversation: u64) -> Result<thread::JoinHandle<Result<()>>> {
    let (api, begun) = (Api::new(home), Instant::now());
    let follow = move || {
        let all = ConversationEvents { after: 0, follow: true };
        let mut end = None;
        api.conversation_events(conversation, &all, |one| {
            if let ChatEvent::TurnEnded { outcome, why } = one.event {
                end = Some((outcome, why));
            }
            end.is_none() && begun.elapsed() < TIMEOUT
        })?;
        match end {
            Some((Outcome::Done, _)) => Ok(()),
            other => bail!("a turn ended otherwise: {other:?}"),
        }
    };
    thread::Builder::new().spawn(follow).context("no thread for a follower")
}
