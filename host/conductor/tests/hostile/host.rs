//! A whole host: while its features do their worst, a controller plays, and nothing is lost.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use conductor_audit::caller::Caller;
use conductor_config as config;
use conductor_host::control::gate::{ToolError, ToolRequest};
use conductor_host::host::Host;
use conductor_ports::Direction;
use conductor_ports::simulated::SimulatedPorts;
use conductor_sandbox::datagrams::{DatagramSender, Datagrams};
use tokio_util::sync::CancellationToken;

use crate::lab::{Folder, Recorded, features, path, pins, until};

const PORT: &str = "controller";
/// Events a second.
const RATE: u64 = 1000;
/// Events that the limit of a device lets pass at once: a tenth of a second's worth. Of what comes beyond at once, only
/// the latest value of each control counts; the others are counted.
const BURST: u64 = 1000;

/// Events before the hostile features begin, to compare with.
const QUIET: u64 = 5 * RATE;

/// Records what is sent, and when, of all but the floods.
#[derive(Debug, Clone, Default)]
struct Timed {
    recorded: Recorded,
    sent: Arc<Mutex<Vec<Instant>>>,
}

impl Datagrams for Timed {
    fn connect(&self, address: SocketAddr) -> io::Result<Box<dyn DatagramSender>> {
        self.recorded.connect(address)?;
        Ok(Box::new(self.clone()))
    }

    fn resolve(&self, name: &str) -> io::Result<IpAddr> {
        self.recorded.resolve(name)
    }
}

impl DatagramSender for Timed {
    fn send(&self, data: &[u8]) -> io::Result<()> {
        if data != b"flood" {
            self.sent.lock().unwrap().push(Instant::now());
        }
        self.recorded.send(data)
    }
}

/// How long events took from the port to the datagram: the median, the 99th percentile and the longest.
fn latencies(played: &[Instant], sent: &[Instant]) -> String {
    let mut took: Vec<_> = played.iter().zip(sent).map(|(from, to)| to.saturating_duration_since(*from)).collect();
    took.sort_unstable();
    let of = |share: usize| took.get((took.len() * share / 100).min(took.len().saturating_sub(1)));
    let ms = |time: Option<&Duration>| time.map_or(0.0, Duration::as_secs_f64) * 1000.0;
    format!("p50 {:.2} ms, p99 {:.2} ms, max {:.1} ms", ms(of(50)), ms(of(99)), ms(took.last()))
}

/// What the host says of events that it did not carry out.
fn losses(host: &Host) -> String {
    let status = host.status();
    let sender = status.features.iter().find(|feature| feature.name == "osc-output").unwrap();
    format!(
        "{} events reached the rules; of osc-output's actions {} were performed and {} failed ({} trapped, {} at a full \
         queue), the last because {:?}",
        status.events, sender.performed, sender.failed, sender.trapped, sender.queue_full, sender.last_failure
    )
}

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
    let (home, look, ports, recorded) = (Folder::new(), Folder::new(), SimulatedPorts::new(), Timed::default());
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

    let (over, count) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let player = {
        let (ports, over, count) = (ports.clone(), Arc::clone(&over), Arc::clone(&count));
        std::thread::spawn(move || {
            let (began, mut played, mut times) = (Instant::now(), 0_u64, Vec::new());
            let mut most = 0;
            while !over.load(Ordering::Relaxed) {
                let due = u64::try_from(began.elapsed().as_millis()).unwrap() * RATE / 1000;
                // Kept from playing, it makes up for it at once.
                most = due.saturating_sub(played).max(most);
                while played < due {
                    times.push(Instant::now());
                    assert!(ports.play(PORT, &[0xb0, 1, (played % 128) as u8]));
                    played += 1;
                    // Now and then a note, for the hostile actions.
                    if played > QUIET && played % 250 == 0 {
                        assert!(ports.play(PORT, &[0x90, (played / 250 % 8) as u8, 100]));
                    }
                }
                count.store(played, Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(1));
            }
            (times, began.elapsed(), most)
        })
    };
    until("the quiet part did not end", || count.load(Ordering::Relaxed) >= QUIET);

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
    let (times, took, most) = player.join().unwrap();
    let played = times.len() as u64;
    let sent = || recorded.recorded.sent.load(Ordering::Relaxed);
    let coalesced = || host.status().ports.ports.iter().map(|port| port.dropped).sum::<u64>();
    let deadline = Instant::now() + Duration::from_secs(60);
    while sent() + coalesced() < played {
        assert!(
            Instant::now() < deadline,
            "{} of {played} were sent and {} were coalesced: {}",
            sent(),
            coalesced(),
            losses(&host)
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    let coalesced = coalesced();
    assert_eq!(sent() + coalesced, played, "each is sent or counted");
    // Half of it, since two bursts may come close together, and notes use it up, too.
    assert!(coalesced == 0 || most > BURST / 2, "{coalesced} were coalesced, and at most {most} were played at once");
    assert!(recorded.recorded.floods.load(Ordering::Relaxed) > 0, "the hostile features sent nothing");
    assert!(played >= QUIET + 2 * RATE, "it was over too soon to tell: {played} in {took:?}");
    let (sent, quiet) = (recorded.sent.lock().unwrap(), usize::try_from(QUIET).unwrap());
    println!("{played} events in {took:?} beside {} hostile calls, none lost, {coalesced} coalesced", came.len());
    // Which of them were sent is not known otherwise.
    if coalesced > 0 {
        return host.stop();
    }
    println!("quiet: {}", latencies(&times[..quiet], &sent[..quiet]));
    println!("beside the hostile calls: {}", latencies(&times[quiet..], &sent[quiet..]));
    host.stop();
}
