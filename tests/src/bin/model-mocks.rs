//! `cargo xtask model-mocks`: conversations and councils of a host whose models are aimock's, asked by each provider's wire
//! format, and aimock's behind LiteLLM's proxy. The arguments are aimock's script, and the proxy's program if it is there.

#![allow(clippy::unwrap_used, reason = "a comparison that can't be made ends here")]

#[cfg(unix)]
fn main() -> std::process::ExitCode {
    mocks::main()
}

#[cfg(not(unix))]
fn main() {
    eprintln!("model-mocks: hosts are talked to over their Unix socket");
}

#[cfg(unix)]
mod mocks {
    use std::path::{Path, PathBuf};
    use std::process::{Command, ExitCode};
    use std::time::{Duration, Instant};

    use conductor_tests::aimock::{Aimock, KEY, LiteLlm};
    use conductor_tests::conductor::{Host, command};
    use conductor_tests::conversation::{Person, end, said};
    use conductor_tests::folder::Folder;
    use conductor_tests::home::Home;
    use serde_json::{Value, json};

    /// A model: its name here and there, the provider, whether it streams, and where its API is.
    struct Model {
        name: String,
        provider: &'static str,
        feature: &'static str,
        streams: bool,
        port: u16,
        base: &'static str,
        /// Whether a proxy stands between.
        is_proxied: bool,
    }

    /// Providers with their features, and where aimock has their APIs.
    const PROVIDERS: [(&str, &str, &str); 5] = [
        ("anthropic", "anthropic", ""),
        ("gemini", "gemini", "/v1beta"),
        ("openai", "openai", "/v1"),
        ("openrouter", "openai-compatible", "/api/v1"),
        ("litellm", "openai-compatible", "/v1"),
    ];
    /// Vendors that the proxy asks, and where aimock has their APIs.
    const PROXIED: [(&str, &str); 3] = [("anthropic", ""), ("gemini", "/v1beta"), ("openai", "/v1")];
    const FEATURES: [&str; 4] = ["anthropic", "gemini", "openai", "openai-compatible"];

    pub fn main() -> ExitCode {
        let mut arguments = std::env::args().skip(1).map(PathBuf::from);
        let Some(script) = arguments.next() else {
            eprintln!("model-mocks: where is aimock's script?");
            return ExitCode::FAILURE;
        };
        let names: Vec<String> = PROVIDERS.iter().map(|(name, ..)| (*name).to_owned()).collect();
        let proxied: Vec<String> = PROXIED.iter().map(|(vendor, _)| format!("proxied-{vendor}")).collect();
        let aimock = Aimock::start(&script, &fixtures(&[names, proxied.clone()].concat()));
        let proxy = arguments.next().map(|program| {
            let at = |base: &str| format!("http://127.0.0.1:{}{base}", aimock.port);
            let models: Vec<_> =
                proxied.iter().zip(PROXIED).map(|(name, (vendor, base))| (name.clone(), vendor, at(base))).collect();
            LiteLlm::start(&program, &models)
        });
        let models = models(aimock.port, proxy.as_ref().map(|proxy| proxy.port));
        let talks = Talks::begin(&models);
        let mut report = Report::default();
        for model in &models {
            talks.cases(model, &aimock, &mut |what, holds| report.row(&model.name, what, holds));
        }
        drop(talks);
        let streaming: Vec<&Model> = models.iter().filter(|model| model.streams).collect();
        let (direct, behind): (Vec<&Model>, Vec<&Model>) = streaming.into_iter().partition(|model| !model.is_proxied);
        for (who, members) in [("five providers", direct), ("LiteLLM", behind)] {
            if members.len() > 2 {
                council(&members, &mut |what, holds| report.row(&format!("council: {who}"), what, holds));
            }
        }
        if proxy.is_none() {
            println!("without LiteLLM's proxy, which is not there");
        }
        println!("{} of {} as they have to be", report.rows - report.wrong, report.rows);
        if report.wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }

    /// What held, printed as it is seen.
    #[derive(Default)]
    struct Report {
        rows: usize,
        wrong: usize,
    }

    impl Report {
        fn row(&mut self, who: &str, what: &str, holds: Result<String, String>) {
            self.rows += 1;
            match holds {
                Ok(shown) => println!("{who:<24} {what:<34} ok  {shown}"),
                Err(why) => {
                    self.wrong += 1;
                    println!("{who:<24} {what:<34} WRONG  {why}");
                }
            }
        }
    }

    /// Takes a row of the report: what was looked at, and what was seen or is wrong.
    type Row<'a> = dyn FnMut(&'static str, Result<String, String>) + 'a;

    /// Each provider, streamed and whole; and each vendor behind the proxy.
    fn models(aimock: u16, proxy: Option<u16>) -> Vec<Model> {
        let direct = PROVIDERS.iter().flat_map(|(name, feature, base)| {
            [true, false].map(|streams| Model {
                name: if streams { (*name).to_owned() } else { format!("{name}-whole") },
                provider: name,
                feature,
                streams,
                port: aimock,
                base,
                is_proxied: false,
            })
        });
        let behind = proxy.into_iter().flat_map(|port| {
            PROXIED.map(|(vendor, _)| Model {
                name: format!("proxied-{vendor}"),
                provider: "litellm",
                feature: "openai-compatible",
                streams: true,
                port,
                base: "/v1",
                is_proxied: true,
            })
        });
        direct.chain(behind).collect()
    }

    /// What aimock answers. Each model is asked for the same; what differs by model names it.
    fn fixtures(models: &[String]) -> Vec<Value> {
        let usage = json!({ "prompt_tokens": 11, "completion_tokens": 7, "input_tokens": 11, "output_tokens": 7 });
        let review = |verdict: &str, issues: Value| {
            let scores = json!({ "accuracy": 8, "completeness": 8, "clarity": 8, "conciseness": 8, "relevance": 8 });
            json!({ "verdict": verdict, "confidence": 0.9, "scores": scores, "issues": issues, "rationale": "I looked." })
        };
        let issue = json!([{ "severity": "critical", "file": "src/a.rs", "line": 1, "message": "It has the fault." }]);
        let chairman = |verdict: &str| json!({ "verdict": verdict, "confidence": 0.9, "rationale": "As they say.", "dissent": "" });
        let reviewer = "one of several independent reviewers";
        let text = |content: &Value| json!({ "content": content.to_string() });
        let ranks = |letters: &[&str]| json!({ "content": json!({ "ranking": letters }).to_string() });
        let letters =
            |prefix: &str| if prefix == "proxied" { &["A", "B", "C"][..] } else { &["A", "B", "C", "D", "E"][..] };
        let mut all = vec![
            json!({ "match": { "systemMessage": reviewer, "userMessage": "FAULT" }, "response": text(&review("fail", issue)) }),
            json!({ "match": { "systemMessage": reviewer }, "response": text(&review("pass", json!([]))) }),
        ];
        for name in models {
            let ranking = ranks(letters(name.split('-').next().unwrap_or_default()));
            all.push(json!({ "match": { "model": name, "systemMessage": "Rank them by" }, "response": ranking }));
        }
        let chair = "You are the chairman";
        all.push(json!({ "match": { "systemMessage": chair, "userMessage": "verdict: fail" }, "response": text(&chairman("fail")) }));
        all.push(json!({ "match": { "systemMessage": chair }, "response": text(&chairman("pass")) }));
        for name in models {
            for name in [name.clone(), format!("{name}-whole")] {
                let of = |about: &str| json!({ "model": name, "userMessage": about });
                let with = |about: &str, key: &str, value: Value| {
                    let mut of = of(about);
                    of[key] = value;
                    of
                };
                let call = |tool: &str, args: Value| json!({ "toolCalls": [{ "name": tool, "arguments": args }], "usage": usage });
                let mapping = json!({
                    "mode": "Play", "trigger": { "type": "OscMessage", "address": format!("/{name}/36") },
                    "action": { "type": "ModeChange", "mode": "Play" },
                });
                let limit = json!({ "error": { "message": "slow down", "type": "rate_limit_error" }, "status": 429, "retryAfter": 1 });
                all.extend([
                    json!({ "match": of("hello"), "response": { "content": "Hello from the mock: é, 𝄞.", "usage": usage } }),
                    json!({ "match": with("which mode", "hasToolResult", json!(false)), "response": call("conductor_get_modes", json!({})) }),
                    json!({ "match": with("which mode", "toolResultContains", json!("Play")), "response": { "content": "It is Play." } }),
                    json!({ "match": with("map pad", "hasToolResult", json!(false)), "response": call("conductor_create_mapping", mapping) }),
                    json!({ "match": with("map pad", "hasToolResult", json!(true)), "response": { "content": "It waits for you." } }),
                    json!({ "match": with("later", "sequenceIndex", json!(0)), "response": limit }),
                    json!({ "match": of("later"), "response": { "content": "Now." } }),
                    json!({ "match": of("be cut off"), "response": { "content": "This is a long answer that never comes to its end." },
                            "chunkSize": 4, "truncateAfterChunks": 3 }),
                    json!({ "match": of("be garbled"), "response": { "content": "Never." }, "chaos": { "malformedRate": 1.0 } }),
                    json!({ "match": of("be refused"), "response": { "error": { "message": "bad key", "type": "authentication_error" }, "status": 401 } }),
                ]);
            }
        }
        all
    }

    /// A host with all models, and a person who talks with them.
    struct Talks {
        home: Home,
        _host: Host,
        person: Person,
    }

    /// The configuration of these models.
    fn config(models: &[&Model]) -> String {
        let mut config = "[[modes]]\nname = 'Play'\n\n[tools.per_minute]\nmodel_requests = 100000\n\n".to_owned();
        let mut ports: Vec<u16> = models.iter().map(|model| model.port).collect();
        ports.sort_unstable();
        ports.dedup();
        for Model { name, provider, streams, port, base, .. } in models {
            config += &format!(
                "[models.{name}]\nprovider = '{provider}'\nmodel = '{name}'\nurl = 'http://127.0.0.1:{port}{base}'\n\
                 streams = {streams}\nsecret = 'model-key'\n\n"
            );
        }
        let hosts: Vec<String> = ports.iter().map(|port| format!("'127.0.0.1:{port}'")).collect();
        let hosts = hosts.join(", ");
        for feature in FEATURES.iter().filter(|feature| models.iter().any(|model| model.feature == **feature)) {
            config += &format!(
                "[features.{feature}.grants]\nhttp = [{hosts}]\nsecrets = [{{ id = 'model-key', hosts = [{hosts}] }}]\n\n"
            );
        }
        config
    }

    /// A host with this configuration in a home.
    fn host(home: &Home) -> Host {
        let mut run = command(home.path(), &["run"]);
        run.env("CONDUCTOR_SECRET_MODEL_KEY", KEY);
        Host::ready(&mut run, home.socket())
    }

    impl Talks {
        fn begin(models: &[Model]) -> Self {
            let home = Home::new(&config(&models.iter().collect::<Vec<_>>()));
            let host = host(&home);
            let person = Person::at(&home.socket());
            Self { home, _host: host, person }
        }

        /// What this model has to do, and what came of it.
        fn cases(&self, model: &Model, aimock: &Aimock, row: &mut Row<'_>) {
            let turn = |text: &str| {
                let conversation = self.person.begin();
                self.person.turn(conversation, text, Some(&model.name))
            };
            // Another model is asked where one gives no answer.
            let own = |events: &[Value]| match events.iter().find(|event| event["kind"] == "model_failed") {
                Some(failed) => format!("no answer: {}", failed["error"]),
                None => said(events),
            };
            let same = |is: &str, has_to_be: &str| {
                if is == has_to_be { Ok(is.to_owned()) } else { Err(format!("{is:?}, not {has_to_be:?}")) }
            };
            let events = turn("hello");
            row("says what the model says", same(&own(&events), "Hello from the mock: é, 𝄞."));
            let answered = events.iter().find(|event| event["kind"] == "answered").cloned().unwrap_or_default();
            let tokens = format!("{} in, {} out", answered["usage"]["input"], answered["usage"]["output"]);
            row("counts its tokens", same(&tokens, "11 in, 7 out"));

            // LiteLLM writes `function_response` to Gemini, which the API reads as well as `functionResponse`, and aimock does
            // not: the results of tools do not come through.
            if model.name != "proxied-gemini" {
                let events = turn("which mode");
                row("calls a tool, and hands back", same(&own(&events), "It is Play."));

                let before = self.configuration();
                let events = turn("map pad");
                row("proposes a mapping", same(&own(&events), "It waits for you."));
                row("the mapping, applied and undone", self.applied_and_undone(&before, &model.name));
            }

            // The proxy waits itself, or does not.
            let started = Instant::now();
            let events = turn("later");
            let waited = model.is_proxied || started.elapsed() >= Duration::from_secs(1);
            let text = format!("{}{}", own(&events), if waited { "" } else { " (it did not wait)" });
            row("comes back after a 429", same(&text, "Now."));

            // Behind the proxy these are the proxy's to tell.
            if !model.is_proxied {
                if model.streams {
                    row("a stream that is cut off", fails(&turn("be cut off")));
                }
                row("an answer that is no JSON", fails(&turn("be garbled")));
            }
            row("a key that is refused", fails(&turn("be refused")));

            let journal = Value::Array(aimock.journal()).to_string();
            let leaks = journal.contains(KEY);
            row("its key is in no question", if leaks { Err("it is".to_owned()) } else { Ok(String::new()) });
        }

        fn configuration(&self) -> String {
            std::fs::read_to_string(self.home.config()).unwrap()
        }

        fn applied_and_undone(&self, before: &str, name: &str) -> Result<String, String> {
            let plans = self.person.asks("GET", "/v1/plans", None);
            let plan = plans.as_array().and_then(|plans| plans.last()).cloned().unwrap_or_default();
            let id = plan["id"].as_str().ok_or_else(|| format!("no plan waits: {plans}"))?;
            self.home.json(&["plan", "apply", id, "--yes", "--json"]);
            if !self.configuration().contains(&format!("/{name}/36")) {
                return Err("the mapping is not there".to_owned());
            }
            let undone = self.home.conductor(&["undo", "--yes"]);
            if self.configuration() == before { Ok(String::new()) } else { Err(format!("not undone: {}", undone.err)) }
        }
    }

    /// The turn has to fail, with a reason.
    fn fails(events: &[Value]) -> Result<String, String> {
        let (outcome, why) = end(events);
        let failed = events.iter().find(|event| event["kind"] == "model_failed");
        match failed.map_or(why.as_str(), |failed| failed["error"].as_str().unwrap_or(&why)) {
            "" => Err(format!("it ended {outcome:?} with {:?}", said(events))),
            why => Ok(why.to_owned()),
        }
    }

    /// A council of these models over two commits.
    fn council(members: &[&Model], row: &mut Row<'_>) {
        let work = Folder::new("work");
        repository(work.path());
        let names: Vec<String> = members.iter().map(|model| format!("'{}'", model.name)).collect();
        let (names, place) = (names.join(", "), work.path().display());
        let config = config(members)
            + &format!(
                "[features.council.grants]\nmodels = [{names}]\nmodel_tokens = 4000000\n\
                 git = [{{ purpose = 'work', path = '{place}' }}]\n\
                 files = [{{ purpose = 'transcripts', path = '{place}', write = true }}]\n"
            );
        let home = Home::new(&config);
        let host = host(&home);
        let verify = |commit: &str| {
            let asked = json!({ "snapshot_id": commit, "target_paths": ["src"] }).to_string();
            let end = home.conductor(&["council", "verify", "--args", &asked, "--json"]);
            let result: Value = serde_json::from_str(&end.out).unwrap_or(Value::String(end.err));
            (end.code, result)
        };
        let of = |commit: &str, code: i32, verdict: &str| {
            let (exit, result) = verify(commit);
            if exit != Some(code) || result["verdict"] != verdict {
                return Err(format!("exit code {exit:?}: {result}"));
            }
            let location = result["transcript_path"].as_str().unwrap_or_default();
            let checked = home.conductor(&["council", "check", location]);
            match checked.code {
                Some(0) => Ok(format!("{verdict}, confidence {}, transcript whole", result["confidence"])),
                _ => Err(format!("the transcript: {}{}", checked.out, checked.err)),
            }
        };
        row("right work", of("HEAD~1", 0, "pass"));
        row("work with a fault", of("HEAD", 1, "fail"));
        drop(host);
    }

    /// A repository with two commits: the first is right, the second has a fault.
    fn repository(folder: &Path) {
        let git = |arguments: &[&str]| {
            let mut git = Command::new("git");
            git.arg("-C").arg(folder).args(arguments);
            git.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
            for role in ["AUTHOR", "COMMITTER"] {
                git.env(format!("GIT_{role}_NAME"), "test").env(format!("GIT_{role}_EMAIL"), "test@example.com");
            }
            assert!(git.status().unwrap().success(), "git {arguments:?}");
        };
        git(&["init", "--quiet"]);
        std::fs::create_dir(folder.join("src")).unwrap();
        for text in ["pub fn a() {}\n", "pub fn a() {} // FAULT\n"] {
            std::fs::write(folder.join("src/a.rs"), text).unwrap();
            git(&["add", "--all"]);
            git(&["commit", "--quiet", "--message=work"]);
        }
    }
}
