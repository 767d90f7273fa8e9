//! Controllers and synthesizers for tests in other languages: what is to be done comes in lines, and so does what is heard.
//!
//! | line | what |
//! | --- | --- |
//! | `controller NAME` | plugs a controller in |
//! | `synth NAME` | plugs a synthesizer in |
//! | `unplug NAME` | unplugs a controller |
//! | `play NAME: 90 24 64` | the controller sends these bytes, in hex |
//!
//! `heard NAME: 90 24 64` is printed for each message that a synthesizer gets, and `done` behind each line that was done.

use std::collections::HashMap;
use std::io::{Write as _, stdin, stdout};
use std::process::ExitCode;
use std::thread;

use conductor_tests::instrument::{Controller, Synth};

/// The controllers that are plugged in, by their names.
#[derive(Default)]
struct Plugged(HashMap<String, Controller>);

/// Prints a line as a whole, at once.
fn say(line: &str) {
    let mut out = stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect::<Vec<_>>().join(" ")
}

impl Plugged {
    fn act(&mut self, line: &str) -> Result<(), String> {
        let (word, rest) = line.split_once(' ').ok_or("a line is a word and a name")?;
        match word {
            "controller" => drop(self.0.insert(rest.to_owned(), Controller::plug(rest))),
            "synth" => listen(rest),
            "unplug" => drop(self.0.remove(rest).ok_or_else(|| format!("no controller is called {rest}"))?),
            "play" => {
                let (name, bytes) = rest.split_once(": ").ok_or("what is to be played?")?;
                let bytes: Result<Vec<u8>, _> = bytes.split(' ').map(|byte| u8::from_str_radix(byte, 16)).collect();
                let bytes = bytes.map_err(|error| error.to_string())?;
                self.0.get_mut(name).ok_or_else(|| format!("no controller is called {name}"))?.play(&bytes);
            }
            other => return Err(format!("{other} is no word of this")),
        }
        Ok(())
    }
}

/// Plugs a synthesizer in for as long as the program runs.
fn listen(name: &str) {
    let (synth, name) = (Synth::plug(name), name.to_owned());
    thread::spawn(move || synth.heard().for_each(|message| say(&format!("heard {name}: {}", hex(&message)))));
}

fn main() -> ExitCode {
    let mut plugged = Plugged::default();
    for line in stdin().lines().map_while(Result::ok) {
        match plugged.act(&line) {
            Ok(()) => say("done"),
            Err(error) => {
                eprintln!("instrument: {line:?}: {error}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}
