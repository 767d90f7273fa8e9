//! Handles that guests hold, one type a resource of the contract: each keeps its scope, and nothing of the instance that
//! it is in. What can be done with one is in the file of [`host_functions`](crate::host_functions) with its interface.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::datagrams::DatagramSender;
use crate::limits;
use conductor_audit::caller::Caller;
use conductor_call_args::Named;
use conductor_services::error::ServiceError;
use conductor_services::files::GrantedFolder;
use conductor_services::git;
use conductor_services::http::HttpScope;
use conductor_services::programs::Outcome;
use conductor_services::store::StoreHandle;
use conductor_stdx::rate::RateLimiter;

/// The installation that is under way. In the handle table for the length of `install` only.
#[derive(Debug)]
pub struct Context;

/// The registrar for actions.
#[derive(Debug)]
pub struct ActionRegistrar;
/// The registrar for tools.
#[derive(Debug)]
pub struct ToolRegistrar;
/// The registrar for hooks.
#[derive(Debug)]
pub struct HookRegistrar;
/// The registrar for background tasks.
#[derive(Debug)]
pub struct TaskRegistrar;
/// The registrar for providers.
#[derive(Debug)]
pub struct ProviderRegistrar;
/// The registrar for hooks around what models are asked.
#[derive(Debug)]
pub struct ChatHookRegistrar;
/// The registrar for skills.
#[derive(Debug)]
pub struct SkillRegistrar;

/// The guest's handle to the log.
#[derive(Debug)]
pub struct DiagnosticSink;
/// The guest's handle to the person.
#[derive(Debug)]
pub struct AlertSink;
/// The guest's handle to the notification log.
#[derive(Debug)]
pub struct NotificationSink;

/// A grant to send datagrams, for one purpose.
#[derive(Debug)]
pub struct Network {
    pub(crate) purpose: String,
    pub(crate) revoked: Arc<AtomicBool>,
}

/// One target of a grant.
#[derive(Debug)]
pub struct Target {
    pub(crate) name: String,
    pub(crate) sender: Box<dyn DatagramSender>,
    pub(crate) revoked: Arc<AtomicBool>,
}

/// The guest's handle to the hosts of one grant.
#[derive(Debug)]
pub struct Client {
    pub(crate) scope: Arc<HttpScope>,
}

/// The guest's handle to its store.
#[derive(Debug)]
pub struct Table {
    /// `None` in the real-time lane.
    pub(crate) store: Option<Arc<StoreHandle>>,
}

impl Table {
    /// A handle to lend for a call.
    pub(crate) fn lent(store: StoreHandle) -> Self {
        Self { store: Some(Arc::new(store)) }
    }
}

/// The guest's handle to a folder.
#[derive(Debug)]
pub struct Folder {
    /// None in the real-time lane.
    pub(crate) folder: Option<GrantedFolder>,
}

/// The guest's handle to a repository.
#[derive(Debug)]
pub struct Repository {
    /// None in the real-time lane.
    pub(crate) repository: Option<git::Repository>,
}

/// The guest's handle to a commit.
#[derive(Debug)]
pub struct Snapshot(pub(crate) git::Snapshot);

/// The guest's handle to the programs of its grant.
#[derive(Debug)]
pub struct ProgramAccess;

/// The guest's handle to a program that was started. Dropping it ends the task, and with it the program.
#[derive(Debug)]
pub struct Process {
    /// `None` once it was waited for.
    pub(crate) task: Option<AbortOnDropHandle<Result<Outcome, ServiceError>>>,
}

/// The guest's handle to one output.
#[derive(Debug)]
pub struct Output {
    pub(crate) binding: String,
    pub(crate) sysex: bool,
}

/// The guest's handle to look.
#[derive(Debug)]
pub struct Reader {
    /// Within a tool call everything may be read.
    pub(crate) in_call: bool,
}

/// The guest's handle to propose.
#[derive(Debug, Clone, Default)]
pub struct Planner {
    /// Whether what is proposed by it needs more than a yes.
    pub(crate) privileged: bool,
    /// Who called the tool that it was lent to; `None` if the feature proposes by itself.
    pub(crate) caller: Option<Caller>,
    pub(crate) proposed: PlanIds,
}

impl Planner {
    /// A handle for the length of one call, which notes in `proposed` what is proposed with it.
    pub(crate) fn for_call(caller: Caller, privileged: bool, proposed: PlanIds) -> Self {
        Self { privileged, caller: Some(caller), proposed }
    }
}

/// The ids of the plans that were proposed with one handle, in order. Clones share them, so that the host still has
/// them when the guest's handle is gone.
#[derive(Debug, Clone, Default)]
pub(crate) struct PlanIds(Arc<Mutex<Vec<String>>>);

impl PlanIds {
    pub(crate) fn push(&self, id: String) {
        self.0.lock().push(id);
    }

    /// All so far, which are not kept any longer.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock())
    }
}

/// The guest's handle to what holds until the host stops, for one call.
#[derive(Debug)]
pub struct Controls {
    /// Whether the owner of this host called the tool that they are lent to.
    pub(crate) by_owner: bool,
}

/// The guest's handle to devices, for one call that a person confirmed: it reaches the devices, and sends the bytes, that
/// the call's arguments name, because these are what the person was shown.
#[derive(Debug)]
pub struct HardwareAccess(pub(crate) Named);

/// The guest's handle to what is privileged, for one call that a person confirmed, or for one of a tool that only
/// proposes.
#[derive(Debug)]
pub struct Authority {
    /// Whether a person confirmed this call.
    pub(crate) is_confirmed: bool,
}

/// Called with how far a call is: 0.0-1.0, and a few words.
pub type OnProgress = Arc<dyn Fn(f32, String) + Send + Sync>;

/// The guest's handle to its call.
pub struct Invocation {
    pub(crate) cancelled: CancellationToken,
    pub(crate) progress: OnProgress,
    pub(crate) rate: RateLimiter,
}

impl fmt::Debug for Invocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Invocation").field("cancelled", &self.cancelled.is_cancelled()).finish_non_exhaustive()
    }
}

impl Invocation {
    /// For a call that `cancelled` ends.
    pub fn new(cancelled: CancellationToken, progress: OnProgress) -> Self {
        Self { cancelled, progress, rate: RateLimiter::new(limits::PROGRESS_RATE, limits::PROGRESS_RATE) }
    }
}

/// The guest's handle to its run.
#[derive(Debug)]
pub struct Run {
    /// Cancelled when it should end.
    pub(crate) ending: CancellationToken,
}

/// The guest's handle to the models of its grant.
#[derive(Debug)]
pub struct ModelAccess;

/// The guest's handle to its timers.
#[derive(Debug)]
pub struct Scheduler;

/// The guest's handle to its tasks.
#[derive(Debug)]
pub struct Controller;
