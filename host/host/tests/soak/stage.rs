//! The host between the ports and the instruments, and what must be so in the end.

use std::time::{Duration, Instant};

use conductor_config as config;
use conductor_host::host::Host;
use conductor_ports::Direction;
use conductor_ports::simulated::SimulatedPorts;

use crate::instruments::{Instruments, OUTPUTS};
use crate::player::{KNOB, PORTS, Player, port};

const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// Waits until it is so.
fn until(what: &str, mut so: impl FnMut() -> bool) {
    let deadline = Instant::now() + TEST_TIMEOUT;
    while !so() {
        assert!(Instant::now() < deadline, "it never was so: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Every note goes to three instruments and every turn of a knob to a fourth; keys are held; gestures go on
/// beside. The last port is faster than it may be. A visitor holds a key of its own.
const CONFIG: &str = r#"
[[bindings]]
alias = "too fast"
matchers = [{ type = "exact_name", value = "port 15" }]
max_events_per_sec = 300

[[modes]]
name = "Play"
[[modes.mappings]]
trigger = { type = "Note", note = "0..7", device = "port 1" }
action = { type = "Keystroke", keys = ["shift"], stroke = "hold" }
[[modes]]
name = "Edit"
[[modes.mappings]]
trigger = { type = "Note", note = "8..15", device = "port 2" }
action = { type = "Keystroke", keys = ["ctrl"], stroke = "hold" }

[[global_mappings]]
trigger = { type = "Note", note = 60, device = "visitor" }
action = { type = "Keystroke", keys = ["alt"], stroke = "hold" }
priority = 1
consume = true

[[global_mappings]]
trigger = { type = "Note", note = "0..127" }
action = { type = "MidiForward", target = "synth" }
[[global_mappings]]
trigger = { type = "Note", note = "0..127" }
action = { type = "MidiForward", target = "tar pit" }
[[global_mappings]]
trigger = { type = "Note", note = "0..127" }
action = { type = "MidiForward", target = "loose cable" }
[[global_mappings]]
trigger = { type = "CC", cc = 7 }
action = { type = "MidiForward", target = "desk" }
[[global_mappings]]
trigger = { type = "LongPress", note = "0..127", duration_ms = 20 }
action = { type = "Suppress" }
[[global_mappings]]
trigger = { type = "NoteChord", notes = [1, 2, 3] }
action = { type = "Suppress" }
"#;

pub struct Stage {
    pub ports: SimulatedPorts,
    pub instruments: Instruments,
    pub host: Host,
}

impl Stage {
    pub fn new() -> Self {
        let (ports, instruments) = (SimulatedPorts::new(), Instruments::default());
        (0..PORTS).for_each(|index| ports.plug(&port(index), Direction::Input));
        let loaded = config::parse(CONFIG, "c.toml").map_err(|wrong| wrong.to_string()).unwrap();
        let builder = Host::builder().backend(ports.backend()).backend(Box::new(instruments.clone()));
        let host = builder.desktop(instruments.connect()).listen_to_all().start(&loaded).unwrap();
        until("every port is open", || {
            let inputs = (0..PORTS).all(|index| ports.is_open(&port(index)));
            inputs && host.status().ports.ports.iter().all(|port| port.connected)
        });
        Self { ports, instruments, host }
    }

    /// Other rules: the same ones, and some that nothing meets.
    pub fn reload(&self, number: u32) {
        let more = "[[global_mappings]]\ntrigger = { type = \"Note\", note = 99 }\naction = { type = \"Suppress\" }\n";
        let text = [CONFIG, &more.repeat(number as usize % 50)].concat();
        self.host.reload(&text, "c.toml").map_err(|wrong| wrong.to_string()).unwrap();
    }

    /// Holds what came out against what went in.
    pub fn check(&self, player: &Player) {
        let mut dropped = 0;
        // Values that wait pass on their own; then every event is accounted for, port by port.
        for (index, played) in player.ports.iter().enumerate() {
            let mut state = None;
            until(&format!("every event of {} passed or gave way: {played:?}, {state:?}", port(index)), || {
                let status = self.host.status().ports.ports;
                let found = status.into_iter().find(|found| found.port.name == port(index)).unwrap();
                let accounted = found.events + found.dropped == played.discrete() + played.turns;
                state = Some(found);
                accounted
            });
            let state = state.unwrap();
            assert!(state.dropped <= played.turns && (state.malformed, state.unheard) == (0, 0), "{state:?}");
            dropped += state.dropped;
        }
        let discrete: u64 = player.ports.iter().map(|port| port.discrete()).sum();
        let turns: u64 = player.ports.iter().map(|port| port.turns).sum();
        // What the rules decided: each of these outputs was asked once for each event.
        for (output, expected) in OUTPUTS.into_iter().zip([discrete, turns - dropped, discrete, discrete]) {
            let of_output = || self.host.status().outputs.into_iter().find(|found| found.target == output).unwrap();
            let decided = || of_output().sent + of_output().failed;
            until(&format!("{output} was asked {expected} times"), || decided() >= expected);
            let status = of_output();
            println!("{output}: {} sent, {} failed", status.sent, status.failed);
            assert_eq!(status.sent + status.failed, expected, "{output}");
        }
        println!("{discrete} discrete events, all decided; {turns} values, of which {dropped} gave way");
        for output in OUTPUTS {
            until(&format!("{output} is silent: {:?}", self.instruments.heard(output).sounding), || {
                self.instruments.heard(output).sounding.is_empty()
            });
        }
        assert!(player.visits() > 0, "no event of the visitor arrived");
        until("no key is down", || self.instruments.keys_down().is_empty());
        let desk = self.host.status().outputs.into_iter().find(|found| found.target == "desk").unwrap();
        let desk_heard = self.instruments.heard("desk");
        for (channel, played) in (0_u8..).zip(&player.ports).filter(|_| desk.failed == 0) {
            assert_eq!(desk_heard.knobs.get(&(channel, KNOB)), Some(&played.knob), "the latest value counts");
        }
    }

    /// Ends the host: nothing may be switched on by that.
    pub fn end(self) {
        self.host.stop();
        for output in OUTPUTS {
            assert!(self.instruments.heard(output).sounding.is_empty(), "{output}");
        }
        assert!(self.instruments.keys_down().is_empty());
    }
}
