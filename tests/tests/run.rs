//! `conductor run` through its life: it starts, is reconfigured, loses things, is asked, and ends.

#![allow(clippy::unwrap_used, reason = "in a test a panic is a result")]

use std::fs;
use std::net::UdpSocket;
#[cfg(all(target_os = "linux", not(feature = "jack")))]
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use conductor_tests::conductor::{Host, command, guest, port};
use conductor_tests::home::Home;
use conductor_tests::osc::{Listener, Tablet, free_port};
use conductor_tests::process::Process;
use conductor_tests::wait;
use rosc::OscType;
use serde_json::{Value, json};

/// A tablet on this port, whose messages `/n` go on to this target, to this address.
fn show(input: u16, target: &str, address: &str) -> String {
    format!(
        "[[bindings]]
alias = 'tablet'
protocol = 'osc'
input = {{ port = {input} }}

[[global_mappings]]
name = 'numbers'
trigger = {{ type = 'OscMessage', address = '/n' }}
action = {{ type = 'OscSend', target = '{target}', address = '{address}', args = ['{{value:i}}'] }}
"
    )
}

/// A running show, and what is around it.
struct Stage {
    tablet: Tablet,
    out: Listener,
    input: u16,
    home: Home,
}

impl Stage {
    fn new() -> Self {
        let (input, out) = (free_port(), Listener::new());
        let home = Home::new(&show(input, &out.target(), "/n"));
        Self { tablet: Tablet::to(input), out, input, home }
    }

    fn config(&self, address: &str) -> String {
        show(self.input, &self.out.target(), address)
    }

    /// Sends one number, and sees it arrive.
    fn works(&self, number: i32) {
        self.tablet.send("/n", [OscType::Int(number)]);
        assert_eq!(self.out.number(), number);
    }
}

/// A configuration with three mistakes.
const WRONG: &str = "\
[advanced_settings]
max_midi_prots = 4

[[modes]]
name = 'Live'

[[modes.mappings]]
trigger = { type = 'Note', note = 128 }
action = { type = 'ModeChange', mode = 'Lvie' }
";

// CFG-2: a bad file at the start is refused: all mistakes, their places, what is allowed, the nearest name.
#[test]
fn a_wrong_configuration_is_refused_with_every_mistake() {
    let home = Home::new(WRONG);
    let end = home.conductor(&["run"]);
    assert_eq!(end.code, Some(2), "{}", end.err);
    let file = home.config();
    let file = file.display();
    for part in [
        format!("{file}:2:1: unknown key `max_midi_prots`"),
        "did you mean \"max_midi_ports\"?".into(),
        format!("{file}:8:35: `note` is out of range: 128"),
        "allowed: 0 to 127".into(),
        format!("{file}:9:40: no mode is called \"Lvie\""),
        "did you mean \"Live\"?".into(),
        format!("3 errors in {file}"),
    ] {
        assert!(end.err.contains(&part), "no {part:?} in\n{}", end.err);
    }
    assert_eq!(end.out, "");
    assert!(!home.socket().exists());
}

// CFG-1: without the file that was named there is a hint, and no host.
#[test]
fn a_missing_configuration_is_named_and_help_is_offered() {
    let home = Home::empty();
    let named = home.path().join("named.toml");
    let end = home.conductor(&["run", "--config", named.to_str().unwrap()]);
    assert_eq!(end.code, Some(2));
    assert!(end.err.contains("named.toml: No such file"), "{}", end.err);
    assert!(end.err.contains("conductor demo"), "{}", end.err);
}

// CFG-1, CLI-1: a home without a file runs, and says what to do.
#[test]
fn a_home_without_a_configuration_runs_and_says_how_to_make_one() {
    let home = Home::empty();
    let host = home.run();
    let log = host.log().text();
    assert!(log.contains("config.toml yet, so nothing is mapped") && log.contains("`conductor init`"), "{log}");
    let first = home.conductor(&["init"]);
    assert_eq!(first.code, Some(0), "{}", first.err);
    host.log().line("reloaded");
}

// CFG-1: no blank page.
#[test]
fn a_first_configuration_is_written_once_and_runs() {
    let home = Home::empty();
    let first = home.conductor(&["init"]);
    assert_eq!(first.code, Some(0), "{}", first.err);
    assert!(first.out.contains("`conductor run` plays it"), "{}", first.out);
    let text = fs::read_to_string(home.config()).unwrap();
    let checked = home.conductor(&["config", "validate"]);
    assert_eq!((checked.code, checked.err.as_str()), (Some(0), ""), "{text}");
    drop(home.run());

    let again = home.conductor(&["init"]);
    assert_eq!(again.code, Some(2));
    assert!(again.err.contains("already exists, and stays as it is"), "{}", again.err);
    assert_eq!(fs::read_to_string(home.config()).unwrap(), text);
}

// CFG-4: the file is edited, and the new rules hold.
#[test]
fn a_saved_file_is_in_force_at_once() {
    let stage = Stage::new();
    let host = stage.home.run();
    stage.works(1);

    // An editor that moves a new file over the old one.
    stage.home.configure(&stage.config("/moved"));
    host.log().line("reloaded");
    stage.tablet.send("/n", [OscType::Int(2)]);
    assert_eq!(stage.out.line(), "/moved i 2");

    // An editor that writes into the file, in two steps; half a file is no news.
    let text = stage.config("/written");
    stage.home.write("config.toml", &text[..40]);
    stage.home.write("config.toml", &text);
    host.status_when(|status| status["generation"] == 2);
    stage.tablet.send("/n", [OscType::Int(3)]);
    assert_eq!(stage.out.line(), "/written i 3");
}

// CFG-4, ENG-8: no event is lost by a reload; each meets the old rules or the new ones.
#[test]
fn events_that_come_during_reloads_all_arrive() {
    const RELOADS: u64 = 5;
    let stage = Stage::new();
    let host = stage.home.run();
    let enough = AtomicBool::new(false);

    let (sent, mut seen) = thread::scope(|scope| {
        let sender = scope.spawn(|| {
            let mut n = 0;
            while !enough.load(Ordering::Relaxed) {
                stage.tablet.send("/n", [OscType::Int(n)]);
                n += 1;
                // A pace that a finger could not reach and that no socket's queue is too short for.
                thread::sleep(Duration::from_micros(500));
            }
            n
        });
        for generation in 1..=RELOADS {
            stage.home.configure(&stage.config(&format!("/{generation}")));
            host.status_when(|status| status["generation"] == generation);
        }
        enough.store(true, Ordering::Relaxed);
        (sender.join().unwrap(), Vec::new())
    });

    for n in 0..sent {
        let message = stage.out.message();
        assert_eq!(message.args, [OscType::Int(n)]);
        if seen.last() != Some(&message.addr) {
            seen.push(message.addr);
        }
    }
    assert_eq!(seen.first().map(String::as_str), Some("/n"));
    assert!(seen.iter().skip(1).map(|address| address[1..].parse::<u64>().unwrap()).is_sorted(), "{seen:?}");
    assert_eq!(host.status()["failures"], 0);
}

// CFG-4, PRT-2: a reload opens the ports that are new in it, and closes those that are not in it any more.
#[test]
fn a_reload_moves_the_ports_too() {
    let stage = Stage::new();
    let host = stage.home.run();
    stage.works(1);

    let moved = free_port();
    stage.home.configure(&show(moved, &stage.out.target(), "/n"));
    host.log().line("reloaded");
    Tablet::to(moved).send("/n", [OscType::Int(2)]);
    assert_eq!(stage.out.number(), 2);
    // The old port is free again.
    UdpSocket::bind(("127.0.0.1", stage.input)).unwrap();
}

// CFG-2: a bad file on reload keeps the old rules, and says so in the log and to watchers.
#[test]
fn a_wrong_file_on_reload_keeps_the_old_rules() {
    let stage = Stage::new();
    let host = stage.home.run();
    let watcher = Watcher::of(&stage);

    for (n, wrong) in (1..).zip([WRONG.to_owned(), "this is no TOML".into(), stage.config("/a b")]) {
        stage.home.configure(&wrong);
        let refusal = format!("refusal {n} in the log");
        host.log().find(&refusal, |lines| {
            (lines.iter().filter(|line| line.contains("was refused; the old rules stay")).count() == n).then_some(())
        });
        watcher.0.out.find(&format!("refusal {n} at the monitor"), |lines| {
            (lines.iter().filter(|line| line.contains("the old rules stay")).count() == n).then_some(())
        });
        stage.works(i32::try_from(n).unwrap());
    }
    host.log().line("config.toml:9:40: no mode is called \"Lvie\"");

    stage.home.configure(&stage.config("/right"));
    host.log().line("reloaded");
    stage.tablet.send("/n", [OscType::Int(9)]);
    assert_eq!(stage.out.line(), "/right i 9");
}

// CFG-4: SIGHUP asks to read the file again where a change can't be noticed, as behind a link.
#[test]
fn sighup_reads_the_file_again() {
    let stage = Stage::new();
    let elsewhere = Home::new(&stage.config("/n"));
    fs::remove_file(stage.home.config()).unwrap();
    std::os::unix::fs::symlink(elsewhere.config(), stage.home.config()).unwrap();
    let host = stage.home.run();
    stage.works(1);

    elsewhere.configure(&stage.config("/again"));
    stage.works(2);
    host.signal("HUP");
    host.log().line("reloaded");
    stage.tablet.send("/n", [OscType::Int(3)]);
    assert_eq!(stage.out.line(), "/again i 3");
}

// CLI-1, REL-3: SIGTERM and SIGINT end the host in time, with everything put away and all clients notified.
#[test]
fn a_signal_ends_the_host_clean() {
    for signal in ["TERM", "INT"] {
        let stage = Stage::new();
        let host = stage.home.run();
        let watcher = Watcher::of(&stage);
        stage.works(1);
        assert!(stage.home.socket().exists());

        host.signal(signal);
        let (end, took) = host.stop();
        assert_eq!(end.code, Some(0), "{signal}: {}", end.err);
        assert!(took < Duration::from_secs(3), "{signal}: it took {took:?}");
        assert!(!stage.home.socket().exists());
        UdpSocket::bind(("127.0.0.1", stage.input)).unwrap();
        watcher.0.wait();
    }
}

// CLI-1: one home, one host; the second says who is there, and does no harm.
#[test]
fn a_second_host_in_the_same_home_gives_way() {
    let stage = Stage::new();
    let _host = stage.home.run();

    let second = stage.home.conductor(&["run"]);
    assert_eq!(second.code, Some(1), "{}", second.err);
    let message = format!("a host is running in {} already", stage.home.path().display());
    assert!(second.err.contains(&message), "{}", second.err);
    stage.works(1);
}

// REL-3: what a killed host leaves behind does not keep the next one from starting.
#[test]
fn a_host_starts_where_another_was_killed() {
    let stage = Stage::new();
    stage.home.run().kill();
    assert!(stage.home.socket().exists(), "or this test tests nothing");

    let host = stage.home.run();
    stage.works(1);
    assert_eq!(host.status()["pid"], host.id());
}

// PRT-1, PRT-7: a port that can't be opened is skipped with a message and shown with its error.
#[test]
fn a_port_that_another_program_has_is_said_and_the_rest_works() {
    let stage = Stage::new();
    let blocker = UdpSocket::bind(("127.0.0.1", free_port())).unwrap();
    let taken = blocker.local_addr().unwrap();
    let number = taken.port();
    let both = stage.config("/n")
        + &format!("[[bindings]]\nalias = 'desk'\nprotocol = 'osc'\ninput = {{ port = {number} }}\n");
    stage.home.configure(&both);
    let host = stage.home.run();

    let reason = format!("{taken} is in use: another program listens there");
    let said = host.log().line(&reason);
    assert!(said.contains("WARN"), "{said}");
    let ports = stage.home.json(&["ports", "--json"]);
    assert_eq!(port(&ports, "desk").unwrap()["state"], json!({ "failed": reason }));
    assert!(stage.home.conductor(&["ports"]).out.contains(&reason));
    stage.works(1);

    drop(blocker);
    stage.home.configure(&(both + "# again\n"));
    host.port_is("desk", "open");
}

// REL-3: a home that can't be written costs the cache and the socket, and nothing else.
#[test]
fn an_unwritable_home_is_a_warning() {
    let stage = Stage::new();
    let file = stage.home.write("file", "not a folder");
    let home = file.join("home");
    let config = stage.home.config();
    let mut run = command(&home, &["run", "--config", config.to_str().unwrap()]);
    let host = Host::ready(&mut run, home.join("conductor.sock"));

    let said = host.log().line(&format!("{} can't be made", home.display()));
    assert!(said.contains("WARN"), "{said}");
    stage.works(1);
    stage.home.configure(&stage.config("/reloaded"));
    host.log().line("reloaded");
    stage.tablet.send("/n", [OscType::Int(2)]);
    assert_eq!(stage.out.line(), "/reloaded i 2");
    assert_eq!(host.stop().0.code, Some(0));
}

// PRT-1: on a machine without sound there is one message, with what to do; OSC goes on.
#[test]
#[cfg(all(target_os = "linux", not(feature = "jack")))]
fn a_machine_without_sound_is_warned_once() {
    if Path::new("/dev/snd/seq").exists() {
        println!("skipped: this machine has sound");
        return;
    }
    let stage = Stage::new();
    let host = stage.home.run();

    let said = host.log().line("MIDI through alsa can't be reached");
    let hint = "there is no /dev/snd/seq; load the sequencer (modprobe snd-seq)";
    assert!(said.contains("WARN") && said.contains(hint), "{said}");
    let ports = stage.home.json(&["ports", "--json"]);
    assert_eq!(ports["unreachable"][0][0], "alsa");
    assert!(ports["unreachable"][0][1].as_str().unwrap().contains(hint), "{ports:#}");
    stage.works(1);

    // It is looked for again and again, which is not a reason to speak again and again.
    let quiet = host.log().all().len();
    let uptime = |status: &Value| status["uptime"].as_u64().unwrap();
    let now = uptime(&host.status());
    host.status_when(|status| uptime(status) > now + 2_000_000_000);
    assert_eq!(host.log().all()[quiet..], [] as [&str; 0]);
}

// ACT-4: a target where no program listens: counted, shown, and no reason not to try the next time.
#[test]
fn a_target_that_is_away_is_counted_and_served_when_it_comes() {
    let (input, output) = (free_port(), free_port());
    let target = format!("127.0.0.1:{output}");
    let home = Home::new(&show(input, &target, "/n"));
    let host = home.run();
    let tablet = Tablet::to(input);

    // The system reports with the next packet that the one before was not received.
    let failures = |status: &Value| status["failures"].as_u64().unwrap();
    host.status_when(|status| {
        tablet.send("/n", [OscType::Int(1)]);
        failures(status) >= 2
    });
    let reason = format!("nothing listens at {target}");
    let said = host.log().line(&reason);
    assert!(said.contains("WARN"), "{said}");
    let listed = home.conductor(&["feature", "list"]).out;
    assert!(listed.contains(&reason), "{listed}");
    let feature = host.feature("osc-output");
    assert!(feature["failed"].as_u64() >= Some(2) && feature["trapped"] == 0, "{feature:#}");

    let out = Listener::on(output);
    tablet.send("/n", [OscType::Int(2)]);
    // One that was on its way already may come first.
    wait::until(|| (out.number() == 2).then_some(()), || "the new packet did not come".into());
}

// FEA-3, FEA-14: what was not granted is refused before anything runs, with what a person has to write.
#[test]
fn a_target_needs_a_grant() {
    let stage = Stage::new();
    let ask = show(stage.input, "192.0.2.1:9", "/n");
    stage.home.configure(&ask);
    for arguments in [&["run"][..], &["config", "validate"]] {
        let end = stage.home.conductor(arguments);
        assert_eq!(end.code, Some(2), "{}", end.err);
        let message = "config.toml:9:10: OscSend: denied: 192.0.2.1:9 is not granted; \
                       write `udp = [\"192.0.2.1:9\"]` under [features.osc-output.grants]";
        assert!(end.err.contains(message), "{}", end.err);
    }

    stage.home.configure(&(ask + "\n[features.osc-output.grants]\nudp = ['192.0.2.1:9']\n"));
    let end = stage.home.conductor(&["config", "validate"]);
    assert_eq!((end.code, end.err.as_str()), (Some(0), ""));
}

// FEA-12: what is installed and what it did; and what is in a package, without running it.
#[test]
fn features_are_listed_and_inspected() {
    let stage = Stage::new();
    let before = stage.home.conductor(&["feature", "list"]);
    assert!(before.out.contains("no host is running"), "{}", before.out);

    let host = stage.home.run();
    (0..3).for_each(|n| stage.works(n));
    host.feature_when("osc-output", |feature| feature["performed"] == 3);
    let list = stage.home.json(&["feature", "list", "--json"]);
    let listed =
        list.as_array().unwrap().iter().find(|listed| listed["package"]["id"] == "builtin:osc-output").unwrap();
    assert_eq!(listed["package"]["actions"], json!(["OscSend"]));
    assert_eq!((&listed["performed"], &listed["failed"]), (&json!(3), &json!(0)));

    // For people: the numbers stand below what they are the numbers of.
    let table = stage.home.conductor(&["feature", "list"]).out;
    let (head, row) = table.split_once('\n').unwrap();
    let row = row.lines().find(|row| row.contains("osc-output")).unwrap();
    let done = head.find("DONE").unwrap() + "DONE".len();
    assert!(row.get(..done).is_some_and(|row| row.ends_with(" 3")), "{table}");

    let file = conductor_tests::conductor::components().join("osc-output.wasm");
    let inspected = stage.home.conductor(&["feature", "inspect", file.to_str().unwrap()]);
    assert_eq!(inspected.code, Some(0), "{}", inspected.err);
    for part in ["builtin:osc-output", "UDP to ANY host, ANY port (*:*)", "action OscSend", "conductor:feature/udp@"] {
        assert!(inspected.out.contains(part), "no {part} in\n{}", inspected.out);
    }
    let inspected = stage.home.json(&["feature", "inspect", "--json", guest("hello").to_str().unwrap()]);
    assert_eq!(inspected["descriptor"]["id"], "project:hello");
    assert_eq!(inspected["descriptor"]["capabilities"], json!([]));
    assert_eq!(inspected["problems"], json!([]));
}

// CLI-1: a reader that closes the pipe after the first lines gets them, and no error.
#[test]
fn output_that_nobody_reads_is_no_failure() {
    let home = Home::new("");
    let mut schema = command(home.path(), &["config", "schema"]);
    let mut schema = schema.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(schema.stdout.take());
    let end = schema.wait_with_output().unwrap();
    assert_eq!((end.status.code(), String::from_utf8_lossy(&end.stderr).as_ref()), (Some(0), ""));
}

// CFG-1, CFG-2: the commands about configuration, which open no port.
#[test]
fn a_configuration_is_validated_and_its_schema_printed() {
    let stage = Stage::new();
    // The port is taken, which does not matter for a check.
    let _blocker = UdpSocket::bind(("127.0.0.1", stage.input)).unwrap();
    let fine = stage.home.conductor(&["config", "validate"]);
    assert_eq!((fine.code, fine.err.as_str()), (Some(0), ""));
    assert!(fine.out.ends_with("config.toml: fine; 1 rule, 0 modes"), "{}", fine.out);

    stage.home.configure(WRONG);
    let wrong = stage.home.conductor(&["config", "validate"]);
    assert_eq!((wrong.code, wrong.out.as_str()), (Some(2), ""));
    assert!(wrong.err.contains("3 errors in"), "{}", wrong.err);

    stage.home.configure(&stage.config("/n").replace("OscSend", "OscSned"));
    let wrong = stage.home.conductor(&["config", "validate"]);
    assert!(wrong.err.contains("config.toml:9:19: there is no action \"OscSned\""), "{}", wrong.err);
    assert!(wrong.err.contains("did you mean \"OscSend\"?"), "{}", wrong.err);

    let schema = stage.home.json(&["config", "schema"]);
    assert_eq!(schema["title"], "Conductor configuration");
    assert!(schema["$schema"].as_str().is_some_and(|dialect| dialect.contains("json-schema.org")));
    for key in ["advanced_settings", "bindings", "modes", "global_mappings", "features"] {
        assert!(schema["properties"][key].is_object(), "no {key}");
    }
}

// CLI-1, PRT-8: what rules would do for a script; nothing is done.
#[test]
fn a_script_is_simulated() {
    let out = Listener::new();
    let home = Home::new(&format!(
        "[[modes]]
name = 'Play'
[[modes.mappings]]
name = 'to mix'
trigger = {{ type = 'Note', note = 51, device = 'pads' }}
action = {{ type = 'ModeChange', mode = 'Mix' }}
[[modes]]
name = 'Mix'
[[modes.mappings]]
name = 'mute'
trigger = {{ type = 'Note', note = '36..39' }}
action = {{ type = 'OscSend', target = '{}', address = '/mute/{{n}}' }}
[[bindings]]
alias = 'pads'
",
        out.target()
    ));
    let script = home.write(
        "script",
        "10ms pads note-on 36 100\n+5ms faders note-on 51 100\n+5ms pads note-on 51 100 # and now\n\
         +5ms pads note-on 38 1 ch 9\n",
    );
    let script = script.to_str().unwrap();

    let end = home.conductor(&["simulate", script, "--json"]);
    assert_eq!(end.code, Some(0), "{}", end.err);
    let lines: Vec<Value> = end.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let step = |at: u32, device: &str, event: &str, mode: &str, rules: &[&str]| json!({ "at": at * 1_000_000, "device": device, "event": event, "mode": mode, "rules": rules });
    assert_eq!(
        lines,
        [
            step(10, "pads", "note-on 36 100", "Play", &[]),
            step(15, "faders", "note-on 51 100", "Play", &[]),
            step(20, "pads", "note-on 51 100", "Play", &["to mix (ModeChange to Mix)"]),
            step(25, "pads", "note-on 38 1 ch 9", "Mix", &["mute (OscSend)"]),
            json!({ "at": 25_000_000, "rule": "mute (OscSend)", "effect": format!("OSC {} /mute/2 0.007874016", out.target()) }),
        ]
    );
    assert!(home.conductor(&["simulate", script]).out.contains("[Mix] pads"));

    let wrong = home.write("wrong", "1ms pads note-on 36 100\nsoon pads note-on 300 100\n");
    let end = home.conductor(&["simulate", wrong.to_str().unwrap()]);
    assert_eq!(end.code, Some(2));
    assert!(end.err.contains("wrong: line 2, column 1: `soon` is not a time"), "{}", end.err);
}

// CLI-1, PRT-8: the demonstration, from simulated pads to a socket, proves itself.
#[test]
fn the_demonstration_passes() {
    let home = Home::untouched();
    let (end, took) = Process::start(&mut command(home.path(), &["demo", "--osc"])).wait();
    assert_eq!(end.code, Some(0), "{}\n{}", end.out, end.err);
    assert!(!end.out.contains("MISSING"), "{}", end.out);
    assert!(end.out.contains("OSC packets and 4 MIDI messages received"), "{}", end.out);
    assert!(took < Duration::from_secs(30), "it took {took:?}");
}

/// `conductor monitor --json` on a stage's host.
struct Watcher(Process);

impl Watcher {
    /// Attaches one, and waits until it sees what happens.
    fn of(stage: &Stage) -> Self {
        let process = Process::start(&mut command(stage.home.path(), &["monitor", "--json"]));
        wait::until(
            || {
                stage.tablet.send("/attached", []);
                process.out.text().contains("/attached").then_some(())
            },
            || format!("the monitor shows nothing: {}", process.err.text()),
        );
        Self(process)
    }

    /// The first line of this kind that holds `part`.
    fn sees(&self, kind: &str, part: &str) -> Value {
        let kind = format!("\"kind\":\"{kind}\"");
        self.0.out.find(&format!("{kind} with {part}"), |lines| {
            let line = lines.iter().find(|line| line.contains(&kind) && line.contains(part))?;
            Some(serde_json::from_str(line).unwrap())
        })
    }
}

// CLI-1, API-1: a monitor attaches to the host that runs, and prints what happens there.
#[test]
fn a_monitor_shows_what_happens_in_the_running_host() {
    let stage = Stage::new();
    stage.home.configure(
        &(stage.config("/n")
            + "[[modes]]\nname = 'Play'\n[[modes]]\nname = 'Mix'\n\
               [[global_mappings]]\ntrigger = { type = 'OscMessage', address = '/mix' }\n\
               action = { type = 'ModeChange', mode = 'Mix' }\n"),
    );
    let host = stage.home.run();
    let watcher = Watcher::of(&stage);

    stage.works(7);
    let mut seen = watcher.sees("event", "osc /n 7");
    assert!(seen["at"].take().as_u64() > Some(0));
    assert_eq!(
        seen,
        json!({ "kind": "event", "at": null, "device": "tablet", "event": "osc /n 7", "rules": ["numbers (OscSend)"] })
    );
    stage.tablet.send("/mix", []);
    assert_eq!(watcher.sees("mode", "Mix")["mode"], "Mix");
    assert_eq!(host.status()["mode"], "Mix");
    stage.home.configure(&stage.config("/n"));
    watcher.sees("reload", "1 rule");

    // Another monitor, for people; each sees everything.
    let people = Process::start(&mut command(stage.home.path(), &["monitor"]));
    wait::until(
        || {
            stage.tablet.send("/attached", []);
            people.out.text().contains("osc /attached").then_some(())
        },
        || "the second monitor shows nothing".into(),
    );
    stage.works(8);
    people.out.line("osc /n 8");
    watcher.sees("event", "osc /n 8");
    // One that leaves is no loss.
    drop(people);
    stage.works(9);
}

// CLI-1: colours are for terminals; a log in a file holds none.
#[test]
fn a_log_that_no_terminal_shows_holds_no_colours() {
    let stage = Stage::new();
    let mut run = command(stage.home.path(), &["run"]);
    let host = Host::ready(run.env_remove("NO_COLOR"), stage.home.socket());
    stage.works(1);
    let (end, _) = host.stop();
    assert!(!end.err.contains('\u{1b}'), "{}", end.err);
}

// FEA-9: ending a host that is still compiling does not wait for the compiler.
#[test]
fn a_host_ends_in_the_middle_of_compiling() {
    // A home without compiled code.
    let home = Home::untouched();
    home.configure("");
    let begun = home.path().join("begun");
    let worker = home.write("worker", format!("#!/bin/sh\ntouch '{}'\nexec sleep 1000\n", begun.display()));
    fs::set_permissions(&worker, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    let process = Process::start(command(home.path(), &["run"]).env("CONDUCTOR_COMPILER", &worker));
    wait::until(|| begun.exists().then_some(()), || "no compiler was started".to_owned());
    process.signal("TERM");
    let (end, _) = process.wait();
    assert_eq!(end.code, Some(0), "{}", end.err);
}

// FEA-1: a pipe as a package is refused at once; a pipe as the configuration, too.
#[test]
fn pipes_hold_nobody_up() {
    let home = Home::new("[features.f]\npath = 'f.wasm'\n");
    let pipe = |path: std::path::PathBuf| {
        let made = std::process::Command::new("mkfifo").arg(path).status().unwrap();
        assert!(made.success());
    };
    pipe(home.path().join("f.wasm"));
    let host = home.run();
    assert!(host.feature("f")["refused"].as_str().unwrap().contains("is a pipe"));
    let (end, _) = host.stop();
    assert_eq!(end.code, Some(0), "{}", end.err);

    fs::remove_file(home.config()).unwrap();
    pipe(home.config());
    let end = home.conductor(&["run"]);
    assert_eq!(end.code, Some(2), "{}", end.err);
    assert!(end.err.contains("is a pipe, not a plain file"), "{}", end.err);

    // The size of a script is bounded, also if the path names a device.
    for command in ["simulate", "test"] {
        let end = home.conductor(&[command, "/dev/zero"]);
        assert_eq!(end.code, Some(2), "{}", end.err);
        assert!(end.err.contains("/dev/zero: has more than 4194304 bytes"), "{}", end.err);
    }
}
