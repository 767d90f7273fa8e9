//! The models of the configuration, and completions on behalf of a caller: hooks before, hooks after.

use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Instant;

use tokio_util::sync::CancellationToken;

use super::answer::Gathering;
use super::completion::{Ask, Completion, complete};
use super::{Event, Part, Question, Usage};
use conductor_audit::caller::Caller;
use conductor_audit::{Audit, Entry, Kind, Pending};
use conductor_config::{self as config, nearest};
use conductor_package::descriptor::{HookPoint, ModelDeclaration};
use conductor_registry::{Provider, Registry};
use conductor_sandbox::actor::hook_answer;
use conductor_sandbox::bindings::Error;
use conductor_sandbox::control::{ChatDecision, ChatHook, ShownAnswer, ShownRequest, ShownTurn};
use conductor_sandbox::exchange::{Abilities, Report};
use conductor_sandbox::host_functions::models::{Answer, Later, ModelView};
use conductor_services::error::ServiceError;
use conductor_stdx::rate::RateLimiter;
use conductor_terminal::{excerpt, excerpt_lines};

/// Bytes of what is asked or answered that hooks get to see.
const MAX_SHOWN_TO_HOOKS: usize = 16 * 1024;

/// Seconds' worth of requests that may be made at once to one provider.
const BURST_SECONDS: f64 = 10.0;

/// The models of one configuration. Every question to one is on record: who asked which model, tokens, what came of it;
/// never what was said.
#[derive(Debug, Default)]
pub struct Models {
    models: BTreeMap<String, config::Model>,
    chat: config::Chat,
    registry: Registry,
    requests: Arc<Requests>,
    audit: Audit,
}

/// How many requests may be made to one provider in a minute, and how many were.
#[derive(Debug, Default)]
struct Requests {
    per_minute: u32,
    /// Of each provider that was asked.
    rates: Mutex<HashMap<String, Arc<RateLimiter>>>,
}

/// A model, with the way to it.
struct Found<'m> {
    model: &'m config::Model,
    provider: Provider,
}

impl Models {
    /// These models, asked through the providers of `registry`, with so many requests a minute to each provider. Who is
    /// asked is put on record in `audit`.
    pub fn new(
        audit: Audit,
        models: BTreeMap<String, config::Model>,
        registry: Registry,
        requests_per_minute: u32,
    ) -> Self {
        let requests = Requests { per_minute: requests_per_minute, rates: Mutex::default() };
        Self { models, registry, requests: Arc::new(requests), audit, chat: config::Chat::default() }
    }

    /// Those of a configuration, with what it says of conversations.
    pub fn of(config: &config::Config, registry: Registry, audit: Audit) -> Self {
        let per_minute = config.tools.per_minute.model_requests;
        Self { chat: config.chat.clone(), ..Self::new(audit, config.models.clone(), registry, per_minute) }
    }

    /// Those of the configuration that replaces this one's. What was used of a limit that stays the same is used.
    #[must_use]
    pub fn following(&self, config: &config::Config, registry: Registry) -> Self {
        let next = Self::of(config, registry, self.audit.clone());
        if self.requests.per_minute == next.requests.per_minute {
            return Self { requests: Arc::clone(&self.requests), ..next };
        }
        next
    }

    /// What the configuration says of conversations.
    pub fn chat(&self) -> &config::Chat {
        &self.chat
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
            declared: self.declared(name).and_then(|declared| serde_json::to_value(declared).ok()),
        };
        self.models.iter().map(view).collect()
    }

    /// What the provider's feature declares of a model. `None` if it declares nothing.
    pub fn declared(&self, name: &str) -> Option<ModelDeclaration> {
        let config::Model { provider, model, .. } = self.models.get(name)?;
        self.registry.provider(provider)?.feature.facts().descriptor.model(provider, model).cloned()
    }

    /// The provider of a model, by the configuration. Empty if there is no such model.
    pub fn provider_of(&self, name: &str) -> String {
        self.models.get(name).map(|model| model.provider.clone()).unwrap_or_default()
    }

    fn find(&self, name: &str) -> Result<Found<'_>, Error> {
        let Self { models, registry, .. } = self;
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
        Ok(Found { model, provider })
    }

    /// Asks a model, and returns the events of the answer as they come. No hooks are called: that is for callers
    /// that have the whole turn.
    ///
    /// # Errors
    /// `Invalid` when there is no such model, `Unavailable` when its provider is not installed, `Exhausted` when it was
    /// asked too often.
    pub fn complete(&self, name: &str, question: Question, cancelled: CancellationToken) -> Result<Completion, Error> {
        let found = self.find(name)?;
        self.requests.admit(&found.model.provider)?;
        Ok(found.complete(question, cancelled))
    }

    /// A turn of one request: hooks, the question, hooks, the answer.
    async fn turn(&self, asker: &str, name: &str, question: Question) -> Result<Answer, Error> {
        let mut turn = summary(asker, name);
        let answer = async {
            // Ended by being dropped.
            let cancelled = CancellationToken::new();
            let mut exchange = self.begin(&Caller::feature(asker), asker, name, question, cancelled).await?;
            turn.requests = 1;
            while exchange.next().await.is_some() {}
            let answer = exchange.end().await?.answer;
            turn.usage = answer.usage;
            Ok(answer)
        }
        .await;
        turn.failed = answer.as_ref().err().map(|error: &Error| ServiceError::from(error.clone()).to_string());
        self.end_turn(turn).await;
        answer
    }

    /// Begins an exchange with a model: hooks are asked, and the question is sent. It is on record, however it ends.
    ///
    /// # Errors
    /// As [`complete`](Self::complete), and `Denied` if a hook does not let it be asked.
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
        match self.begun(asker, name, question, cancelled, &mut record).await {
            Ok((shown, completion)) => {
                let gathering = Gathering::default();
                Ok(Exchange { models: self, shown, completion, gathering: Ok(gathering), record })
            }
            Err(error) => {
                recorded(record, &Err(&error)).await;
                Err(error)
            }
        }
    }

    async fn begun(
        &self,
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
        self.requests.admit(&found.model.provider)?;
        Ok((shown, found.complete(question, cancelled)))
    }

    /// Says to the features that hook there that a turn is over.
    pub async fn end_turn(&self, turn: ShownTurn) {
        // It is over, whatever anybody says about it.
        let _ = hooked(&self.registry, ChatHook::Turn(Arc::new(turn))).await;
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
    /// What the provider's feature declares of it: limits, abilities, prices, and the document and the day that they are
    /// of. `None` if nothing is.
    pub declared: Option<serde_json::Value>,
}

/// An exchange under way. Dropping it ends it, on record as left.
#[derive(Debug)]
pub struct Exchange<'m> {
    models: &'m Models,
    shown: Arc<ShownRequest>,
    completion: Completion,
    /// The answer so far, or why there won't be one.
    gathering: Result<Gathering, Error>,
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
        if self.gathering.is_err() {
            return None;
        }
        let mut events = vec![self.completion.next().await?];
        while let Some(event) = self.completion.try_next() {
            events.push(event);
        }
        for event in &events {
            if let Ok(gathering) = &mut self.gathering
                && let Err(error) = gathering.take(event.clone())
            {
                self.gathering = Err(error);
            }
        }
        Some(events)
    }

    /// The answer, after hooks have seen it. To be called after the last event.
    ///
    /// # Errors
    /// Why there is no whole answer, or which hook denied it.
    pub async fn end(self) -> Result<Exchanged, Error> {
        let Self { models, shown, completion, gathering, record } = self;
        let answer = async {
            let answer = gathering?.answer().ok_or_else(|| Error::Failed("the answer was cut off".into()))?;
            let seen = Arc::new(shown_answer(&answer));
            hooked(&models.registry, ChatHook::Answer(shown, seen)).await?;
            Ok(answer)
        }
        .await;
        recorded(record, &answer.as_ref()).await;
        Ok(Exchanged { answer: answer?, report: completion.report().cloned() })
    }
}

/// Puts on record how an exchange ended.
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
        let there = |model: &config::Model| self.registry.provider(&model.provider).is_some();
        self.models.iter().filter(|(_, model)| there(model)).map(|(name, _)| name.clone()).collect()
    }

    fn ask<'a>(&'a self, asker: &'a str, model: &'a str, question: Question) -> Later<'a, Result<Answer, Error>> {
        Box::pin(self.turn(asker, model, question))
    }
}

impl Requests {
    /// Counts a request to a provider.
    ///
    /// # Errors
    /// `Exhausted` if too many were made.
    fn admit(&self, provider: &str) -> Result<(), Error> {
        let rate = {
            let mut rates = self.rates.lock();
            let per_second = f64::from(self.per_minute.max(1)) / 60.0;
            let new = || Arc::new(RateLimiter::new(per_second, (per_second * BURST_SECONDS).max(1.0)));
            // Providers are named in the configuration, so there are few.
            Arc::clone(rates.entry(provider.to_owned()).or_insert_with(new))
        };
        let now = Instant::now();
        if rate.take(now) {
            return Ok(());
        }
        let (per_minute, left) = (self.per_minute, rate.wait(now).as_secs_f64().max(0.1));
        Err(Error::Exhausted(format!(
            "too many requests to the provider {provider}: {per_minute} a minute may be made to its models; try again in \
             {left:.1} s (`model_requests` under [tools.per_minute])"
        )))
    }
}

impl Found<'_> {
    fn complete(&self, question: Question, cancelled: CancellationToken) -> Completion {
        let abilities = self.abilities();
        let config::Model { provider, model, url, secret, .. } = self.model.clone();
        complete(self.provider.clone(), Ask { provider, model, url, secret, abilities, question }, cancelled)
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
        let model = config::Model {
            provider: "openai-compatible".into(),
            model: "m".into(),
            url: None,
            secret: None,
            tools: None,
            streams: None,
            schema: None,
        };
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
        let admitted =
            |models: &Models, provider: &str| (0..100).filter(|_| models.requests.admit(provider).is_ok()).count();
        let first = of(&Models::default(), 60);
        assert_eq!((admitted(&first, "one"), admitted(&first, "other")), (10, 10), "ten seconds' worth at once");
        let second = of(&first, 60);
        assert_eq!(admitted(&second, "one"), 0, "a reload does not give it back");
        let refused = ServiceError::from(second.requests.admit("one").unwrap_err()).to_string();
        assert!(refused.contains("60 a minute") && refused.contains("model_requests"), "{refused}");
        assert_eq!(admitted(&of(&second, 600), "one"), 100);
    }
}
