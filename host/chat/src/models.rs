//! The models of the configuration, and completions on behalf of a caller: hooks before, hooks after.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::charge::{self, Charge, Taken, Tariff};
use super::completion::{Ask, Completion, LOCAL_ONLY, complete, is_here};
use super::costs::{self, Allowance};
use super::listing::{AvailableModel, Endpoint, available};
use super::pieces::Pieces;
use super::queue::{AskerKind, Place, Queues};
use super::{Effort, Event, Part, Question, Usage};
use conductor_audit::caller::Caller;
use conductor_audit::{Audit, Entry, Kind, Pending};
use conductor_config::{self as config, nearest};
use conductor_package::Grants;
use conductor_package::descriptor::{HookPoint, ModelDeclaration};
use conductor_package::provider::{Price, Prices, ProviderDeclaration};
use conductor_registry::{Provider, Registry};
use conductor_sandbox::actor::hook_answer;
use conductor_sandbox::bindings::Error;
use conductor_sandbox::control::{ChatDecision, ChatHook, ShownAnswer, ShownRequest, ShownTurn};
use conductor_sandbox::exchange::{Abilities, Report};
use conductor_sandbox::model_view::{Answer, Later, ModelView};
use conductor_services::error::ServiceError;
use conductor_terminal::{excerpt, excerpt_lines};

/// Where what is known of a model stands, if no document says so.
const CONFIGURED: &str = "the configuration";
/// Why a model costs nothing.
const ON_THIS_COMPUTER: &str = "it is on this computer";
/// Why no model is asked.
pub const SWITCHED_OFF: &str = "models and agents are switched off (`enabled = false` under [llm])";

/// Bytes of what is asked or answered that hooks get to see.
const MAX_SHOWN_TO_HOOKS: usize = 16 * 1024;

/// The models of one configuration. Every request to one is in the audit log: who asked which model, tokens, outcome;
/// never the text.
#[derive(Debug, Default)]
pub struct Models {
    models: BTreeMap<String, config::Model>,
    chat: config::Chat,
    registry: Registry,
    llm: config::Llm,
    queues: Arc<Queues>,
    meter: Arc<Meter>,
    audit: Audit,
}

/// A model, with the way to it.
struct Found<'m> {
    model: &'m config::Model,
    provider: Provider,
    local_only: bool,
}

impl Models {
    /// These models, asked through the providers of `registry`, at most `per_minute` requests a minute to each
    /// provider. Requests are recorded in `audit`.
    pub fn new(
        audit: Audit,
        models: BTreeMap<String, config::Model>,
        registry: Registry,
        requests_per_minute: u32,
    ) -> Self {
        let (queues, llm) = (Arc::new(Queues::new(requests_per_minute)), config::Llm::default());
        Self { models, registry, queues, audit, llm, chat: config::Chat::default(), meter: Arc::default() }
    }

    /// Those of a configuration, with what it says of conversations.
    pub fn of(config: &config::Config, registry: Registry, audit: Audit) -> Self {
        let per_minute = config.tools.per_minute.model_requests;
        let (chat, llm) = (config.chat.clone(), config.llm);
        Self { chat, llm, ..Self::new(audit, config.models.clone(), registry, per_minute) }
    }

    /// Those of the configuration that replaces this one's. What was used of a limit that stays the same is used.
    #[must_use]
    pub fn following(&self, config: &config::Config, registry: Registry) -> Self {
        let next = Self { meter: Arc::clone(&self.meter), ..Self::of(config, registry, self.audit.clone()) };
        let per_minute = next.queues.per_minute();
        let queues = if self.queues.per_minute() == per_minute {
            Arc::clone(&self.queues)
        } else {
            Arc::new(self.queues.following(per_minute))
        };
        Self { queues, ..next }
    }

    /// What the configuration says of conversations.
    pub fn chat(&self) -> &config::Chat {
        &self.chat
    }

    /// Whether models and agents may be asked at all.
    pub fn is_enabled(&self) -> bool {
        self.llm.enabled
    }

    /// The models that a conversation asks, one after the other: the `first`, then those of the configuration.
    pub fn in_order(&self, first: Option<&str>) -> Vec<String> {
        let configured = match &self.chat.models[..] {
            [] => self.names(),
            models => models.to_vec(),
        };
        let mut order: Vec<String> = first.map(str::to_owned).into_iter().collect();
        order.extend(configured.into_iter().filter(|name| first != Some(name.as_str())));
        order
    }

    /// Every model of the configuration, and what is known of it.
    pub fn views(&self) -> Vec<ModelSummary> {
        let view = |(name, model): (&String, &config::Model)| ModelSummary {
            name: name.clone(),
            provider: model.provider.clone(),
            model: model.model.clone(),
            there: self.registry.provider(&model.provider).is_some(),
            here: self.is_here(model),
            error: None,
            declared: self.declared(name).and_then(|declared| serde_json::to_value(declared).ok()),
        };
        self.models.iter().map(view).collect()
    }

    /// What is known of a model: what the configuration says, else what the provider's feature declares. One on this
    /// computer costs nothing, unless the configuration says otherwise. `None` if nothing is known.
    pub fn declared(&self, name: &str) -> Option<ModelDeclaration> {
        let model = self.models.get(name)?;
        let provider = self.registry.provider(&model.provider);
        let declared = provider
            .as_ref()
            .and_then(|it| it.feature.facts().descriptor.model(&model.provider, &model.model))
            .cloned();
        let free = model.price.is_none() && self.is_here(model);
        if model.context.is_none() && model.price.is_none() && !free {
            return declared;
        }
        let mut known = declared.unwrap_or_else(|| unknown(&model.model));
        known.context = model.context.or(known.context);
        if let Some(config::ModelPrice { input, output, cached }) = model.price {
            let price = |dollars: f64| Price::try_from(dollars).ok();
            let (input, output) = (price(input)?, price(output)?);
            let cached = cached.and_then(price).or(Some(input));
            known.prices = vec![Prices { above: 0, input, output, cached, cache_written: Some(input) }];
            known.prices_source = Some(CONFIGURED.to_owned());
            known.prices_as_of = None;
        } else if free {
            known.prices = vec![Prices::NOTHING];
            known.prices_source = Some(ON_THIS_COMPUTER.to_owned());
            known.prices_as_of = None;
        }
        Some(known)
    }

    /// The day that the declared prices of a model are of. `None` if there are none, or they are the configuration's.
    pub fn prices_as_of(&self, name: &str) -> Option<String> {
        let is_declared = self.models.get(name).is_some_and(|model| model.price.is_none() && !self.is_here(model));
        let declared = self.declared(name).filter(|declared| is_declared && !declared.prices.is_empty())?;
        Some(declared.prices_as_of.unwrap_or(declared.as_of)).filter(|day| !day.is_empty())
    }

    /// Has what exchanges of features take told to `keep` from now on. It must not wait.
    pub fn keep_usage(&self, keep: impl Fn(FeatureUsage) + Send + Sync + 'static) {
        *self.meter.0.lock() = Some(Arc::new(keep));
    }

    /// Whether a model costs nothing: it is on this computer, and the configuration names no price.
    pub fn is_free(&self, name: &str) -> bool {
        self.models.get(name).is_some_and(|model| model.price.is_none() && self.is_here(model))
    }

    /// Whether a model is on this computer: it is asked at an address of it, by a provider that passes nothing on.
    fn is_here(&self, model: &config::Model) -> bool {
        let declared = self.provider_declaration(&model.provider);
        !declared.is_some_and(|declared| declared.relays) && model.url.as_deref().is_some_and(is_here)
    }

    fn provider_declaration(&self, name: &str) -> Option<ProviderDeclaration> {
        let provider = self.registry.provider(name)?;
        provider.feature.facts().descriptor.providers.iter().find(|declared| declared.name == name).cloned()
    }

    /// What the configuration says of how a model answers: the most tokens, and how much chance is in it.
    pub fn manner(&self, name: &str) -> (Option<u32>, Option<f32>) {
        self.models.get(name).map_or((None, None), |model| (model.max_tokens, model.temperature))
    }

    /// The providers that features contribute, and where their APIs are.
    pub fn providers(&self) -> Vec<ProviderView> {
        let view = |name: String| {
            let provider = self.registry.provider(&name)?;
            let facts = provider.feature.facts();
            let declared = facts.descriptor.providers.iter().find(|declared| declared.name == name)?;
            let listing = declared.listing.as_ref();
            Some(ProviderView {
                summary: declared.summary.clone(),
                feature: facts.descriptor.id.to_string(),
                network: provider.network.clone(),
                url: listing.map(|listing| listing.url.clone()),
                secret: listing.and_then(|listing| listing.secret.clone()),
                secrets: facts.descriptor.secrets(),
                name,
            })
        };
        self.registry.provider_names().into_iter().filter_map(view).collect()
    }

    /// The models of the configuration by name, whether they may be asked or not.
    pub(crate) fn configured(&self) -> &BTreeMap<String, config::Model> {
        &self.models
    }

    /// What the feature of a provider was granted; nothing if there is no such provider.
    pub(crate) fn provider_grants(&self, name: &str) -> Grants {
        self.registry.provider(name).map(|provider| provider.feature.facts().grants.clone()).unwrap_or_default()
    }

    /// Asks the API of a provider which models there are.
    ///
    /// # Errors
    /// `Invalid` when there is no such provider, `Unavailable` where it can't be asked that; else as
    /// [`begin`](Self::begin).
    pub async fn available(&self, name: &str, at: &Endpoint) -> Result<Vec<AvailableModel>, Error> {
        self.admit()?;
        let no_such = || {
            let there = self.registry.provider_names().join(", ");
            Error::Invalid(format!("there is no provider {:?}; there are {there}", excerpt(name, 64)))
        };
        let provider = self.registry.provider(name).ok_or_else(no_such)?;
        let declared = self.provider_declaration(name).ok_or_else(no_such)?;
        if self.llm.local_only && (declared.relays || !at.url.as_deref().is_some_and(is_here)) {
            return Err(Error::Denied(LOCAL_ONLY.to_owned()));
        }
        available(&provider, &declared, at).await
    }

    /// # Errors
    /// `Denied` if models are switched off.
    fn admit(&self) -> Result<(), Error> {
        if self.llm.enabled {
            return Ok(());
        }
        Err(Error::Denied(SWITCHED_OFF.to_owned()))
    }

    /// The provider of a model, by the configuration. Empty if there is no such model.
    pub fn provider_of(&self, name: &str) -> String {
        self.models.get(name).map(|model| model.provider.clone()).unwrap_or_default()
    }

    fn find(&self, name: &str) -> Result<Found<'_>, Error> {
        let Self { models, registry, .. } = self;
        self.admit()?;
        let Some(model) = models.get(name) else {
            let near = nearest(name, models.keys().map(String::as_str));
            let near = near.map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
            return Err(Error::Invalid(format!("there is no model {:?} under [models]{near}", excerpt(name, 64))));
        };
        let Some(provider) = registry.provider(&model.provider) else {
            let there = registry.provider_names();
            let there =
                if there.is_empty() { "there is none".into() } else { format!("there are {}", there.join(", ")) };
            return Err(Error::Unavailable(format!(
                "no feature has the provider {:?} of the model {name}; {there}",
                model.provider
            )));
        };
        if self.llm.local_only && !self.is_here(model) {
            return Err(Error::Denied(format!("{name} is elsewhere, and {LOCAL_ONLY}")));
        }
        Ok(Found { model, provider, local_only: self.llm.local_only })
    }

    /// What an exchange with a model took and cost.
    pub(crate) fn charge(&self, model: &str, taken: &Taken<'_>, allowed: &Allowance) -> Charge {
        let (declared, prices_as_of) = (self.declared(model), self.prices_as_of(model));
        Charge::of(Tariff { declared, is_free: self.is_free(model), prices_as_of }, taken, allowed)
    }

    async fn place(&self, found: &Found<'_>, asker: &str, kind: AskerKind) -> Result<Place, Error> {
        let feature = found.provider.feature.facts().descriptor.id.to_string();
        self.queues.enter(&feature, &found.model.provider, asker, kind).await
    }

    /// A turn of one request: hooks, the question, hooks, the answer.
    async fn turn(&self, asker: &str, name: &str, question: Question) -> Result<Answer, Error> {
        let mut turn = summary(asker, name);
        let answer = async {
            let declared = self.declared(name);
            let allowed = costs::unlimited(declared.as_ref(), charge::size(&question), question.how.max_tokens);
            // Ended by being dropped.
            let cancelled = CancellationToken::new();
            let mut exchange = self.begin(&Caller::feature(asker), asker, name, question, cancelled).await?;
            turn.requests = 1;
            let mut metered = Metered::new(self, asker, name, allowed, exchange.charged());
            while let Some(events) = exchange.next().await {
                metered.pieces.take(events);
            }
            metered.is_ended = true;
            let exchanged = exchange.end().await?;
            metered.report = exchanged.report;
            turn.usage = exchanged.answer.usage;
            Ok(exchanged.answer)
        }
        .await;
        turn.failed = answer.as_ref().err().map(|error: &Error| ServiceError::from(error.clone()).to_string());
        self.end_turn(turn).await;
        answer
    }

    /// Begins an exchange with a model: hooks are asked, and the request is sent. It is recorded in the audit log,
    /// however it ends.
    ///
    /// # Errors
    /// `Invalid` if there is no such model, `Unavailable` if its provider is not installed, `Denied` if models are switched
    /// off, only those on this computer may be asked, or a hook does not let it be asked, `Exhausted` if too many wait.
    pub async fn begin(
        &self,
        caller: &Caller,
        asker: &str,
        name: &str,
        question: Question,
        cancelled: CancellationToken,
    ) -> Result<Exchange<'_>, Error> {
        let entry = Entry::new(Kind::Model, "ask", caller, name);
        let mut record = Pending::new(&self.audit, entry, Instant::now());
        match self.begun(caller, asker, name, question, cancelled, &mut record).await {
            Ok((shown, completion)) => Ok(Exchange { models: self, shown, completion, failed: None, record }),
            Err(error) => {
                recorded(record, &Err(&error)).await;
                Err(error)
            }
        }
    }

    async fn begun(
        &self,
        caller: &Caller,
        asker: &str,
        name: &str,
        question: Question,
        cancelled: CancellationToken,
        record: &mut Pending<'_>,
    ) -> Result<(Arc<ShownRequest>, Completion), Error> {
        let found = self.find(name)?;
        record.with("provider", found.model.provider.as_str());
        record.with("model", found.model.model.as_str());
        let shown = Arc::new(shown_request(asker, name, &found.provider, &question));
        hooked(&self.registry, ChatHook::Request(Arc::clone(&shown))).await?;
        let place = self.place(&found, asker, AskerKind::of(caller)).await?;
        Ok((shown, found.complete(question, place, cancelled)))
    }

    /// Says to the features that hook there that a turn is over.
    pub async fn end_turn(&self, turn: ShownTurn) {
        // It is over, whatever anybody says about it.
        let _ = hooked(&self.registry, ChatHook::Turn(Arc::new(turn))).await;
    }
}

/// What an exchange of a feature took.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeatureUsage {
    /// The feature's id.
    pub feature: String,
    /// The model's name under `[models]`.
    pub model: String,
    /// The provider.
    pub provider: String,
    /// What it took and cost.
    pub charge: Charge,
}

type Keep = Arc<dyn Fn(FeatureUsage) + Send + Sync>;

/// Keeps what exchanges of features take. It outlives configurations.
#[derive(Default)]
struct Meter(Mutex<Option<Keep>>);

impl std::fmt::Debug for Meter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Meter").field(&self.0.lock().is_some()).finish()
    }
}

/// An exchange of a feature. Its usage is kept when it ends, also by being dropped.
struct Metered<'m> {
    models: &'m Models,
    feature: &'m str,
    model: &'m str,
    allowed: Allowance,
    began: Instant,
    charged: Arc<AtomicBool>,
    pieces: Pieces,
    is_ended: bool,
    report: Option<Report>,
}

impl<'m> Metered<'m> {
    fn new(models: &'m Models, feature: &'m str, model: &'m str, allowed: Allowance, charged: Arc<AtomicBool>) -> Self {
        let (pieces, began) = (Pieces::default(), Instant::now());
        Self { models, feature, model, allowed, began, charged, pieces, is_ended: false, report: None }
    }
}

impl Drop for Metered<'_> {
    fn drop(&mut self) {
        if !self.charged.load(Ordering::Acquire) && self.pieces.usage.is_none() {
            return;
        }
        let Some(keep) = self.models.meter.0.lock().clone() else { return };
        let report = self.report.as_ref();
        let taken = Taken {
            pieces: &self.pieces,
            is_whole: self.is_ended && self.pieces.is_whole,
            took: self.began.elapsed(),
            cost: report.and_then(|report| report.cost),
            cache_written: report.and_then(|report| report.cache_written).unwrap_or(0).into(),
        };
        let charge = self.models.charge(self.model, &taken, &self.allowed);
        let (feature, model) = (self.feature.to_owned(), self.model.to_owned());
        keep(FeatureUsage { feature, provider: self.models.provider_of(&model), model, charge });
    }
}

/// A turn in which nothing was asked yet, as hooks see it.
pub fn summary(asker: &str, model: &str) -> ShownTurn {
    let usage = Usage { input: 0, cached: 0, output: 0 };
    ShownTurn { asker: asker.to_owned(), model: model.to_owned(), requests: 0, usage, failed: None }
}

/// A model of the configuration, as lists show it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModelSummary {
    /// Its name under `[models]`.
    pub name: String,
    /// The provider.
    pub provider: String,
    /// What the provider calls the model.
    pub model: String,
    /// Whether a feature in force has the provider.
    pub there: bool,
    /// Whether it is on this computer.
    pub here: bool,
    /// Why it gave no answer when it was asked last. `None` if it answered, or was not asked since the host started.
    #[serde(default)]
    pub error: Option<String>,
    /// What is known of it: limits, abilities, prices, and the document and the day that they are of. `None` if nothing
    /// is.
    pub declared: Option<serde_json::Value>,
}

/// A provider of a feature, and where its API is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProviderView {
    /// The provider, as `provider` under `[models.NAME]` says it.
    pub name: String,
    /// Which API it speaks.
    pub summary: String,
    /// The id of its feature.
    pub feature: String,
    /// The purpose of the capability that the host sends its requests by.
    pub network: String,
    /// The base URL where nothing else is configured. `None` if it is not declared.
    pub url: Option<String>,
    /// The secret that goes there. `None` if it needs none.
    pub secret: Option<String>,
    /// All secrets that its feature asks for.
    pub secrets: Vec<String>,
}

/// The declaration of a model that its provider does not describe.
fn unknown(name: &str) -> ModelDeclaration {
    ModelDeclaration {
        name: name.to_owned(),
        aliases: Vec::new(),
        context: None,
        output: None,
        tools: None,
        streams: None,
        schema: None,
        images: None,
        thinks: None,
        prices: Vec::new(),
        source: CONFIGURED.to_owned(),
        as_of: String::new(),
        prices_source: None,
        prices_as_of: None,
    }
}

/// An exchange under way. Dropping it ends it; the audit log has it as left.
#[derive(Debug)]
pub struct Exchange<'m> {
    models: &'m Models,
    shown: Arc<ShownRequest>,
    completion: Completion,
    /// Why there is no whole answer.
    failed: Option<Error>,
    record: Pending<'m>,
}

/// How an exchange ended.
#[derive(Debug)]
pub struct Exchanged {
    /// The whole answer.
    pub answer: Answer,
    /// What the API says of it beside.
    pub report: Option<Report>,
}

impl Exchange<'_> {
    /// The next events, at least one, and all that are there already; `None` at the end.
    pub async fn next(&mut self) -> Option<Vec<Event>> {
        let mut events = vec![self.completion.next().await?];
        while let Some(event) = self.completion.try_next() {
            events.push(event);
        }
        if let Some(Event::Failed(error)) = events.last() {
            self.failed = Some(error.clone());
        }
        Some(events)
    }

    /// Whether the API may charge for it, from now on: it was sent, and not refused so far.
    pub(crate) fn charged(&self) -> Arc<AtomicBool> {
        self.completion.charged()
    }

    /// The answer, after hooks have seen it. To be called after the last event.
    ///
    /// # Errors
    /// Why there is no whole answer, or which hook denied it.
    pub async fn end(self) -> Result<Exchanged, Error> {
        let Self { models, shown, completion, failed, record } = self;
        let answer = async {
            let cut_off = || Error::Failed("the answer was cut off".into());
            let answer = failed.map_or_else(|| completion.take_answer().ok_or_else(cut_off), Err)?;
            let seen = Arc::new(shown_answer(&answer));
            hooked(&models.registry, ChatHook::Answer(shown, seen)).await?;
            Ok(answer)
        }
        .await;
        recorded(record, &answer.as_ref()).await;
        Ok(Exchanged { answer: answer?, report: completion.report().cloned() })
    }
}

/// Records in the audit log how an exchange ended.
async fn recorded(record: Pending<'_>, answer: &Result<&Answer, &Error>) {
    record
        .end(|entry| match answer {
            Ok(Answer { usage: Usage { input, cached, output }, .. }) => {
                entry.with("input_tokens", *input).with("cached_tokens", *cached).with("output_tokens", *output)
            }
            Err(error) => {
                // The kind alone: what providers say may repeat what was asked.
                let (kind, refused) = outcome(error);
                if refused { entry.refused(kind) } else { entry.failed(kind) }
            }
        })
        .await;
}

impl ModelView for Models {
    fn names(&self) -> Vec<String> {
        let there = |model: &config::Model| {
            let may = self.llm.enabled && (!self.llm.local_only || self.is_here(model));
            may && self.registry.provider(&model.provider).is_some()
        };
        self.models.iter().filter(|(_, model)| there(model)).map(|(name, _)| name.clone()).collect()
    }

    fn ask<'a>(&'a self, asker: &'a str, model: &'a str, question: Question) -> Later<'a, Result<Answer, Error>> {
        Box::pin(self.turn(asker, model, question))
    }
}

impl Found<'_> {
    /// Has it asked, with the effort of the configuration where the question names none.
    fn complete(&self, mut question: Question, place: Place, cancelled: CancellationToken) -> Completion {
        let (abilities, local_only) = (self.abilities(), self.local_only);
        question.how.effort = question.how.effort.or(self.model.effort.map(|effort| match effort {
            config::Effort::Minimal => Effort::Minimal,
            config::Effort::Low => Effort::Low,
            config::Effort::Medium => Effort::Medium,
            config::Effort::High => Effort::High,
        }));
        let config::Model { provider, model, url, secret, api_key_env: variable, .. } = self.model.clone();
        let ask = Ask { provider, model, url, secret, variable, local_only, abilities, question };
        complete(self.provider.clone(), ask, place, cancelled)
    }

    /// What the model can do: what the configuration says, else what the provider declares, else everything.
    fn abilities(&self) -> Abilities {
        let config::Model { provider, model, tools, streams, schema, .. } = self.model;
        let declared = self.provider.feature.facts().descriptor.model(provider, model);
        Abilities {
            tools: tools.or(declared.and_then(|it| it.tools)).unwrap_or(true),
            streams: streams.or(declared.and_then(|it| it.streams)).unwrap_or(true),
            schema: schema.or(declared.and_then(|it| it.schema)).unwrap_or(true),
            output: declared.and_then(|it| it.output),
        }
    }
}

/// What went wrong, without anything that was said; and whether the host or a hook did not let it be done.
fn outcome(error: &Error) -> (&'static str, bool) {
    match error {
        Error::Denied(_) => ("denied by a grant or a hook", true),
        Error::Invalid(_) => ("there is no such model, or the request is not valid", true),
        Error::Exhausted(_) => ("a limit was reached", true),
        Error::Unavailable(_) => ("it can't be reached, or its provider is not there", false),
        Error::Failed(_) => ("the provider or the API failed", false),
    }
}

/// Asks the features that hook there. Any of them can deny; one that gives no answer does. Remarks go to the log.
async fn hooked(registry: &Registry, hook: ChatHook) -> Result<(), Error> {
    let point = hook.point();
    for (feature, actor) in registry.hooks(point) {
        match hook_answer(actor.chat_hook(hook.clone())).await {
            Ok(ChatDecision::Proceed) => {}
            Ok(ChatDecision::Annotate(remark)) => tracing::info!(feature, "{}: {remark}", point.as_str()),
            Ok(ChatDecision::Deny(reason)) => return Err(Error::Denied(format!("{feature} denied it: {reason}"))),
            // It is over; the other hooks are called all the same.
            Err(error) if point == HookPoint::TurnEnd => tracing::warn!(feature, "turn-end: {error}"),
            Err(error) => {
                return Err(Error::Denied(format!("{feature} denied it: its hook gave no answer: {error}")));
            }
        }
    }
    Ok(())
}

fn shown_request(asker: &str, model: &str, provider: &Provider, question: &Question) -> ShownRequest {
    let last = question.messages.last().map(|message| texts(&message.parts)).unwrap_or_default();
    ShownRequest {
        asker: asker.to_owned(),
        model: model.to_owned(),
        provider: provider.feature.facts().descriptor.id.to_string(),
        messages: u32::try_from(question.messages.len()).unwrap_or(u32::MAX),
        last: excerpt_lines(&last, MAX_SHOWN_TO_HOOKS),
        tools: question.tools.iter().map(|tool| tool.name.clone()).collect(),
    }
}

fn shown_answer(answer: &Answer) -> ShownAnswer {
    let call = |part: &Part| match part {
        Part::ToolCall(call) => Some(call.name.clone()),
        _ => None,
    };
    ShownAnswer {
        text: excerpt_lines(&texts(&answer.parts), MAX_SHOWN_TO_HOOKS),
        calls: answer.parts.iter().filter_map(call).collect(),
        stop: answer.stop.clone(),
        usage: answer.usage,
    }
}

/// The text of a message.
fn texts(parts: &[Part]) -> String {
    let text = |part: &Part| match part {
        Part::Text(text) => Some(text.clone()),
        _ => None,
    };
    parts.iter().filter_map(text).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_that_is_not_there_is_told_with_what_is() {
        let model =
            config::Model { provider: "openai-compatible".into(), model: "m".into(), ..config::Model::default() };
        let models = BTreeMap::from([("local".into(), model)]);
        let models = Models::new(Audit::none(), models, Registry::default(), 60);
        let error = |name| ServiceError::from(models.find(name).err().unwrap()).to_string();
        assert!(error("lokal").contains("did you mean \"local\"?"), "{}", error("lokal"));
        assert!(error("local").contains("no feature has the provider \"openai-compatible\""), "{}", error("local"));
        assert!(models.names().is_empty(), "a model without its provider can't be asked");
    }

    // PLN-4
    #[test]
    fn a_provider_is_asked_so_often_and_the_others_are_not_held_up_by_it() {
        let of = |before: &Models, per_minute| {
            let mut config = config::Config::default();
            config.tools.per_minute.model_requests = per_minute;
            before.following(&config, Registry::default())
        };
        let left = |models: &Models, provider: &str| models.queues.left(provider);
        let first = of(&Models::default(), 60);
        assert_eq!((left(&first, "one"), left(&first, "other")), (10, 10), "ten seconds' worth at once");
        let second = of(&first, 60);
        assert_eq!(left(&second, "one"), 0, "a reload does not give it back");
        assert_eq!(left(&of(&second, 600), "one"), 100);
    }

    // LLM-8, LLM-5
    #[test]
    fn a_model_on_this_computer_costs_nothing_and_may_be_the_only_kind_that_is_asked() {
        let model = |url: &str, price| config::Model {
            provider: "openai-compatible".into(),
            model: "m".into(),
            url: Some(url.into()),
            price,
            ..config::Model::default()
        };
        let price = config::ModelPrice { input: 1.0, output: 2.0, cached: None };
        let mut config = config::Config::default();
        config.llm.local_only = true;
        config.models = BTreeMap::from([
            ("local".to_owned(), model("http://localhost:11434/v1", None)),
            ("metered".to_owned(), model("http://localhost:4000", Some(price))),
            ("far".to_owned(), model("https://api.example.com/v1", None)),
        ]);
        let models = Models::of(&config, Registry::default(), Audit::none());
        assert!(models.is_free("local") && !models.is_free("metered") && !models.is_free("far"));
        let tokens = conductor_package::provider::Tokens { input: 1_000_000, output: 1_000_000, ..Default::default() };
        let cost = |name| models.declared(name).and_then(|declared| declared.cost(tokens));
        assert_eq!((cost("local"), cost("metered"), cost("far")), (Some(0), Some(3_000_000_000), None));
        config.llm = config::Llm { enabled: false, local_only: false };
        let off = models.following(&config, Registry::default());
        let error = ServiceError::from(off.find("local").err().unwrap()).to_string();
        assert!(error.contains("`enabled = false` under [llm]"), "{error}");
    }
}
