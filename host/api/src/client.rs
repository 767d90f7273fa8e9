//! The client: asks the host that runs in a home. It has a method for each route.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::types::{
    ApprovalAnswer, AuditQuery, AuditRow, BeginConversation, Candidate, ConversationEvents, ForkConversation,
    GrantRequest, InForce, InstallRequest, Lifted, LockState, ModeBody, Modes, Mute, Muted, NextStep, PackageSource,
    Play, Played, Ports, Profiles, ProposePlan, ProposedModel, ProposedRemoval, Reloaded, RemoveRequest, RemovedView,
    Say, SecretSet, SetLock, SetSecret, StreamItem, StreamQuery, TurnBegun, Verdict,
};
use conductor_chat::conversations::ModelHealth;
use conductor_chat::listing::{AvailableModel, Endpoint};
use conductor_chat::model_setup::{ModelAccess, NewModel};
use conductor_chat::models::{ModelSummary, ProviderView};
use conductor_chat::record::Recorded;
use conductor_chat::store::usage::{UsageBy, UsageRow};
use conductor_chat::store::{ConversationQuery, ConversationView};
use conductor_config_text::mappings::Mappings;
use conductor_host::control::confirmation::Confirmation;
use conductor_host::control::gate::{ToolRequest, ToolResult, ToolView};
use conductor_host::control::plan::{Plan, PlanSummary};
use conductor_host::host::installer::InstallView;
use conductor_host::host::status::Status;
use conductor_host::host::{Applied, PlanView};
use conductor_install::receipt::FeatureInstallReport;
use conductor_observer::light::DeviceLights;
use conductor_observer::notification_log::{NotificationPage, NotificationQuery};
use conductor_package::Contributions;
use conductor_ports::status::BindingStatus;
use conductor_registry::{FeatureReport, TaskReport};
use conductor_rules::Overlaps;
use conductor_services::secret_store::Place;
use conductor_skills::view::{SkillFileText, SkillText, SkillView};

mod transport;

use transport::{block_on, segment, with_query};

/// How long a host may take to answer a question about its status.
const STATUS_TIMEOUT: Duration = Duration::from_secs(10);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// No host runs in this home.
    #[error("no host is running in {0}; start one with `conductor run`")]
    NotRunning(String),
    /// There is no door to it here.
    #[error("a running host can't be asked on this system yet")]
    NoDoor,
    /// It said no.
    #[error("{0}")]
    ApiError(String),
    /// A person has to agree first.
    #[error("a person has to agree to it: {} {}", .0.tool, .0.effect)]
    Confirm(Box<Confirmation>),
    /// It did not answer as it should.
    #[error("the host did not answer: {0}")]
    Failed(String),
}

fn failed(error: impl std::fmt::Display) -> AskError {
    AskError::Failed(error.to_string())
}

/// An answer for what can do without a host: `None` if none runs in the home.
///
/// # Errors
/// If one runs, and says no or does not answer as it should.
pub fn if_running<T>(answer: Result<T, AskError>) -> Result<Option<T>, AskError> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(AskError::NotRunning(_) | AskError::NoDoor) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The host that runs in a home, as its owner asks it over the socket there. Answers have the types that the host
/// makes them of, so that a program and the document of the API can't disagree.
///
/// It connects for each request, and blocks until the response has arrived.
#[derive(Debug, Clone)]
pub struct Client {
    home: PathBuf,
}

impl Client {
    /// A client of the host in `home`. Nothing is asked yet.
    pub fn new(home: &Path) -> Self {
        Self { home: home.to_owned() }
    }

    /// Returns what the host answers at `path`, for what has no method here.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, AskError> {
        block_on(transport::get(&self.home, path))
    }

    /// Posts `body` to `path`, for what has no method here.
    ///
    /// # Errors
    /// [`AskError::ApiError`] and [`AskError::Confirm`] if the host does not do it; else see [`AskError`].
    pub fn post<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T, AskError> {
        block_on(transport::post(&self.home, path, body))
    }

    /// How the host is. It has 10 s to answer.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn status(&self) -> Result<Status, AskError> {
        let asked = transport::get(&self.home, "/v1/status");
        let late = |_| failed(format!("nothing came within {} s", STATUS_TIMEOUT.as_secs()));
        block_on(async {
            tokio::time::timeout(STATUS_TIMEOUT, asked).await.unwrap_or_else(|elapsed| Err(late(elapsed)))
        })
    }

    /// The OpenAPI document of the host's own version.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn document(&self) -> Result<Value, AskError> {
        self.get("/v1/openapi.json")
    }

    /// Every port of every protocol, and its state.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn ports(&self) -> Result<Ports, AskError> {
        self.get("/v1/ports")
    }

    /// Every binding of the configuration, and its health.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn bindings(&self) -> Result<Vec<BindingStatus>, AskError> {
        self.get("/v1/bindings")
    }

    /// Stops hearing a device until the host ends, or hears it again. `device` is a binding's alias, or a port's own
    /// name.
    ///
    /// # Errors
    /// As [`post`](Self::post).
    pub fn mute(&self, device: &str, muted: bool) -> Result<Muted, AskError> {
        self.post("/v1/mute", &Mute { device: device.to_owned(), muted })
    }

    /// Has an event come from a device, as if its port had sent it. The event stream shows what fired.
    ///
    /// # Errors
    /// As [`post`](Self::post).
    pub fn play(&self, device: &str, event: &str) -> Result<Played, AskError> {
        self.post("/v1/play", &Play { device: device.to_owned(), event: event.to_owned() })
    }

    /// What the lights of each output show. The event stream says when that changes, once after each call.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn lights(&self) -> Result<Vec<DeviceLights>, AskError> {
        self.get("/v1/lights")
    }

    /// The modes there are, and the active one.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn modes(&self) -> Result<Modes, AskError> {
        self.get("/v1/modes")
    }

    /// Makes another mode active. The event stream says when it is.
    ///
    /// # Errors
    /// As [`post`](Self::post).
    pub fn switch_mode(&self, mode: &str) -> Result<ModeBody, AskError> {
        self.post("/v1/mode", &ModeBody { mode: mode.to_owned() })
    }

    /// Which mode applies for which application, and which one is in front.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn profiles(&self) -> Result<Profiles, AskError> {
        self.get("/v1/profiles")
    }

    /// The configuration in force, as its author wrote it.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn config(&self) -> Result<InForce, AskError> {
        self.get("/v1/config")
    }

    /// The mappings of the configuration's own file, as they are written.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn mappings(&self) -> Result<Mappings, AskError> {
        self.get("/v1/mappings")
    }

    /// Pairs of mappings that fire for some of the same events.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn overlaps(&self) -> Result<Overlaps, AskError> {
        self.get("/v1/overlaps")
    }

    /// Says what is wrong with a configuration. `None` is what the file says now.
    ///
    /// # Errors
    /// As [`post`](Self::post).
    pub fn validate_config(&self, text: Option<&str>) -> Result<Verdict, AskError> {
        self.post("/v1/config/validate", &Candidate { text: text.map(str::to_owned) })
    }

    /// Reads the configuration file, and what is installed, anew.
    ///
    /// # Errors
    /// As [`post`](Self::post).
    pub fn reload(&self) -> Result<Reloaded, AskError> {
        self.post("/v1/reload", &())
    }

    /// The plans that wait, oldest first.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn plans(&self) -> Result<Vec<PlanSummary>, AskError> {
        self.get("/v1/plans")
    }

    /// Proposes changes of the configuration, which wait as any plan does.
    ///
    /// # Errors
    /// As [`post`](Self::post).
    pub fn propose_plan(&self, plan: &ProposePlan) -> Result<Plan, AskError> {
        self.post("/v1/plans", plan)
    }

    /// A plan with its rehearsal, by its whole id.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn plan(&self, id: &str) -> Result<PlanView, AskError> {
        self.get(&format!("/v1/plans/{}", segment(id)))
    }

    /// Applies a plan that a person has agreed to.
    ///
    /// # Errors
    /// As [`post`](Self::post).
    pub fn apply_plan(&self, id: &str) -> Result<Applied, AskError> {
        self.post(&format!("/v1/plans/{}/apply", segment(id)), &())
    }

    /// Takes a plan off the list.
    ///
    /// # Errors
    /// As [`post`](Self::post).
    pub fn reject_plan(&self, id: &str) -> Result<(), AskError> {
        self.post(&format!("/v1/plans/{}/reject", segment(id)), &())
    }

    /// What [`undo`](Self::undo) would take back.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn next_undo(&self) -> Result<NextStep, AskError> {
        self.get("/v1/undo")
    }

    /// What [`redo`](Self::redo) would apply again.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn next_redo(&self) -> Result<NextStep, AskError> {
        self.get("/v1/redo")
    }

    /// Takes the last applied plan back.
    ///
    /// # Errors
    /// As [`post`](Self::post).
    pub fn undo(&self) -> Result<Applied, AskError> {
        self.post("/v1/undo", &())
    }

    /// Applies again what was undone last.
    ///
    /// # Errors
    /// As [`post`](Self::post).
    pub fn redo(&self) -> Result<Applied, AskError> {
        self.post("/v1/redo", &())
    }

    /// Every feature, installed or refused.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn features(&self) -> Result<Vec<FeatureReport>, AskError> {
        self.get("/v1/features")
    }

    /// Ends the quarantine (`conductor_sandbox::quarantine`) of a feature that runs.
    ///
    /// # Errors
    /// As [`post`](Self::post).
    pub fn lift_quarantine(&self, feature: &str) -> Result<Lifted, AskError> {
        self.post(&format!("/v1/features/{}/lift", segment(feature)), &())
    }

    /// Starts a background task of a feature that runs, or with `start` false has it end. Returns how it is then.
    ///
    /// # Errors
    /// As [`post`](Self::post).
    pub fn switch_task(&self, feature: &str, task: &str, start: bool) -> Result<TaskReport, AskError> {
        let what = if start { "start" } else { "stop" };
        self.post(&format!("/v1/features/{}/tasks/{}/{what}", segment(feature), segment(task)), &())
    }

    /// Every skill by its metadata.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn skills(&self) -> Result<Vec<SkillView>, AskError> {
        self.get("/v1/skills")
    }

    /// The skill of a name, with its text.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn skill(&self, name: &str) -> Result<SkillText, AskError> {
        self.get(&format!("/v1/skills/{}", segment(name)))
    }

    /// A file of a skill, by its path below the skill's folder.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn skill_file(&self, name: &str, path: &str) -> Result<SkillFileText, AskError> {
        self.get(&format!("/v1/skills/{}/file?path={}", segment(name), segment(path)))
    }

    /// Fetches a package, and says what it is and what it asks for. Nothing changes.
    ///
    /// # Errors
    /// As [`post`](Self::post).
    pub fn look_at_package(&self, package: &PackageSource) -> Result<InstallView, AskError> {
        self.post("/v1/install/look", package)
    }

    /// Installs or upgrades a feature, after trying it out beside all others. The request names the digest of the
    /// package that was [looked at](Self::look_at_package).
    ///
    /// # Errors
    /// As [`post`](Self::post).
    pub fn install(&self, request: &InstallRequest) -> Result<FeatureInstallReport, AskError> {
        self.post("/v1/install", request)
    }

    /// Goes back to the package before the last upgrade.
    ///
    /// # Errors
    /// As [`post`](Self::post).
    pub fn downgrade(&self, feature: &str) -> Result<FeatureInstallReport, AskError> {
        self.post(&format!("/v1/features/{}/downgrade", segment(feature)), &())
    }

    /// Lets a feature use more, after trying it out with that.
    ///
    /// # Errors
    /// As [`post`](Self::post).
    pub fn grant(&self, feature: &str, request: &GrantRequest) -> Result<FeatureInstallReport, AskError> {
        self.post(&format!("/v1/features/{}/grant", segment(feature)), request)
    }

    /// Lets a feature use less; nothing, if the list is empty.
    ///
    /// # Errors
    /// As [`post`](Self::post).
    pub fn revoke(&self, feature: &str, request: &GrantRequest) -> Result<FeatureInstallReport, AskError> {
        self.post(&format!("/v1/features/{}/revoke", segment(feature)), request)
    }

    /// Has hosts load a feature, after trying it out, or the contributions in `only` that were refused, if there are any.
    ///
    /// # Errors
    /// As [`post`](Self::post).
    pub fn enable(&self, feature: &str, only: &Contributions) -> Result<FeatureInstallReport, AskError> {
        self.post(&format!("/v1/features/{}/enable", segment(feature)), only)
    }

    /// Keeps a feature installed, but has no host load it, or refuses the contributions in `only`, if there are any.
    ///
    /// # Errors
    /// As [`post`](Self::post).
    pub fn disable(&self, feature: &str, only: &Contributions) -> Result<FeatureInstallReport, AskError> {
        self.post(&format!("/v1/features/{}/disable", segment(feature)), only)
    }

    /// Takes a feature out, and says what is left of it.
    ///
    /// # Errors
    /// As [`post`](Self::post).
    pub fn remove(&self, feature: &str, request: &RemoveRequest) -> Result<RemovedView, AskError> {
        self.post(&format!("/v1/features/{}/remove", segment(feature)), request)
    }

    /// What was installed and changed, oldest first; the last 200.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn receipts(&self) -> Result<Vec<FeatureInstallReport>, AskError> {
        self.get("/v1/receipts")
    }

    /// The ids of secrets, and where each is kept.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn secrets(&self) -> Result<BTreeMap<String, Place>, AskError> {
        self.get("/v1/secrets")
    }

    /// Keeps a secret, or says in which variable it is.
    ///
    /// # Errors
    /// As [`post`](Self::post).
    pub fn set_secret(&self, id: &str, secret: &SetSecret) -> Result<SecretSet, AskError> {
        self.post(&format!("/v1/secrets/{}", segment(id)), secret)
    }

    /// Forgets a secret.
    ///
    /// # Errors
    /// As [`post`](Self::post).
    pub fn remove_secret(&self, id: &str) -> Result<(), AskError> {
        self.post(&format!("/v1/secrets/{}/remove", segment(id)), &())
    }

    /// The notifications of features that are kept. Of `max_bytes` of the query the host knows nothing: a page has
    /// what fits into 2 MiB.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn notifications(&self, query: &NotificationQuery) -> Result<NotificationPage, AskError> {
        let NotificationQuery { after, limit, feature, order, .. } = query;
        let feature = feature.as_deref().map(|feature| format!("&feature={}", segment(feature))).unwrap_or_default();
        self.get(&format!("/v1/notifications?after={after}&limit={limit}&order={}{feature}", order.as_str()))
    }

    /// The tools that may be called.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn tools(&self) -> Result<Vec<ToolView>, AskError> {
        self.get("/v1/tools")
    }

    /// Calls a tool.
    ///
    /// # Errors
    /// As [`post`](Self::post).
    pub fn call_tool(&self, name: &str, request: &ToolRequest) -> Result<ToolResult, AskError> {
        self.post(&format!("/v1/tools/{}", segment(name)), request)
    }

    /// Calls the tool behind a route that a feature declares: its arguments in, its result out.
    ///
    /// # Errors
    /// As [`post`](Self::post).
    pub fn call_route(&self, feature: &str, route: &str, args: &Map<String, Value>) -> Result<Value, AskError> {
        self.post(&format!("/v1/{}/{}", segment(feature), segment(route)), args)
    }

    /// The models of the configuration.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn models(&self) -> Result<Vec<ModelSummary>, AskError> {
        self.get("/v1/models")
    }

    /// Asks a model for a word, to see whether it answers.
    ///
    /// # Errors
    /// As [`post`](Self::post).
    pub fn check_model(&self, name: &str) -> Result<ModelHealth, AskError> {
        self.post(&format!("/v1/models/{}/check", segment(name)), &())
    }

    /// The providers of models, and where their APIs are.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn providers(&self) -> Result<Vec<ProviderView>, AskError> {
        self.get("/v1/providers")
    }

    /// Asks the API of a provider which models there are.
    ///
    /// # Errors
    /// As [`post`](Self::post).
    pub fn available_models(&self, provider: &str, at: &Endpoint) -> Result<Vec<AvailableModel>, AskError> {
        self.post(&format!("/v1/providers/{}/models", segment(provider)), at)
    }

    /// What requests to the API of a provider take, and what of it its feature has not been granted.
    ///
    /// # Errors
    /// As [`post`](Self::post).
    pub fn model_access(&self, provider: &str, at: &Endpoint) -> Result<ModelAccess, AskError> {
        self.post(&format!("/v1/providers/{}/access", segment(provider)), at)
    }

    /// Proposes to add a model, as a plan.
    ///
    /// # Errors
    /// As [`post`](Self::post).
    pub fn propose_model(&self, new: &NewModel) -> Result<ProposedModel, AskError> {
        self.post("/v1/models", new)
    }

    /// Proposes to remove a model, as a plan, and says what no other model needs then.
    ///
    /// # Errors
    /// As [`post`](Self::post).
    pub fn propose_model_removal(&self, name: &str) -> Result<ProposedRemoval, AskError> {
        self.post(&format!("/v1/models/{}/remove", segment(name)), &())
    }

    /// What conversations took and cost.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn usage(&self, by: UsageBy) -> Result<Vec<UsageRow>, AskError> {
        self.get(&with_query("/v1/usage", &[("by", Some(by.as_str().to_owned()))]))
    }

    /// Conversations, the last changed first; of a search the best match first.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn conversations(&self, query: &ConversationQuery) -> Result<Vec<ConversationView>, AskError> {
        let ConversationQuery { limit, search } = query.clone();
        let parts = [("limit", limit.map(|limit| limit.to_string())), ("search", search)];
        self.get(&with_query("/v1/conversations", &parts))
    }

    /// Begins a conversation.
    ///
    /// # Errors
    /// As [`post`](Self::post).
    pub fn begin_conversation(&self, model: Option<&str>) -> Result<ConversationView, AskError> {
        self.post("/v1/conversations", &BeginConversation { model: model.map(str::to_owned) })
    }

    /// A conversation, without what was said.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn conversation(&self, id: u64) -> Result<ConversationView, AskError> {
        self.get(&format!("/v1/conversations/{id}"))
    }

    /// Calls `each` with what happened in a conversation, and with `follow` what happens, until it returns false, the
    /// end is reached or the host stops.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn conversation_events(
        &self,
        id: u64,
        which: &ConversationEvents,
        each: impl FnMut(Recorded) -> bool,
    ) -> Result<(), AskError> {
        let ConversationEvents { after, follow } = which;
        let path = format!("/v1/conversations/{id}/events?after={after}&follow={follow}");
        transport::lines(&self.home, &path, each)
    }

    /// Says something, and has a model answer. The events of the turn come after the number that is returned.
    ///
    /// # Errors
    /// As [`post`](Self::post).
    pub fn say(&self, id: u64, say: &Say) -> Result<TurnBegun, AskError> {
        self.post(&format!("/v1/conversations/{id}/turns"), say)
    }

    /// Ends the turn that is under way.
    ///
    /// # Errors
    /// As [`post`](Self::post).
    pub fn cancel_turn(&self, id: u64) -> Result<(), AskError> {
        self.post(&format!("/v1/conversations/{id}/cancel"), &())
    }

    /// A person's answer to what a call waits for.
    ///
    /// # Errors
    /// As [`post`](Self::post).
    pub fn approve(&self, id: u64, answer: &ApprovalAnswer) -> Result<(), AskError> {
        self.post(&format!("/v1/conversations/{id}/approve"), answer)
    }

    /// Begins a conversation with what was said in another one, up to the event of this number.
    ///
    /// # Errors
    /// As [`post`](Self::post).
    pub fn fork_conversation(&self, id: u64, through: Option<u64>) -> Result<ConversationView, AskError> {
        self.post(&format!("/v1/conversations/{id}/fork"), &ForkConversation { through })
    }

    /// Deletes a conversation. What it cost is kept.
    ///
    /// # Errors
    /// As [`post`](Self::post).
    pub fn delete_conversation(&self, id: u64) -> Result<(), AskError> {
        self.post(&format!("/v1/conversations/{id}/delete"), &())
    }

    /// Whether the show is locked.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn lock(&self) -> Result<LockState, AskError> {
        self.get("/v1/lock")
    }

    /// Locks the show, or unlocks it.
    ///
    /// # Errors
    /// As [`post`](Self::post).
    pub fn set_lock(&self, lock: SetLock) -> Result<LockState, AskError> {
        self.post("/v1/lock", &lock)
    }

    /// Calls `each` with what happens in the host, until it returns false or the host stops.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn events(&self, which: &StreamQuery, each: impl FnMut(StreamItem) -> bool) -> Result<(), AskError> {
        let StreamQuery { after, kinds } = which.clone();
        let path = with_query("/v1/events", &[("after", after), ("kinds", kinds)]);
        transport::lines(&self.home, &path, each)
    }

    /// Entries of the audit log, oldest first.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn audit(&self, which: AuditQuery) -> Result<Vec<AuditRow>, AskError> {
        let AuditQuery { after, limit } = which;
        let parts = [("after", after.map(|after| after.to_string())), ("limit", limit.map(|limit| limit.to_string()))];
        self.get(&with_query("/v1/audit", &parts))
    }
}
