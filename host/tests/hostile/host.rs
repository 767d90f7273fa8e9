//! A whole host: while its features do their worst, a controller plays, and nothing is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use conductor_host::config;
use conductor_host::control::caller::Caller;
use conductor_host::control::gate::{ToolError, ToolRequest};
use conductor_host::host::Host;
use conductor_host::ports::Direction;
use conductor_host::ports::simulated::SimulatedPorts;
use tokio_util::sync::CancellationToken;

use crate::lab::{Folder, Recorded, features, path, pins, until};

const PORT: &str = "controller";
/// Events a second.
const RATE: u64 = 1000;

/// The configuration. Each round grants one more thing, so that the hostile features are installed
/// afresh and are out of their quarantine.
fn configuration(look: &Folder, round: usize) -> String {
    let mut text = r#"
[advanced_settings]
listen_mode = "all"

[[modes]]
name = "one"

[[modes]]
name = "loop"

[[modes]]
name = "trap"

[[modes]]
name = "flood"

[[global_mappings]]
trigger = { type = "CC", cc = 1 }
action = { type = "OscSend", target = "127.0.0.1:9", address = "/level", args = ["{value:i}"] }
"#
    .to_owned();
    for (note, how) in
        ["loop", "trap", "recurse", "memory", "nonsense", "flood", "no-text", "datagrams"].iter().enumerate()
    {
        text += &format!(
            "[[global_mappings]]\ntrigger = {{ type = 'Note', note = {note} }}\n\
             action = {{ type = 'Misbehave', how = '{how}' }}\n"
        );
    }
    for name in ["hostile", "hostile-hooks", "hostile-tasks", "hostile-tools"] {
        text += &format!(
            "[features.{name}]\n{}[features.{name}.grants]\nalert = true\n",
            pins(&path(&format!("tests/{name}")))
        );
        text += match name {
            "hostile-hooks" => "observe_events = ['*']\n",
            "hostile-tasks" => "background_task = true\n",
            "hostile-tools" => "notify = true\nstore = 65536\n",
            _ => "",
        };
        text += &format!("udp = ['127.0.0.1:*', '127.0.0.1:{}']\n", round + 1);
    }
    text + &format!("files = [{{ purpose = 'look', path = '{}' }}]\n", look.path().display())
}

/// What the tools do.
const WAYS: [&str; 20] = [
    "loop",
    "trap",
    "nothing",
    "memory",
    "recurse",
    "ignore-cancel",
    "large",
    "huge",
    "no-json",
    "no-text",
    "deep",
    "diagnostics",
    "alerts",
    "notifications",
    "progress",
    "datagrams",
    "targets",
    "context-late",
    "store-fill",
    "drop",
];

#[test]
fn nothing_is_lost_at_a_thousand_events_a_second() {
    let (home, look, ports, recorded) = (Folder::new(), Folder::new(), SimulatedPorts::new(), Recorded::default());
    // The bundled feature alone: the hostile ones come from files.
    let bundled = home.path().join("bundled");
    std::fs::create_dir(&bundled).unwrap();
    std::fs::copy(features().join("osc-output.wasm"), bundled.join("osc-output.wasm")).unwrap();
    ports.plug(PORT, Direction::Input);
    let loaded = config::parse(&configuration(&look, 0), "hostile.toml")
        .unwrap_or_else(|wrong| panic!("{}", wrong.render(false)));
    let host = Host::builder()
        .home(home.path())
        .features(&bundled)
        .backend(ports.backend())
        .datagrams(Box::new(recorded.clone()))
        .start(&loaded)
        .unwrap_or_else(|error| panic!("{error}"));
    until("the port was not opened", || ports.is_open(PORT));

    let over = Arc::new(AtomicBool::new(false));
    let player = {
        let (ports, over) = (ports.clone(), Arc::clone(&over));
        std::thread::spawn(move || {
            let (began, mut played) = (Instant::now(), 0_u64);
            while !over.load(Ordering::Relaxed) {
                let due = u64::try_from(began.elapsed().as_millis()).unwrap() * RATE / 1000;
                while played < due {
                    assert!(ports.play(PORT, &[0xb0, 1, (played % 128) as u8]));
                    played += 1;
                    // Now and then a note, for the hostile actions.
                    if played % 250 == 0 {
                        assert!(ports.play(PORT, &[0x90, (played / 250 % 8) as u8, 100]));
                    }
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            (played, began.elapsed())
        })
    };

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (mut came, caller) = (Vec::new(), Caller::library());
    runtime.block_on(async {
        for (round, how) in WAYS.iter().enumerate() {
            host.reload(&configuration(&look, round), "hostile.toml")
                .unwrap_or_else(|wrong| panic!("{}", wrong.render(false)));
            for (tool, before) in
                [("look", ""), ("change", ""), ("propose", ""), ("send", ""), ("look", "loop"), ("look", "trap")]
            {
                // Traps are remembered beyond a reload; here they are to go on.
                for feature in ["hostile", "hostile-hooks", "hostile-tools", "hostile-tasks"] {
                    host.lift_quarantine(&caller, feature);
                }
                let args = serde_json::json!({ "how": how, "before": before });
                let call = |confirmation: Option<String>| {
                    let args = args.as_object().unwrap().clone();
                    let request = ToolRequest { args, confirmed: confirmation.is_some(), confirmation };
                    host.call_tool(&caller, tool, request, CancellationToken::new(), Arc::new(|_, _| {}))
                };
                let answer = match call(None).await {
                    Err(ToolError::NeedsConfirmation { confirmation: Some(asked), .. }) => call(Some(asked.id)).await,
                    answer => answer,
                };
                came.push(match answer {
                    Ok(_) => "done".to_owned(),
                    Err(error) => error.to_string(),
                });
            }
            host.set_mode(["one", "loop", "trap", "flood"][round % 4]);
        }
    });
    let kinds = [
        "done",
        "ran longer than its 2000 ms",
        "`unreachable`",
        "its memory limit",
        "its stack",
        "its limit of 1024 handles",
        "is not JSON",
        "are taken",
        "its hook gave no answer: stopped: it ran longer",
        "its hook gave no answer: trapped",
    ];
    for kind in kinds {
        assert!(came.iter().any(|came| came.contains(kind)), "nothing came to {kind:?}: {came:#?}");
    }
    over.store(true, Ordering::Relaxed);
    let (played, took) = player.join().unwrap();
    let sent = || recorded.sent.load(Ordering::Relaxed);
    until(&format!("{} of {played} were sent", sent()), || sent() >= played);
    assert_eq!(sent(), played);
    assert!(recorded.floods.load(Ordering::Relaxed) > 0, "the hostile features sent nothing");
    assert!(played >= 2 * RATE, "it was over too soon to tell: {played} in {took:?}");
    println!("{played} events in {took:?} beside {} hostile calls, none lost", came.len());
    host.stop();
}
