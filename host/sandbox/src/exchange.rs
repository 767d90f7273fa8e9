//! One exchange of a provider, from what to send to the last event: an instance of its own.
//!
//! The instance has CPU time for the whole exchange, not for each piece of an answer: a server that sends the
//! answer must not decide how much there is.

use crate::PreparedFeature;
use crate::bindings::control_exports::{exchange_details, providers};
use crate::bindings::imports::chat::Event;
use crate::control::{ControlInstance, EXCHANGE, export};
use crate::limits;
use crate::meter::Call;
use crate::outcome::{CallError, ServiceError};
use conductor_terminal::excerpt;

pub use crate::bindings::control_exports::exchange_details::{Abilities, Report};
pub use crate::bindings::control_exports::providers::{Endpoint, Outgoing, Request, Secret};

/// Events that one piece of an answer may tell.
pub const MAX_EVENTS: usize = 1024;
/// Notes of a report that are kept, and bytes of each.
const MAX_NOTES: (usize, usize) = (8, 256);

/// A provider's instance, with the exchange that it has begun.
#[derive(Debug)]
pub struct Exchange(ControlInstance);

impl Exchange {
    /// Makes an instance, tells it what the model can do, and has it begin. Within the runtime of the control lane only.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn begin(
        feature: &PreparedFeature,
        request: &Request,
        abilities: Abilities,
    ) -> Result<(Self, Outgoing), CallError> {
        let mut instance = feature.instantiate_control().await?;
        let this = &mut instance;
        let providers = export!(this, providers);
        let mut call = Call::begin(&mut this.store, EXCHANGE);
        if feature.facts().descriptor.has_exchange_details() {
            let details = export!(this, exchange_details);
            let result = call.within(details.call_expect(&mut this.store, abilities)).await?;
            this.outcome(result.map(Ok), EXCHANGE)?;
            call = Call::resume(&mut this.store, EXCHANGE);
        }
        let result = call.within(providers.call_begin(&mut this.store, request)).await?;
        let outgoing = this.outcome(result, EXCHANGE)?;
        Ok((Self(instance), outgoing))
    }

    /// Tells the head of the answer.
    ///
    /// # Errors
    /// [`CallError::Trapped`] only.
    pub async fn head(&mut self, status: u16, headers: &[(String, String)]) -> Result<(), CallError> {
        let this = &mut self.0;
        let providers = export!(this, providers);
        let call = Call::resume(&mut this.store, EXCHANGE);
        let result = call.within(providers.call_head(&mut this.store, status, headers)).await?;
        this.outcome(result.map(Ok), EXCHANGE)
    }

    /// Gives more of the answer's body, and returns what it tells.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn body(&mut self, bytes: &[u8]) -> Result<Vec<Event>, CallError> {
        let this = &mut self.0;
        let providers = export!(this, providers);
        let call = Call::resume(&mut this.store, EXCHANGE);
        let result = call.within(providers.call_body(&mut this.store, bytes)).await?;
        bounded(this.outcome(result.map(Ok), EXCHANGE)?)
    }

    /// Tells that the body is at its end, and returns what that tells.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn end(&mut self) -> Result<Vec<Event>, CallError> {
        let this = &mut self.0;
        let providers = export!(this, providers);
        let call = Call::resume(&mut this.store, EXCHANGE);
        let result = call.within(providers.call_end(&mut this.store)).await?;
        bounded(this.outcome(result.map(Ok), EXCHANGE)?)
    }

    /// Returns what is known of the answer beside its events. `None` if the provider does not report it.
    ///
    /// # Errors
    /// [`CallError::Trapped`] only.
    pub async fn report(&mut self) -> Result<Option<Report>, CallError> {
        let this = &mut self.0;
        if !this.store.data().facts.descriptor.has_exchange_details() {
            return Ok(None);
        }
        let details = export!(this, exchange_details);
        let call = Call::resume(&mut this.store, EXCHANGE);
        let result = call.within(details.call_get_report(&mut this.store)).await?;
        let report = this.outcome(result.map(Ok), EXCHANGE)?;
        let (count, size) = MAX_NOTES;
        let notes = report.notes.iter().take(count).map(|note| excerpt(note, size)).collect();
        Ok(Some(Report { model: report.model.map(|model| excerpt(&model, size)), notes, ..report }))
    }
}

/// Refuses what is more than a piece of an answer can tell.
fn bounded(events: Vec<Event>) -> Result<Vec<Event>, CallError> {
    let size: usize = events.iter().map(text).sum();
    if events.len() > MAX_EVENTS || size > limits::MAX_RESULT {
        let (count, most) = (events.len(), limits::MAX_RESULT);
        return Err(CallError::Refused(ServiceError::Exhausted(format!(
            "the provider told {count} events with {size} bytes at once; at most {MAX_EVENTS} with {most} are taken"
        ))));
    }
    Ok(events)
}

/// Bytes of text in an event.
fn text(event: &Event) -> usize {
    let mark = |mark: &Option<String>| mark.as_ref().map_or(0, String::len);
    match event {
        Event::Text(text) | Event::Reasoning(text) => text.len(),
        Event::ReasoningEnd(it) => mark(it),
        Event::CallBegin(call) => call.id.len() + call.name.len(),
        Event::CallArgs(args) => args.text.len(),
        Event::CallEnd(call) => mark(&call.mark),
        Event::Usage(_) | Event::Stop(_) | Event::Failed(_) => 0,
    }
}
