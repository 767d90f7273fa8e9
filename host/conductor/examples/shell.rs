//! A shell of forty lines: a host within this process, with simulated ports. It prints what happens, and takes
//! commands: `note 36` plays a pad, `mode Mix` switches, `status` looks, `quit` ends.

use std::io::{BufRead, Write};

use conductor::audit::caller::Caller;
use conductor::observation::ObservationView;
use conductor::ports::{Direction, simulated::SimulatedPorts};
use conductor::{Conductor, OpenError};

const CONFIG: &str = "[[modes]]\nname = 'Play'\n[[modes.mappings]]\ntrigger = { type = 'Note', note = 36 }\n\
                      action = { type = 'ModeChange', mode = 'Mix' }\n[[modes]]\nname = 'Mix'\n";

/// Runs until `quit`, or the end of the commands.
pub fn shell(commands: impl BufRead, mut out: impl Write + Send) -> Result<(), OpenError> {
    let ports = SimulatedPorts::new();
    ports.plug("Pads", Direction::Input);
    let conductor = Conductor::builder().config_text(CONFIG).ports(ports.backend()).start()?;
    let (host, happens) = (conductor.host(), conductor.host().subscribe());
    let mut print = |line: String| drop(writeln!(out, "{line}"));
    // Events are printed once none has come for a moment.
    let mut catch_up = |answer: Option<String>| {
        while let Ok(observation) = happens.recv_timeout(std::time::Duration::from_millis(200)) {
            print(serde_json::to_string(&ObservationView::of(&observation, host)).unwrap_or_default());
        }
        answer.into_iter().for_each(&mut print);
    };
    catch_up(Some("note NUMBER, mode NAME, status, quit".into()));
    for line in commands.lines().map_while(Result::ok) {
        catch_up(match line.split_once(' ').unwrap_or((&line, "")) {
            ("note", number) => match number.parse() {
                Ok(note @ 0..128) if ports.play("Pads", &[0x90, note, 100]) => None,
                Ok(_) => Some("the pads are not there yet, or have no such note".into()),
                Err(error) => Some(format!("{number:?} is no note: {error}")),
            },
            ("mode", name) => host.switch_mode(&Caller::library(), name).err().map(|error| error.to_string()),
            ("status", _) => Some(format!("{:?}, {} events", host.modes(), host.observed().recorded())),
            ("quit", _) => break,
            (other, _) => Some(format!("{other:?} is no command")),
        });
    }
    conductor.stop();
    Ok(())
}

fn main() -> Result<(), OpenError> {
    shell(std::io::stdin().lock(), std::io::stdout())
}
