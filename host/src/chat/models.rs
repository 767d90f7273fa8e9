//! The models that there are, and asking one of them on somebody's behalf: hooks before, hooks after.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use tokio_util::sync::CancellationToken;

use super::answer::Gathering;
use super::completion::{Ask, Completion, complete};
use super::{Part, Question, Usage};
use crate::config::{self, nearest};
use crate::control::gate::asked;
use crate::feature::descriptor::HookPoint;
use crate::feature::registry::{Provider, Registry};
use crate::feature::sandbox::bindings::Error;
use crate::feature::sandbox::control::{ChatDecision, ChatHook, ShownAnswer, ShownRequest, ShownTurn};
use crate::service::models::{Answer, Later, ModelView};
use crate::service::refusal::Refusal;
use crate::terminal::{excerpt, excerpt_lines};

/// Bytes of what is asked or answered that hooks get to see.
const SHOWN: usize = 16 * 1024;

/// The models of one host.
#[derive(Debug, Default)]
pub struct Models(RwLock<State>);

#[derive(Debug, Default)]
struct State {
    models: BTreeMap<String, config::Model>,
    registry: Registry,
}

/// A model, with the way to it.
struct Found {
    model: config::Model,
    provider: Provider,
    registry: Registry,
}

impl Models {
    /// These models and features from now on.
    pub fn set(&self, models: BTreeMap<String, config::Model>, registry: Registry) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = State { models, registry };
    }

    fn find(&self, name: &str) -> Result<Found, Error> {
        let State { models, registry } = &*self.0.read().unwrap_or_else(PoisonError::into_inner);
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
        Ok(Found { model: model.clone(), provider, registry: registry.clone() })
    }

    /// Asks a model, and returns what tells of the answer as it comes. No hooks are asked: that is for whoever
    /// knows the whole turn.
    ///
    /// # Errors
    /// `Invalid` when there is no such model, `Unavailable` when its provider is not installed.
    pub fn complete(&self, name: &str, question: Question, cancelled: CancellationToken) -> Result<Completion, Error> {
        Ok(self.find(name)?.complete(question, cancelled))
    }

    /// A turn of one request: hooks, the question, hooks, the answer.
    async fn turn(&self, asker: &str, name: &str, question: Question) -> Result<Answer, Error> {
        let found = self.find(name)?;
        let shown = Arc::new(shown_request(asker, name, &found.provider, &question));
        let mut turn = ShownTurn {
            asker: asker.to_owned(),
            model: name.to_owned(),
            requests: 0,
            usage: Usage { input: 0, cached: 0, output: 0 },
            failed: None,
        };
        let answer = async {
            hooked(&found.registry, ChatHook::Request(Arc::clone(&shown))).await?;
            turn.requests = 1;
            // Ended by being dropped.
            let mut completion = found.complete(question, CancellationToken::new());
            let mut gathering = Gathering::default();
            while let Some(event) = completion.next().await {
                gathering.take(event)?;
            }
            let answer = gathering.answer().ok_or_else(|| Error::Failed("the answer was cut off".into()))?;
            turn.usage = answer.usage;
            hooked(&found.registry, ChatHook::Answer(Arc::clone(&shown), Arc::new(shown_answer(&answer)))).await?;
            Ok(answer)
        }
        .await;
        turn.failed = answer.as_ref().err().map(|error: &Error| Refusal::from(error.clone()).to_string());
        // It is over, whatever anybody says about it.
        let _ = hooked(&found.registry, ChatHook::Turn(Arc::new(turn))).await;
        answer
    }
}

impl ModelView for Models {
    fn names(&self) -> Vec<String> {
        let state = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let there = |model: &config::Model| state.registry.provider(&model.provider).is_some();
        state.models.iter().filter(|(_, model)| there(model)).map(|(name, _)| name.clone()).collect()
    }

    fn ask<'a>(&'a self, asker: &'a str, model: &'a str, question: Question) -> Later<'a, Result<Answer, Error>> {
        Box::pin(self.turn(asker, model, question))
    }
}

impl Found {
    fn complete(&self, question: Question, cancelled: CancellationToken) -> Completion {
        let config::Model { provider, model, url, secret } = self.model.clone();
        complete(self.provider.clone(), Ask { provider, model, url, secret, question }, cancelled)
    }
}

/// Asks the features that hook there. Any of them can deny; one that gives no answer does. Remarks go to the log.
async fn hooked(registry: &Registry, hook: ChatHook) -> Result<(), Error> {
    let point = hook.point();
    for (feature, actor) in registry.hooks(point) {
        match asked(actor.chat_hook(hook.clone())).await {
            Ok(ChatDecision::Proceed) => {}
            Ok(ChatDecision::Annotate(remark)) => tracing::info!(feature, "{}: {remark}", point.as_str()),
            Ok(ChatDecision::Deny(reason)) => return Err(Error::Denied(format!("{feature} denied it: {reason}"))),
            // It is over; the others are told all the same.
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
        last: excerpt_lines(&last, SHOWN),
        tools: question.tools.iter().map(|tool| tool.name.clone()).collect(),
    }
}

fn shown_answer(answer: &Answer) -> ShownAnswer {
    let call = |part: &Part| match part {
        Part::ToolCall(call) => Some(call.name.clone()),
        _ => None,
    };
    ShownAnswer {
        text: excerpt_lines(&texts(&answer.parts), SHOWN),
        calls: answer.parts.iter().filter_map(call).collect(),
        stop: answer.stop.clone(),
        usage: answer.usage,
    }
}

/// What was said in words.
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
        let models = Models::default();
        let model = config::Model { provider: "openai-compatible".into(), model: "m".into(), url: None, secret: None };
        models.set(BTreeMap::from([("local".into(), model)]), Registry::default());
        let error = |name| Refusal::from(models.find(name).err().unwrap()).to_string();
        assert!(error("lokal").contains("did you mean \"local\"?"), "{}", error("lokal"));
        assert!(error("local").contains("no feature has the provider \"openai-compatible\""), "{}", error("local"));
        assert!(models.names().is_empty(), "a model without its provider can't be asked");
    }
}
