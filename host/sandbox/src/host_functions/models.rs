//! The contract's `models` and `parallel-models`: the guest's handle to the models of its grant.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use wasmtime::component::Resource;

use crate::bindings::imports::chat::{Part, Question};
use crate::bindings::imports::{models, parallel_models};
use crate::bindings::{Error, waiting_models, waiting_parallel_models};
use crate::handles::{Context, ModelAccess};
use crate::model_view::Answer;
use crate::state::{FeatureFacts, InstanceState};
use conductor_package::capability::{Capability, CapabilityKind, names};
use conductor_package::consent;
use conductor_services::error::shown;

/// Bytes of text that make about one token.
const BYTES_PER_TOKEN: usize = 4;
/// Questions that are asked at once in one call.
const MAX_INQUIRIES: usize = 16;
/// What a picture takes, about.
const IMAGE_TOKENS: usize = 1500;

/// About how many tokens a question has.
fn estimate(question: &Question) -> u32 {
    let part = |part: &Part| match part {
        Part::Text(text) => text.len(),
        Part::Image(_) => IMAGE_TOKENS * BYTES_PER_TOKEN,
        Part::Reasoning(thought) => thought.text.len() + thought.mark.as_ref().map_or(0, String::len),
        Part::ToolCall(call) => call.name.len() + call.args.len(),
        Part::ToolResult(result) => result.content.len(),
    };
    let messages = question.messages.iter().flat_map(|message| &message.parts).map(part).sum::<usize>();
    let tools = question.tools.iter().map(|tool| tool.name.len() + tool.description.len() + tool.input.len());
    let bytes = question.instructions.len() + messages + tools.sum::<usize>();
    u32::try_from(bytes / BYTES_PER_TOKEN).unwrap_or(u32::MAX)
}

impl FeatureFacts {
    /// Whether both the descriptor and the grants name `model`.
    fn may_ask(&self, model: &str) -> bool {
        let declared = match self.descriptor.request(CapabilityKind::UseModel).map(|request| &request.capability) {
            Some(Capability::UseModel { models, .. }) => names(models, model),
            _ => false,
        };
        declared && names(&self.grants.models, model)
    }

    /// Asks a model that was granted, within its tokens per minute.
    async fn ask_model(&self, model: &str, mut question: Question) -> Result<Answer, Error> {
        if !self.may_ask(model) {
            let shown = shown(model);
            let advice = self
                .grantee
                .advice(&format!("models = [{shown}]"), &consent::word(CapabilityKind::UseModel.as_str(), model));
            return Err(Error::Denied(format!("the model {shown} is not granted; {advice}")));
        }
        let there = self.services.models.get();
        let there = there.ok_or_else(|| Error::Unavailable("no model can be asked here".into()))?;
        let input = estimate(&question);
        let Some(reserved) = self.tokens.reserve(input, question.how.max_tokens, Instant::now()) else {
            return Err(Error::Exhausted(format!(
                "the question has about {input} tokens, and of {} per minute there are not as many left; try again later",
                self.tokens.per_minute()
            )));
        };
        question.how.max_tokens = Some(reserved.output);
        let asked = there.ask(self.descriptor.id.as_str(), model, question);
        let answer = tokio::select! {
            biased;
            () = self.ended().cancelled() => return Err(super::revoked()),
            answer = asked => answer,
        };
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => {
                // Where an answer had begun, what was set aside for it stays charged.
                if !matches!(error, Error::Failed(_) | Error::Exhausted(_)) {
                    self.tokens.settle(reserved, input);
                }
                return Err(error);
            }
        };
        // What the API counts is believed as long as it is not too good: half of what it looks like.
        let counted = answer.usage.input.saturating_add(answer.usage.output);
        let output = u32::try_from(answer.size / BYTES_PER_TOKEN).unwrap_or(u32::MAX);
        self.tokens.settle(reserved, counted.max(input.saturating_add(output) / 2));
        Ok(answer)
    }
}

impl InstanceState {
    fn open_models(&mut self, context: &Resource<Context>) -> wasmtime::Result<Result<Resource<ModelAccess>, Error>> {
        self.table.get(context)?;
        Ok(match self.granted(CapabilityKind::UseModel) {
            Ok(()) => Ok(self.table.push(ModelAccess)?),
            Err(error) => Err(error),
        })
    }

    fn model_names(&self, access: &Resource<ModelAccess>) -> wasmtime::Result<Vec<String>> {
        self.table.get(access)?;
        if self.facts.is_revoked() {
            return Ok(Vec::new());
        }
        let all = self.facts.services.models.get().map(|models| models.names()).unwrap_or_default();
        Ok(all.into_iter().filter(|name| self.facts.may_ask(name)).collect())
    }
}

impl From<Answer> for waiting_models::Answer {
    fn from(Answer { parts, stop, usage, .. }: Answer) -> Self {
        Self { parts, stop, usage }
    }
}

impl models::Host for InstanceState {}

impl models::HostAccess for InstanceState {
    fn open(&mut self, context: Resource<Context>) -> wasmtime::Result<Result<Resource<ModelAccess>, Error>> {
        self.open_models(&context)
    }

    fn names(&mut self, access: Resource<ModelAccess>) -> wasmtime::Result<Vec<String>> {
        self.model_names(&access)
    }

    fn ask(
        &mut self,
        access: Resource<ModelAccess>,
        _: String,
        _: Question,
    ) -> wasmtime::Result<Result<models::Answer, Error>> {
        self.table.get(&access)?;
        Ok(Err(super::waits("a model")))
    }

    fn drop(&mut self, access: Resource<ModelAccess>) -> wasmtime::Result<()> {
        self.table.delete(access)?;
        Ok(())
    }
}

impl waiting_models::Host for InstanceState {}

impl waiting_models::HostAccess for InstanceState {
    fn open(&mut self, context: Resource<Context>) -> wasmtime::Result<Result<Resource<ModelAccess>, Error>> {
        self.open_models(&context)
    }

    fn names(&mut self, access: Resource<ModelAccess>) -> wasmtime::Result<Vec<String>> {
        self.model_names(&access)
    }

    async fn ask(
        &mut self,
        access: Resource<ModelAccess>,
        model: String,
        question: Question,
    ) -> wasmtime::Result<Result<waiting_models::Answer, Error>> {
        self.table.get(&access)?;
        Ok(self.facts.ask_model(&model, question).await.map(Into::into))
    }

    fn drop(&mut self, access: Resource<ModelAccess>) -> wasmtime::Result<()> {
        self.table.delete(access)?;
        Ok(())
    }
}

impl parallel_models::Host for InstanceState {
    fn ask_all(
        &mut self,
        access: Resource<ModelAccess>,
        inquiries: Vec<parallel_models::Inquiry>,
        _: u32,
    ) -> wasmtime::Result<Vec<Result<models::Answer, Error>>> {
        self.table.get(&access)?;
        Ok(inquiries.iter().map(|_| Err(super::waits("a model"))).collect())
    }
}

impl waiting_parallel_models::Host for InstanceState {
    async fn ask_all(
        &mut self,
        access: Resource<ModelAccess>,
        inquiries: Vec<waiting_parallel_models::Inquiry>,
        timeout_ms: u32,
    ) -> wasmtime::Result<Vec<Result<waiting_models::Answer, Error>>> {
        self.table.get(&access)?;
        let facts = &self.facts;
        let ask = |(number, inquiry): (usize, waiting_parallel_models::Inquiry)| async move {
            if number >= MAX_INQUIRIES {
                return Err(Error::Invalid(format!("at most {MAX_INQUIRIES} models are asked at once")));
            }
            let asked = facts.ask_model(&inquiry.model, inquiry.question);
            let late = |_| Err(Error::Unavailable(format!("it did not answer within {timeout_ms} ms")));
            let timeout = Duration::from_millis(timeout_ms.into());
            tokio::time::timeout(timeout, asked).await.unwrap_or_else(late).map(Into::into)
        };
        Ok(join_all(inquiries.into_iter().enumerate().map(ask)).await)
    }
}
