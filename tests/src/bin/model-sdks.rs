//! `cargo xtask model-sdks`: the vendors' SDKs and the host are asked the same and get the same answers; what each makes of
//! them is compared: text, tool calls, tokens, why it ended. The argument is a Python that has the SDKs; a seed may follow.

#![allow(clippy::unwrap_used, reason = "a comparison that can't be made ends here")]

#[cfg(unix)]
fn main() -> std::process::ExitCode {
    comparison::main()
}

#[cfg(not(unix))]
fn main() {
    eprintln!("model-sdks: hosts are talked to over their Unix socket");
}

#[cfg(unix)]
mod comparison {
    use std::collections::{BTreeMap, HashMap};
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::path::Path;
    use std::process::{Command, ExitCode, Stdio};
    use std::thread;

    use conductor_tests::conductor::{Host, command};
    use conductor_tests::conversation::{Person, said};
    use conductor_tests::exchanges::{Exchange, Vendor, generated, recorded};
    use conductor_tests::home::Home;
    use conductor_tests::model_server::{Request, STREAM, Server, Step, response};
    use conductor_tests::random::Random;
    use conductor_tests::wire::Wire;
    use serde_json::{Value, json};

    const KEY: &str = "sk-of-the-comparison";

    /// What was asked: the provider, the answer's id, and whether it was streamed.
    type Key = (String, String, bool);

    pub fn main() -> ExitCode {
        let mut arguments = std::env::args().skip(1);
        let Some(python) = arguments.next() else {
            eprintln!("model-sdks: which Python has the SDKs?");
            return ExitCode::FAILURE;
        };
        let seed = arguments.next().and_then(|seed| seed.parse().ok()).unwrap_or(1);
        let repo = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."));
        let exchanges: Vec<Exchange> = Vendor::ALL
            .iter()
            .flat_map(|vendor| [recorded(repo, *vendor), generated(*vendor, seed)].concat())
            .collect();
        let asked: Vec<Key> = exchanges
            .iter()
            .flat_map(|one| [true, false].map(|stream| (one.vendor.provider().to_owned(), one.id.clone(), stream)))
            .collect();
        let server = server(exchanges, seed);
        let (theirs, ours) = thread::scope(|scope| {
            let theirs = scope.spawn(|| theirs(&python, &repo.join("tests/model-sdks/ask.py"), server.port, &asked));
            let ours = ours(server.port, &asked);
            (theirs.join().unwrap(), ours)
        });
        let mut rows = BTreeMap::<_, (usize, usize)>::new();
        let mut different = 0;
        for one in &asked {
            let (theirs, ours) = (theirs.get(one), ours.get(one));
            // Each has its own message for no answer.
            let fails = |view: Option<&Value>| view.is_some_and(|view| view.get("error").is_some());
            let is_same = theirs.is_some() && (theirs == ours || (fails(theirs) && fails(ours)));
            let kind = one.1.split('-').next().unwrap_or_default();
            let row = rows.entry((one.0.as_str(), kind, if one.2 { "streamed" } else { "whole" })).or_default();
            row.0 += 1;
            row.1 += usize::from(is_same);
            if !is_same {
                different += 1;
                let shown = |view: Option<&Value>| view.map_or("nothing".to_owned(), Value::to_string);
                println!("{one:?} differs\n  theirs: {}\n  ours:   {}", shown(theirs), shown(ours));
            }
        }
        for ((vendor, kind, way), (count, same)) in rows {
            println!("{vendor:<10} {kind:<10} {way:<9} {same} of {count} the same");
        }
        println!("{different} of {} differ (seed {seed})", asked.len());
        if different == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }

    /// The API that is asked, and what the question names: the provider and the answer's id.
    fn exchange_of(request: &Request) -> Option<(Wire, String)> {
        let wire = match request.path.as_str() {
            path if path.starts_with("/v1/messages") => Wire::Anthropic,
            path if path.starts_with("/v1/responses") => Wire::OpenAi,
            path if path.starts_with("/v1/chat/completions") => Wire::Compatible,
            _ => Wire::Gemini,
        };
        let body = request.body.to_string();
        let at = body.rfind("exchange:")?;
        Some((wire, body[at + "exchange:".len()..].split('!').next()?.to_owned()))
    }

    /// A server with these answers, which cuts what it sends anywhere.
    fn server(exchanges: Vec<Exchange>, seed: u64) -> Server {
        let name = |one: &Exchange| (one.vendor.wire(), format!("{}/{}", one.vendor.provider(), one.id));
        let all: BTreeMap<(Wire, String), Exchange> = exchanges.into_iter().map(|one| (name(&one), one)).collect();
        Server::start(move |request| {
            let Some(exchange) = exchange_of(request).and_then(|asked| all.get(&asked)) else {
                return response("404 Not Found", &[], "{}");
            };
            let streamed = request.path.contains("streamGenerateContent") || request.body["stream"] == true;
            if !streamed {
                return response("200 OK", &["content-type: application/json"], &exchange.whole);
            }
            let mut random = Random::new(seed ^ exchange.stream.len() as u64);
            let mut steps = vec![Step::Send(STREAM.into())];
            let mut rest = exchange.stream.as_bytes();
            while !rest.is_empty() {
                let (piece, more) = rest.split_at((1 + random.below(1500)).min(rest.len()));
                steps.push(Step::Send(piece.to_vec()));
                rest = more;
            }
            steps
        })
    }

    /// What the SDKs say.
    fn theirs(python: &str, script: &Path, port: u16, asked: &[Key]) -> HashMap<Key, Value> {
        let mut child = Command::new(python)
            .arg(script)
            .arg(format!("http://127.0.0.1:{port}"))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        let lines: String = asked
            .iter()
            .map(|(vendor, id, stream)| json!({ "vendor": vendor, "id": id, "stream": stream }).to_string() + "\n")
            .collect();
        let writer = thread::spawn(move || input.write_all(lines.as_bytes()));
        let mut views = HashMap::new();
        for line in BufReader::new(child.stdout.take().unwrap()).lines() {
            let mut view: Value = serde_json::from_str(&line.unwrap()).unwrap();
            let members = view.as_object_mut().unwrap();
            let mut take = |key: &str| members.remove(key).unwrap_or_default();
            let (vendor, id, stream) = (take("vendor"), take("id"), take("stream"));
            let text = |value: Value| value.as_str().unwrap_or_default().to_owned();
            views.insert((text(vendor), text(id), stream == true), view);
        }
        writer.join().unwrap().unwrap();
        assert!(child.wait().unwrap().success(), "{python} failed");
        views
    }

    /// What conversations with the host have.
    fn ours(port: u16, asked: &[Key]) -> HashMap<Key, Value> {
        let mut config = "[chat]\nsteps = 1\n\n[tools.per_minute]\nmodel_requests = 100000\n\n".to_owned();
        Wire::ALL.iter().for_each(|wire| config += &wire.grants(port));
        for vendor in Vendor::ALL {
            let name = vendor.provider();
            let model = |streams: bool| vendor.wire().model_of(name, &format!("{name}-{streams}"), port);
            config += &model(true);
            config += &model(false).replace("secret =", "streams = false\nsecret =");
        }
        let home = Home::new(&config);
        let mut run = command(home.path(), &["run"]);
        let host = Host::ready(run.env("CONDUCTOR_SECRET_MODEL_KEY", KEY), home.socket());
        let person = Person::at(&home.socket());
        let views = thread::scope(|scope| {
            let ask = |vendor: Vendor| {
                let person = person.clone();
                let mine = asked.iter().filter(move |(provider, ..)| provider == vendor.provider());
                scope.spawn(move || mine.map(|one| (one.clone(), view(&person, one))).collect::<Vec<_>>())
            };
            Vendor::ALL.map(ask).into_iter().flat_map(|asking| asking.join().unwrap()).collect()
        });
        drop(host);
        views
    }

    fn view(person: &Person, (vendor, id, stream): &Key) -> Value {
        let conversation = person.begin();
        let events =
            person.turn(conversation, &format!("exchange:{vendor}/{id}!"), Some(&format!("{vendor}-{stream}")));
        // Another model is asked where this one gives no answer.
        if let Some(failed) = events.iter().find(|event| event["kind"] == "model_failed") {
            return json!({ "error": failed["error"] });
        }
        let args = |call: &Value| {
            let args = call["args"].as_str().unwrap_or_default();
            serde_json::from_str::<Value>(args).unwrap_or_else(|_| json!(args))
        };
        let calls: Vec<Value> = events
            .iter()
            .filter(|event| event["kind"] == "call")
            .map(|call| json!([call["tool"], args(call)]))
            .collect();
        let answered = events.iter().find(|event| event["kind"] == "answered").cloned().unwrap_or_default();
        // Of an API that says nothing of it, the SDKs have zeros, and the host an estimate.
        let usage = match answered["estimated"] == true {
            true => json!({ "input": 0, "cached": 0, "output": 0 }),
            false => answered["usage"].clone(),
        };
        json!({ "text": said(&events), "calls": calls, "usage": usage, "stop": answered["stop"] })
    }
}
