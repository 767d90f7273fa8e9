//! All workers of the host's own actions. Each is started when the first rule asks for it.

use parking_lot::{Mutex, MutexGuard};
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

use super::desktop::{self, Connect, DesktopQueue, PlugGamepad};
use super::feature_worker::FeatureWorker;
use super::join_by;
use super::kept_variables::KeptVariables;
use super::outputs::Outputs;
use super::process::{self, ProcessQueue, Processes};
use super::releases::Releases;
use super::script::{self, ChangeMode, ScriptQueue};
use super::{Reason, WorkerCounters};
use conductor_observer::Observer;
use conductor_variables::{Declaration, Variables};

/// The workers. Clones share them.
#[derive(Debug, Clone)]
pub struct Workers {
    /// Those behind MIDI outputs.
    pub outputs: Outputs,
    observer: Observer,
    /// Who the engine thread notifies of releases.
    releases: Releases,
    /// Those of them that hold things for scripts.
    holders: Releases,
    started: Arc<Mutex<Started>>,
    /// Why no rule can act on the desktop; `None` if rules can.
    desktop_unavailable: Option<&'static str>,
    /// The same of a virtual gamepad.
    gamepad_unavailable: Option<&'static str>,
    /// As they were declared last, and where they are kept.
    variables: Arc<Mutex<(Arc<Variables>, Option<KeptVariables>)>>,
}

struct Started {
    /// Whether nothing is to be started.
    unattended: bool,
    /// Whether programs and scripts are somebody else's to do.
    without_scripts: bool,
    connect: Option<Connect>,
    change_mode: Option<ChangeMode>,
    desktop: Option<(DesktopQueue, JoinHandle<()>)>,
    /// Whether a rule plays the gamepad.
    plays_gamepad: bool,
    processes: Option<Processes>,
    scripts: Option<(ScriptQueue, JoinHandle<()>)>,
}

impl std::fmt::Debug for Started {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Started").finish_non_exhaustive()
    }
}

impl Workers {
    /// No worker yet. Keys go to what `connect` finds, or to the system's desktop if it is `None`, and scripts change
    /// modes by `change_mode`.
    pub fn new(observer: Observer, connect: Option<Connect>, change_mode: ChangeMode) -> Self {
        let desktop_unavailable = desktop::UNAVAILABLE.filter(|_| connect.is_none());
        let gamepad_unavailable = desktop::GAMEPAD_UNAVAILABLE.filter(|_| connect.is_none());
        let holders = Releases::default();
        let releases = Releases::default();
        // What holds things is notified directly, and again when a script is cancelled.
        let outputs = Outputs::new(observer.clone(), holders.clone());
        releases.add(Arc::new(holders.clone()));
        let started = Started {
            unattended: false,
            without_scripts: false,
            connect,
            change_mode: Some(change_mode),
            desktop: None,
            plays_gamepad: false,
            processes: None,
            scripts: None,
        };
        let started = Arc::new(Mutex::new(started));
        Self {
            outputs,
            observer,
            releases,
            holders,
            started,
            desktop_unavailable,
            gamepad_unavailable,
            variables: Arc::default(),
        }
    }

    /// Workers for looking at a configuration for the system's desktop: no thread is started, and nothing will ever be
    /// done.
    pub fn idle(observer: Observer) -> Self {
        let workers = Self::new(observer, None, Box::new(|_| Err(Reason::Gone)));
        workers.started().unattended = true;
        Self { outputs: workers.outputs.clone().unattended(), ..workers }
    }

    /// [Idle](Self::idle) workers for looking at a configuration that these would work for.
    pub fn idle_beside(&self) -> Self {
        Self {
            desktop_unavailable: self.desktop_unavailable,
            gamepad_unavailable: self.gamepad_unavailable,
            ..Self::idle(self.observer.clone())
        }
    }

    /// Workers for a rehearsal: outputs and features have theirs, and keys go to what `connect` finds. No program is
    /// started and no script runs by itself; what rules hand over of these is dropped.
    pub fn rehearsing(observer: Observer, connect: Connect) -> Self {
        let workers = Self::new(observer, Some(connect), Box::new(|_| Err(Reason::Gone)));
        workers.started().without_scripts = true;
        Self { outputs: workers.outputs.clone().rehearsing(), ..workers }
    }

    fn started(&self) -> MutexGuard<'_, Started> {
        self.started.lock()
    }

    /// Who is notified of releases.
    pub fn releases(&self) -> Releases {
        self.releases.clone()
    }

    /// The variables that are declared from now on. One that was declared in the same way keeps its value.
    pub fn declare(&self, declarations: Vec<Declaration>) -> Arc<Variables> {
        let mut known = self.variables.lock();
        let (variables, kept) = &mut *known;
        let are_first = variables.iter().next().is_none();
        if let Some(kept) = kept {
            kept.save(variables);
        }
        *variables = Arc::new(Variables::declare(declarations, variables));
        if let Some(kept) = kept.as_ref().filter(|_| are_first) {
            kept.load(variables);
        }
        Arc::clone(variables)
    }

    /// Has variables be kept in a home across a restart, those that are declared so.
    pub fn keep_variables(&self, home: &Path) {
        self.variables.lock().1 = Some(KeptVariables::of(home));
    }

    /// Has what a feature has pending hear of releases, from the first rule on that uses one of its actions.
    pub fn follow(&self, feature: &FeatureWorker) {
        if self.started().unattended {
            return;
        }
        if let Some(releases) = feature.begins_to_hold() {
            self.holders.add(Arc::new(releases));
        }
    }

    /// Why no rule can act on the desktop, since this build has no way to it; `None` if rules can.
    pub fn desktop_unavailable(&self) -> Option<&'static str> {
        self.desktop_unavailable
    }

    /// Why no rule can play a virtual gamepad; `None` if rules can.
    pub fn gamepad_unavailable(&self) -> Option<&'static str> {
        self.gamepad_unavailable
    }

    /// The way to the desktop.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub fn desktop(&self) -> std::io::Result<DesktopQueue> {
        let mut started = self.started();
        if started.unattended {
            return Ok(DesktopQueue::unattended("desktop"));
        }
        if let Some((queue, _)) = &started.desktop {
            return Ok(queue.clone());
        }
        let connect = started.connect.take().unwrap_or_else(|| Box::new(desktop::connect));
        let (queue, thread) = desktop::start(connect, self.observer.clone())?;
        self.holders.add(Arc::new(queue.clone()));
        started.desktop = Some((queue.clone(), thread));
        Ok(queue)
    }

    /// The way to the desktop, where the gamepad is plugged in from the first call on.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub fn gamepad(&self) -> std::io::Result<DesktopQueue> {
        let queue = self.desktop()?;
        if !std::mem::replace(&mut self.started().plays_gamepad, true) {
            queue.command(PlugGamepad);
        }
        Ok(queue)
    }

    /// The way to what starts programs.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub fn processes(&self) -> std::io::Result<ProcessQueue> {
        let mut started = self.started();
        if started.unattended || started.without_scripts {
            return Ok(ProcessQueue::unattended("processes"));
        }
        if let Some(processes) = &started.processes {
            return Ok(processes.queue.clone());
        }
        let processes = process::start(self.observer.clone())?;
        Ok(started.processes.insert(processes).queue.clone())
    }

    /// The way to what runs scripts.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub fn scripts(&self) -> std::io::Result<ScriptQueue> {
        let mut started = self.started();
        if started.unattended || started.without_scripts {
            return Ok(ScriptQueue::unattended("scripts"));
        }
        if let Some((queue, _)) = &started.scripts {
            return Ok(queue.clone());
        }
        let change_mode = started.change_mode.take().unwrap_or_else(|| Box::new(|_| Err(Reason::Gone)));
        let (queue, thread) = script::start(change_mode, self.holders.clone(), self.observer.clone())?;
        self.releases.add(Arc::new(queue.clone()));
        started.scripts = Some((queue.clone(), thread));
        Ok(queue)
    }

    /// What the workers beside the outputs have done so far, by their names.
    pub fn counters(&self) -> Vec<(Arc<str>, Arc<WorkerCounters>)> {
        let started = self.started();
        let desktop = started.desktop.as_ref().map(|(queue, _)| (queue.name(), queue.counters()));
        let processes =
            started.processes.as_ref().map(|processes| (processes.queue.name(), processes.queue.counters()));
        let scripts = started.scripts.as_ref().map(|(queue, _)| (queue.name(), queue.counters()));
        let all = [desktop, processes, scripts].into_iter().flatten();
        all.map(|(name, counters)| (Arc::clone(name), Arc::clone(counters))).collect()
    }

    /// Ends all workers, scripts first, with what they have switched on. False when one hangs and has not
    /// ended at `deadline`.
    pub fn stop(&self, deadline: Instant) -> bool {
        let (desktop, processes, scripts) = {
            let mut started = self.started();
            (started.desktop.take(), started.processes.take(), started.scripts.take())
        };
        let mut all_ended = true;
        if let (variables, Some(kept)) = &*self.variables.lock() {
            kept.save(variables);
        }
        // What a script does last is to be undone by the others.
        if let Some((queue, thread)) = scripts {
            queue.stop();
            all_ended &= join_by(thread, deadline);
        }
        if let Some((queue, _)) = &desktop {
            queue.stop();
        }
        if let Some(processes) = &processes {
            processes.queue.stop();
            processes.stopping.cancel();
        }
        all_ended &= self.outputs.stop(deadline);
        let threads = [desktop.map(|(_, thread)| thread), processes.map(|processes| processes.thread)];
        for thread in threads.into_iter().flatten() {
            all_ended &= join_by(thread, deadline);
        }
        all_ended
    }
}
