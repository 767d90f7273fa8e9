//! What is played on: outputs that remember what sounds, one that hangs at times, one that fails at times,
//! and a keyboard of which keys are down.

use parking_lot::{Mutex, MutexGuard};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use conductor_config::{Axis, Key, MouseButton};
use conductor_dispatch::desktop::{Connect, Desktop};
use conductor_ports::{Connection, Direction, EventSink, MidiOut, PortBackend, PortError, PortInfo, Protocol};

/// The outputs: a synthesizer, a mixing desk, one that hangs and one that fails.
pub const OUTPUTS: [&str; 4] = ["synth", "desk", "tar pit", "loose cable"];

/// What an instrument has received.
#[derive(Debug, Default)]
pub struct Heard {
    pub notes_on: u64,
    /// The notes that sound, by channel and key.
    pub sounding: HashSet<(u8, u8)>,
    /// Where knobs were put last, by channel and number.
    pub knobs: HashMap<(u8, u8), u8>,
}

/// Clones share everything.
#[derive(Debug, Clone, Default)]
pub struct Instruments {
    heard: [Arc<Mutex<Heard>>; OUTPUTS.len()],
    hangs: Arc<AtomicBool>,
    fails: Arc<AtomicBool>,
    keys_down: Arc<Mutex<HashSet<String>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

impl Instruments {
    /// What this output has received.
    pub fn heard(&self, output: &str) -> MutexGuard<'_, Heard> {
        lock(&self.heard[OUTPUTS.iter().position(|name| *name == output).unwrap()])
    }

    /// The keys that are down.
    pub fn keys_down(&self) -> HashSet<String> {
        lock(&self.keys_down).clone()
    }

    /// The next second is another: mostly, one output hangs; every other time, one fails.
    pub fn change(&self, second: u32) {
        self.hangs.store(!second.is_multiple_of(4), Ordering::Relaxed);
        self.fails.store(second % 2 == 1, Ordering::Relaxed);
    }

    /// All is well from now on.
    pub fn mend(&self) {
        self.hangs.store(false, Ordering::Relaxed);
        self.fails.store(false, Ordering::Relaxed);
    }

    /// A way to the keyboard.
    pub fn connect(&self) -> Connect {
        let keyboard = self.clone();
        Box::new(move || Ok(Box::new(keyboard.clone())))
    }
}

struct Output {
    heard: Arc<Mutex<Heard>>,
    hangs: Option<Arc<AtomicBool>>,
    fails: Option<Arc<AtomicBool>>,
}

impl MidiOut for Output {
    fn send(&mut self, message: &[u8]) -> Result<(), PortError> {
        let is_so = |trouble: &Option<Arc<AtomicBool>>| trouble.as_ref().is_some_and(|so| so.load(Ordering::Relaxed));
        while is_so(&self.hangs) {
            std::thread::sleep(Duration::from_millis(1));
        }
        if is_so(&self.fails) {
            return Err(PortError("the cable is loose".into()));
        }
        let [status, number, value] = *message else { panic!("{message:?}") };
        let (mut heard, channel) = (lock(&self.heard), status & 0x0F);
        match status & 0xF0 {
            0x90 => {
                heard.notes_on += 1;
                heard.sounding.insert((channel, number));
            }
            0x80 => drop(heard.sounding.remove(&(channel, number))),
            0xB0 => drop(heard.knobs.insert((channel, number), value)),
            _ => panic!("unexpected {message:?}"),
        }
        Ok(())
    }
}

impl PortBackend for Instruments {
    fn name(&self) -> &'static str {
        "instruments"
    }

    fn list(&mut self) -> Result<Vec<PortInfo>, PortError> {
        let port = |name: &&str| PortInfo::new(name, name, "instruments", Protocol::Midi, Direction::Output);
        Ok(OUTPUTS.iter().map(port).collect())
    }

    fn open_input(&mut self, _: &PortInfo, _: EventSink) -> Result<Box<dyn Connection>, PortError> {
        Err(PortError("it has no inputs".into()))
    }

    fn open_output(&mut self, port: &PortInfo) -> Result<Box<dyn MidiOut>, PortError> {
        let index = OUTPUTS.iter().position(|name| *name == port.name).unwrap();
        let hangs = (port.name == "tar pit").then(|| Arc::clone(&self.hangs));
        let fails = (port.name == "loose cable").then(|| Arc::clone(&self.fails));
        Ok(Box::new(Output { heard: Arc::clone(&self.heard[index]), hangs, fails }))
    }
}

impl Desktop for Instruments {
    fn key(&mut self, key: Key, down: bool) -> Result<(), String> {
        let mut keys = lock(&self.keys_down);
        if down {
            keys.insert(key.to_string())
        } else {
            keys.remove(&key.to_string())
        };
        Ok(())
    }

    fn text(&mut self, _: &str) -> Result<(), String> {
        Ok(())
    }

    fn button(&mut self, _: MouseButton, _: bool) -> Result<(), String> {
        Ok(())
    }

    fn point(&mut self, _: u16, _: u16) -> Result<(), String> {
        Ok(())
    }

    fn move_by(&mut self, _: i32, _: i32) -> Result<(), String> {
        Ok(())
    }

    fn scroll(&mut self, _: i32, _: Axis) -> Result<(), String> {
        Ok(())
    }

    fn gamepad_button(&mut self, _: u8, _: bool) -> Result<(), String> {
        Ok(())
    }

    fn gamepad_axis(&mut self, _: u8, _: i16) -> Result<(), String> {
        Ok(())
    }
}
