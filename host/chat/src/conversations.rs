//! The conversations of one host: turns under way, and what people say to them.
//!
//! A turn works on threads of this alone, for as long as it takes; its client may leave. A client that follows one
//! reads its events from the store, so that nothing is shown that is not kept, and waits for the number of the last one to
//! grow.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

pub use crate::approvals::ApprovalError;
use crate::approvals::Approvals;
use crate::budget::Budget;
use crate::context::open_plans;
use crate::models::{Exchange, FeatureUsage, SWITCHED_OFF};
use crate::record::{ChatEvent, PlanOutcome};
use crate::running::{Listed, Place, Running, STOP_TIMEOUT};
use crate::store::usage::{Used, UsedBy};
use crate::store::{ConversationStore, ConversationView, StoreError};
use crate::tools::{self, Tools};
use crate::turn::{Shared, Turn};
pub use crate::watch::ChatUpdate;
use crate::watch::Watch;
use crate::{Message, Parameters, Part, Question, Speaker, ToolChoice};
use conductor_sandbox::bindings::Error;
use conductor_scheduling::background_thread;
use conductor_services::error::ServiceError;
use conductor_terminal::excerpt;

/// Turns at once.
pub const MAX_TURNS: usize = 128;
/// Bytes of what a person says at once.
pub const MAX_MESSAGE: usize = 256 * 1024;
/// Bytes of the name of a model that there is not, as errors have it.
const MAX_SHOWN_NAME: usize = 64;
/// Threads that turns work on.
const WORKERS: usize = 2;
/// Threads that wait for the disk.
const DISK_THREADS: usize = 4;

/// Why a turn was not started or changed.
#[derive(Debug, thiserror::Error)]
pub enum TurnError {
    /// One is under way.
    #[error("a turn of the conversation {0} is under way; wait for its end, or cancel it")]
    Busy(u64),
    /// None is.
    #[error("no turn of the conversation {0} is under way")]
    Idle(u64),
    /// There is no room.
    #[error("{MAX_TURNS} turns are under way; try again when one has ended")]
    TooMany,
    /// There is nothing to say, or too much.
    #[error("a message has 1 to {MAX_MESSAGE} bytes, not {0}")]
    Length(usize),
    /// There is no such model.
    #[error("there is no model {name:?} that can be asked; there are: {known}")]
    Model {
        /// What was named.
        name: String,
        /// Those there are.
        known: String,
    },
    /// Models are switched off.
    #[error("{SWITCHED_OFF}")]
    Off,
    /// The host is stopping.
    #[error("the host is stopping")]
    Stopping,
    /// The conversation can't be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a model gave no answer, for clients other than the owner's: what its API says of it may repeat what was asked.
pub const NO_ANSWER: &str = "it gave no answer; the owner is shown why";

/// How a model is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModelHealth {
    /// Its name under `[models]`.
    pub model: String,
    /// Why it gave no answer. `None` if it gave one.
    pub error: Option<String>,
    /// How long that took, in milliseconds.
    pub took_ms: u64,
}

/// The conversations of one home. Dropping it ends the turns that are under way.
#[derive(Debug)]
pub struct Conversations {
    store: Arc<ConversationStore>,
    tools: Arc<dyn Tools>,
    approvals: Arc<Approvals>,
    budget: Arc<Budget>,
    running: Arc<Running>,
    followed: Mutex<HashMap<u64, watch::Sender<u64>>>,
    watch: Arc<Watch>,
    /// `None` once it is dropped.
    runtime: Option<Runtime>,
}

impl Conversations {
    /// The conversations in `home`, with the host's tools. Turns that were cut off are closed.
    ///
    /// # Errors
    /// [`StoreError`], and where the system has no thread left.
    pub fn open(home: &Path, tools: Arc<dyn Tools>) -> Result<Self, StoreError> {
        Ok(Self::with(ConversationStore::open(home)?, tools))
    }

    /// Conversations that are forgotten when this is dropped.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn in_memory(tools: Arc<dyn Tools>) -> Result<Self, StoreError> {
        Ok(Self::with(ConversationStore::in_memory()?, tools))
    }

    fn with(store: ConversationStore, tools: Arc<dyn Tools>) -> Self {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(WORKERS).max_blocking_threads(DISK_THREADS).thread_name("chat");
        let runtime = runtime
            .on_thread_start(background_thread)
            .enable_time()
            .build()
            .inspect_err(|error| tracing::error!("no turn can be run: {error}"))
            .ok();
        Self {
            store: Arc::new(store),
            tools,
            approvals: Arc::default(),
            budget: Arc::default(),
            running: Arc::default(),
            followed: Mutex::default(),
            watch: Arc::default(),
            runtime,
        }
    }

    /// Calls `listener` for everything that happens in conversations, after it is kept, and for models that begin or cease to
    /// answer. It must not wait. The first one stays.
    pub fn watch(&self, listener: impl Fn(ChatUpdate<'_>) + Send + Sync + 'static) {
        self.watch.set(listener);
    }

    /// Has what features' exchanges with these models take kept beside that of conversations.
    pub fn keep_usage_of(&self, models: &crate::Models) {
        let Some(runtime) = self.runtime.as_ref().map(|runtime| runtime.handle().clone()) else { return };
        let store = Arc::downgrade(&self.store);
        models.keep_usage(move |used: FeatureUsage| {
            let store = store.clone();
            runtime.spawn_blocking(move || {
                let Some(store) = store.upgrade() else { return };
                let FeatureUsage { feature, model, provider, charge } = &used;
                let used = Used { by: UsedBy::Feature(feature), model, provider, charge };
                if let Err(error) = store.append_usage(&used) {
                    tracing::warn!("what a feature's exchange took can't be kept: {error}");
                }
            });
        });
    }

    /// How each model was when it was asked last.
    pub fn health(&self) -> BTreeMap<String, Option<String>> {
        self.watch.all()
    }

    /// What is kept.
    pub fn store(&self) -> &ConversationStore {
        &self.store
    }

    /// The models in force. `None` if the host is stopping.
    pub fn models(&self) -> Option<Arc<crate::Models>> {
        self.tools.models()
    }

    /// Begins a conversation with a model, or the default one.
    ///
    /// # Errors
    /// [`TurnError::Model`], [`TurnError::Stopping`], [`TurnError::Store`].
    pub fn begin(&self, model: Option<&str>) -> Result<ConversationView, TurnError> {
        if let Some(name) = model {
            let models = self.tools.models().ok_or(TurnError::Stopping)?;
            check_model(&models, name)?;
        }
        Ok(self.store.begin(model)?)
    }

    /// Says something in a conversation, and has a turn begin; from now on with another model, if one is named. Returns
    /// the number of the event before the turn's first.
    ///
    /// # Errors
    /// See [`TurnError`]; then nothing is kept.
    pub fn say(&self, id: u64, text: &str, model: Option<&str>) -> Result<u64, TurnError> {
        if text.is_empty() || text.len() > MAX_MESSAGE {
            return Err(TurnError::Length(text.len()));
        }
        let runtime = self.runtime.as_ref().ok_or(TurnError::Stopping)?;
        let models = self.tools.models().ok_or(TurnError::Stopping)?;
        if !models.is_enabled() {
            return Err(TurnError::Off);
        }
        if let Some(name) = model {
            check_model(&models, name)?;
        }
        let before = self.store.view(id)?;
        let cancelled = CancellationToken::new();
        {
            let mut turns = self.running.settled(id);
            if self.running.is_stopped.load(Ordering::Acquire) {
                return Err(TurnError::Stopping);
            }
            if turns.contains_key(&id) {
                return Err(TurnError::Busy(id));
            }
            if turns.len() >= MAX_TURNS {
                return Err(TurnError::TooMany);
            }
            turns.insert(id, Place { cancelled: cancelled.clone(), ends: false });
        }
        let listed = Listed(Arc::clone(&self.running), id);
        if let Some(model) = model {
            self.store.set_model(id, model)?;
        }
        // Plans that were decided while no host ran, or by a way that says nothing.
        let kept = self.store.all_events(id)?;
        let gone = open_plans(&kept).filter(|plan| self.tools.plan_description(plan).is_none());
        let outcome = PlanOutcome::Gone;
        let mut events: Vec<ChatEvent> =
            gone.map(|plan| ChatEvent::PlanDecided { plan: plan.to_owned(), outcome }).collect();
        events.push(ChatEvent::Message { text: text.to_owned() });
        let last = self.sender(id);
        let kept = self.store.append(id, &events)?;
        if let Some(kept) = kept.last() {
            last.send_replace(kept.number);
        }
        self.watch.happened(id, &kept);
        let shared = Arc::new(Shared {
            store: Arc::clone(&self.store),
            tools: Arc::clone(&self.tools),
            approvals: Arc::clone(&self.approvals),
            budget: Arc::clone(&self.budget),
            conversation: id,
            cancelled,
            running: Arc::clone(&self.running),
            last,
            watch: Arc::clone(&self.watch),
            waits: Arc::default(),
            is_over: Mutex::default(),
        });
        let model = model.map(str::to_owned).or(before.model);
        runtime.spawn(async move {
            let _listed = listed;
            Turn::run(shared, model).await;
        });
        Ok(before.last)
    }

    /// Ends the turn that is under way.
    ///
    /// # Errors
    /// [`TurnError::Idle`].
    pub fn cancel(&self, id: u64) -> Result<(), TurnError> {
        match self.running.turns.lock().get(&id) {
            Some(place) if !place.ends => {
                place.cancelled.cancel();
                Ok(())
            }
            _ => Err(TurnError::Idle(id)),
        }
    }

    /// Whether a turn is under way.
    pub fn is_running(&self, id: u64) -> bool {
        self.running.turns.lock().get(&id).is_some_and(|place| !place.ends)
    }

    /// A person's answer to an approval that waits in this conversation. To be called for persons alone.
    ///
    /// # Errors
    /// See [`ApprovalError`].
    pub fn approve(&self, id: u64, approval: &str, agreed: bool, phrase: Option<&str>) -> Result<(), ApprovalError> {
        self.approvals.decide(id, approval, agreed, phrase)
    }

    /// Deletes a conversation without a turn under way. What it cost is kept.
    ///
    /// # Errors
    /// See [`TurnError`].
    pub fn delete(&self, id: u64) -> Result<(), TurnError> {
        {
            let turns = self.running.settled(id);
            if turns.contains_key(&id) {
                return Err(TurnError::Busy(id));
            }
            self.store.delete(id)?;
        }
        // Whatever follows it looks once more, and finds that there is nothing.
        if let Some(last) = self.followed.lock().get(&id) {
            last.send_modify(|_| ());
        }
        Ok(())
    }

    /// Keeps the outcome of a plan in the conversation that it was proposed in, so that the model gets it with the next
    /// message. Plans of others are ignored.
    pub fn plan_decided(&self, plan: &str, outcome: PlanOutcome) {
        let keep = || {
            let Some(id) = self.store.of_plan(plan)? else { return Ok(()) };
            let kept = self.store.append(id, &[ChatEvent::PlanDecided { plan: plan.to_owned(), outcome }])?;
            if let Some(kept) = kept.last() {
                self.sender(id).send_replace(kept.number);
            }
            self.watch.happened(id, &kept);
            Ok::<_, StoreError>(())
        };
        if let Err(error) = keep() {
            tracing::warn!("the outcome of a plan can't be kept: {error}");
        }
    }

    /// The number of the last event of a conversation, as it grows.
    pub fn follow(&self, id: u64) -> watch::Receiver<u64> {
        self.sender(id).subscribe()
    }

    fn sender(&self, id: u64) -> watch::Sender<u64> {
        let mut all = self.followed.lock();
        // This one, and those of turns, which have a clone.
        let turns = self.running.turns.lock();
        all.retain(|other, sender| *other == id || sender.receiver_count() > 0 || turns.contains_key(other));
        all.entry(id).or_insert_with(|| watch::Sender::new(0)).clone()
    }

    /// Cancels all turns, and waits until they have ended on the disk, two seconds at most. No other turn begins.
    pub fn stop(&self) {
        let mut turns = self.running.turns.lock();
        self.running.is_stopped.store(true, Ordering::Release);
        turns.values().for_each(|place| place.cancelled.cancel());
        let deadline = Instant::now() + STOP_TIMEOUT;
        while !turns.is_empty() && !self.running.ended.wait_until(&mut turns, deadline).timed_out() {}
    }

    /// Health check: asks a model for a word, to see whether it answers. It is in the audit log, and in no
    /// conversation's usage.
    pub async fn check(&self, model: &str) -> ModelHealth {
        let began = Instant::now();
        let error = match self.tools.models() {
            Some(models) => asked(&models, model).await.err().map(|error| ServiceError::from(error).to_string()),
            None => Some("the host is stopping".to_owned()),
        };
        self.watch.health(model, error.as_deref());
        let took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        ModelHealth { model: model.to_owned(), error, took_ms }
    }
}

/// # Errors
/// [`TurnError::Model`].
fn check_model(models: &crate::Models, name: &str) -> Result<(), TurnError> {
    if models.configured().contains_key(name) {
        return Ok(());
    }
    Err(TurnError::Model { name: excerpt(name, MAX_SHOWN_NAME), known: models.in_order(None).join(", ") })
}

/// Has a model say a word.
async fn asked(models: &crate::Models, model: &str) -> Result<(), Error> {
    let max_tokens = Some(256);
    let how = Parameters { max_tokens, temperature: None, top_p: None, stop: Vec::new(), schema: None, effort: None };
    let parts = vec![Part::Text("Answer with the word: ok".to_owned())];
    let messages = vec![Message { speaker: Speaker::User, parts }];
    let instructions = String::new();
    let question = Question { instructions, messages, tools: Vec::new(), choice: ToolChoice::Auto, how };
    let (caller, cancelled) = (tools::caller(0), CancellationToken::new());
    let mut exchange: Exchange<'_> = models.begin(&caller, "models check", model, question, cancelled).await?;
    while exchange.next().await.is_some() {}
    exchange.end().await?;
    Ok(())
}

impl Drop for Conversations {
    fn drop(&mut self) {
        self.stop();
        if let Some(runtime) = self.runtime.take() {
            // A turn that did not end says so when the store is opened the next time.
            runtime.shutdown_background();
        }
    }
}
