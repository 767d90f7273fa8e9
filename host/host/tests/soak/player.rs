//! Who plays: notes and a knob on every port, the same ones in every run. And a visitor, who comes and goes, and is
//! pulled out with a key down.

use conductor_ports::Direction;
use conductor_ports::simulated::SimulatedPorts;

pub const PORTS: usize = 16;
/// Keys 0 to 47 of each port are played.
const KEYS: u8 = 48;
/// The knob.
pub const KNOB: u8 = 7;
/// The port that comes and goes.
pub const VISITOR: &str = "visitor";

/// What a port has played.
#[derive(Debug, Clone, Copy, Default)]
pub struct Played {
    pub notes_on: u64,
    pub notes_off: u64,
    pub turns: u64,
    /// Where the knob stands.
    pub knob: u8,
    down: u64,
}

#[derive(Debug, Default)]
pub struct Player {
    pub ports: [Played; PORTS],
    played: u64,
    dice: u64,
    /// Whether the visitor is plugged in.
    here: bool,
    visits: u32,
}

/// What a port is called.
pub fn port(index: usize) -> String {
    format!("port {index}")
}

impl Player {
    pub fn played(&self) -> u64 {
        self.played
    }

    /// How often the visitor was here, and heard.
    pub fn visits(&self) -> u32 {
        self.visits
    }

    /// Plugs the visitor in, or pulls it out with a key down once it is heard.
    pub fn visit(&mut self, ports: &SimulatedPorts) {
        if !self.here {
            ports.plug(VISITOR, Direction::Input);
            self.here = true;
        } else if ports.play(VISITOR, &[0x90, 60, 100]) {
            ports.unplug(VISITOR, Direction::Input);
            self.here = false;
            self.visits += 1;
        }
    }

    fn dice(&mut self) -> u64 {
        // Knuth's MMIX generator; its high bits are random enough.
        self.dice = self.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.dice >> 33
    }

    /// Plays the next event: on each port in turn, a knob's or a key's.
    pub fn play(&mut self, ports: &SimulatedPorts) {
        let (index, dice) = ((self.played as usize) % PORTS, self.dice());
        let port = &mut self.ports[index];
        let channel = index as u8;
        let bytes = match dice % 5 {
            0 | 1 => {
                port.turns += 1;
                port.knob = (port.knob + 1) % 128;
                [0xB0 | channel, KNOB, port.knob]
            }
            _ => {
                let key = (dice / 5 % u64::from(KEYS)) as u8;
                port.down ^= 1 << key;
                if port.down >> key & 1 == 1 {
                    port.notes_on += 1;
                    [0x90 | channel, key, 100]
                } else {
                    port.notes_off += 1;
                    [0x80 | channel, key, 0]
                }
            }
        };
        self.put(ports, index, bytes);
    }

    /// Lets every key go.
    pub fn let_go(&mut self, ports: &SimulatedPorts) {
        for index in 0..PORTS {
            for key in 0..KEYS {
                if self.ports[index].down >> key & 1 == 1 {
                    self.ports[index].down ^= 1 << key;
                    self.ports[index].notes_off += 1;
                    self.put(ports, index, [0x80 | index as u8, key, 0]);
                }
            }
        }
    }

    fn put(&mut self, ports: &SimulatedPorts, index: usize, bytes: [u8; 3]) {
        assert!(ports.play(&port(index), &bytes), "{} is not open", port(index));
        self.played += 1;
    }
}

impl Played {
    /// Events of which none may be lost.
    pub fn discrete(&self) -> u64 {
        self.notes_on + self.notes_off
    }
}
