//! What the host does by itself for an event: programs, scripts, and what happens when they go wrong.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "in a test a panic is a result")]

use std::fs;
use std::time::Duration;

use conductor_tests::home::Home;
use conductor_tests::osc::{Listener, Tablet, free_port, mappings};
use conductor_tests::wait;
use rosc::OscType;

fn content(home: &Home, file: &str) -> String {
    let path = home.path().join(file);
    wait::until(|| fs::read_to_string(&path).ok().filter(|text| text.ends_with('\n')), || format!("no {file}")).0
}

// ACT-1, ACT-3: a program gets its arguments as a list, and the event in its environment.
#[test]
fn commands_and_programs_are_started() {
    let port = free_port();
    let home = Home::empty();
    let folder = home.path().display();
    home.configure(&mappings(
        port,
        &[
            (
                "/list",
                &format!("type = 'Shell', command = 'sh', args = ['-c', 'echo $1 $CONDUCTOR_DEVICE $LAMP > list', 'sh', '$(id) {{value}}'], env = {{ LAMP = 'red' }}, working_dir = '{folder}'"),
            ),
            ("/line", &format!("type = 'Shell', command = 'echo $CONDUCTOR_VALUE | tr 1-5 a-e > line', shell = true, working_dir = '{folder}'")),
            ("/launch", &format!("type = 'Launch', app = 'sh', args = ['-c', 'echo started > launched'], working_dir = '{folder}'")),
        ],
    ));
    let host = home.run();
    let tablet = Tablet::to(port);
    tablet.send("/list", [OscType::Int(7)]);
    assert_eq!(content(&home, "list"), "$(id) 7 tablet red\n");
    tablet.send("/line", [OscType::Int(123)]);
    assert_eq!(content(&home, "line"), "abc\n");
    tablet.send("/launch", []);
    assert_eq!(content(&home, "launched"), "started\n");
    host.status_when(|status| status["workers"][0]["done"] == 3 && status["failures"] == 0);
}

// ACT-4: a failure is an event with its reason, counted and shown.
#[test]
fn a_failure_is_counted_and_shown_with_its_reason() {
    let port = free_port();
    let home = Home::new(&mappings(
        port,
        &[
            ("/missing", "type = 'Shell', command = '/no/such/program'"),
            ("/wrong", "type = 'Shell', command = 'echo no such lamp >&2; exit 3', shell = true"),
            ("/slow", "type = 'Shell', command = 'sleep', args = ['300'], timeout_ms = 20"),
            ("/unbound", "type = 'SendMidi', target = 'nowhere', message_type = 'CC', cc = 1, value = 1"),
        ],
    ));
    let host = home.run();
    let tablet = Tablet::to(port);
    for (count, address, said) in [
        (1, "/missing", "processes: /no/such/program can't be started: No such file"),
        (2, "/wrong", "processes: it ended with exit status: 3: no such lamp"),
        (3, "/slow", "processes: it took longer than its 20 ms"),
        (4, "/unbound", "nowhere: no port is bound to \"nowhere\""),
    ] {
        tablet.send(address, []);
        let (status, _) = host.status_when(|status| status["failures"] == count);
        let last = status["last_failure"].as_str().unwrap();
        assert!(last.starts_with(said), "{last}");
    }
}

// ACT-2: commands that hang delay nothing else; ending the host ends them.
#[test]
fn commands_that_hang_delay_nobody() {
    let (port, out) = (free_port(), Listener::new());
    let home = Home::empty();
    let pids = home.path().join("pids");
    home.configure(&mappings(
        port,
        &[
            ("/hang", &format!("type = 'Shell', command = 'echo $$ >> {}; sleep 300', shell = true, timeout_ms = 3000000", pids.display())),
            ("/n", &format!("type = 'OscSend', target = '{}', address = '/n', args = ['{{value:i}}']", out.target())),
            ("/script", &format!("type = 'Sequence', actions = [{{ type = 'Delay', ms = 1 }}, {{ type = 'OscSend', target = '{}', address = '/late', args = [] }}]", out.target())),
        ],
    ));
    let host = home.run();
    let tablet = Tablet::to(port);
    // More than run at once.
    const HANGING: usize = 20;
    for n in 0..20 {
        tablet.send("/hang", []);
        tablet.send("/n", [OscType::Int(n)]);
        assert_eq!(out.number(), n);
    }
    tablet.send("/script", []);
    assert_eq!(out.line(), "/late ");
    let running = || fs::read_to_string(&pids).unwrap_or_default().lines().map(str::to_owned).collect::<Vec<_>>();
    let (running, _) = wait::until(|| Some(running()).filter(|pids| pids.len() == 16), || format!("{:?}", running()));
    assert!(running.len() < HANGING);

    let (end, took) = host.stop();
    assert_eq!(end.code, Some(0), "{}", end.err);
    assert!(took < Duration::from_secs(10), "{took:?}");
    for pid in running {
        let stat = format!("/proc/{pid}/stat");
        let gone = || fs::read_to_string(&stat).map_or(true, |stat| stat.contains(") Z "));
        wait::until(|| gone().then_some(()), || format!("{pid} still runs"));
    }
}

// ACT-1: sequences, repetitions and delays, with a mode change among them.
#[test]
fn scripts_do_one_thing_after_the_other() {
    let (port, out) = (free_port(), Listener::new());
    let send = |address: &str| {
        format!("{{ type = 'OscSend', target = '{}', address = '{address}', args = [] }}", out.target())
    };
    let script = format!(
        "type = 'Sequence', actions = [{}, {{ type = 'Repeat', count = 3, delay_ms = 1, action = {{ type = 'Sequence', actions = [{}, {}] }} }}, \
         {{ type = 'ModeChange', mode = 'Late' }}, {{ type = 'Delay', ms = 2 }}, {}]",
        send("/first"),
        send("/again"),
        send("/and"),
        send("/last")
    );
    let modes = "[[modes]]\nname = 'Early'\n[[modes]]\nname = 'Late'\n";
    let home = Home::new(&(mappings(port, &[("/go", &script)]) + modes));
    let host = home.run();
    Tablet::to(port).send("/go", []);
    let expected = ["/first ", "/again ", "/and ", "/again ", "/and ", "/again ", "/and ", "/last "];
    assert_eq!(out.lines(expected.len()), expected);
    host.status_when(|status| status["mode"] == "Late" && status["failures"] == 0);
}

// ACT-1: what says so is called off by another mode or other rules.
#[test]
fn a_script_is_called_off_where_the_mapping_says_so() {
    let (port, out) = (free_port(), Listener::new());
    let send = |address: &str| {
        format!("{{ type = 'OscSend', target = '{}', address = '{address}', args = [] }}", out.target())
    };
    let script = |cancel: &str, address: &str| {
        format!(
            "type = 'Sequence', cancel_on = [{cancel}], actions = [{}, {{ type = 'Delay', ms = 300 }}, {}]",
            send(&format!("{address}/begun")),
            send(&format!("{address}/ended"))
        )
    };
    let config = mappings(
        port,
        &[
            ("/stays", &script("", "/stays")),
            ("/mode", &script("'mode_change'", "/mode")),
            ("/rules", &script("'reload'", "/rules")),
            ("/late", "type = 'ModeChange', mode = 'Late'"),
        ],
    ) + "[[modes]]\nname = 'Early'\n[[modes]]\nname = 'Late'\n";
    let home = Home::new(&config);
    let host = home.run();
    let tablet = Tablet::to(port);
    for address in ["/mode", "/rules", "/stays"] {
        tablet.send(address, []);
        assert_eq!(out.line(), format!("{address}/begun "));
    }
    tablet.send("/late", []);
    home.configure(&(config + "# changed\n"));
    host.status_when(|status| status["generation"] == 1);
    // It was begun last: were the others still there, they would have ended before.
    assert_eq!(out.line(), "/stays/ended ");
}

// CFG-2: what is wrong in an action in an action is reported at its place.
#[test]
fn mistakes_inside_of_scripts_have_their_places() {
    let home = Home::new(&mappings(
        free_port(),
        &[(
            "/go",
            "type = 'Repeat', count = 0, action = { type = 'Sequence', actions = [{ type = 'Keystroke', keys = ['spcae'] }, { type = 'Shel', command = 'x' }] }",
        )],
    ));
    let end = home.conductor(&["config", "validate"]);
    for part in [
        "`count` is out of range: 0",
        "an item of `keys` cannot be \"spcae\": no key is called so; did you mean \"space\"?",
    ] {
        assert!(end.err.contains(part), "no {part:?} in\n{}", end.err);
    }
    let home = Home::new(&mappings(
        free_port(),
        &[("/go", "type = 'Sequence', actions = [{ type = 'Delay', ms = 1 }, { type = 'Shel', command = 'x' }]")],
    ));
    let end = home.conductor(&["config", "validate"]);
    assert!(end.err.contains("config.toml:7:79: there is no action \"Shel\""), "{}", end.err);
    assert!(end.err.contains("did you mean \"Shell\"?"), "{}", end.err);
}
