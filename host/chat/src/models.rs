//! The models of the configuration, and completions on behalf of a caller: hooks before, hooks after.

use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Instant;

use tokio_util::sync::CancellationToken;

use super::answer::Gathering;
use super::completion::{Ask, Completion, complete};
use super::{Part, Question, Usage};
use conductor_audit::caller::Caller;
use conductor_audit::{Audit, Entry, Kind, Pending};
use conductor_config::{self as config, nearest};
use conductor_package::descriptor::HookPoint;
use conductor_registry::{Provider, Registry};
use conductor_sandbox::actor::hook_answer;
use conductor_sandbox::bindings::Error;
use conductor_sandbox::control::{ChatDecision, ChatHook, ShownAnswer, ShownRequest, ShownTurn};
use conductor_sandbox::exchange::Abilities;
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
        Self { models, registry, requests: Arc::new(requests), audit }
    }

    /// Those of the configuration that replaces this one's. What was used of a limit that stays the same is used.
    #[must_use]
    pub fn following(
        &self,
        models: BTreeMap<String, config::Model>,
        registry: Registry,
        requests_per_minute: u32,
    ) -> Self {
        let next = Self::new(self.audit.clone(), models, registry, requests_per_minute);
        if self.requests.per_minute == requests_per_minute {
            return Self { requests: Arc::clone(&self.requests), ..next };
        }
        next
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
        let entry = Entry::new(Kind::Model, "ask", &Caller::feature(asker), name);
        let mut record = Pending::new(&self.audit, entry, Instant::now());
        let answer = self.hooked_turn(asker, name, question, &mut record).await;
        record
            .end(|entry| match &answer {
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
        answer
    }

    async fn hooked_turn(
        &self,
        asker: &str,
        name: &str,
        question: Question,
        record: &mut Pending<'_>,
    ) -> Result<Answer, Error> {
        let found = self.find(name)?;
        record.with("provider", found.model.provider.as_str());
        record.with("model", found.model.model.as_str());
        let shown = Arc::new(shown_request(asker, name, &found.provider, &question));
        let mut turn = ShownTurn {
            asker: asker.to_owned(),
            model: name.to_owned(),
            requests: 0,
            usage: Usage { input: 0, cached: 0, output: 0 },
            failed: None,
        };
        let answer = async {
            hooked(&self.registry, ChatHook::Request(Arc::clone(&shown))).await?;
            self.requests.admit(&found.model.provider)?;
            turn.requests = 1;
            // Ended by being dropped.
            let mut completion = found.complete(question, CancellationToken::new());
            let mut gathering = Gathering::default();
            while let Some(event) = completion.next().await {
                gathering.take(event)?;
            }
            let answer = gathering.answer().ok_or_else(|| Error::Failed("the answer was cut off".into()))?;
            turn.usage = answer.usage;
            hooked(&self.registry, ChatHook::Answer(Arc::clone(&shown), Arc::new(shown_answer(&answer)))).await?;
            Ok(answer)
        }
        .await;
        turn.failed = answer.as_ref().err().map(|error: &Error| ServiceError::from(error.clone()).to_string());
        // It is over, whatever anybody says about it.
        let _ = hooked(&self.registry, ChatHook::Turn(Arc::new(turn))).await;
        answer
    }
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
        let of = |before: &Models, per_minute| before.following(BTreeMap::new(), Registry::default(), per_minute);
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
