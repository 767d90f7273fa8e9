//! A turn of a conversation: the agent loop, with failover to the next model.
//!
//! ```text
//! ask ─▶ a model answers ─▶ no calls: the end
//!  ▲ └─▶ it fails: the next model is asked     └─▶ calls ─▶ the gate, several at once ─▶ results ─┐
//!  └────────────────────────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! Everything that happens is kept first and shown then. The turn ends when the model has said it all, and otherwise at a
//! limit: of questions, time, tokens, money, or of the same call with the same result. Cancelling ends it at any moment. A
//! call that a person has to agree to waits for that; time does not go by meanwhile.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::approvals::Approvals;
use crate::budget::{Admission, Budget, Candidate, Reservation};
use crate::charge::{self, Taken};
use crate::context::{self, READ_SKILL};
use crate::costs::{BudgetError, Spent};
use crate::fence;
use crate::models::{Exchange, Exchanged, summary};
use crate::pieces::Pieces;
use crate::record::{ChatEvent, Outcome, Recorded, Tokens};
use crate::running::Running;
use crate::store::usage::{Used, UsedBy};
use crate::store::{ConversationStore, MAX_PAGE, StoreError};
use crate::tools::{self, Called, NotificationFacts, ToolCall, ToolFacts, Tools};
use crate::waits::Waits;
use crate::watch::Watch;
use crate::{Models, Parameters, Part, Question, StopReason, Tool, ToolChoice, Usage};
use conductor_audit::caller::Caller;
use conductor_config::Chat;
use conductor_sandbox::bindings::Error;
use conductor_sandbox::exchange::Report;
use conductor_services::error::ServiceError;
use conductor_terminal::excerpt;

/// Calls that are made at once.
const MAX_PARALLEL_CALLS: usize = 8;
/// Calls of one turn.
const MAX_CALLS: usize = 250;
/// The same calls with the same result, after which a turn ends.
const MAX_SAME: u32 = 3;
/// Bytes of a question, about, beyond which older events become a digest, where the model's own limit is not known.
const DEFAULT_CONTEXT: usize = 200 * 1024;
/// Bytes of a context for one of its tokens. The rest is for the answer, tools and what an estimate is off.
const CONTEXT_BYTES_PER_TOKEN: usize = 2;
/// What is said of an answer to a question with excerpts of results.
const SHORTENED: &str =
    "the turn is longer than the model can read: older results of tools are sent as excerpts; they are kept whole";
/// Bytes of why something failed.
const MAX_ERROR: usize = 1000;

/// What a turn and its calls share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) store: Arc<ConversationStore>,
    pub(crate) tools: Arc<dyn Tools>,
    pub(crate) approvals: Arc<Approvals>,
    /// What exchanges of all turns may take of the day.
    pub(crate) budget: Arc<Budget>,
    pub(crate) conversation: u64,
    pub(crate) cancelled: CancellationToken,
    /// The list that this turn is in.
    pub(crate) running: Arc<Running>,
    /// The number of the last event.
    pub(crate) last: watch::Sender<u64>,
    /// Notified of each event.
    pub(crate) watch: Arc<Watch>,
    /// How long calls have waited for a person.
    pub(crate) waits: Arc<Waits>,
    /// Whether the turn's end is kept. Held while events are being kept, so that none of the turn comes after it.
    pub(crate) is_over: Mutex<bool>,
}

impl Shared {
    /// Keeps events, and shows them then. Those that come after the turn's end are not kept.
    async fn keep(self: &Arc<Self>, events: Vec<ChatEvent>) -> Result<(), StoreError> {
        if events.is_empty() {
            return Ok(());
        }
        let shared = Arc::clone(self);
        self.kept(move || shared.store.append(shared.conversation, &events)).await
    }

    async fn kept(
        self: &Arc<Self>,
        append: impl FnOnce() -> Result<Vec<Recorded>, StoreError> + Send + 'static,
    ) -> Result<(), StoreError> {
        let shared = Arc::clone(self);
        // What was begun here goes on to its end, also where the call that it is of is aborted meanwhile.
        blocking(move || {
            let mut is_over = shared.is_over.lock();
            if *is_over {
                return Ok(());
            }
            let kept = append()?;
            if let Some(last) = kept.last() {
                *is_over = matches!(last.event, ChatEvent::TurnEnded { .. });
                shared.last.send_replace(last.number);
            }
            shared.watch.happened(shared.conversation, &kept);
            Ok(())
        })
        .await
    }
}

/// Does what waits for the disk on a thread for that.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    let stopping = || rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_INTERRUPT), None);
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| Err(stopping().into()))
}

/// How a turn ends, and why.
struct End(Outcome, Option<String>);

impl From<StoreError> for End {
    fn from(error: StoreError) -> Self {
        Self(Outcome::Failed, Some(error.to_string()))
    }
}

/// What is next.
enum Step {
    Ask,
    Call(Vec<RequestedCall>),
}

/// A call that the model wants.
#[derive(Debug, Clone)]
struct RequestedCall {
    id: String,
    tool: String,
    args: String,
}

/// What came of a call.
struct EndedCall {
    asked: RequestedCall,
    result: String,
    /// Whether the turn itself refused it. Its result is not from the tool then.
    is_refused: bool,
}

/// A turn under way.
pub(crate) struct Turn {
    shared: Arc<Shared>,
    caller: Caller,
    limits: Chat,
    /// The models to ask, the one that is asked first, and why the one before gave no answer.
    order: Vec<String>,
    at: usize,
    failed: Option<String>,
    events: Vec<Recorded>,
    /// Whether the last question has excerpts of results.
    is_shortened: bool,
    deadline: Instant,
    steps: u32,
    calls: usize,
    spent: Spent,
    /// Of each call its last result, and how often it came in a row.
    same: HashMap<(String, String), (String, u32)>,
    usage: Usage,
}

impl Turn {
    /// A turn in which nothing was asked yet. `model` is asked first; `None` if it is the default one.
    fn new(shared: Arc<Shared>, models: &Models, model: Option<&str>) -> Self {
        let limits = models.chat().clone();
        Self {
            caller: tools::caller(shared.conversation),
            order: models.in_order(model),
            deadline: Instant::now() + Duration::from_secs(limits.seconds.into()),
            limits,
            at: 0,
            failed: None,
            events: Vec::new(),
            is_shortened: false,
            steps: 0,
            calls: 0,
            spent: Spent::default(),
            same: HashMap::new(),
            usage: Usage { input: 0, cached: 0, output: 0 },
            shared,
        }
    }

    /// Runs a turn to its end, which is kept. Its first event is there already.
    pub(crate) async fn run(shared: Arc<Shared>, model: Option<String>) {
        let Some(models) = shared.tools.models() else {
            let why = Some("the host is stopping".to_owned());
            shared.running.mark_ending(shared.conversation);
            let _ = shared.keep(vec![ChatEvent::TurnEnded { outcome: Outcome::Failed, why }]).await;
            return;
        };
        let mut turn = Self::new(shared, &models, model.as_deref());
        let mut ended = turn.outcome(&models).await;
        // A model's answer that was cut off by the person may be heard of as a failure first.
        if ended.0 == Outcome::Failed && turn.shared.cancelled.is_cancelled() {
            ended = End(Outcome::Cancelled, None);
        }
        let End(outcome, why) = ended;
        let model = turn.order.get(turn.at).or(turn.order.last()).cloned().unwrap_or_default();
        let failed = why.clone().filter(|_| outcome != Outcome::Done);
        let ended = ChatEvent::TurnEnded { outcome, why: why.map(|why| excerpt(&why, MAX_ERROR)) };
        turn.shared.running.mark_ending(turn.shared.conversation);
        if let Err(error) = turn.shared.keep(vec![ended]).await {
            tracing::error!("the end of a turn can't be kept: {error}");
        }
        let asker = format!("conversation {}", turn.shared.conversation);
        let shown = conductor_sandbox::control::ShownTurn {
            requests: turn.steps,
            usage: turn.usage,
            failed,
            ..summary(&asker, &model)
        };
        models.end_turn(shown).await;
    }

    async fn outcome(&mut self, models: &Arc<Models>) -> End {
        let mut step = Step::Ask;
        loop {
            let next = match step {
                Step::Ask => self.ask(models).await,
                Step::Call(calls) => self.call(calls).await,
            };
            step = match next {
                Ok(next) => next,
                Err(end) => return end,
            };
        }
    }

    /// Reads what was kept since.
    async fn catch_up(&mut self) -> Result<(), StoreError> {
        loop {
            let after = self.events.last().map_or(0, |one| one.number);
            let (store, id) = (Arc::clone(&self.shared.store), self.shared.conversation);
            let more = blocking(move || store.events(id, after, MAX_PAGE)).await?;
            if more.is_empty() {
                return Ok(());
            }
            self.events.extend(more);
        }
    }

    /// Keeps what features have notified of since the conversation began, as far as it is not kept in it.
    async fn notice(&mut self) -> Result<(), StoreError> {
        let Some(began) = self.events.first().map(|one| one.at) else { return Ok(()) };
        let last = self.events.iter().rev().find_map(|one| match one.event {
            ChatEvent::Notification { sequence, .. } => Some(sequence),
            _ => None,
        });
        let tools = Arc::clone(&self.shared.tools);
        let more = blocking(move || Ok(tools.notifications(last.unwrap_or(0), began))).await?;
        if more.is_empty() {
            return Ok(());
        }
        let event = |one: NotificationFacts| {
            let NotificationFacts { sequence, feature, text, left_out } = one;
            ChatEvent::Notification { sequence, feature, text, left_out }
        };
        self.shared.keep(more.into_iter().map(event).collect()).await?;
        self.catch_up().await
    }

    /// Asks models, one after the other, until one answers.
    async fn ask(&mut self, models: &Arc<Models>) -> Result<Step, End> {
        if self.steps >= self.limits.steps {
            let why = format!("{} questions were asked in this turn (`steps` under [chat])", self.steps);
            return Err(End(Outcome::Limit, Some(why)));
        }
        self.steps += 1;
        loop {
            let Some(model) = self.order.get(self.at).cloned() else {
                let none = || "there is no model to ask; `conductor models add PROVIDER` adds one".to_owned();
                return Err(End(Outcome::Failed, Some(self.failed.take().unwrap_or_else(none))));
            };
            match self.exchange(models, &model).await? {
                Ok(answer) => {
                    self.shared.watch.health(&model, None);
                    return next(&answer.answer.parts, &answer.answer.stop);
                }
                // The exchange hears of it, too, and may be the first to end: that is no failure of the model, and what it has
                // said so far stays.
                Err(_) if self.shared.cancelled.is_cancelled() => return Err(End(Outcome::Cancelled, None)),
                Err(error) => {
                    // What a hook, a switch or a limit does not allow says nothing of the model.
                    let is_asked = !matches!(error, Error::Denied(_));
                    let error = excerpt(&ServiceError::from(error).to_string(), MAX_ERROR);
                    if is_asked {
                        self.shared.watch.health(&model, Some(&error));
                    }
                    self.failed = Some(format!("{model}: {error}"));
                    self.shared.keep(vec![ChatEvent::ModelFailed { model, error }]).await?;
                    self.at += 1;
                }
            }
        }
    }

    /// What a model is asked now, and what that may take; or why this model is not asked, and the next one is.
    async fn question(&mut self, models: &Models, model: &str) -> Result<Result<(Question, Reservation), Error>, End> {
        self.catch_up().await?;
        self.notice().await?;
        let declared = models.declared(model);
        let context = declared.as_ref().and_then(|model| model.context);
        let room = context.map_or(DEFAULT_CONTEXT, |tokens| tokens as usize * CONTEXT_BYTES_PER_TOKEN);
        if let Some(through) = context::compaction(&self.events, room) {
            self.shared.keep(vec![ChatEvent::Compacted { through }]).await?;
            self.catch_up().await?;
        }
        let skills = self.shared.tools.skills();
        let mut tools: Vec<Tool> = self.shared.tools.list().into_iter().map(described).collect();
        tools.extend((!skills.is_empty()).then(read_skill));
        let (messages, is_shortened) = context::messages_within(&self.events, model, room);
        self.is_shortened = is_shortened;
        let instructions = context::instructions(&skills);
        let (max_tokens, temperature) = models.manner(model);
        let how = Parameters { max_tokens, temperature, top_p: None, stop: Vec::new(), schema: None, effort: None };
        let mut question = Question { instructions, messages, tools, choice: ToolChoice::Auto, how };
        let (limits, turn, model, size) = (self.limits.clone(), self.spent, model.to_owned(), charge::size(&question));
        let candidate = Candidate { limits, declared, model, question: size, max_tokens, turn };
        let reserved = match self.admitted(candidate).await? {
            Ok(reserved) => reserved,
            // It is known of this model alone.
            Err(BudgetError::Price(why)) if self.at + 1 < self.order.len() => return Ok(Err(Error::Denied(why))),
            Err(why) => return Err(End(Outcome::Limit, Some(why.to_string()))),
        };
        question.how.max_tokens = reserved.allowed.max_tokens;
        Ok(Ok((question, reserved)))
    }

    /// Reserves what an exchange may take, after others that may take what is left of the day.
    async fn admitted(&self, exchange: Candidate) -> Result<Result<Reservation, BudgetError>, End> {
        loop {
            let settled = self.shared.budget.settled();
            let (shared, exchange) = (Arc::clone(&self.shared), exchange.clone());
            let admission = blocking(move || shared.budget.admit(&exchange, || shared.store.used_today())).await?;
            match admission {
                Admission::Admitted(reserved) => return Ok(Ok(reserved)),
                Admission::Refused(why) => return Ok(Err(why)),
                Admission::Later => {}
            }
            tokio::select! {
                () = settled => {}
                end = self.interrupted() => return Err(end),
            }
        }
    }

    async fn exchange(&mut self, models: &Arc<Models>, model: &str) -> Result<Result<Exchanged, Error>, End> {
        let (question, reserved) = match self.question(models, model).await? {
            Ok(admitted) => admitted,
            Err(error) => return Ok(Err(error)),
        };
        self.shared.keep(vec![ChatEvent::Asked { model: model.to_owned() }]).await?;
        let asker = format!("conversation {}", self.shared.conversation);
        let cancelled = self.shared.cancelled.child_token();
        let guard = cancelled.clone().drop_guard();
        let begun = tokio::select! {
            begun = models.begin(&self.caller, &asker, model, question, cancelled) => begun,
            end = self.interrupted() => return Err(end),
        };
        let mut exchange = match begun {
            Ok(exchange) => exchange,
            Err(error) => return Ok(Err(error)),
        };
        let began = Instant::now();
        let mut pieces = Pieces::default();
        let streamed = self.stream(&mut exchange, &mut pieces).await;
        let (is_charged, took) = (exchange.charged().load(Ordering::Acquire), began.elapsed());
        let is_whole = streamed.is_ok() && pieces.is_whole;
        let ended = match streamed {
            Ok(()) => Ok(exchange.end().await),
            // The rest is not waited for.
            Err(end) => Err(end),
        };
        drop(guard);
        let mut events = Vec::new();
        let mut report = None;
        if let Ok(Ok(exchanged)) = &ended {
            report = exchanged.report.as_ref();
            events.push(ChatEvent::Answered {
                model: model.to_owned(),
                stop: word(&exchanged.answer.stop),
                usage: Tokens::default(),
                cost: None,
                estimated: false,
                prices_as_of: None,
                notes: self.notes(model, &exchanged.answer.stop, report),
            });
        }
        if is_charged || pieces.usage.is_some() || !events.is_empty() {
            let taken = Taken {
                pieces: &pieces,
                is_whole,
                took,
                cost: report.and_then(|report| report.cost),
                cache_written: report.and_then(|report| report.cache_written).unwrap_or(0).into(),
            };
            self.account(models, model, &taken, reserved, events).await?;
        }
        ended
    }

    /// What is to be said of an answer that went otherwise than it was asked for. What holds for the model is said once in a
    /// conversation; what an API says of holding an answer back is about that answer.
    fn notes(&self, model: &str, stop: &StopReason, report: Option<&Report>) -> Vec<String> {
        let mut notes: Vec<String> = context::left_out(&self.events, model).into_iter().collect();
        notes.extend(self.is_shortened.then(|| SHORTENED.to_owned()));
        notes.extend(report.into_iter().flat_map(|report| report.notes.clone()));
        if !matches!(stop, StopReason::Filtered) {
            let is_said = |note: &String| {
                let says = |one: &Recorded| match &one.event {
                    ChatEvent::Answered { model: other, notes, .. } => other == model && notes.contains(note),
                    _ => false,
                };
                self.events.iter().any(says)
            };
            notes.retain(|note| !is_said(note));
        }
        notes
    }

    /// Keeps what an exchange took, with the events that tell of it, and settles what was reserved for it.
    async fn account(
        &mut self,
        models: &Models,
        model: &str,
        taken: &Taken<'_>,
        reserved: Reservation,
        mut events: Vec<ChatEvent>,
    ) -> Result<(), End> {
        let charge = models.charge(model, taken, &reserved.allowed);
        for event in &mut events {
            if let ChatEvent::Answered { usage, cost, estimated, prices_as_of, .. } = event {
                (*usage, *cost, *estimated) = (charge.tokens, charge.cost, charge.estimated);
                prices_as_of.clone_from(&charge.prices_as_of);
            }
        }
        self.spent.add(charge.tokens, charge.cost);
        if let Some(usage) = taken.pieces.usage {
            let Usage { input, cached, output } = &mut self.usage;
            *input = input.saturating_add(usage.input);
            *cached = cached.saturating_add(usage.cached);
            *output = output.saturating_add(usage.output);
        }
        let (model, provider) = (model.to_owned(), models.provider_of(model));
        let shared = Arc::clone(&self.shared);
        let append = move || {
            let by = UsedBy::Conversation(shared.conversation);
            let used = Used { by, model: &model, provider: &provider, charge: &charge };
            reserved.settle(|| shared.store.append_answer(&used, &events))
        };
        self.shared.kept(append).await?;
        Ok(())
    }

    /// Keeps what the model says, as it comes.
    async fn stream(&self, exchange: &mut Exchange<'_>, pieces: &mut Pieces) -> Result<(), End> {
        loop {
            let events = tokio::select! {
                events = exchange.next() => events,
                end = self.interrupted() => return Err(end),
            };
            let Some(events) = events else { return Ok(()) };
            self.shared.keep(pieces.take(events)).await?;
        }
    }

    /// Returns how the turn ends when it is cancelled, or its time is up.
    async fn interrupted(&self) -> End {
        tokio::select! {
            () = self.shared.cancelled.cancelled() => End(Outcome::Cancelled, None),
            () = tokio::time::sleep_until(self.deadline) => self.late(),
        }
    }

    fn late(&self) -> End {
        let why = format!("it took longer than {} s (`seconds` under [chat])", self.limits.seconds);
        End(Outcome::Limit, Some(why))
    }

    /// Has calls made, several at once, and keeps what came of them.
    async fn call(&mut self, calls: Vec<RequestedCall>) -> Result<Step, End> {
        let mut under_way = JoinSet::new();
        let places = Arc::new(Semaphore::new(MAX_PARALLEL_CALLS));
        let mut seen = HashSet::new();
        for asked in calls {
            self.calls += 1;
            let refused = if self.calls > MAX_CALLS {
                Some(format!("not called: {MAX_CALLS} calls were made in this turn"))
            } else if !seen.insert((asked.tool.clone(), asked.args.clone())) {
                Some("not called: the same call is in this answer already".to_owned())
            } else {
                None
            };
            let (shared, caller, places) = (Arc::clone(&self.shared), self.caller.clone(), Arc::clone(&places));
            under_way.spawn(async move {
                let _place = places.acquire().await;
                made(&shared, &caller, asked, refused).await
            });
        }
        loop {
            let waited = self.shared.waits.over().unwrap_or_default();
            tokio::select! {
                ended = under_way.join_next() => match ended {
                    None => break,
                    Some(Ok(ended)) => self.compare(ended?)?,
                    Some(Err(error)) => return Err(End(Outcome::Failed, Some(error.to_string()))),
                },
                () = tokio::time::sleep_until(self.deadline + waited) => match self.shared.waits.over() {
                    // A person is waited for; how long is known when they have answered.
                    None => tokio::time::sleep(Duration::from_secs(1)).await,
                    Some(waited) if Instant::now() < self.deadline + waited => {}
                    Some(_) => return Err(self.late()),
                },
            }
        }
        self.deadline += self.shared.waits.take();
        if self.shared.cancelled.is_cancelled() {
            return Err(End(Outcome::Cancelled, None));
        }
        if self.calls > MAX_CALLS {
            return Err(End(Outcome::Limit, Some(format!("{MAX_CALLS} calls were made in this turn"))));
        }
        Ok(Step::Ask)
    }

    /// Ends the turn where the same call has had the same result too often.
    fn compare(&mut self, ended: EndedCall) -> Result<(), End> {
        let EndedCall { asked: RequestedCall { tool, args, .. }, result, is_refused } = ended;
        if is_refused {
            return Ok(());
        }
        let (last, count) = self.same.entry((tool.clone(), args)).or_default();
        *count = if *last == result { *count + 1 } else { 1 };
        *last = result;
        if *count < MAX_SAME {
            return Ok(());
        }
        let why = format!("{tool} was called {MAX_SAME} times with the same arguments and the same result");
        Err(End(Outcome::Limit, Some(why)))
    }
}

/// What is next after an answer.
fn next(parts: &[Part], stop: &StopReason) -> Result<Step, End> {
    let call = |part: &Part| match part {
        Part::ToolCall(call) => {
            Some(RequestedCall { id: call.id.clone(), tool: call.name.clone(), args: call.args.clone() })
        }
        _ => None,
    };
    let calls: Vec<RequestedCall> = parts.iter().filter_map(call).collect();
    if !calls.is_empty() {
        return Ok(Step::Call(calls));
    }
    Err(match stop {
        StopReason::Length => End(Outcome::Short, Some("the answer reached the limit of its length".into())),
        StopReason::Filtered => End(Outcome::Short, Some("the API held the rest of the answer back".into())),
        StopReason::Done | StopReason::Tools | StopReason::Other(_) => End(Outcome::Done, None),
    })
}

/// Makes a call, after a person has agreed where that is needed, and keeps what came of it.
async fn made(
    shared: &Arc<Shared>,
    caller: &Caller,
    asked: RequestedCall,
    refused: Option<String>,
) -> Result<EndedCall, StoreError> {
    let is_refused = refused.is_some();
    let called = match (refused, args(&asked.args)) {
        (Some(why), _) | (None, Err(why)) => Called::Failed(why),
        (None, Ok(args)) if asked.tool == READ_SKILL => read(shared, args).await,
        (None, Ok(args)) => agreed(shared, caller, &asked, args).await?,
    };
    let (result, failed, plans) = match called {
        Called::Done { result, plans, remarks } => {
            let remarks = remarks.into_iter().map(|remark| format!("\nremark: {remark}"));
            // The text of a skill is read as it was written.
            let result = result.as_str().map_or_else(|| result.to_string(), str::to_owned);
            (remarks.fold(result, |all, one| all + &one), false, plans)
        }
        Called::Failed(why) => (why, true, Vec::new()),
        Called::Asks(_) => ("a person has to agree to it once more; call it again".to_owned(), true, Vec::new()),
    };
    let (call, tool) = (asked.id.clone(), asked.tool.clone());
    let result = conductor_terminal::excerpt_lines(&result, fence::MAX_DATA);
    let plan = |plan: String| {
        let description = shared.tools.plan_description(&plan).unwrap_or_default();
        ChatEvent::Plan { call: call.clone(), plan, description }
    };
    let mut events: Vec<ChatEvent> = plans.into_iter().map(plan).collect();
    events.push(ChatEvent::CallEnded { call: call.clone(), tool, result: result.clone(), failed });
    shared.keep(events).await?;
    Ok(EndedCall { asked, result, is_refused })
}

/// Has a call pass the gate; again with a person's approval if it asks for one.
async fn agreed(
    shared: &Arc<Shared>,
    caller: &Caller,
    asked: &RequestedCall,
    args: Map<String, Value>,
) -> Result<Called, StoreError> {
    let approval = match pass(shared, caller, asked, args.clone(), None).await {
        Called::Asks(approval) => *approval,
        called => return Ok(called),
    };
    let (id, timeout) = (approval.id.clone(), Duration::from_millis(approval.expires_in_ms));
    let awaited = shared.approvals.wait(shared.conversation, &approval);
    let waiting = shared.waits.begin();
    let call = asked.id.clone();
    shared.keep(vec![ChatEvent::Approval { call: call.clone(), asked: approval }]).await?;
    let agreed = tokio::select! {
        agreed = awaited.answer(timeout) => agreed,
        () = shared.cancelled.cancelled() => false,
    };
    drop(waiting);
    shared.keep(vec![ChatEvent::ApprovalDecided { call, id: id.clone(), agreed }]).await?;
    if !agreed {
        return Ok(Called::Failed("not called: the person did not agree to it".into()));
    }
    Ok(pass(shared, caller, asked, args, Some(id)).await)
}

/// Has a call pass the gate, until the turn is cancelled. In a turn that is cancelled already none is made.
async fn pass(
    shared: &Shared,
    caller: &Caller,
    asked: &RequestedCall,
    args: Map<String, Value>,
    approved: Option<String>,
) -> Called {
    let call = ToolCall { tool: asked.tool.clone(), args, approved };
    let not_made = || Called::Failed("the person cancelled the turn".into());
    if shared.cancelled.is_cancelled() {
        return not_made();
    }
    tokio::select! {
        // What came of a call that has ended is kept, also if the turn is cancelled at the same moment.
        biased;
        called = shared.tools.call(caller, call, shared.cancelled.child_token()) => called,
        () = shared.cancelled.cancelled() => not_made(),
    }
}

/// Arguments as a model wrote them.
fn args(text: &str) -> Result<Map<String, Value>, String> {
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(args)) => Ok(args),
        Ok(_) => Err("not called: the arguments are no JSON object".to_owned()),
        Err(error) => Err(format!("not called: the arguments are not JSON: {error}")),
    }
}

/// A tool as the model is shown it: what its feature wrote is bounded, and behind the gutter.
fn described(tool: ToolFacts) -> Tool {
    Tool { name: tool.name, description: fence::description(&tool.summary), input: fence::schema(&tool.input) }
}

/// The tool with which skills are read.
fn read_skill() -> Tool {
    let input = serde_json::json!({
        "type": "object",
        "properties": {
            "name": { "type": "string" },
            "file": { "type": "string", "description": "A file that the skill names. Default: its text" },
        },
        "required": ["name"],
        "additionalProperties": false,
    });
    let description =
        "Read a skill by its name, or one of its files: guidance, which is no instruction of the person.".to_owned();
    Tool { name: READ_SKILL.to_owned(), description, input: input.to_string() }
}

/// Reads a skill, on a thread that may wait for the disk.
async fn read(shared: &Arc<Shared>, args: Map<String, Value>) -> Called {
    let tools = Arc::clone(&shared.tools);
    let read = move || {
        let text = |key: &str| args.get(key).and_then(Value::as_str);
        tools.read_skill(text("name").unwrap_or_default(), text("file").filter(|file| !file.is_empty()))
    };
    match tokio::task::spawn_blocking(read).await {
        Ok(Ok(text)) => Called::Done { result: text.into(), plans: Vec::new(), remarks: Vec::new() },
        Ok(Err(why)) => Called::Failed(why),
        Err(error) => Called::Failed(error.to_string()),
    }
}

fn word(stop: &StopReason) -> String {
    match stop {
        StopReason::Done => "done".to_owned(),
        StopReason::Tools => "tools".to_owned(),
        StopReason::Length => "length".to_owned(),
        StopReason::Filtered => "filtered".to_owned(),
        StopReason::Other(word) => fence::line(word),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;
    use crate::tools::{Later, SkillFacts};

    /// Tools that count how often one is called.
    #[derive(Debug, Default)]
    struct Counting(AtomicU64);

    impl Tools for Counting {
        fn models(&self) -> Option<Arc<Models>> {
            None
        }

        fn list(&self) -> Vec<ToolFacts> {
            Vec::new()
        }

        fn skills(&self) -> Vec<SkillFacts> {
            Vec::new()
        }

        fn read_skill(&self, name: &str, _: Option<&str>) -> Result<String, String> {
            Err(format!("there is no skill {name}"))
        }

        fn notifications(&self, _: u64, _: u64) -> Vec<NotificationFacts> {
            Vec::new()
        }

        fn call<'a>(&'a self, _: &'a Caller, _: ToolCall, _: CancellationToken) -> Later<'a, Called> {
            Box::pin(async {
                self.0.fetch_add(1, Ordering::Relaxed);
                Called::Failed("it was made".into())
            })
        }

        fn plan_description(&self, _: &str) -> Option<String> {
            None
        }
    }

    /// What a turn shares, in a conversation in which nothing was said.
    fn shared(tools: &Arc<Counting>) -> Arc<Shared> {
        let store = ConversationStore::in_memory().unwrap();
        let conversation = store.begin(None).unwrap().id;
        Arc::new(Shared {
            store: Arc::new(store),
            tools: Arc::<Counting>::clone(tools),
            approvals: Arc::default(),
            budget: Arc::default(),
            conversation,
            cancelled: CancellationToken::new(),
            running: Arc::default(),
            last: watch::Sender::new(0),
            watch: Arc::default(),
            waits: Arc::default(),
            is_over: Mutex::default(),
        })
    }

    fn call_ended() -> ChatEvent {
        ChatEvent::CallEnded { call: "a".into(), tool: "lamp".into(), result: "lit".into(), failed: false }
    }

    fn turn_ended() -> ChatEvent {
        ChatEvent::TurnEnded { outcome: Outcome::Limit, why: None }
    }

    fn kept(shared: &Shared) -> Vec<ChatEvent> {
        let kept = shared.store.all_events(shared.conversation).unwrap();
        kept.into_iter().map(|one| one.event).collect()
    }

    // LLM-3: a turn that is longer than its model's context goes on, and says what is sent of it.
    #[tokio::test]
    async fn a_question_has_the_length_that_its_model_can_read() {
        let shared = shared(&Arc::default());
        let answered = || ChatEvent::Answered {
            model: "m".into(),
            stop: "tools".into(),
            usage: Tokens::default(),
            cost: None,
            estimated: false,
            prices_as_of: None,
            notes: Vec::new(),
        };
        let mut events = vec![ChatEvent::Message { text: "look".into() }];
        for number in 0..10 {
            let call = format!("c{number}");
            let (tool, args, result) = ("lamp".to_owned(), "{}".to_owned(), "x".repeat(30_000));
            events.push(ChatEvent::Asked { model: "m".into() });
            events.push(ChatEvent::Call { call: call.clone(), tool: tool.clone(), args, mark: None });
            events.extend([answered(), ChatEvent::CallEnded { call, tool, result, failed: false }]);
        }
        shared.keep(events.clone()).await.unwrap();
        let models = Models::default();
        let mut turn = Turn::new(Arc::clone(&shared), &models, Some("m"));
        let Ok(Ok((question, _))) = turn.question(&models, "m").await else { panic!("it is not asked") };
        let size: usize = question.messages.iter().map(charge::of_message).sum();
        assert!(size <= DEFAULT_CONTEXT, "{size}");
        assert_eq!(turn.notes("m", &StopReason::Done, None), [SHORTENED]);
        assert_eq!(kept(&shared), events, "what is kept stays whole");
    }

    // LLM-3: what is wrong is said in several lines, of which the last may be what to do.
    #[tokio::test]
    async fn why_a_call_failed_is_kept_whole() {
        let shared = shared(&Arc::default());
        let asked = RequestedCall { id: "a".into(), tool: "lamp".into(), args: "{}".into() };
        let why = ["modes/0/mappings/1: there is no such lamp"; 100].join("\n");
        let ended = made(&shared, &tools::caller(1), asked, Some(why.clone())).await.unwrap();
        assert_eq!(ended.result, why);
        let told =
            |event: &ChatEvent| matches!(event, ChatEvent::CallEnded { result, failed: true, .. } if *result == why);
        assert!(kept(&shared).iter().any(told), "{:?}", kept(&shared));
    }

    // LLM-3, LLM-4
    #[tokio::test]
    async fn nothing_of_a_turn_is_kept_after_its_end() {
        let shared = shared(&Arc::default());
        shared.keep(vec![turn_ended()]).await.unwrap();
        shared.keep(vec![call_ended()]).await.unwrap();
        assert_eq!(kept(&shared), [turn_ended()]);
    }

    // LLM-3, LLM-4: the call is aborted while its end is being kept, and the turn ends.
    #[tokio::test]
    async fn what_is_being_kept_of_an_aborted_call_comes_before_the_end_of_its_turn() {
        let shared = shared(&Arc::default());
        let (begun, begins) = tokio::sync::oneshot::channel();
        let (go, goes) = std::sync::mpsc::channel::<()>();
        let store = Arc::clone(&shared.store);
        let conversation = shared.conversation;
        let slow = move || {
            let _ = begun.send(());
            let _ = goes.recv();
            store.append(conversation, &[call_ended()])
        };
        let writer = Arc::clone(&shared);
        let call = tokio::spawn(async move { writer.kept(slow).await });
        begins.await.unwrap();
        call.abort();
        assert!(call.await.unwrap_err().is_cancelled());
        assert!(shared.is_over.try_lock().is_none(), "the end waits for it");
        let ends = shared.keep(vec![turn_ended()]);
        go.send(()).unwrap();
        ends.await.unwrap();
        assert_eq!(kept(&shared), [call_ended(), turn_ended()]);
    }

    // LLM-3: cancelled between a model's answer and its calls, a turn makes none of them.
    #[tokio::test]
    async fn a_turn_that_is_cancelled_makes_no_call() {
        let tools = Arc::new(Counting::default());
        let shared = shared(&tools);
        let (caller, args) = (tools::caller(1), Map::new());
        let asked = RequestedCall { id: "a".into(), tool: "lamp".into(), args: "{}".into() };
        let made = pass(&shared, &caller, &asked, args.clone(), None).await;
        assert_eq!(made, Called::Failed("it was made".into()));
        shared.cancelled.cancel();
        // Often: which of two things that are ready comes first may be left to chance.
        for _ in 0..64 {
            let called = pass(&shared, &caller, &asked, args.clone(), None).await;
            assert_eq!(called, Called::Failed("the person cancelled the turn".into()));
        }
        assert_eq!(tools.0.load(Ordering::Relaxed), 1);
    }
}
