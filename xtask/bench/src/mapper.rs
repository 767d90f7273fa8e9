//! What a rule costs that asks a variable, calculates its number, or lies below another mode, beside a plain one.
//!
//! Each set has a rule for every note. An event goes through the whole engine, and its action is made ready for the worker:
//! its MIDI message is filled in, and variables change.

use std::collections::VecDeque;
use std::hint::black_box;
use std::sync::Arc;

use anyhow::{Result, anyhow};
use conductor_config as config;
use conductor_dispatch::{Action, Envelope};
use conductor_engine::{Engine, Firing, RuleSetHandle, Sink};
use conductor_event::{DeviceEvent, DeviceId, Event, MidiMessage, Nanos};
use conductor_host::host::{self, Rehearsal};

use crate::allocations;
use crate::measure::{Work, nanos_per_call};
use crate::report::{Limit, Section, Unit};

/// Between two events.
const PACE: Nanos = 1_000_000;
const PLAIN: &str = "a plain rule";

/// Variables, and a mode that lies over the one with the rules.
const HEAD: &str = r#"
variables = [
  { name = "gain", type = "number", min = 0, max = 1, initial = 0.5 },
  { name = "mute", type = "boolean" },
  { name = "count", type = "number", min = 0, max = 1000000 },
]
"#;

/// The kinds of rules: the name, the mode that is active, and what is in a rule beside its trigger.
const KINDS: [(&str, &str, &str); 8] = [
    (PLAIN, "Play", SEND),
    (
        "with a variable as its condition",
        "Play",
        "condition = { type = 'VariableIs', variable = 'gain', min = 0.25, max = 0.75 }\naction = { type = 'SendMidi', \
         target = 'synth', message_type = 'CC', cc = 1, value = 64 }",
    ),
    (
        "with an expression as its condition",
        "Play",
        "condition = { type = 'Expression', holds = 'gain > 0.25 and not mute' }\naction = { type = 'SendMidi', \
         target = 'synth', message_type = 'CC', cc = 1, value = 64 }",
    ),
    (
        "that scales its value",
        "Play",
        "action = { type = 'SendMidi', target = 'synth', message_type = 'CC', cc = 1, value = '{value -> 20..100}' }",
    ),
    (
        "that calculates with variables",
        "Play",
        "action = { type = 'SendMidi', target = 'synth', message_type = 'CC', cc = 1, value = '{if(mute, 0, clamp(value \
         * gain + 10, 0, 127))}' }",
    ),
    ("that adds to a variable", "Play", "action = { type = 'AddToVariable', variable = 'count', wrap = true }"),
    ("below one other mode", "One", SEND),
    ("below four other modes", "Four", SEND),
];
const SEND: &str = "action = { type = 'SendMidi', target = 'synth', message_type = 'CC', cc = 1, value = 64 }";

/// Measures the row.
pub fn measure(section: &mut Section<'_>) -> Result<()> {
    let mut sets = KINDS.iter().map(|(_, mode, rest)| Set::new(mode, rest)).collect::<Result<Vec<_>>>()?;
    let mut works = sets.iter_mut().map(Set::work);
    let works: [Work<'_>; KINDS.len()] = std::array::from_fn(|_| works.next().unwrap_or_else(|| Box::new(|_| ())));
    let nanos = nanos_per_call(works);
    section.figure(PLAIN, nanos[0], Unit::Nanoseconds);
    for ((name, _, _), nanos_of_it) in KINDS.iter().zip(nanos).skip(1) {
        section.beside(format!("a rule {name}"), nanos_of_it, Unit::Nanoseconds, PLAIN, nanos[0]);
    }
    for ((name, _, _), set) in KINDS.iter().zip(&mut sets) {
        let mut work = set.work();
        work(1024);
        let asked = allocations::per_call(4096, &mut work);
        section.target(format!("{name}, allocations"), asked, Unit::Count, Limit::AtMost(0.0));
    }
    Ok(())
}

/// An engine with its rules, and what they have to be kept with.
struct Set {
    engine: Engine<Action>,
    sink: Ready,
    device: DeviceId,
    index: u64,
    _rehearsal: Box<dyn std::any::Any>,
}

impl Set {
    /// A rule for every note, in the mode `Play`; the modes `One` to `Four` lie over it, each over the one before.
    fn new(mode: &str, rest: &str) -> Result<Self> {
        let rules: String = (0..128)
            .map(|note| format!("[[modes.mappings]]\ntrigger = {{ type = 'Note', note = {note} }}\n{rest}\n"))
            .collect();
        let over = [("One", "Play"), ("Two", "One"), ("Three", "Two"), ("Four", "Three")];
        let over: String =
            over.iter().map(|(name, over)| format!("[[modes]]\nname = '{name}'\nover = '{over}'\n")).collect();
        let text = format!("{HEAD}[[modes]]\nname = 'Play'\n{rules}{over}");
        let loaded = config::parse(&text, "config.toml").map_err(|wrong| anyhow!("{wrong}"))?;
        let Rehearsal { compiled, actions } = host::rehearse(&loaded, None, None)?;
        let mut engine = Engine::new(Arc::new(RuleSetHandle::new(compiled.rules)), Arc::default());
        let mut sink = Ready::default();
        engine.set_mode(mode, &mut sink).map_err(|_| anyhow!("there is no mode {mode}"))?;
        Ok(Self { engine, sink, device: DeviceId::new("pads"), index: 0, _rehearsal: Box::new(actions) })
    }

    fn work(&mut self) -> Work<'_> {
        Box::new(move |calls| {
            for _ in 0..calls {
                let note = (self.index % 128) as u8;
                let message = MidiMessage::NoteOn { channel: 0, note, velocity: 100 };
                let event = DeviceEvent { device: self.device.clone(), event: Event::from(message) };
                black_box(self.engine.event(self.index * PACE, event, &mut self.sink));
                self.index += 1;
            }
        })
    }
}

/// Makes what fires ready for its worker.
#[derive(Default)]
struct Ready {
    brought_about: VecDeque<DeviceEvent<Event>>,
}

impl Sink<Action> for Ready {
    fn fire(&mut self, firing: Firing<'_, Action>) -> Option<Arc<str>> {
        if let Action::SendMidi { message, .. } = &firing.rule.action {
            black_box(message.message(&Envelope::of(&firing)));
        }
        Action::at_once(&firing, &mut self.brought_about)
    }

    fn brought_about(&mut self) -> Option<DeviceEvent<Event>> {
        self.brought_about.pop_front()
    }
}
