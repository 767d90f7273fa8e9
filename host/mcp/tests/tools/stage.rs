//! A host with simulated ports, and a caller whose person agrees to everything.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use conductor_audit::caller::Caller;
use conductor_config as config;
use conductor_host::control::gate::{ToolError, ToolRequest};
use conductor_host::host::Host;
use conductor_package::descriptor::Tier;
use conductor_ports::simulated::SimulatedPorts;
use conductor_ports::{Direction, PortInfo, Protocol, UsbDevice};
use serde_json::Value;

/// The configuration: two modes, three bindings (one of them with twins), a profile.
pub const CONFIG: &str = r#"# a show
[advanced_settings]
listen_mode = "all"
ignore_ports = ["Through*"]

[[bindings]]
alias = "pads"
matchers = [{ type = "exact_name", value = "Pads" }]

[[bindings]]
alias = "synth"
matchers = [{ type = "name_contains", value = "Synth" }]

[[bindings]]
alias = "twin"
matchers = [{ type = "name_contains", value = "Twin" }]

[[modes]]
name = "Play"

[[modes.mappings]]
description = "kick"
trigger = { type = "Note", note = 36, device = "pads" }
action = { type = "ModeChange", mode = "Mix" }

[[modes]]
name = "Mix"

[[global_mappings]]
trigger = { type = "CC", cc = 7 }
action = { type = "SendMidi", target = "synth", message_type = "CC", cc = 7, value = "{value}" }

[[profiles]]
name = "live"
apps = ["Ableton Live"]
mode = "Mix"

# One caller tries out everything at once.
[tools.per_minute]
privileged = 6000

[features.artnet-output]
enabled = false

[features.hardware-tools.grants]
midi_out = ["synth"]
sysex = true
"#;

/// How long something may take to come about.
const TEST_TIMEOUT: Duration = Duration::from_secs(20);

struct Home(PathBuf);

impl Drop for Home {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub struct Stage {
    pub host: Host,
    pub ports: SimulatedPorts,
    runtime: tokio::runtime::Runtime,
    // Last, so that the host is gone before its home is.
    home: Home,
}

pub fn features() -> PathBuf {
    std::env::var_os("CONDUCTOR_FEATURES")
        .map_or_else(|| std::env::current_exe().unwrap().ancestors().nth(3).unwrap().join("features"), PathBuf::from)
}

/// A folder for all stages of this run.
fn folder() -> PathBuf {
    std::env::temp_dir().join(format!("conductor-tools-{}", std::process::id()))
}

/// A home in which the features were compiled, once for all stages.
fn compiled() -> &'static Path {
    static COMPILED: OnceLock<PathBuf> = OnceLock::new();
    COMPILED.get_or_init(|| {
        let home = folder().join("compiled");
        std::fs::create_dir_all(&home).unwrap();
        let loaded = config::parse("", "config.toml").unwrap();
        Host::builder()
            .home(&home)
            .features(features())
            .start(&loaded)
            .unwrap_or_else(|error| panic!("{error}"))
            .stop();
        home
    })
}

/// Has a home use what was compiled.
fn with_code(home: &Path) {
    let code = "cache/code";
    std::fs::create_dir_all(home.join(code)).unwrap();
    std::fs::copy(compiled().join("host.key"), home.join("host.key")).unwrap();
    for file in std::fs::read_dir(compiled().join(code)).unwrap() {
        let file = file.unwrap();
        std::fs::hard_link(file.path(), home.join(code).join(file.file_name())).unwrap();
    }
}

impl Stage {
    pub fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let home = folder().join(format!("home-{number}"));
        std::fs::create_dir_all(&home).unwrap();
        let home = Home(home);
        with_code(&home.0);
        let ports = SimulatedPorts::new();
        for (port, direction) in [
            ("Pads", Direction::Input),
            ("Synth", Direction::Input),
            ("Synth", Direction::Output),
            ("Loose Knobs", Direction::Input),
            ("Through 1", Direction::Input),
        ] {
            ports.plug(port, direction);
        }
        for socket in ["1-1", "1-2"] {
            let mut twin =
                PortInfo::new("Twin", &format!("twin:{socket}"), "simulated", Protocol::Midi, Direction::Input);
            twin.metadata.usb = Some(UsbDevice {
                vendor_id: 1,
                product_id: 2,
                serial: None,
                path: Some(socket.into()),
                bus: None,
                address: None,
            });
            ports.plug_port(twin);
        }
        let file = home.0.join("config.toml");
        std::fs::write(&file, CONFIG).unwrap();
        let loaded = config::parse(CONFIG, &file.display().to_string()).unwrap();
        let host = Host::builder()
            .home(&home.0)
            .features(features())
            .config_file(&file)
            .backend(ports.backend())
            .start(&loaded)
            .unwrap_or_else(|error| panic!("{error}"));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let stage = Self { host, ports, runtime, home };
        stage.until("the ports are open", || {
            ["Pads", "Synth", "Loose Knobs", "twin:1-1"].iter().all(|port| stage.ports.is_open(port))
        });
        stage.until("the output is open", || {
            let status = stage.host.status();
            status.ports.ports.iter().any(|port| port.label == "Synth" && port.connected)
        });
        stage
    }

    /// The configuration file.
    pub fn file(&self) -> PathBuf {
        self.home.0.join("config.toml")
    }

    /// Waits until something holds.
    #[track_caller]
    pub fn until(&self, what: &str, mut holds: impl FnMut() -> bool) {
        let deadline = Instant::now() + TEST_TIMEOUT;
        while !holds() {
            assert!(Instant::now() < deadline, "it did not come about that {what}");
            std::thread::yield_now();
        }
    }

    /// Calls a tool, and agrees to it.
    pub fn call(&self, tool: &str, args: Value) -> Result<Value, String> {
        self.ask(tool, args, true)
    }

    pub fn call_unconfirmed(&self, tool: &str, args: Value) -> Result<Value, String> {
        self.ask(tool, args, false)
    }

    fn ask(&self, tool: &str, args: Value, agrees: bool) -> Result<Value, String> {
        let Value::Object(args) = args else { panic!("arguments are an object") };
        let caller = Caller::library();
        let call = |confirmation: Option<String>| {
            let request = ToolRequest { args: args.clone(), confirmed: true, confirmation };
            let call = self.host.call_tool(&caller, tool, request, Default::default(), Arc::new(|_, _| {}));
            self.runtime.block_on(call)
        };
        // That it is confirmed is of no use without what was confirmed.
        let answer = match call(None) {
            Err(ToolError::NeedsConfirmation { confirmation: Some(asked), .. }) if agrees => call(Some(asked.id)),
            answer => answer,
        };
        answer.map(|answer| answer.result).map_err(|error| error.to_string())
    }

    /// Whether a tool does nothing but propose, although its tier may do more.
    pub fn proposes(&self, tool: &str) -> bool {
        self.host.tools().into_iter().find(|view| view.tool.name == tool).unwrap().tool.proposes
    }

    pub fn tier(&self, tool: &str) -> Tier {
        self.host.tools().into_iter().find(|view| view.tool.name == tool).unwrap().tool.tier
    }

    /// The plans that wait.
    pub fn plans(&self) -> Vec<Value> {
        let plans = serde_json::to_value(self.host.plans().unwrap()).unwrap();
        plans.as_array().unwrap().clone()
    }

    /// The one plan that waits, as a person sees it: what it says, and what would be in the file.
    pub fn plan(&self) -> (String, String) {
        let plans = self.plans();
        let [plan] = &plans[..] else { panic!("{plans:?}") };
        (plan["description"].as_str().unwrap().to_owned(), plan["diff"].as_str().unwrap().to_owned())
    }

    pub fn apply(&self, plan: &str) -> Result<(), String> {
        self.host.apply_plan(&Caller::library(), plan).map(drop).map_err(|error| error.to_string())
    }

    pub fn undo(&self) {
        self.host.undo(&Caller::library()).unwrap();
    }

    /// The mode in force, once what is on its way has come.
    pub fn mode(&self) -> String {
        self.host.status().mode.unwrap()
    }

    /// What went to the synth since the last time that was asked. What a call sends is in a queue before it ends,
    /// and gone from there when the host says so.
    pub fn sent(&self) -> Vec<Vec<u8>> {
        self.ports.sent("Synth").unwrap().try_iter().collect()
    }

    /// Waits for so many messages to the synth.
    pub fn wait_for_sent(&self, count: usize) -> Vec<Vec<u8>> {
        let mut sent = Vec::new();
        self.until("it was sent", || {
            sent.extend(self.sent());
            sent.len() >= count
        });
        sent
    }

    /// Plays MIDI on a port, and waits until the host has seen it.
    pub fn play(&self, port: &str, bytes: &[u8]) {
        let seen = self.host.observed().recorded();
        assert!(self.ports.play(port, bytes), "{port} is not open");
        self.until("the event was seen", || self.host.observed().recorded() > seen);
    }

    /// Answers the next question to the synth about who it is.
    pub fn answer_identity(&self, reply: &'static [u8]) {
        let (ports, asked) = (self.ports.clone(), self.ports.sent("Synth").unwrap());
        std::thread::spawn(move || {
            if asked.recv_timeout(TEST_TIMEOUT).is_ok_and(|message| message[..2] == [0xf0, 0x7e]) {
                ports.play("Synth", reply);
            }
        });
    }
}
