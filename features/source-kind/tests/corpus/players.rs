//! What a player does with each kind of source, as events: the corpus' generator.
//!
//! Nothing is taken from a recording. Each player draws from ranges that stand in its comments; layouts (which numbers a
//! device sends) are drawn from lists that the two parts of the corpus do not share, see [`Part`].

use conductor_feature::kind;
use source_kind::Moment;

use crate::random::Random;

/// The part of the corpus. Thresholds were chosen by looking at the tuned part alone; the held-out part has other seeds,
/// other layouts, and a wider range of tempos and velocities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// What may be looked at.
    Tuned,
    /// What is only measured.
    HeldOut,
}

/// A window that is being played.
#[derive(Debug)]
pub struct Stage {
    pub random: Random,
    pub part: Part,
    /// Milliseconds that the window takes.
    pub length: i64,
    pub moments: Vec<Moment>,
}

/// Milliseconds after the start.
type Ms = i64;

impl Stage {
    pub fn new(seed: u64, part: Part) -> Self {
        let mut random = Random::new(seed);
        let length = random.within(10_000, 30_000);
        Self { random, part, length, moments: Vec::new() }
    }

    /// The layouts of this part.
    fn layout<T: Copy>(&mut self, tuned: &[T], held_out: &[T]) -> T {
        match self.part {
            Part::Tuned => self.random.one(tuned),
            Part::HeldOut => self.random.one(held_out),
        }
    }

    fn put(&mut self, at: Ms, kind: u8, channel: u8, number: i64, value: i64) {
        // Microseconds of jitter, as USB and the player have it.
        let jitter = self.random.within(0, 900);
        let at = u64::try_from(at.max(0) * 1_000_000 + jitter * 1000).unwrap();
        let number = u16::try_from(number).unwrap();
        #[expect(clippy::cast_precision_loss, reason = "values are small")]
        let value = value as f64;
        self.moments.push(Moment { at, kind, channel, number, value, machine_control: false });
    }

    fn note(&mut self, at: Ms, length: Ms, channel: u8, note: i64, velocity: i64) {
        self.put(at, kind::NOTE_ON, channel, note, velocity.clamp(1, 127));
        self.put(at + length.max(1), kind::NOTE_OFF, channel, note, 0);
    }

    fn cc(&mut self, at: Ms, channel: u8, number: i64, value: i64) {
        self.put(at, kind::CONTROL_CHANGE, channel, number, value.clamp(0, 127));
    }

    /// A way from one value to another: a message every `every` ms whose value differs from the last.
    fn glide(&mut self, at: Ms, took: Ms, every: Ms, way: (i64, i64), mut send: impl FnMut(&mut Self, Ms, i64)) {
        let (from, to) = way;
        let (mut time, mut last) = (0, None);
        while time <= took {
            // Slow at both ends: 3x^2 - 2x^3 in thousandths.
            let x = 1000 * time / took.max(1);
            let eased = (3 * x * x / 1000) - (2 * x * x / 1000 * x / 1000);
            let value = from + (to - from) * eased / 1000;
            if last != Some(value) {
                send(self, at + time, value);
                last = Some(value);
            }
            time += every;
        }
        if last != Some(to) {
            send(self, at + took, to);
        }
    }

    /// Keys: a melody, chords, both hands, an organ without velocity, an arpeggio; with wheels and pedal or without.
    pub fn keyboard(&mut self, channel: u8) {
        let keys = self.layout(&[25, 37, 49, 61], &[32, 49, 61, 76, 88]);
        let low = (60 - keys / 2).max(21);
        let style = self.random.within(0, 4);
        let beat = if self.part == Part::Tuned { self.random.within(300, 650) } else { self.random.within(250, 800) };
        let fixed = (style == 3).then(|| self.random.one(&[64, 100, 127]));
        let scale = [0, 2, 4, 5, 7, 9, 11];
        let root = self.random.within(0, 11);
        let pitch =
            |degree: i64| root + 12 * degree.div_euclid(7) + scale[usize::try_from(degree.rem_euclid(7)).unwrap()];
        let (from, to) = (low + 2, low + keys - 3);
        // What a hand would find out of its reach it plays an octave nearer.
        let hold = |mut note: i64| {
            while note > to {
                note -= 12;
            }
            while note < from {
                note += 12;
            }
            note
        };
        let degree_of_middle = (from + to) / 2 * 7 / 12;
        let mut degree = degree_of_middle;
        let mut at = self.random.within(100, 900);
        while at < self.length - 1500 {
            let velocity = |random: &mut Random| fixed.unwrap_or_else(|| random.about(35, 120));
            degree += self.random.one(&[-2, -1, -1, 1, 1, 2, 3, -3]);
            degree = degree.clamp(degree_of_middle - keys * 2 / 9, degree_of_middle + keys * 2 / 9);
            match style {
                // A melody with some legato.
                0 => {
                    let length = self.random.within(150, 700).min(beat + 120);
                    let loud = velocity(&mut self.random);
                    self.note(at, length, channel, hold(pitch(degree)), loud);
                }
                // Chords of three or four notes; an organ's are the same without velocity.
                1 | 3 => {
                    let length = beat * self.random.within(2, 4) - 60;
                    for third in 0..self.random.within(3, 4) {
                        let late = self.random.within(0, 18);
                        let loud = velocity(&mut self.random);
                        self.note(at + late, length, channel, hold(pitch(degree + 2 * third)), loud);
                    }
                    at += beat * 2;
                }
                // Both hands: an octave or more between them.
                2 => {
                    let loud = velocity(&mut self.random);
                    self.note(at, beat - 40, channel, hold(pitch(degree + 4)), loud);
                    if self.random.chance(60) {
                        let (late, loud) = (self.random.within(0, 15), velocity(&mut self.random));
                        self.note(at + late, beat * 2 - 60, channel, hold(pitch(degree - 7)), loud);
                        self.note(at + late + 4, beat * 2 - 60, channel, hold(pitch(degree - 5)), loud);
                    }
                }
                // An arpeggio over two octaves.
                _ => {
                    for step in 0..6 {
                        let loud = velocity(&mut self.random);
                        let note = hold(pitch(degree + [0, 2, 4, 7, 9, 11][usize::try_from(step).unwrap()]));
                        self.note(at + step * beat / 4, beat / 4 + 10, channel, note, loud);
                    }
                    at += beat * 6 / 4;
                }
            }
            at += beat;
        }
        if self.random.chance(35) {
            let mut at = 500;
            while at < self.length - 1000 {
                self.cc(at, channel, 64, 127);
                let late = self.random.within(400, 1500);
                self.cc(at + late, channel, 64, 0);
                at += self.random.within(1600, 3500);
            }
        }
        if self.random.chance(30) {
            let at = self.random.within(1000, self.length - 3000);
            let far = self.random.within(9000, 16_383);
            self.glide(at, 180, 8, (8192, far), |stage, at, to| stage.put(at, kind::PITCH_BEND, channel, 0, to));
            self.glide(at + 300, 160, 8, (far, 8192), |stage, at, to| {
                stage.put(at, kind::PITCH_BEND, channel, 0, to);
            });
        }
        if self.random.chance(25) {
            let at = self.random.within(1000, self.length - 3000);
            self.glide(at, 700, 10, (0, 100), |stage, at, to| stage.cc(at, channel, 1, to));
            self.glide(at + 900, 700, 10, (100, 0), |stage, at, to| stage.cc(at, channel, 1, to));
        }
    }

    /// A keyboard with a channel for each note, each bent for itself.
    pub fn mpe(&mut self) {
        let mut at = 300;
        let (mut channel, mut note) = (1, 60);
        while at < self.length - 1500 {
            note = (note + self.random.one(&[-4, -3, -2, 2, 3, 5])).clamp(40, 84);
            let (length, loud) = (self.random.within(300, 1200), self.random.about(40, 110));
            self.note(at, length, channel, note, loud);
            let bend = 8192 + self.random.within(-900, 900);
            self.glide(at + 20, length - 60, 12, (8192, bend), |stage, at, to| {
                stage.put(at, kind::PITCH_BEND, channel, 0, to);
            });
            self.glide(at + 10, length - 40, 15, (20, 90), |stage, at, to| {
                stage.put(at, kind::AFTERTOUCH, channel, 0, to);
            });
            self.glide(at + 10, length - 40, 20, (64, 80), |stage, at, to| stage.cc(at, channel, 74, to));
            channel = channel % 12 + 1;
            at += self.random.within(200, 600);
        }
    }

    /// Pads: a beat with the fingers, or clips and buttons of a grid that has no velocity; with pressure or without.
    pub fn pads(&mut self, channel: u8) {
        let grid = self.random.chance(40);
        if grid {
            // Rows of eight: numbered by tens from 11, or by sixteens from 0, or in one go from 36.
            let row = self.layout(&[(11, 10), (36, 8)], &[(0, 16), (36, 4)]);
            let fixed = self.random.chance(70);
            let count = self.random.within(4, 24);
            let places: Vec<(i64, i64)> =
                (0..count).map(|_| (self.random.within(0, 7), self.random.within(0, 7))).collect();
            let mut at = 300;
            while at < self.length - 600 {
                let (x, y) = self.random.one(&places);
                let note = row.0 + row.1 * y + x.min(row.1 - 1);
                let loud = if fixed { 127 } else { self.random.within(20, 127) };
                let length = self.random.about(50, 260);
                self.note(at, length, channel, note, loud);
                at += self.random.within(180, 1400);
            }
            return;
        }
        let base = self.layout(&[36, 48], &[36, 40, 0, 60]);
        let used = self.random.within(3, 8);
        let pads: Vec<i64> = {
            let all: Vec<i64> = (0..16).map(|pad| base + pad).collect();
            self.random.shuffled(&all).into_iter().take(usize::try_from(used).unwrap()).collect()
        };
        let step = if self.part == Part::Tuned { self.random.within(100, 200) } else { self.random.within(85, 260) };
        let pressed = self.random.chance(40);
        let mut at = 200;
        while at < self.length - 800 {
            if self.random.chance(60) {
                let pad = self.random.one(&pads);
                let (loud, length) = (self.random.within(15, 127), self.random.about(30, 210));
                let late = self.random.within(0, 12);
                self.note(at + late, length, channel, pad, loud);
                if pressed && length > 60 {
                    let hard = self.random.within(30, 110);
                    self.glide(at + 15, length - 20, 10, (5, hard), |stage, at, to| {
                        stage.put(at, kind::POLY_AFTERTOUCH, channel, pad, to);
                    });
                }
                if self.random.chance(12) {
                    let other = self.random.one(&pads);
                    if other != pad {
                        let loud = self.random.within(15, 127);
                        self.note(at + 5, length, channel, other, loud);
                    }
                }
            }
            at += step;
        }
    }

    /// A drum kit: triggers with a gate, the notes of General MIDI, a hi-hat with its pedal, cymbals that are choked.
    pub fn drums(&mut self) {
        let channel = 9;
        let gate = self.layout(&[10, 50, 100, 120], &[20, 60, 80, 150]);
        let (snare, hat, ride) = self.layout(&[(38, 42, 51), (40, 42, 59)], &[(38, 46, 53), (38, 44, 51)]);
        let step = if self.part == Part::Tuned { self.random.within(110, 190) } else { self.random.within(95, 240) };
        let pedal = self.random.chance(50);
        let chokes = self.random.chance(40);
        let (mut at, mut count) = (200, 0);
        while at < self.length - 1200 {
            let hit = |stage: &mut Self, note: i64, low: i64, high: i64| {
                let (late, loud) = (stage.random.within(0, 9), stage.random.about(low, high));
                stage.note(at + late, gate, channel, note, loud);
            };
            if count % 2 == 0 {
                let other = if self.random.chance(20) { ride } else { hat };
                hit(self, other, 40, 110);
            }
            if count % 8 == 0 || self.random.chance(8) {
                hit(self, 36, 70, 125);
            }
            if count % 8 == 4 {
                hit(self, snare, 80, 127);
            }
            if self.random.chance(6) {
                let tom = self.random.one(&[48, 45, 43, 50]);
                hit(self, tom, 60, 125);
            }
            if count % 32 == 0 {
                hit(self, 49, 90, 127);
                if chokes {
                    self.put(at + 400, kind::POLY_AFTERTOUCH, channel, 49, 127);
                    self.put(at + 460, kind::POLY_AFTERTOUCH, channel, 49, 0);
                }
            }
            if pedal && count % 8 == 2 {
                self.glide(at, 90, 10, (127, 10), |stage, at, to| stage.cc(at, channel, 4, to));
                self.glide(at + 200, 90, 10, (10, 127), |stage, at, to| stage.cc(at, channel, 4, to));
            }
            count += 1;
            at += step;
        }
    }

    /// Faders: thrown 150 to 900 steps a second, often two to four at once, often to an end. A fader is 60 to 100 mm
    /// long, and a hand crosses that in 0.15 to 0.8 s.
    pub fn faders(&mut self, channel: u8) {
        let first = self.layout(&[0, 20], &[28, 81, 102]);
        let strips = self.random.chance(25);
        let fine = !strips && first == 0 && self.random.chance(30);
        let mut places = [64_i64; 8];
        let mut at = 300;
        while at < self.length - 2200 {
            let hands = if self.random.chance(60) { self.random.within(2, 4) } else { 1 };
            let from = self.random.within(0, 8 - hands);
            for fader in from..from + hands {
                let place = &mut places[usize::try_from(fader).unwrap()];
                let to = if self.random.chance(45) { self.random.one(&[0, 127]) } else { self.random.within(0, 127) };
                let way = (*place, to);
                *place = to;
                let took = ((to - way.0).abs() * 1000 / self.random.within(150, 900)).max(90);
                let late = self.random.within(0, 60);
                self.glide(at + late, took, 8, way, |stage, at, value| {
                    if strips {
                        stage.cc(at, u8::try_from(fader).unwrap(), 7, value);
                    } else {
                        stage.cc(at, channel, first + fader, value);
                        if fine {
                            let low = stage.random.within(0, 127);
                            stage.cc(at, channel, first + fader + 32, low);
                        }
                    }
                });
            }
            at += self.random.within(700, 1900);
        }
    }

    /// The faders of a Mackie-style surface: pitch bend on a channel each, touch as notes 104 and up.
    pub fn mackie_faders(&mut self) {
        let mut at = 300;
        while at < self.length - 2000 {
            for _ in 0..self.random.within(1, 3) {
                let fader = self.random.within(0, 7);
                let way = (self.random.within(0, 16_000), self.random.within(0, 16_000));
                self.put(at, kind::NOTE_ON, 0, 104 + fader, 127);
                let took = self.random.within(150, 700);
                self.glide(at + 20, took, 8, way, |stage, at, to| {
                    stage.put(at, kind::PITCH_BEND, u8::try_from(fader).unwrap(), 0, to);
                });
                self.put(at + took + 60, kind::NOTE_OFF, 0, 104 + fader, 0);
            }
            at += self.random.within(800, 1800);
        }
    }

    /// Knobs: turned 15 to 105 steps a second, mostly one at a time and a part of the way. A pot turns 270 to 300 degrees,
    /// and a wrist some 120 at once.
    pub fn knobs(&mut self, channel: u8) {
        let (first, count) = self.layout(&[(16, 8), (70, 8), (1, 8)], &[(21, 8), (48, 4), (70, 4), (74, 6)]);
        let mut places = [64_i64; 8];
        let mut at = 300;
        while at < self.length - 2600 {
            let knob = self.random.within(0, count - 1);
            let mut turn = |stage: &mut Self, knob: i64, at: Ms| {
                let place = &mut places[usize::try_from(knob).unwrap()];
                let way = stage.random.about(-70, 70);
                let to = (*place + way).clamp(0, 127);
                let way = (*place, to);
                *place = to;
                let took = ((to - way.0).abs() * 1000 / stage.random.within(15, 105)).clamp(80, 2200);
                stage.glide(at, took, 9, way, |stage, at, value| stage.cc(at, channel, first + knob, value));
                took
            };
            let took = turn(self, knob, at);
            if self.random.chance(8) {
                turn(self, (knob + 1) % count, at + 40);
            }
            at += took + self.random.within(250, 900);
        }
    }

    /// Endless encoders in each coding, with acceleration, turned both ways.
    pub fn encoders(&mut self, channel: u8) {
        let first = self.layout(&[16, 0, 71], &[20, 102, 12]);
        let coding = self.random.within(0, 2);
        let count = self.random.within(1, 8);
        let mut at = 300;
        while at < self.length - 1500 {
            let encoder = self.random.within(0, count - 1);
            let forward = self.random.chance(50);
            for _ in 0..self.random.within(3, 18) {
                let steps = if self.random.chance(25) { self.random.within(2, 5) } else { 1 };
                let value = match (coding, forward) {
                    (1, true) => 64 + steps,
                    (1, false) => 64 - steps,
                    (_, true) => steps,
                    (0, false) => 128 - steps,
                    (_, false) => 64 + steps,
                };
                self.cc(at, channel, first + encoder, value);
                at += self.random.within(12, 90);
            }
            at += self.random.within(200, 900);
        }
    }

    /// A foot controller: program changes, or switches, one at a time, and often a pedal that is swept slowly.
    pub fn foot(&mut self, channel: u8) {
        let programs = self.random.chance(45);
        let first = self.layout(&[80, 20, 64], &[102, 85, 26]);
        let latching = self.random.chance(40);
        let mut on = [false; 10];
        let mut at = self.random.within(300, 1200);
        while at < self.length - 900 {
            let switch = self.random.within(0, 5);
            if programs {
                self.put(at, kind::PROGRAM_CHANGE, channel, switch, switch);
            } else if latching {
                let state = &mut on[usize::try_from(switch).unwrap()];
                *state = !*state;
                let value = if *state { 127 } else { 0 };
                self.cc(at, channel, first + switch, value);
            } else {
                self.cc(at, channel, first + switch, 127);
                let late = self.random.within(90, 350);
                self.cc(at + late, channel, first + switch, 0);
            }
            at += self.random.within(600, 2600);
        }
        if self.random.chance(50) {
            let pedal = self.layout(&[11, 7], &[11, 4]);
            let mut place = 0;
            let mut at = 900;
            while at < self.length - 2500 {
                let to = self.random.one(&[0, 127, 80, 40]);
                let took = self.random.within(700, 1800);
                self.glide(at, took, 12, (place, to), |stage, at, value| stage.cc(at, channel, pedal, value));
                place = to;
                at += took + self.random.within(400, 2500);
            }
        }
    }

    /// Transport buttons: machine control, notes of the Mackie protocol, controllers, or start and stop alone.
    pub fn transport(&mut self, channel: u8) {
        let way = self.random.within(0, 3);
        let buttons = self.layout(
            &[[41, 42, 45, 43, 44], [113, 114, 115, 116, 117]],
            &[[115, 117, 118, 116, 119], [58, 59, 60, 61, 62]],
        );
        let mut at = 400;
        while at < self.length - 600 {
            let pressed = self.random.within(0, 4);
            match way {
                0 => {
                    let at = u64::try_from(at * 1_000_000).unwrap();
                    let (number, value) = (0, 0.0);
                    self.moments.push(Moment {
                        at,
                        kind: kind::SYSEX,
                        channel: 255,
                        number,
                        value,
                        machine_control: true,
                    });
                }
                1 => {
                    let length = self.random.within(60, 200);
                    self.note(at, length, 0, 91 + pressed, 127);
                }
                2 => {
                    let button = buttons[usize::try_from(pressed).unwrap()];
                    self.cc(at, channel, button, 127);
                    let late = self.random.within(60, 220);
                    self.cc(at + late, channel, button, 0);
                }
                _ => {
                    let kind = self.random.one(&[kind::START, kind::STOP, kind::CONTINUE]);
                    self.put(at, kind, 255, 0, 0);
                }
            }
            at += self.random.within(400, 2500);
        }
    }

    /// Breath: controller 2, or another that wind controllers are set to; alone, or with the notes of a wind controller.
    pub fn breath(&mut self, channel: u8) {
        let number = self.layout(&[2, 2, 11], &[2, 2, 7]);
        let notes = self.random.chance(50);
        let mut note = 62;
        let mut at = 400;
        while at < self.length - 1800 {
            let length = self.random.within(250, 1400);
            let (loud, rise) = (self.random.within(50, 125), self.random.within(60, 160));
            self.glide(at, rise, 7, (0, loud), |stage, at, to| stage.cc(at, channel, number, to));
            let mut time = at + rise;
            let mut place = loud;
            while time < at + length {
                let to = (place + self.random.within(-9, 9)).clamp(20, 127);
                if to != place {
                    self.cc(time, channel, number, to);
                }
                place = to;
                time += self.random.within(8, 18);
            }
            self.glide(time, 70, 7, (place, 0), |stage, at, to| stage.cc(at, channel, number, to));
            if notes {
                note = (note + self.random.one(&[-5, -3, -2, -1, 1, 2, 3, 4])).clamp(48, 84);
                self.note(at + 12, length + 20, channel, note, loud);
            }
            at += length + self.random.within(160, 700);
        }
    }

    /// A clock at 60 to 180 beats a minute with a jitter of up to 1.5 ms, or time code; with start, stop and position.
    pub fn clock(&mut self) {
        if self.random.chance(15) {
            let mut at = 100;
            while at < self.length {
                self.put(at, kind::TIME_CODE, 255, 0, 0);
                at += 10;
            }
            return;
        }
        let bpm = self.layout(&[60, 90, 120, 128], &[75, 100, 140, 174, 180]);
        let started = self.random.chance(50);
        if started {
            self.put(90, kind::SONG_POSITION, 255, 0, 0);
            self.put(95, kind::START, 255, 0, 0);
        }
        let mut tick = 0;
        while 100 + tick * 2500 / bpm < self.length - 200 {
            let late = self.random.within(0, 1);
            self.put(100 + tick * 2500 / bpm + late, kind::CLOCK, 255, 0, 0);
            tick += 1;
        }
        if started {
            self.put(self.length - 100, kind::STOP, 255, 0, 0);
        }
    }
}
