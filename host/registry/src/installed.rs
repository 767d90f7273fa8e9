//! One installed feature: its instances, background tasks and hooks.

use parking_lot::{Mutex, MutexGuard};
use std::path::Path;
use std::sync::Arc;

use crate::{FeatureSource, Identity};
use conductor_dispatch::event_hook::EventHook;
use conductor_dispatch::feature_queue::FeatureQueue;
use conductor_observer::Observed;
use conductor_package::Descriptor;
use conductor_package::descriptor::{HookPoint, TaskDeclaration, TaskStart};
use conductor_sandbox::actor::Actor;
use conductor_sandbox::migration::Migrated;
use conductor_sandbox::state::FeatureFacts;
use conductor_sandbox::task::Task;
use conductor_sandbox::{PreparedFeature, RegisteredAction};
use conductor_stdx::plain_file::{self, FileIdentity};
use tokio_util::sync::CancellationToken;

/// An installed feature. Dropping the last one takes its grants back and ends all that it does.
#[derive(Debug)]
pub(super) struct Installed {
    pub(super) source: FeatureSource,
    /// The file that its package was read from, where that can be known again.
    pub(super) file: Option<FileIdentity>,
    pub(super) size: usize,
    pub(super) facts: Arc<FeatureFacts>,
    pub(super) prepared: PreparedFeature,
    /// Where it contributes actions.
    pub(super) actions: Option<Actions>,
    /// Where it contributes anything to the control lane.
    pub(super) actor: Option<Actor>,
    /// The way to its hooks alone, where it has tools, too: other features' calls must not wait
    /// for as long as one of its own tools takes.
    pub(super) hooks: Option<Actor>,
    /// What runs in the background, from when the registry is in force.
    pub(super) background: Mutex<Option<Background>>,
    /// What it has made of its data, until the registry is in force. If that never is, the data before comes back.
    pub(super) migrated: Mutex<Option<Migrated>>,
}

#[derive(Debug)]
pub(super) struct Actions {
    pub(super) registered: Vec<RegisteredAction>,
    pub(super) queue: FeatureQueue,
}

#[derive(Debug)]
pub(super) struct Background {
    pub(super) tasks: Vec<Task>,
    pub(super) events: Option<EventHook>,
}

impl Drop for Installed {
    fn drop(&mut self) {
        let ended = self.stop_tasks();
        if ended.iter().all(CancellationToken::is_cancelled) {
            return self.end();
        }
        // What replaces it has what it was granted, so its tasks may finish.
        let facts = Arc::clone(&self.facts);
        self.prepared.runtime().spawn(async move {
            for task in ended {
                task.cancelled().await;
            }
            facts.revoke();
        });
        if let Some(actions) = &self.actions {
            actions.queue.abandon();
        }
    }
}

impl Installed {
    /// Takes its grants back, also in the middle of a call, and ends all that it does.
    pub(super) fn end(&self) {
        self.facts.revoke();
        drop(self.background().take());
        if let Some(actions) = &self.actions {
            actions.queue.abandon();
        }
    }

    /// Stops its tasks and its hook on events. Returns tokens that are cancelled when the tasks have ended, which takes
    /// no longer than their own timeouts.
    pub(super) fn stop_tasks(&self) -> Vec<CancellationToken> {
        let background = self.background().take();
        background.iter().flat_map(|background| &background.tasks).map(Task::ended).collect()
    }

    /// Whether the file at `path` is the one that its package was read from, and was not written since.
    pub(super) fn is_of_file_at(&self, path: &Path) -> bool {
        let found = || FileIdentity::of(&plain_file::open(path).ok()?).ok().flatten();
        self.file.is_some() && self.file == found()
    }

    pub(super) fn descriptor(&self) -> &Descriptor {
        &self.facts.descriptor
    }

    /// Whether `sources` has it not any more, or has it with less granted or more refused.
    pub(super) fn lost_something<'s>(&self, mut sources: impl Iterator<Item = &'s FeatureSource>) -> bool {
        let Some(still) = sources.find(|source| source.name == self.source.name) else { return true };
        let Identity { id, digest } = self.identity();
        let (had, has) = (self.source.grants_for(&id, &digest), still.grants_for(&id, &digest));
        has.clone().union(&had) != has || !self.source.refused.includes(&still.refused)
    }

    pub(super) fn identity(&self) -> Identity {
        Identity { id: self.descriptor().id.clone(), digest: self.facts.digest.clone() }
    }

    pub(super) fn background(&self) -> MutexGuard<'_, Option<Background>> {
        self.background.lock()
    }

    /// Starts what runs in the background, once.
    pub(super) fn begin(&self, observed: &Observed) {
        if let Some(migrated) = self.migrated.lock().take() {
            migrated.confirm();
        }
        let mut background = self.background();
        if background.is_some() {
            return;
        }
        let descriptor = self.descriptor();
        // All are there before the first one runs, which may start others.
        let tasks: Vec<Task> =
            descriptor.tasks.iter().map(|declared| Task::new(self.prepared.clone(), declared)).collect();
        let with_feature = |declared: &TaskDeclaration| declared.start == TaskStart::WithFeature;
        for (task, _) in tasks.iter().zip(&descriptor.tasks).filter(|(_, declared)| with_feature(declared)) {
            // It has not run before, so it is not ending.
            let _ = task.run();
        }
        let hook = || match EventHook::start(self.prepared.clone(), observed) {
            Ok(hook) => Some(hook),
            Err(error) => {
                tracing::error!(feature = %descriptor.id, "its hook on events can't start: {error}");
                None
            }
        };
        let events = if descriptor.hooks_at(HookPoint::Events) { hook() } else { None };
        *background = Some(Background { tasks, events });
    }

    /// Has its instance in the control lane take over the state of the one `before`, if both do so and work with the
    /// same data: then they are of one feature and owner. To be called before the first call.
    pub(super) fn take_over(&self, before: &Arc<Self>) {
        let hands_over = self.descriptor().state_handover && before.descriptor().state_handover;
        if let (Some(actor), Some(from)) = (&self.actor, &before.actor)
            && hands_over
            && self.facts.data == before.facts.data
        {
            actor.take_over(from.clone(), Box::new(Arc::clone(before)));
        }
    }

    /// Its contributions as kind and name.
    pub(super) fn contributes(descriptor: &Descriptor) -> impl Iterator<Item = (&'static str, &String)> {
        let actions = descriptor.actions.iter().map(|action| ("action", &action.name));
        let tools = descriptor.tools.iter().map(|tool| ("tool", &tool.name));
        let providers = descriptor.providers.iter().map(|provider| ("provider", &provider.name));
        let skills = descriptor.skills.iter().map(|skill| ("skill", &skill.name));
        actions.chain(tools).chain(providers).chain(skills)
    }
}
