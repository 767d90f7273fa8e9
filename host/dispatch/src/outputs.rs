//! The MIDI output workers, by the target that rules call them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;

use conductor_event::ModeIx;
use conductor_observer::Observer;
use conductor_observer::light::DeviceLights;
use conductor_ports::MidiOut;
use conductor_ports::paced_port::Pace;
use conductor_variables::{Variable, Watch};
use parking_lot::{Mutex, MutexGuard};

use super::join_by;
use super::light_states::LightStates;
use super::lights::OutputLights;
use super::midi_out::{self, MidiCommand, MidiQueue};
use super::releases::Releases;

/// What the outputs have to know of the rules in use.
#[derive(Debug, Clone, Default)]
pub struct OutputPlan {
    /// The mode below each, in the order of modes; [`ModeIx::NONE`] if there is none.
    pub below: Arc<[ModeIx]>,
    /// What their lights show, by output.
    pub lights: BTreeMap<String, OutputLights>,
    /// How fast they take messages, where that is known.
    pub pace: BTreeMap<String, Pace>,
    /// Those that get the clock.
    pub clock: BTreeSet<String>,
}

/// A worker.
#[derive(Debug)]
struct Output {
    queue: MidiQueue,
    thread: JoinHandle<()>,
    /// Whether variables have changed that its lights show.
    stale: Arc<AtomicBool>,
    light_states: Arc<LightStates>,
}

/// A worker to be woken when a variable changes, and what says so.
type Woken = (MidiQueue, Arc<AtomicBool>);

#[derive(Debug, Default)]
struct Workers {
    by_target: BTreeMap<String, Output>,
    /// The variables that lights show.
    watched: Vec<Variable>,
    /// Whether one gets the clock.
    get_clock: bool,
}

/// The workers. Clones share them.
#[derive(Debug, Clone)]
pub struct Outputs {
    workers: Arc<Mutex<Workers>>,
    observer: Observer,
    releases: Releases,
    /// Whether workers that are started from now on begin by ending all notes.
    ends_all_notes: Arc<AtomicBool>,
    /// Whether none is started at all.
    unattended: bool,
    /// Whether time passes only as a script says.
    rehearses: bool,
}

impl Outputs {
    /// No worker yet; those that come hear of releases through `releases`.
    pub fn new(observer: Observer, releases: Releases) -> Self {
        let (workers, ends_all_notes) = Default::default();
        Self { workers, observer, releases, ends_all_notes, unattended: false, rehearses: false }
    }

    /// No worker, ever: for rules that are compiled and never used.
    pub fn unattended(self) -> Self {
        Self { unattended: true, ..self }
    }

    /// Workers for a rehearsal: what goes by the time that passes here, such as a light that blinks, stays as it is.
    pub fn rehearsing(self) -> Self {
        Self { rehearses: true, ..self }
    }

    /// Has every worker that is started from now on tell its port to end all notes when it first has one.
    pub fn end_all_notes(&self) {
        self.ends_all_notes.store(true, Ordering::Relaxed);
    }

    fn workers(&self) -> MutexGuard<'_, Workers> {
        self.workers.lock()
    }

    /// The way to the output called `target`; its worker is started when it is first asked for.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub fn queue(&self, target: &str) -> std::io::Result<MidiQueue> {
        if self.unattended {
            return Ok(MidiQueue::unattended(target));
        }
        let mut workers = self.workers();
        if let Some(output) = workers.by_target.get(target) {
            return Ok(output.queue.clone());
        }
        let stale = Arc::new(AtomicBool::new(false));
        let light_states = Arc::<LightStates>::default();
        let (told, shows) = (Arc::clone(&stale), Arc::clone(&light_states));
        let (queue, thread) = midi_out::start(target, self.observer.clone(), told, shows, self.rehearses)?;
        if self.ends_all_notes.load(Ordering::Relaxed) {
            queue.command(MidiCommand::EndAllNotes);
        }
        self.releases.add(Arc::new(queue.clone()));
        workers.by_target.insert(target.to_owned(), Output { queue: queue.clone(), thread, stale, light_states });
        Ok(queue)
    }

    /// Gives the worker its port.
    pub fn attach(&self, target: &str, port: Box<dyn MidiOut>) {
        if let Some(output) = self.workers().by_target.get(target) {
            output.queue.command(MidiCommand::Attach(port));
        }
    }

    /// Takes the worker's port away.
    pub fn detach(&self, target: &str) {
        if let Some(output) = self.workers().by_target.get(target) {
            output.queue.command(MidiCommand::Detach);
        }
    }

    /// Has every output take over what the rules in use say of it, and show the lights of it.
    pub fn follow(&self, plan: &OutputPlan) {
        let mut workers = self.workers();
        for variable in std::mem::take(&mut workers.watched) {
            variable.watch(None);
        }
        let mut watched: BTreeMap<u16, (Variable, Vec<Woken>)> = BTreeMap::new();
        for (target, output) in &workers.by_target {
            let lights = plan.lights.get(target).cloned().unwrap_or_default();
            for variable in lights.state.iter().flat_map(|light| &light.variables) {
                let (_, outputs) = watched.entry(variable.number()).or_insert_with(|| (variable.clone(), Vec::new()));
                if !outputs.iter().any(|(queue, _)| queue.name() == output.queue.name()) {
                    outputs.push((output.queue.clone(), Arc::clone(&output.stale)));
                }
            }
            output.queue.command(MidiCommand::Follow {
                lights,
                below: Arc::clone(&plan.below),
                pace: plan.pace.get(target).copied().unwrap_or_default(),
                clock: plan.clock.contains(target),
            });
        }
        workers.get_clock = !plan.clock.is_empty();
        for (variable, outputs) in watched.into_values() {
            let wake = move || {
                for (queue, stale) in &outputs {
                    // One that has not looked yet sees this change as well.
                    if !stale.swap(true, Ordering::SeqCst) {
                        queue.look();
                    }
                }
            };
            variable.watch(Some(Arc::new(Watch::new(wake))));
            workers.watched.push(variable);
        }
    }

    /// Whether some send by themselves: lights that show variables, or the clock.
    pub fn follow_something(&self) -> bool {
        let workers = self.workers();
        workers.get_clock || !workers.watched.is_empty()
    }

    /// What the lights of each show. The next change after that is reported, as [`Observation::Lights`].
    ///
    /// [`Observation::Lights`]: conductor_observer::Observation::Lights
    pub fn lights(&self) -> Vec<DeviceLights> {
        let workers = self.workers();
        let outputs = workers.by_target.iter();
        outputs
            .map(|(device, output)| DeviceLights { device: device.clone(), lights: output.light_states.look() })
            .collect()
    }

    /// Every way there is.
    pub fn queues(&self) -> Vec<MidiQueue> {
        self.workers().by_target.values().map(|output| output.queue.clone()).collect()
    }

    /// Has every worker do what is in its queue, switch off what is on, and end. False when one has not
    /// ended at `deadline`: its port hangs.
    pub fn stop(&self, deadline: Instant) -> bool {
        let workers = std::mem::take(&mut *self.workers());
        workers.watched.iter().for_each(|variable| variable.watch(None));
        workers.by_target.values().for_each(|output| output.queue.stop());
        workers.by_target.into_values().all(|output| join_by(output.thread, deadline))
    }
}
