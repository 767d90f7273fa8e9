//! A whole host: while its features do their worst, a controller plays, and nothing is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use conductor_host::config;
use conductor_host::control::gate::ToolRequest;
use conductor_host::host::Host;
use conductor_host::ports::Direction;
use conductor_host::ports::simulated::SimulatedPorts;
use tokio_util::sync::CancellationToken;

use crate::lab::{Folder, Recorded, features, path, until};

const PORT: &str = "controller";
/// Events a second.
const RATE: u64 = 1000;

fn configuration(look: &Folder) -> String {
    let mut text = r#"
[advanced_settings]
listen_mode = "all"

[[modes]]
name = "one"

[[modes]]
name = "two"

[[global_mappings]]
trigger = { type = "CC", cc = 1 }
action = { type = "OscSend", target = "127.0.0.1:9", address = "/level", args = ["{value:i}"] }
"#
    .to_owned();
    for (note, how) in ["loop", "trap", "recurse", "memory", "nonsense", "flood", "no-text", "datagrams"].iter().enumerate() {
        text += &format!(
            "[[global_mappings]]\ntrigger = {{ type = 'Note', note = {note} }}\n\
             action = {{ type = 'Misbehave', how = '{how}' }}\n"
        );
    }
    for name in ["hostile", "hostile-hooks", "hostile-tasks", "hostile-tools"] {
        text += &format!(
            "[features.{name}]\npath = '{}'\n[features.{name}.grants]\nalert = true\n",
            path(&format!("tests/{name}")).display()
        );
        text += match name {
            "hostile" => "udp = ['127.0.0.1:*']\n",
            "hostile-hooks" => "observe_events = ['*']\n",
            "hostile-tasks" => "background_task = true\n",
            _ => "notify = true\nstore = 65536\nudp = ['127.0.0.1:*']\n",
        };
    }
    text + &format!("files = [{{ purpose = 'look', path = '{}' }}]\n", look.path().display())
}

#[test]
fn nothing_is_lost_at_a_thousand_events_a_second() {
    let (home, look, ports, recorded) = (Folder::new(), Folder::new(), SimulatedPorts::new(), Recorded::default());
    // The bundled feature alone: the hostile ones come from files.
    let bundled = home.path().join("bundled");
    std::fs::create_dir(&bundled).unwrap();
    std::fs::copy(features().join("osc-output.wasm"), bundled.join("osc-output.wasm")).unwrap();
    ports.plug(PORT, Direction::Input);
    let loaded = config::parse(&configuration(&look), "hostile.toml").unwrap_or_else(|wrong| panic!("{}", wrong.render(false)));
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
    let mut refused = 0;
    runtime.block_on(async {
        for how in [
            "loop", "trap", "nothing", "memory", "recurse", "ignore-cancel", "large", "huge", "no-json", "no-text", "deep",
            "diagnostics", "alerts", "notifications", "progress", "datagrams", "targets", "context-late", "store-fill",
            "store-large", "write-large", "steal", "drop", "nonsense",
        ] {
            for tool in ["look", "change", "propose", "send"] {
                let args = serde_json::json!({ "how": how, "before": if how == "nothing" { "loop" } else { "" } });
                let request = ToolRequest { args: args.as_object().unwrap().clone(), confirmed: true };
                let call = host.call_tool(tool, request, CancellationToken::new(), Arc::new(|_, _| {}));
                refused += u32::from(call.await.is_err());
            }
            if how == "memory" {
                host.set_mode("two");
            }
        }
    });
    assert!(refused > 20, "{refused}");
    over.store(true, Ordering::Relaxed);
    let (played, took) = player.join().unwrap();
    let sent = || recorded.sent.load(Ordering::Relaxed);
    until(&format!("{} of {played} were sent", sent()), || sent() >= played);
    assert_eq!(sent(), played);
    assert!(played >= 2 * RATE, "it was over too soon to tell: {played} in {took:?}");
    println!("{played} events in {took:?}, {refused} calls refused or stopped, none lost");
    host.stop();
}
