//! Models behind a real HTTP server on this machine, asked through the providers that come with the host.
//!
//! The guests are built by `cargo xtask features`.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use conductor_chat::completion::{Ask, MAX_ATTEMPTS};
use conductor_chat::queue::Place;
use conductor_chat::{Completion, Event, Message, Parameters, Part, Question, Speaker, Tool, ToolChoice, complete};
use conductor_observer as observer;
use conductor_observer::sink_message::SinkQueue;
use conductor_package::Grants;
use conductor_registry::{FeatureSource, Registry};
use conductor_sandbox::datagrams::SystemDatagrams;
use conductor_sandbox::exchange::Abilities;
use conductor_sandbox::services::Services;
use conductor_sandbox::{Compiler, Sandbox};
use conductor_services::http::secrets::{Secret, SecretError};
use conductor_services::http::{HttpClient, SecretGrant, Secrets, SystemNetwork};
use tokio_util::sync::CancellationToken;

const KEY: &str = "sk-Hunter2-hunter2";

/// How long a test waits for anything.
const TEST_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug)]
struct OneSecret;

impl Secrets for OneSecret {
    fn get(&self, id: &str) -> Result<Secret, SecretError> {
        Secret::new(id, KEY.into())
    }
}

/// Everything that is logged in this process.
#[derive(Debug, Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn log() -> &'static Log {
    static LOG: OnceLock<Log> = OnceLock::new();
    LOG.get_or_init(|| {
        let log = Log::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::TRACE)
            .with_writer(move || writer.clone())
            .finish();
        tracing::subscriber::set_global_default(subscriber).unwrap();
        log
    })
}

/// A server on this machine that answers one connection after the other, in pieces as they stand here; after
/// the last piece it hangs up. Gives its port, and in the end the requests.
fn serve(answers: Vec<Vec<Vec<u8>>>) -> (u16, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || {
        let answer = |pieces: Vec<Vec<u8>>| {
            let (mut peer, _) = listener.accept().unwrap();
            peer.set_nodelay(true).unwrap();
            let request = request(&mut peer);
            for piece in pieces {
                peer.write_all(&piece).unwrap();
                peer.flush().unwrap();
            }
            request
        };
        answers.into_iter().map(answer).collect()
    });
    (port, server)
}

/// A request with its body.
fn request(peer: &mut TcpStream) -> String {
    let (mut came, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        let size = peer.read(&mut piece).unwrap();
        assert_ne!(size, 0, "the request ended early");
        came.extend_from_slice(&piece[..size]);
        let text = String::from_utf8_lossy(&came).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length =
            head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
        if body.len() >= length.unwrap_or(0) {
            return text;
        }
    }
}

const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// A piece of a chunked body.
fn chunk(text: &str) -> Vec<u8> {
    format!("{:x}\r\n{text}\r\n", text.len()).into_bytes()
}

fn delta(text: &str) -> String {
    format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n")
}

const STOP: &str = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n\
    data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n";

fn busy(status: &str) -> Vec<Vec<u8>> {
    let body = "{\"error\":{\"message\":\"busy\"}}";
    let size = body.len();
    vec![format!("HTTP/1.1 {status}\r\nretry-after: 0\r\ncontent-length: {size}\r\n\r\n{body}").into_bytes()]
}

/// The provider, installed.
struct Stage {
    registry: Registry,
    sandbox: Sandbox,
    port: u16,
    provider: &'static str,
    abilities: Abilities,
}

impl Stage {
    fn new(port: u16) -> Self {
        Self::with("openai-compatible", "openai-compatible", port)
    }

    /// A stage with this provider of this feature.
    fn with(feature: &str, provider: &'static str, port: u16) -> Self {
        log();
        let features = std::env::var_os("CONDUCTOR_FEATURES").map_or_else(
            || std::env::current_exe().unwrap().ancestors().nth(3).unwrap().join("features"),
            PathBuf::from,
        );
        let (sinks, said) = SinkQueue::new();
        let mut services = Services::new(sinks, Box::new(SystemDatagrams));
        services.http = HttpClient::new(Arc::new(SystemNetwork::new()), Arc::new(OneSecret));
        let sandbox =
            Sandbox::new(None, Arc::new(services), Compiler::program(env!("CARGO_BIN_EXE_conductor"))).unwrap();
        let (observer, _, _) = observer::start(said, None).unwrap();
        let host = format!("127.0.0.1:{port}").parse().unwrap();
        let source = FeatureSource {
            name: feature.into(),
            path: features.join(format!("{feature}.wasm")),
            bundled: true,
            grants: Grants {
                secrets: vec![SecretGrant { id: "model-key".into(), hosts: vec![host] }],
                http: vec![format!("127.0.0.1:{port}").parse().unwrap()],
                ..Grants::default()
            },
            ..FeatureSource::default()
        };
        let registry = Registry::default().with(vec![source], &sandbox, &observer);
        assert_eq!(registry.refused(), []);
        let abilities = Abilities { tools: true, streams: true, schema: true, output: None };
        Self { registry, sandbox, port, provider, abilities }
    }

    fn ask(&self, cancelled: &CancellationToken) -> Completion {
        let how =
            Parameters { max_tokens: None, temperature: None, top_p: None, stop: vec![], schema: None, effort: None };
        let messages = vec![Message { speaker: Speaker::User, parts: vec![Part::Text("Say hello.".into())] }];
        let tools =
            vec![Tool { name: "look".into(), description: "Looks.".into(), input: r#"{"type":"object"}"#.into() }];
        let question = Question { instructions: String::new(), messages, tools, choice: ToolChoice::Auto, how };
        let ask = Ask {
            provider: self.provider.into(),
            model: "m".into(),
            url: Some(format!("http://127.0.0.1:{}/v1", self.port)),
            secret: Some("model-key".into()),
            variable: None,
            local_only: false,
            abilities: self.abilities,
            question,
        };
        complete(self.registry.provider(self.provider).unwrap(), ask, Place::free(), cancelled.clone())
    }

    fn wait<T>(&self, work: impl Future<Output = T>) -> T {
        let runtime = self.registry.provider(self.provider).unwrap().feature.runtime().clone();
        runtime.block_on(async { tokio::time::timeout(TEST_TIMEOUT, work).await.expect("it took too long") })
    }

    /// Everything that the answer tells: its text, and the last event that is no text.
    fn told(&self) -> (String, Option<Event>) {
        self.gather(&mut self.ask(&CancellationToken::new()))
    }

    fn gather(&self, completion: &mut Completion) -> (String, Option<Event>) {
        self.wait(async {
            let (mut text, mut last) = (String::new(), None);
            while let Some(event) = completion.next().await {
                match event {
                    Event::Text(more) => text.push_str(&more),
                    Event::Usage(_) => {}
                    other => last = Some(other),
                }
            }
            (text, last)
        })
    }
}

/// LLM-1: the host tries again when the server asks for it, and the answer comes as it streams.
#[test]
fn a_question_is_answered_after_a_429() {
    let mut pieces = vec![HEAD.as_bytes().to_vec(), chunk(&delta("Hel")), chunk(&delta("lo.")), chunk(STOP)];
    pieces.push(b"0\r\n\r\n".to_vec());
    let (port, server) = serve(vec![busy("429 Too Many Requests"), busy("503 Service Unavailable"), pieces]);
    let (text, last) = Stage::new(port).told();
    assert_eq!(text, "Hello.");
    assert!(matches!(last, Some(Event::Stop(_))), "{last:?}");
    let requests = server.join().unwrap();
    assert_eq!(requests.len(), 3);
    assert!(requests.iter().all(|request| *request == requests[0]), "the same each time");
    assert!(requests[0].starts_with("POST /v1/chat/completions HTTP/1.1\r\n"), "{}", requests[0]);
    assert!(requests[0].contains(&format!("authorization: Bearer {KEY}\r\n")), "{}", requests[0]);
    assert!(requests[0].contains("Say hello."));
}

#[test]
fn a_server_that_stays_busy_is_given_up() {
    let (port, server) = serve(vec![busy("503 Service Unavailable"); MAX_ATTEMPTS as usize]);
    let (_, last) = Stage::new(port).told();
    let last = format!("{last:?}");
    assert!(last.contains("Failed") && last.contains("the server says 503: busy"), "{last}");
    assert_eq!(server.join().unwrap().len(), MAX_ATTEMPTS as usize);
}

#[test]
fn a_stream_that_is_cut_in_the_middle_is_no_answer() {
    let (port, server) = serve(vec![vec![HEAD.as_bytes().to_vec(), chunk(&delta("Hel")), b"1f\r\ndata: {".to_vec()]]);
    let (text, last) = Stage::new(port).told();
    assert_eq!(text, "Hel", "what came is returned");
    assert!(matches!(last, Some(Event::Failed(_))), "{last:?}");
    server.join().unwrap();
    // The same where the server ends it as if all were well.
    let (port, server) = serve(vec![vec![HEAD.as_bytes().to_vec(), chunk(&delta("Hel")), b"0\r\n\r\n".to_vec()]]);
    let (_, last) = Stage::new(port).told();
    assert!(format!("{last:?}").contains("cut off"), "{last:?}");
    server.join().unwrap();
}

/// LLM-1: each provider in its own format: where it is asked, with which header, what it understands and reports.
#[test]
fn every_provider_streams_text_and_reports_what_the_api_says() {
    let anthropic = [
        r#"data: {"type":"message_start","message":{"model":"m-1","usage":{"input_tokens":3,"cache_creation_input_tokens":7,"output_tokens":1}}}"#,
        r#"data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
        r#"data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hel"}}"#,
        r#"data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"lo."}}"#,
        r#"data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}"#,
        r#"data: {"type":"message_stop"}"#,
    ];
    let gemini = [
        r#"data: {"candidates":[{"content":{"parts":[{"text":"Hel"}]}}],"modelVersion":"m-1"}"#,
        r#"data: {"candidates":[{"content":{"parts":[{"text":"lo."}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":3}}"#,
    ];
    let openai = [
        r#"data: {"type":"response.created","response":{"model":"m-1","status":"in_progress"}}"#,
        r#"data: {"type":"response.output_text.delta","output_index":0,"delta":"Hel"}"#,
        r#"data: {"type":"response.output_text.delta","output_index":0,"delta":"lo."}"#,
        r#"data: {"type":"response.completed","response":{"model":"m-1","status":"completed","output":[]}}"#,
    ];
    let compatible = [
        r#"data: {"model":"m-1","choices":[{"delta":{"content":"Hel"}}]}"#,
        r#"data: {"choices":[{"delta":{"content":"lo."},"finish_reason":"stop"}]}"#,
        r#"data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2,"cost":0.00025}}"#,
    ];
    for (feature, provider, path, header, stream, cost, written) in [
        ("anthropic", "anthropic", "/v1/messages", "x-api-key: ", &anthropic[..], None, Some(7)),
        ("gemini", "gemini", "/v1/models/m:streamGenerateContent?alt=sse", "x-goog-api-key: ", &gemini, None, None),
        ("openai", "openai", "/v1/responses", "authorization: Bearer ", &openai, None, None),
        (
            "openai-compatible",
            "openrouter",
            "/v1/chat/completions",
            "authorization: Bearer ",
            &compatible,
            Some(250_000),
            None,
        ),
        (
            "openai-compatible",
            "litellm",
            "/v1/chat/completions",
            "authorization: Bearer ",
            &compatible,
            Some(250_000),
            None,
        ),
    ] {
        let events = stream.iter().map(|event| chunk(&format!("{event}\n\n")));
        let pieces = [HEAD.as_bytes().to_vec()].into_iter().chain(events).chain([b"0\r\n\r\n".to_vec()]).collect();
        let (port, server) = serve(vec![pieces]);
        let stage = Stage::with(feature, provider, port);
        let mut completion = stage.ask(&CancellationToken::new());
        let (text, last) = stage.gather(&mut completion);
        assert_eq!(text, "Hello.", "{provider}: {last:?}");
        assert!(matches!(last, Some(Event::Stop(_))), "{provider}: {last:?}");
        let report = completion.report().unwrap();
        assert_eq!(
            (report.model.as_deref(), report.cost, report.cache_written),
            (Some("m-1"), cost, written),
            "{provider}"
        );
        let requests = server.join().unwrap();
        assert!(requests[0].starts_with(&format!("POST {path} HTTP/1.1\r\n")), "{provider}: {}", requests[0]);
        assert!(requests[0].contains(&format!("{header}{KEY}\r\n")), "{provider}: {}", requests[0]);
        assert!(requests[0].contains("Say hello."), "{provider}: {}", requests[0]);
    }
}

/// LLM-2: a model without tools gets instructions, and one that does not stream is delivered in pieces.
#[test]
fn what_a_model_lacks_is_made_up_for() {
    let body = r#"{"choices":[{"message":{"content":"I look. <tool_call>{\"name\":\"look\"}</tool_call>"},"finish_reason":"stop"}]}"#;
    let size = body.len();
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {size}\r\n\r\n");
    let (port, server) = serve(vec![vec![format!("{head}{body}").into_bytes()]]);
    let mut stage = Stage::new(port);
    stage.abilities = Abilities { tools: false, streams: false, schema: true, output: None };
    let mut completion = stage.ask(&CancellationToken::new());
    let mut calls = Vec::new();
    stage.wait(async {
        while let Some(event) = completion.next().await {
            if let Event::CallBegin(call) = event {
                calls.push(call.name);
            }
        }
    });
    assert_eq!(calls, ["look"]);
    assert_eq!(
        completion.report().unwrap().notes,
        ["the model takes no tools; they are described in the instructions"]
    );
    let requests = server.join().unwrap();
    assert!(requests[0].contains("<tool_call>") && !requests[0].contains("\"tools\""), "{}", requests[0]);
    assert!(!requests[0].contains("\"stream\""), "{}", requests[0]);
}

/// LLM-6: the key is in the header that it is for, and nowhere else.
#[test]
fn a_key_that_the_server_sends_back_is_seen_by_nobody() {
    let echo = format!("{}{STOP}", delta(&format!("You sent {KEY}, I think.")));
    // Cut within the key.
    let at = echo.find(KEY).unwrap() + 5;
    let pieces = vec![HEAD.as_bytes().to_vec(), chunk(&echo[..at]), chunk(&echo[at..]), b"0\r\n\r\n".to_vec()];
    let refusal = format!("{{\"error\":{{\"message\":\"Incorrect API key provided: {KEY}\"}}}}");
    let size = refusal.len();
    let refused = format!("HTTP/1.1 401 Unauthorized\r\ncontent-length: {size}\r\n\r\n{refusal}").into_bytes();
    let (port, server) = serve(vec![pieces, vec![refused]]);
    let stage = Stage::new(port);
    assert_eq!(stage.told().0, "You sent ***, I think.");
    let (_, last) = stage.told();
    let last = format!("{last:?}");
    assert!(last.contains("Incorrect API key provided: ***"), "{last}");
    assert!(server.join().unwrap()[0].contains(KEY), "the server got it");
    let logged = log().0.lock().unwrap();
    assert!(!logged.is_empty() && !String::from_utf8_lossy(&logged).contains(KEY));
}

#[test]
fn cancelling_ends_the_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || {
        let (mut peer, _) = listener.accept().unwrap();
        request(&mut peer);
        peer.write_all(HEAD.as_bytes()).unwrap();
        peer.write_all(&chunk(&delta("Well"))).unwrap();
        // Ends when the other side has gone.
        let mut rest = [0; 64];
        while peer.read(&mut rest).is_ok_and(|size| size > 0) {}
    });
    let (stage, cancelled) = (Stage::new(port), CancellationToken::new());
    let mut completion = stage.ask(&cancelled);
    assert!(matches!(stage.wait(completion.next()), Some(Event::Text(text)) if text == "Well"));
    cancelled.cancel();
    let last = stage.wait(completion.next());
    assert!(format!("{last:?}").contains("cancelled"), "{last:?}");
    assert!(stage.wait(completion.next()).is_none());
    server.join().unwrap();
    let _ = &stage.sandbox;
}
