//! What the user of an agent is asked, and what no agent can answer in their place: over standard input and output, as
//! clients of both revisions.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "in a test a panic is a result")]

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use conductor_tests::conductor;
use conductor_tests::home::Home;
use conductor_tests::wait;
use serde_json::{Value, json};

/// An agent whose user answers as the test says.
struct Agent {
    child: Child,
    ask: ChildStdin,
    said: BufReader<ChildStdout>,
    asked: u64,
    modern: bool,
    /// What the user will answer.
    answers: VecDeque<Value>,
    /// What the user was asked.
    questions: Vec<String>,
}

fn accept(content: Value) -> Value {
    json!({ "action": "accept", "content": content })
}

impl Agent {
    fn start(home: &Home, modern: bool, capabilities: Value) -> Self {
        let mut command = conductor::command(home.path(), &["mcp"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (ask, said) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let (answers, questions) = (VecDeque::new(), Vec::new());
        let mut agent = Self { child, ask, said, asked: 0, modern, answers, questions };
        if !modern {
            let client = json!({ "name": "test", "version": "1" });
            let params = json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": client });
            agent.request("initialize", params);
            agent.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        }
        agent
    }

    fn say(&mut self, message: &Value) {
        writeln!(self.ask, "{message}").unwrap();
    }

    /// The answer to a request; the user answers what is asked meanwhile.
    fn request(&mut self, method: &str, mut params: Value) -> Value {
        self.asked += 1;
        let id = self.asked;
        if self.modern {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": { "elicitation": { "form": {} } },
                "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
            });
        }
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        loop {
            let mut line = String::new();
            assert_ne!(self.said.read_line(&mut line).unwrap(), 0, "no answer to {method}");
            let said: Value = serde_json::from_str(&line).unwrap();
            if said["method"] == "elicitation/create" {
                let answer = self.answer(&said["params"]);
                self.say(&json!({ "jsonrpc": "2.0", "id": said["id"], "result": answer }));
            } else if said["id"] == id {
                return said;
            }
        }
    }

    /// What the user answers to a question; `"digits"` is what a question wants written that gives them.
    fn answer(&mut self, question: &Value) -> Value {
        let message = question["message"].as_str().unwrap().to_owned();
        let answer = self.answers.pop_front().unwrap_or_else(|| panic!("one question too many: {message}"));
        let digits =
            message.rsplit_once("digits of its id, ").map(|(_, digits)| digits.trim_end_matches('.').to_owned());
        self.questions.push(message);
        if answer == "digits" { accept(json!({ "plan": digits.unwrap() })) } else { answer }
    }

    fn call(&mut self, tool: &str, args: &Value) -> Value {
        self.request("tools/call", json!({ "name": tool, "arguments": args }))
    }

    /// A call whose user answers so, as the agent's revision does it.
    fn answered(&mut self, tool: &str, args: &Value, answers: &[Value]) -> Value {
        self.questions.clear();
        self.answers = answers.iter().cloned().collect();
        let mut said = self.call(tool, args);
        while said["result"]["resultType"] == "input_required" {
            let (key, question) = said["result"]["inputRequests"].as_object().unwrap().iter().next().unwrap();
            let answer = json!({ key: self.answer(&question["params"]) });
            let state = &said["result"]["requestState"];
            let again = json!({ "name": tool, "arguments": args, "inputResponses": answer, "requestState": state });
            said = self.request("tools/call", again);
        }
        assert!(self.answers.is_empty(), "not asked: {:?}; {said}", self.answers);
        said["result"].take()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // Both fail only if it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const SHOW: &str = "[[modes]]\nname = \"Play\"\n";

fn show(elicitation: &str) -> Home {
    let guest = conductor::guest("hostile-tools");
    let home = Home::empty();
    let pins = home.pins(&guest);
    let guest = format!("[features.hostile-tools]\npath = '{}'\n{pins}grants = {{ alert = true }}\n", guest.display());
    home.configure(&format!("{SHOW}{guest}[mcp]\nelicitation = \"{elicitation}\"\n"));
    home
}

fn form() -> Value {
    json!({ "elicitation": { "form": {} } })
}

fn text(result: &Value) -> String {
    let blocks = result["content"].as_array().into_iter().flatten();
    blocks.filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join(" ")
}

/// What a call that sends to devices needs. The tool says what it did, and sends nothing.
fn bytes() -> Value {
    json!({ "how": "diagnostics", "target": "pads", "message": [240, 126, 247] })
}

fn mapping(action: Value) -> Value {
    json!({ "mode": "Play", "trigger": { "type": "Note", "note": 36 }, "action": action })
}

// PLN-3: two distinct confirmations, which show the bytes and name the device; anything else is none.
#[test]
fn what_reaches_devices_is_confirmed_twice() {
    let home = show("all");
    let _host = home.run();
    for modern in [false, true] {
        let mut agent = Agent::start(&home, modern, form());
        let send = accept(json!({ "decision": "send" }));
        let done = agent.answered("send", &bytes(), &[send.clone(), accept(json!({ "again": "pads" }))]);
        assert!(done["isError"] == false && text(&done).contains("done"), "{done}");
        let [first, second] = &agent.questions[..] else { panic!("{:?}", agent.questions) };
        assert_ne!(first, second);
        for question in [first, second] {
            assert!(question.contains("pads") && question.contains("240"), "{question}");
        }
        for answers in [
            vec![accept(json!({ "decision": "don't send" }))],
            vec![json!({ "action": "decline" })],
            vec![json!({ "action": "cancel" })],
            vec![accept(json!({ "decision": "yes" }))],
            vec![accept(json!({ "confirmed": true }))],
            vec![send.clone(), json!({ "action": "decline" })],
            vec![send.clone(), send.clone()],
            vec![send.clone(), accept(json!({ "again": "other" }))],
        ] {
            let refused = agent.answered("send", &bytes(), &answers);
            assert!(refused["isError"] == true && text(&refused).contains("did not agree"), "{answers:?}: {refused}");
        }
        let large = json!({ "how": "diagnostics", "target": "pads", "message": vec![7; 20_000] });
        let refused = agent.answered("send", &large, &[]);
        assert!(text(&refused).contains("a person has to agree"), "what can't be shown is not asked: {refused}");
    }
    let sent = || {
        let rows = home.json(&["audit", "list", "--kind", "tool", "--json"]);
        let rows = rows.as_array().unwrap().iter();
        rows.filter(|row| row["outcome"] == "done" && row["who"] == "mcp-socket:agent \"test\" by elicitation").count()
    };
    wait::until(|| (sent() == 2).then_some(()), || home.conductor(&["audit", "list"]).out);
}

// PLN-3: what the configuration does not allow, and a client that can't ask: there is no elicitation, and the answer says how
// a person does it.
#[test]
fn nobody_is_asked_where_the_configuration_does_not_say_so() {
    let shell = || mapping(json!({ "type": "Shell", "command": "true" }));
    let mode = || mapping(json!({ "type": "ModeChange", "mode": "Play" }));
    for (elicitation, tool, args) in [
        ("off", "send", bytes()),
        ("off", "conductor_create_mapping", mode()),
        ("plans", "send", bytes()),
        ("plans", "conductor_create_mapping", shell()),
    ] {
        let home = show(elicitation);
        let host = home.run();
        for modern in [false, true] {
            let told = Agent::start(&home, modern, form()).answered(tool, &args, &[]);
            assert!(text(&told).contains("`conductor "), "{elicitation} {tool}: {told}");
        }
        assert_eq!(host.status()["rules"], 0);
    }
    let home = show("all");
    let _host = home.run();
    for capabilities in [json!({}), json!({ "elicitation": { "url": {} } })] {
        let told = Agent::start(&home, false, capabilities).answered("send", &bytes(), &[]);
        assert!(text(&told).contains("a person can call it"), "{told}");
    }
}

// PLN-3, ACT-3: a plan that starts programs is agreed to twice.
#[test]
fn a_plan_that_starts_programs_is_agreed_to_twice() {
    let home = show("all");
    let host = home.run();
    let shell = mapping(json!({ "type": "Shell", "command": "true" }));
    for (modern, rules) in [(false, 1), (true, 2)] {
        let mut agent = Agent::start(&home, modern, form());
        let apply = accept(json!({ "decision": "apply" }));
        let waits =
            agent.answered("conductor_create_mapping", &shell, &[apply.clone(), accept(json!({ "plan": "0" }))]);
        assert!(text(&waits).contains("waits for a person"), "{waits}");
        let plans = home.json(&["plan", "list", "--json"]);
        assert_eq!(host.status()["rules"], rules - 1, "{plans}");
        home.conductor(&["plan", "reject", plans[0]["id"].as_str().unwrap()]);

        let applied = agent.answered("conductor_create_mapping", &shell, &[apply, json!("digits")]);
        assert!(text(&applied).contains("The user applied the plan"), "{applied}");
        assert!(agent.questions[1].contains("starts a program: \"true\""), "{:?}", agent.questions);
        assert_eq!(host.status()["rules"], rules);
    }
}

// PLN-3, REL-1: an answer without a question, one that comes twice, one for another call: an error, a line in the
// audit, and nothing is done.
#[test]
fn forged_answers_are_refused_and_on_record() {
    let home = show("all");
    let host = home.run();
    let mut agent = Agent::start(&home, true, form());
    let args = mapping(json!({ "type": "ModeChange", "mode": "Play" }));
    let tool = "conductor_create_mapping";
    let yes = json!({ "question_1": accept(json!({ "decision": "apply" })) });
    let again = |name: &str, args: &Value, state: &Value| json!({ "name": name, "arguments": args, "inputResponses": yes, "requestState": state });

    let asked = agent.call(tool, &args);
    let state = asked["result"]["requestState"].clone();
    let other = mapping(json!({ "type": "ModeChange", "mode": "Elsewhere" }));
    for forged in [
        again(tool, &args, &json!("")),
        again(tool, &args, &json!("0".repeat(32))),
        again(tool, &args, &home.json(&["plan", "list", "--json"])[0]["id"]),
        // The right one, for other arguments: it is used up by that.
        again(tool, &other, &state),
        again(tool, &args, &state),
    ] {
        let refused = agent.request("tools/call", forged);
        assert!(refused["error"]["message"].as_str().unwrap().contains("no question waits"), "{refused}");
    }
    assert_eq!(host.status()["rules"], 0);

    // Once is enough.
    let asked = agent.call(tool, &args);
    let answer = again(tool, &args, &asked["result"]["requestState"]);
    assert!(text(&agent.request("tools/call", answer.clone())["result"]).contains("applied"));
    assert!(agent.request("tools/call", answer)["error"].is_object(), "the same answer again");
    assert_eq!(host.status()["rules"], 1);

    // Answers to questions of 2025-11-25 that were never put.
    let mut older = Agent::start(&home, false, form());
    for id in 0..20 {
        older.say(&json!({ "jsonrpc": "2.0", "id": id, "result": accept(json!({ "decision": "apply" })) }));
    }
    older.answers = VecDeque::from([json!({ "action": "cancel" })]);
    let waits = older.call(tool, &args);
    assert!(text(&waits["result"]).contains("waits for a person"), "{waits}");
    assert_eq!(host.status()["rules"], 1);
    let refused = || {
        let rows = home.json(&["audit", "list", "--kind", "tool", "--json"]);
        let rows = rows.as_array().unwrap().iter();
        rows.filter(|row| row["detail"]["reason"].as_str().is_some_and(|why| why.contains("no question waits"))).count()
    };
    wait::until(|| (refused() >= 6).then_some(()), || home.conductor(&["audit", "list"]).out);
}

// PLN-3: the host knows what a call proposed, and asks about that.
#[test]
fn the_user_is_asked_about_the_plan_of_the_call_whatever_its_tool_says() {
    let home = show("plans");
    let _host = home.run();
    let waiting = || -> Vec<Value> {
        let plans = home.json(&["plan", "list", "--json"]);
        plans.as_array().unwrap().iter().map(|plan| plan["id"].clone()).collect()
    };
    let claim = |plans: usize, claim: Value| json!({ "how": "claim", "plans": plans, "claim": claim });
    let reject = accept(json!({ "decision": "reject" }));
    let other = Agent::start(&home, false, json!({})).call("claim", &claim(1, json!("done")));
    assert!(text(&other["result"]).contains("waits for a person"), "{other}");
    let before = waiting();
    assert_eq!(before.len(), 1);
    for modern in [false, true] {
        let mut agent = Agent::start(&home, modern, form());
        let named = json!({ "plan": before[0] });
        let told = agent.answered("claim", &claim(0, named.clone()), &[]);
        assert!(!text(&told).contains("waits for a person"), "there is no question about another call's plan: {told}");
        for says in [named, json!({ "plan": "0" }), json!("done")] {
            let told = agent.answered("claim", &claim(1, says.clone()), std::slice::from_ref(&reject));
            assert!(text(&told).contains("The user rejected the plan"), "{says}: {told}");
            assert_eq!(waiting(), before, "{says}: its own plan is gone, and no other");
        }
        let told = agent.answered("claim", &claim(2, json!("done")), &[]);
        let both = waiting().split_off(1);
        assert_eq!(both.len(), 2);
        for plan in &both {
            let plan = plan.as_str().unwrap();
            assert!(text(&told).contains(&format!("conductor plan show {plan}")), "{told}");
            home.conductor(&["plan", "reject", plan]);
        }
    }
}
