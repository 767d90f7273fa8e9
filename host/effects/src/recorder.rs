//! The recorded sinks: datagrams, MIDI outputs and the desktop, which keep what goes into them.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use conductor_config::{Axis, Key, MouseButton};
use conductor_dispatch::desktop::{Connect, Desktop, Speed};
use conductor_ports::artnet::Universes;
use conductor_ports::{MidiOut, PortError};
use conductor_sandbox::datagrams::{DatagramSender, Datagrams};
use conductor_sandbox::services::MidiSink;
use conductor_timeline::Effect;
use conductor_timeline::effect::Stroke;
use parking_lot::Mutex;

use crate::datagram;

/// Keeps what goes out, in order. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Recorder(Arc<Mutex<Recorded>>);

#[derive(Debug, Default)]
struct Recorded {
    effects: Vec<Effect>,
    /// What Art-Net frames have set so far, by where they went.
    universes: HashMap<String, Universes>,
    /// Host names, each with the number of the address that stands for it.
    hosts: Vec<String>,
    /// Whether datagrams are kept as their bytes, whatever these say.
    as_bytes: bool,
}

/// The network of the addresses that stand for host names: it is there to be discarded (RFC 6666).
const DISCARD: u16 = 0x0100;

impl Recorder {
    /// What went out since the last call, in order. Keys that are struck together are one effect.
    pub fn take(&self) -> Vec<Effect> {
        strokes(std::mem::take(&mut self.0.lock().effects))
    }

    /// Keeps datagrams as their bytes from now on, whatever these say.
    pub fn keep_bytes(&self) {
        self.0.lock().as_bytes = true;
    }

    /// A MIDI output of this name.
    pub fn output(&self, name: &str) -> Box<dyn MidiOut> {
        Box::new(RecordedOutput { name: name.to_owned(), recorder: self.clone() })
    }

    /// A way to a desktop that is always there.
    pub fn desktop(&self) -> Connect {
        let recorder = self.clone();
        Box::new(move || Ok(Box::new(RecordedDesktop(recorder.clone()))))
    }

    /// Notes something that goes out.
    pub fn put(&self, effect: Effect) {
        self.0.lock().effects.push(effect);
    }
}

impl Datagrams for Recorder {
    fn connect(&self, address: SocketAddr) -> io::Result<Box<dyn DatagramSender>> {
        let to = match address.ip() {
            IpAddr::V6(ip) if ip.segments()[..7] == [DISCARD, 0, 0, 0, 0, 0, 0] => {
                let number = usize::from(ip.segments()[7]);
                self.0.lock().hosts.get(number).map(|host| format!("{host}:{}", address.port()))
            }
            _ => None,
        };
        let to = to.unwrap_or_else(|| address.to_string());
        Ok(Box::new(RecordedSender { to, recorder: self.clone() }))
    }

    /// An address that stands for the name. None is looked up.
    fn resolve(&self, host: &str) -> io::Result<IpAddr> {
        let hosts = &mut self.0.lock().hosts;
        let number = hosts.iter().position(|known| known == host).unwrap_or_else(|| {
            hosts.push(host.to_owned());
            hosts.len() - 1
        });
        let number = u16::try_from(number).map_err(|_| io::Error::other("too many names of hosts"))?;
        Ok(Ipv6Addr::new(DISCARD, 0, 0, 0, 0, 0, 0, number).into())
    }
}

#[derive(Debug)]
struct RecordedSender {
    to: String,
    recorder: Recorder,
}

impl DatagramSender for RecordedSender {
    fn send(&self, data: &[u8]) -> io::Result<()> {
        let recorded = &mut *self.recorder.0.lock();
        if recorded.as_bytes {
            recorded.effects.push(Effect::Datagram { to: self.to.clone(), data: data.to_vec() });
            return Ok(());
        }
        let universes = recorded.universes.entry(self.to.clone()).or_default();
        recorded.effects.extend(datagram::effects(&self.to, data, universes));
        Ok(())
    }
}

impl MidiSink for Recorder {
    fn send(&self, output: &str, message: &[u8]) {
        self.put(Effect::Midi { output: output.to_owned(), message: message.to_vec() });
    }
}

struct RecordedOutput {
    name: String,
    recorder: Recorder,
}

impl MidiOut for RecordedOutput {
    fn send(&mut self, message: &[u8]) -> Result<(), PortError> {
        MidiSink::send(&self.recorder, &self.name, message);
        Ok(())
    }
}

struct RecordedDesktop(Recorder);

fn way(down: bool) -> Stroke {
    if down { Stroke::Down } else { Stroke::Up }
}

impl Desktop for RecordedDesktop {
    fn key(&mut self, key: Key, down: bool) -> Result<(), String> {
        self.0.put(Effect::Key(way(down), key.to_string()));
        Ok(())
    }

    fn text(&mut self, text: &str) -> Result<(), String> {
        self.0.put(Effect::Text(text.to_owned()));
        Ok(())
    }

    fn button(&mut self, button: MouseButton, down: bool) -> Result<(), String> {
        self.0.put(Effect::Button(way(down), format!("{button:?}").to_lowercase()));
        Ok(())
    }

    fn point(&mut self, x: u16, y: u16) -> Result<(), String> {
        self.0.put(Effect::Pointer(x, y));
        Ok(())
    }

    fn move_by(&mut self, x: i32, y: i32) -> Result<(), String> {
        self.0.put(Effect::PointerBy(x, y));
        Ok(())
    }

    fn set_speed(&mut self, speed: Speed) -> Result<(), String> {
        self.0.put(Effect::PointerSpeed(speed.x, speed.y));
        Ok(())
    }

    fn scroll(&mut self, clicks: i32, axis: Axis) -> Result<(), String> {
        self.0.put(Effect::Scroll { clicks, vertical: axis == Axis::Vertical });
        Ok(())
    }

    fn gamepad_button(&mut self, button: u8, down: bool) -> Result<(), String> {
        self.0.put(Effect::GamepadButton(way(down), button));
        Ok(())
    }

    fn gamepad_axis(&mut self, axis: u8, value: i16) -> Result<(), String> {
        self.0.put(Effect::GamepadAxis(axis, value.into()));
        Ok(())
    }
}

/// Joins keys that go down one after the other, and then up in reverse, to one stroke; and the halves of a click or of a gamepad's button.
fn strokes(effects: Vec<Effect>) -> Vec<Effect> {
    let mut joined = Vec::with_capacity(effects.len());
    let mut rest = effects.as_slice();
    while let Some((first, after)) = rest.split_first() {
        let down: Vec<&str> = rest.iter().map_while(|effect| key(effect, Stroke::Down)).collect();
        let up: Vec<&str> = rest[down.len()..].iter().map_while(|effect| key(effect, Stroke::Up)).collect();
        if !down.is_empty() && up.len() >= down.len() && down.iter().rev().zip(&up).all(|(down, up)| down == up) {
            joined.push(Effect::Key(Stroke::Strike, down.join("+")));
            rest = &rest[2 * down.len()..];
            continue;
        }
        match (first, after.first()) {
            (Effect::Button(Stroke::Down, down), Some(Effect::Button(Stroke::Up, up))) if down == up => {
                joined.push(Effect::Button(Stroke::Strike, down.clone()));
                rest = &after[1..];
            }
            (Effect::GamepadButton(Stroke::Down, down), Some(Effect::GamepadButton(Stroke::Up, up))) if down == up => {
                joined.push(Effect::GamepadButton(Stroke::Strike, *down));
                rest = &after[1..];
            }
            _ => {
                joined.push(first.clone());
                rest = after;
            }
        }
    }
    joined
}

/// The key of which this is that part of a stroke.
fn key(effect: &Effect, stroke: Stroke) -> Option<&str> {
    match effect {
        Effect::Key(is, key) if *is == stroke => Some(key),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(recorder: &Recorder) -> Vec<String> {
        recorder.take().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn every_sink_keeps_what_goes_into_it_in_order() {
        let recorder = Recorder::default();
        recorder.connect("10.0.0.1:9000".parse().unwrap()).unwrap().send(b"/go\0,\0\0\0").unwrap();
        recorder.output("synth").send(&[0x90, 36, 100]).unwrap();
        let mut desktop = recorder.desktop()().unwrap();
        desktop.text("hi").unwrap();
        desktop.point(3, 4).unwrap();
        desktop.scroll(-2, Axis::Horizontal).unwrap();
        assert_eq!(
            told(&recorder),
            ["OSC 10.0.0.1:9000 /go", "MIDI synth 90 24 64", "text \"hi\"", "mouse to 3 4", "scroll -2 horizontal"]
        );
        assert!(recorder.take().is_empty());
    }

    #[test]
    fn datagrams_are_kept_as_bytes_where_that_is_asked_for() {
        let recorder = Recorder::default();
        recorder.keep_bytes();
        recorder.connect("10.0.0.1:9000".parse().unwrap()).unwrap().send(b"/go\0,\0\0\0").unwrap();
        assert_eq!(told(&recorder), ["UDP 10.0.0.1:9000 2F 67 6F 00 2C 00 00 00"]);
    }

    #[test]
    fn a_host_is_called_by_its_name_and_not_looked_up() {
        let recorder = Recorder::default();
        for name in ["lights.invalid", "sound.invalid", "lights.invalid"] {
            let address = recorder.resolve(name).unwrap();
            recorder.connect((address, 7).into()).unwrap().send(b"/go\0,\0\0\0").unwrap();
            assert_eq!(told(&recorder), [format!("OSC {name}:7 /go")]);
        }
    }

    #[test]
    fn keys_that_are_struck_together_are_one_effect() {
        let key = |stroke, name: &str| Effect::Key(stroke, name.to_owned());
        let all = |words: &str| {
            let keys = words.split(' ').map(|word| match word.split_at(1) {
                ("v", name) => key(Stroke::Down, name),
                (_, name) => key(Stroke::Up, name),
            });
            strokes(keys.collect()).iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        };
        assert_eq!(all("vcmd vc ^c ^cmd"), "key cmd+c");
        assert_eq!(all("va ^a va ^a"), "key a, key a");
        assert_eq!(all("vcmd vc"), "key down cmd, key down c");
        assert_eq!(all("^c ^cmd"), "key up c, key up cmd");
        assert_eq!(all("va ^a ^shift"), "key a, key up shift");
        let button = |stroke| Effect::Button(stroke, "left".to_owned());
        let joined = strokes(vec![button(Stroke::Down), button(Stroke::Up), button(Stroke::Down)]);
        assert_eq!(joined, [button(Stroke::Strike), button(Stroke::Down)]);
    }
}
