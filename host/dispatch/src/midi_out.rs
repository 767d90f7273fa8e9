//! The worker behind one MIDI output.
//!
//! It lives as long as a rule names its target, whether a port is there or not: ports come and go
//! under it. What it has switched on it switches off before it lets go of a port.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use conductor_event::{Event, MidiMessage, ModeIx};
use conductor_observer::{Observation, Observer};
use conductor_ports::MidiOut;
use conductor_ports::paced_port::{Pace, PacedPort};
use conductor_scheduling::{event_thread, timer_slack};

use super::clock_message::{ClockMessage, InStep};
use super::conditioner::{Conditioner, Forwarding};
use super::ledger::{Ledger, Owner, Release};
use super::light_states::LightStates;
use super::lights::{Lights, OutputLights, Texts};
use super::midi_message::MidiTemplate;
use super::queue::{Inbox, Job, Next, Queue};
use super::{Envelope, Reason, WorkerCounters};

/// What the worker is asked to do.
#[derive(Debug)]
pub enum MidiJob {
    /// Send a message that was made from the event.
    Send(Envelope, MidiMessage),
    /// Pass the event's message on.
    Forward(Envelope, Option<Arc<Forwarding>>),
    /// Show that a mapping has fired, or that what fired it was let go of.
    Light(Envelope, Arc<Feedback>),
    /// Send this message, for a feature.
    Message(MidiMessage),
    /// Say this of the clock.
    Clock(ClockMessage),
}

impl Job for MidiJob {
    fn may_switch_off(&self) -> bool {
        match self {
            Self::Send(_, message) | Self::Message(message) => switches_off(message),
            Self::Forward(envelope, _) => match &envelope.event {
                // What the pedal says may be turned round on the way.
                Event::Midi(MidiMessage::ControlChange { controller: SUSTAIN, .. }) => true,
                Event::Midi(message) => switches_off(message),
                _ => false,
            },
            Self::Light(..) | Self::Clock(_) => false,
        }
    }
}

/// Whether the message ends notes, or lets the sustain pedal up.
fn switches_off(message: &MidiMessage) -> bool {
    match *message {
        MidiMessage::NoteOff { .. } | MidiMessage::ControlChange { controller: ALL_NOTES_OFF, .. } => true,
        MidiMessage::ControlChange { controller: SUSTAIN, value, .. } => value < 64,
        _ => false,
    }
}

/// Commands to the worker about its port.
pub enum MidiCommand {
    /// Here it is.
    Attach(Box<dyn MidiOut>),
    /// It is gone.
    Detach,
    /// Ends all notes of the port if it is present, whichever rule began them.
    EndAllNotes,
    /// Other rules are in use.
    Follow {
        /// What lights show.
        lights: OutputLights,
        /// Which mode is below each.
        below: Arc<[ModeIx]>,
        /// How fast the port takes messages.
        pace: Pace,
        /// Whether it gets the clock.
        clock: bool,
    },
}

/// What lights show of a mapping.
#[derive(Debug, Clone, PartialEq)]
pub struct Feedback {
    /// When it has fired.
    pub fired: Option<MidiTemplate>,
    /// While it waits, and when what fired it is let go of.
    pub idle: Option<MidiTemplate>,
}

impl std::fmt::Debug for MidiCommand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Attach(_) => "Attach",
            Self::Detach => "Detach",
            Self::EndAllNotes => "EndAllNotes",
            Self::Follow { .. } => "Follow",
        })
    }
}

/// The way to a worker; its name is the output's, as configuration has it. Clones share it.
pub type MidiQueue = Queue<MidiJob, MidiCommand>;

/// Starts the worker for the output that configuration calls `target`. It looks whether variables that its lights show are
/// `stale` when it is woken, and keeps in `states` what they show. In a rehearsal time does not pass by itself: a light that
/// blinks stays on, nothing waits for a slow port, and of a clock only what its transport does is sent.
///
/// # Errors
/// When the system has no thread left.
pub fn start(
    target: &str,
    observer: Observer,
    stale: Arc<AtomicBool>,
    states: Arc<LightStates>,
    rehearses: bool,
) -> std::io::Result<(MidiQueue, JoinHandle<()>)> {
    let (queue, inbox) = Queue::new(target);
    let worker = Worker {
        target: Arc::clone(queue.name()),
        counters: Arc::clone(queue.counters()),
        observer,
        port: None,
        held: Ledger::default(),
        of_features: [0; 16],
        cut_off: Vec::new(),
        owed: Vec::new(),
        pay_at: None,
        ends_all_notes: false,
        conditioner: Conditioner::default(),
        lights: Lights::default(),
        texts: Texts::new(),
        stale,
        states,
        rehearses,
        pace: Pace::default(),
        clock: InStep::default(),
        flip_at: None,
        bytes: Vec::with_capacity(64),
    };
    let thread = std::thread::Builder::new().name(format!("midi-out {target}")).spawn(move || {
        event_thread();
        timer_slack::remove();
        worker.run(inbox);
    })?;
    Ok((queue, thread))
}

/// Something that sounds until it is ended, on a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ActiveOutput {
    Note {
        channel: u8,
        note: u8,
    },
    /// The sustain pedal, which keeps notes from ending.
    Pedal {
        channel: u8,
    },
    /// Whatever sounds.
    Channel {
        channel: u8,
    },
}

impl ActiveOutput {
    fn end(self) -> MidiMessage {
        match self {
            Self::Note { channel, note } => MidiMessage::NoteOff { channel, note, velocity: 0 },
            Self::Pedal { channel } => MidiMessage::ControlChange { channel, controller: SUSTAIN, value: 0 },
            Self::Channel { channel } => MidiMessage::ControlChange { channel, controller: ALL_NOTES_OFF, value: 0 },
        }
    }
}

/// The controller that the sustain pedal moves; it is down from 64 on (MIDI 1.0).
const SUSTAIN: u8 = 64;
/// The controller that ends all notes of a channel (MIDI 1.0).
const ALL_NOTES_OFF: u8 = 123;

/// How long a light that blinks is on, and then off.
const BLINK_INTERVAL: Duration = Duration::from_millis(250);

/// How long what waits for a slow port may take at the end.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// How long it is before a port that refused to end something is asked again.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

struct Worker {
    target: Arc<str>,
    counters: Arc<WorkerCounters>,
    observer: Observer,
    port: Option<PacedPort>,
    /// How fast it takes messages.
    pace: Pace,
    /// What rules have switched on.
    held: Ledger<ActiveOutput>,
    /// What features have switched on: a bit per note, per channel.
    of_features: [u128; 16],
    /// What was on when the port was lost. Should it come back, this may sound still.
    cut_off: Vec<ActiveOutput>,
    /// What was to be ended, and the port refused. It is tried again until the port takes it.
    owed: Vec<ActiveOutput>,
    /// When; `None` if nothing is owed.
    pay_at: Option<Instant>,
    /// Whether the port is to end all notes when it comes.
    ends_all_notes: bool,
    conditioner: Conditioner,
    lights: Lights,
    /// What the displays in its keys say.
    texts: Texts,
    /// Whether variables have changed that lights show.
    stale: Arc<AtomicBool>,
    /// What they show now, for those who look.
    states: Arc<LightStates>,
    /// What the port was sent of the clock.
    clock: InStep,
    /// Whether time passes only as a script says.
    rehearses: bool,
    /// When those that blink go on or off; `None` if none does.
    flip_at: Option<Instant>,
    bytes: Vec<u8>,
}

impl Worker {
    fn run(mut self, mut inbox: Inbox<MidiJob, MidiCommand>) {
        loop {
            if self.pay_at.is_some_and(|at| at <= Instant::now()) {
                self.pay();
            }
            if self.stale.swap(false, Ordering::SeqCst) {
                let changes = self.lights.refresh();
                self.show(&changes);
            }
            self.blink();
            self.go_on();
            let port = self.port.as_ref().and_then(PacedPort::due);
            match inbox.next([self.pay_at, self.flip_at, port].into_iter().flatten().min()) {
                Next::Job(job) => self.perform(job),
                Next::Command(MidiCommand::Attach(port)) => {
                    self.port = Some(PacedPort::new(port, self.pace, Instant::now()));
                    self.report(self.states.forget());
                    self.texts.clear();
                    self.clock.forget();
                    if std::mem::take(&mut self.ends_all_notes) {
                        self.end((0..16).map(|channel| ActiveOutput::Channel { channel }));
                    }
                    let sounding = self.everything_on();
                    let cut_off = std::mem::take(&mut self.cut_off);
                    self.end(cut_off.into_iter().chain(sounding));
                    let all = self.lights.all();
                    self.show_page(&all);
                }
                Next::Command(MidiCommand::Detach) => {
                    let on = self.everything_on();
                    self.end(on.iter().copied());
                    self.owed.retain(|owed| !on.contains(owed));
                    self.cut_off = on;
                    self.cut_off.append(&mut self.owed);
                    self.pay_at = None;
                    self.port = None;
                    self.report(self.states.forget());
                }
                Next::Command(MidiCommand::EndAllNotes) => self.ends_all_notes = true,
                Next::Command(MidiCommand::Follow { lights, below, pace, clock }) => {
                    self.pace = if self.rehearses { Pace::default() } else { pace };
                    if let Some(port) = &mut self.port {
                        port.set_pace(self.pace);
                    }
                    if !clock {
                        self.tell_clock(|clock, send| clock.stop(send));
                    }
                    let changes = self.lights.replace(lights, below, Some(inbox.mode()));
                    self.show_page(&changes);
                }
                Next::Release(release) => {
                    if let Release::Mode(mode) = release {
                        let changes = self.lights.turn_to(mode);
                        self.show_page(&changes);
                    }
                    self.conditioner.release(&release);
                    let off = self.held.release(&release);
                    self.end(off);
                }
                Next::ReleaseAll => {
                    let changes = self.lights.turn_to(inbox.mode());
                    self.show_page(&changes);
                    let off = self.everything_on();
                    self.end(off);
                }
                Next::Timeout | Next::Look => {}
                Next::Stop => break,
            }
        }
        let on = self.everything_on();
        self.end(on);
        self.pay();
        self.tell_clock(|clock, send| clock.stop(send));
        let dark = self.lights.out();
        self.show_page(&dark);
        self.drain();
    }

    /// Says something of the clock.
    fn tell_clock(&mut self, tell: impl FnOnce(&mut InStep, &mut dyn FnMut(MidiMessage))) {
        let mut clock = std::mem::take(&mut self.clock);
        tell(&mut clock, &mut |message| {
            // There would be 24 a beat to read.
            let is_shown = !self.rehearses || message != MidiMessage::Clock;
            // If there is no port, the next one is sent where the clock is.
            if is_shown
                && self.port.is_some()
                && let Err(reason) = self.put(&message)
            {
                self.counters.failure(&reason);
            }
        });
        self.clock = clock;
    }

    /// Sends what has waited for a slow port and may go now.
    fn go_on(&mut self) {
        let Some(port) = self.port.as_mut().filter(|port| port.due().is_some()) else { return };
        if let Err(refused) = port.go_on(Instant::now()) {
            refused.iter().for_each(|error| self.counters.failure(&Reason::Failed(error.to_string())));
        }
        self.counters.merged.fetch_add(port.take_merged(), Ordering::Relaxed);
    }

    /// Has what waits for a slow port go before the end, at its pace as far as there is time.
    fn drain(&mut self) {
        let until = Instant::now() + DRAIN_TIMEOUT;
        while let Some(due) = self.port.as_ref().and_then(PacedPort::due).filter(|due| *due <= until) {
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            self.go_on();
        }
    }

    fn perform(&mut self, job: MidiJob) {
        match job {
            MidiJob::Send(envelope, message) => {
                let sent = self.send(&message, Some(&envelope));
                self.account(&envelope, sent);
            }
            MidiJob::Forward(envelope, forwarding) => {
                let sent = match &envelope.event {
                    Event::Midi(message) => match forwarding {
                        None => self.send(message, Some(&envelope)),
                        Some(forwarding) => match self.conditioner.forward(&envelope, &forwarding, message) {
                            Some(message) => self.send(&message, Some(&envelope)),
                            // Held back, as it was asked for.
                            None => Ok(()),
                        },
                    },
                    _ => Err(Reason::NotMidi),
                };
                self.account(&envelope, sent);
            }
            MidiJob::Light(envelope, feedback) => {
                let template = if envelope.lets_go() { &feedback.idle } else { &feedback.fired };
                if let Some(message) = template.as_ref().map(|template| template.message(&envelope))
                    && self.lights.set(envelope.mode, &message)
                {
                    let sent = self.put(&message);
                    self.account(&envelope, sent);
                    self.note_blinking();
                }
            }
            MidiJob::Clock(message) => self.tell_clock(|clock, send| clock.follow(message, send)),
            MidiJob::Message(message) => {
                let sent = self.send(&message, None);
                self.count(sent);
            }
        }
    }

    /// Sends a message, and remembers what it switches on and for whom: the event's rule, or a feature.
    fn send(&mut self, message: &MidiMessage, envelope: Option<&Envelope>) -> Result<(), Reason> {
        let sent = self.put(message);
        if sent.is_ok() {
            self.conditioner.sent(message);
        }
        match *message {
            MidiMessage::NoteOn { channel, note, .. } if sent.is_ok() => match envelope {
                Some(envelope) => drop(self.held.hold(ActiveOutput::Note { channel, note }, Owner::from(envelope))),
                None => self.of_features[usize::from(channel & 15)] |= 1 << (note & 127),
            },
            MidiMessage::NoteOff { channel, note, .. } => {
                self.goes_off(ActiveOutput::Note { channel, note }, sent.is_ok());
                self.of_features[usize::from(channel & 15)] &= !(1 << (note & 127));
            }
            MidiMessage::ControlChange { channel, controller: SUSTAIN, value } => match envelope {
                Some(envelope) if value >= 64 && sent.is_ok() => {
                    self.held.hold(ActiveOutput::Pedal { channel }, Owner::from(envelope));
                }
                _ if value < 64 => self.goes_off(ActiveOutput::Pedal { channel }, sent.is_ok()),
                None if sent.is_ok() => drop(self.held.is_off_now(ActiveOutput::Pedal { channel })),
                _ => {}
            },
            _ => {}
        }
        sent
    }

    /// No owner holds it any more; if the port has not got the end of it yet, it is sent later.
    fn goes_off(&mut self, on: ActiveOutput, heard: bool) {
        if !heard && self.is_on(on) {
            self.owe(on);
        }
        self.held.is_off_now(on);
    }

    fn put(&mut self, message: &MidiMessage) -> Result<(), Reason> {
        let Some(port) = &mut self.port else {
            return Err(Reason::TargetNotBound(self.target.to_string()));
        };
        self.bytes.clear();
        message.encode(&mut self.bytes);
        let ends = switches_off(message);
        port.send(&self.bytes, ends, Instant::now).map_err(|error| Reason::Failed(error.to_string()))?;
        self.report(self.states.sent(message));
        Ok(())
    }

    /// Reports that lights show something else, where that is asked for.
    fn report(&self, is_asked: bool) {
        if is_asked {
            self.observer.put(Observation::Lights(Arc::clone(&self.target)));
        }
    }

    /// Keeps what lights show that blink, or no longer do.
    fn note_blinking(&mut self) {
        for (message, blinks) in self.lights.blinking() {
            // Without a port it shows nothing, and everything is noted when one comes.
            self.report(self.port.is_some() && self.states.show(&message, blinks));
        }
    }

    /// Shows another page: the texts of keys first, so that one with another text and another colour is drawn with both at once.
    fn show_page(&mut self, messages: &[MidiMessage]) {
        self.show_texts();
        self.show(messages);
    }

    /// Has the displays in keys say what they are to say now, where that is something else than before.
    fn show_texts(&mut self) {
        let now = self.lights.texts();
        let Some(port) = self.port.as_mut().filter(|_| now != self.texts) else { return };
        let gone = self.texts.keys().filter(|note| !now.contains_key(note)).map(|note| (*note, None));
        let new = now.iter().filter(|(note, text)| self.texts.get(note) != Some(text));
        let changes = gone.chain(new.map(|(note, text)| (*note, Some(&**text))));
        let refused = changes.filter_map(|(note, text)| port.show_text(note, text).err());
        refused.for_each(|error| self.counters.failure(&Reason::Failed(error.to_string())));
        self.texts = now;
    }

    /// Sends what lights show. Where the port is not there, it gets everything when it comes.
    fn show(&mut self, messages: &[MidiMessage]) {
        if self.port.is_none() {
            return;
        }
        for message in messages {
            let sent = self.put(message);
            self.count(sent);
        }
        self.note_blinking();
    }

    /// Has lights that blink go on or off when it is time.
    fn blink(&mut self) {
        if self.rehearses || !self.lights.blink() {
            self.lights.begin_on();
            self.flip_at = None;
            return;
        }
        let now = Instant::now();
        let at = *self.flip_at.get_or_insert(now + BLINK_INTERVAL);
        if at <= now {
            // What was missed is left out.
            self.flip_at = Some(if at + BLINK_INTERVAL > now { at + BLINK_INTERVAL } else { now + BLINK_INTERVAL });
            let changes = self.lights.flip();
            self.show(&changes);
        }
    }

    /// Forgets everything that is on, and returns it.
    fn everything_on(&mut self) -> Vec<ActiveOutput> {
        let mut on = self.held.release_all();
        for (channel, notes) in (0_u8..).zip(std::mem::take(&mut self.of_features)) {
            on.extend(
                (0..128_u8).filter(|note| notes & (1 << note) != 0).map(|note| ActiveOutput::Note { channel, note }),
            );
        }
        on
    }

    fn end(&mut self, on: impl IntoIterator<Item = ActiveOutput>) {
        for on in on {
            if self.put(&on.end()).is_err() {
                self.owe(on);
            }
        }
    }

    /// The port did not end this: it is retried later. Without a port there is nothing to end.
    fn owe(&mut self, on: ActiveOutput) {
        if self.port.is_some() && !self.owed.contains(&on) {
            self.owed.push(on);
            self.pay_at.get_or_insert_with(|| Instant::now() + RETRY_INTERVAL);
        }
    }

    /// Ends what the port refused to end, unless somebody has switched it on again.
    fn pay(&mut self) {
        self.pay_at = None;
        let mut owed = std::mem::take(&mut self.owed);
        owed.retain(|on| !self.is_on(*on));
        self.end(owed);
    }

    fn is_on(&self, on: ActiveOutput) -> bool {
        let of_a_feature = match on {
            ActiveOutput::Note { channel, note } => {
                self.of_features[usize::from(channel & 15)] >> (note & 127) & 1 == 1
            }
            _ => false,
        };
        of_a_feature || self.held.is_on(on)
    }

    /// Counts a message that no event asked for.
    fn count(&self, sent: Result<(), Reason>) {
        match sent {
            Ok(()) => drop(self.counters.done.fetch_add(1, Ordering::Relaxed)),
            Err(reason) => self.counters.failure(&reason),
        }
    }

    fn account(&self, envelope: &Envelope, result: Result<(), Reason>) {
        match result {
            Ok(()) => {
                self.counters.done.fetch_add(1, Ordering::Relaxed);
            }
            Err(reason) => {
                self.counters.failure(&reason);
                self.observer.put(Observation::Failure(envelope.failure(&self.target, reason)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crossbeam_channel::Sender;

    use super::*;
    use conductor_observer as observer;
    use conductor_observer::sink_message::SinkQueue;
    use conductor_ports::PortError;

    const ON: MidiMessage = MidiMessage::NoteOn { channel: 1, note: 36, velocity: 100 };
    const OFF: MidiMessage = MidiMessage::NoteOff { channel: 1, note: 36, velocity: 0 };

    struct LooseCable {
        is_loose: Arc<AtomicBool>,
        heard: Sender<Vec<u8>>,
    }

    impl MidiOut for LooseCable {
        fn send(&mut self, message: &[u8]) -> Result<(), PortError> {
            if self.is_loose.load(Ordering::SeqCst) {
                return Err(PortError("the cable is loose".into()));
            }
            self.heard.send(message.to_vec()).map_err(|_| PortError("the receiver is gone".into()))
        }
    }

    /// A port whose keys have displays.
    struct Displays(Sender<String>);

    impl MidiOut for Displays {
        fn send(&mut self, message: &[u8]) -> Result<(), PortError> {
            self.0.send(format!("{message:02x?}")).map_err(|_| PortError("the receiver is gone".into()))
        }

        fn show_text(&mut self, note: u8, text: Option<&str>) -> Result<(), PortError> {
            self.0.send(format!("{note}: {text:?}")).map_err(|_| PortError("the receiver is gone".into()))
        }
    }

    // ACT-5: a display gets what is new, before the colour beside it, and everything when it comes (back).
    #[test]
    fn displays_say_what_their_mappings_say() {
        let (_, said) = SinkQueue::new();
        let (observer, _, _) = observer::start(said, None).unwrap();
        let (queue, thread) = start("deck", observer, Arc::default(), Arc::default(), false).unwrap();
        let follow = |texts: &[(u8, &str)]| {
            let texts = texts.iter().map(|(note, text)| (None, *note, (*text).into())).collect();
            let light = MidiMessage::NoteOn { channel: 0, note: 36, velocity: 28 };
            let lights = OutputLights { idle: vec![(None, light)], texts, ..OutputLights::default() };
            queue.command(MidiCommand::Follow { lights, below: Arc::default(), pace: Pace::default(), clock: false });
        };
        follow(&[(36, "Mute"), (37, "Solo")]);
        let (heard, hears) = crossbeam_channel::unbounded();
        let next = || hears.recv_timeout(Duration::from_secs(20)).unwrap();
        for _ in 0..2 {
            queue.command(MidiCommand::Attach(Box::new(Displays(heard.clone()))));
            assert_eq!([next(), next(), next()], ["36: Some(\"Mute\")", "37: Some(\"Solo\")", "[90, 24, 1c]"]);
        }
        follow(&[(36, "Mute"), (37, "Cue")]);
        assert_eq!(next(), "37: Some(\"Cue\")", "the other one says it already");
        follow(&[(36, "Mute")]);
        assert_eq!(next(), "37: None");
        queue.stop();
        thread.join().unwrap();
        assert_eq!([next(), next()], ["36: None", "[80, 24, 00]"]);
    }

    // ENG-10: what a port refuses to end is ended when it listens again.
    #[test]
    fn an_end_that_the_port_refuses_is_said_again() {
        let (_, said) = SinkQueue::new();
        let (observer, _, _) = observer::start(said, None).unwrap();
        let (queue, thread) = start("synth", observer, Arc::default(), Arc::default(), false).unwrap();
        let (heard, hears) = crossbeam_channel::unbounded();
        let is_loose = Arc::new(AtomicBool::new(false));
        queue.command(MidiCommand::Attach(Box::new(LooseCable { is_loose: Arc::clone(&is_loose), heard })));
        let next = || hears.recv_timeout(Duration::from_secs(20)).unwrap();
        queue.try_put(MidiJob::Message(ON)).unwrap();
        assert_eq!(next(), [0x91, 36, 100]);
        is_loose.store(true, Ordering::SeqCst);
        queue.try_put(MidiJob::Message(OFF)).unwrap();
        let deadline = Instant::now() + Duration::from_secs(20);
        while queue.counters().failed.load(Ordering::Relaxed) == 0 {
            assert!(Instant::now() < deadline, "it never tried");
            std::thread::yield_now();
        }
        is_loose.store(false, Ordering::SeqCst);
        assert_eq!(next(), [0x81, 36, 0]);

        queue.stop();
        thread.join().unwrap();
        assert!(hears.try_recv().is_err(), "and once");
    }
}
