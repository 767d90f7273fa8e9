//! Conversations with models: what is kept of them, turns, and a person's answers. They are the owner's.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::Extension;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use tokio::sync::watch;

use super::{change, look};
use crate::door::Client;
use crate::error::{Body, Code, ErrorResponse, Named, Query};
use crate::route::{Route, get, post};
use crate::scope::Scope;
use conductor_chat::Conversations;
use conductor_chat::conversations::{ApprovalError, TurnError};
use conductor_chat::record::Recorded;
use conductor_chat::store::usage::{UsageBy, UsageRow};
use conductor_chat::store::{ConversationQuery, ConversationView, MAX_PAGE, StoreError};
use conductor_host::control::trouble::Misconduct;

/// Events that are read at once.
const MAX_BATCH: usize = 256;

/// The conversations of this host. `None` if they can't be kept.
#[derive(Debug, Clone)]
pub(crate) struct Chat(pub(crate) Option<Arc<Conversations>>);

impl Chat {
    pub(super) fn get(self) -> Result<Arc<Conversations>, ErrorResponse> {
        let none = || "conversations can't be kept in this home; the log of the host says why";
        self.0.ok_or_else(|| ErrorResponse::new(StatusCode::SERVICE_UNAVAILABLE, Code::Unavailable, none()))
    }
}

pub(super) fn routes() -> Vec<Route> {
    const ONE: &[u16] = &[404, 503];
    let list = "Conversations, the last changed first, or those in which a message has certain words";
    let follow = "What happened in a conversation, one JSON object a line; with `follow` also what happens from now on";
    let answer = "Answer what a call waits for: a person's yes or no to exactly what was shown";
    vec![
        get::<Vec<ConversationView>>("/v1/conversations", "listConversations", list)
            .scope(Scope::Owner)
            .query::<ConversationQuery>()
            .refuses(&[400, 503])
            .by(conversations),
        post::<ConversationView>("/v1/conversations", "beginConversation", "Begin a conversation")
            .scope(Scope::Owner)
            .body::<BeginConversation>()
            .refuses(&[404, 409, 422, 503])
            .by(begin),
        get::<ConversationView>("/v1/conversations/{id}", "getConversation", "A conversation, without what was said")
            .scope(Scope::Owner)
            .refuses(ONE)
            .by(conversation),
        get::<Recorded>("/v1/conversations/{id}/events", "readConversation", follow)
            .scope(Scope::Owner)
            .query::<ConversationEvents>()
            .refuses(&[400, 404, 429, 503])
            .lines()
            .by(events),
        post::<TurnBegun>("/v1/conversations/{id}/turns", "beginTurn", "Say something, and have a model answer")
            .scope(Scope::Owner)
            .body::<Say>()
            .refuses(&[404, 409, 422, 429, 503])
            .by(say),
        post::<()>("/v1/conversations/{id}/cancel", "cancelTurn", "End the turn that is under way")
            .scope(Scope::Owner)
            .refuses(&[404, 409, 503])
            .by(cancel),
        post::<()>("/v1/conversations/{id}/approve", "approveCall", answer)
            .scope(Scope::Owner)
            .body::<ApprovalAnswer>()
            .refuses(&[404, 409, 422, 503])
            .by(approve),
        post::<ConversationView>(
            "/v1/conversations/{id}/fork",
            "forkConversation",
            "Begin a conversation with what was said in another one",
        )
        .scope(Scope::Owner)
        .body::<ForkConversation>()
        .refuses(&[404, 409, 422, 503])
        .by(fork),
        post::<()>(
            "/v1/conversations/{id}/delete",
            "deleteConversation",
            "Delete a conversation; what it cost is kept",
        )
        .scope(Scope::Owner)
        .refuses(&[404, 409, 503])
        .by(delete),
        get::<Vec<UsageRow>>("/v1/usage", "listUsage", "What conversations and features took and cost")
            .query::<UsageQuery>()
            .refuses(&[400, 503])
            .by(usage),
    ]
}

/// How a conversation begins.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BeginConversation {
    /// The model that is asked first, by its name under `[models]`. Default: as `[chat]` says.
    #[serde(default)]
    pub model: Option<String>,
}

/// Which events of a conversation.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConversationEvents {
    /// Those with a larger number. Default: 0, all.
    #[serde(default)]
    pub after: u64,
    /// Whether to go on with those that come, until the client leaves. Default: false.
    #[serde(default)]
    pub follow: bool,
}

/// What a person says.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Say {
    /// The text, 1 to 262144 bytes.
    #[schemars(length(min = 1))]
    pub text: String,
    /// The model that the conversation goes on with, by its name under `[models]`. Default: the one before.
    #[serde(default)]
    pub model: Option<String>,
}

/// A turn that has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TurnBegun {
    /// Its events have larger numbers than this; it is over with `turn_ended`.
    pub after: u64,
}

/// A person's answer.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApprovalAnswer {
    /// The id of the approval that waits.
    pub id: String,
    /// Whether they agree.
    pub agreed: bool,
    /// What they typed after the first yes, where a phrase is asked for.
    #[serde(default)]
    pub phrase: Option<String>,
}

/// From where a conversation is forked.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ForkConversation {
    /// The number of the last event that the fork has, 0 to 4294967295. Default: all.
    #[serde(default, deserialize_with = "whole")]
    #[schemars(range(max = 4_294_967_295_u32))]
    pub through: Option<u64>,
}

/// A whole number, however it is written: to JSON Schema `268.0` is an integer, too.
fn whole<'de, D: Deserializer<'de>>(value: D) -> Result<Option<u64>, D::Error> {
    let Some(number) = Option::<serde_json::Number>::deserialize(value)? else { return Ok(None) };
    let is_whole = |float: &f64| float.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(float);
    let whole = number.as_u64().or_else(|| number.as_f64().filter(is_whole).map(|float| float as u64));
    whole.map(Some).ok_or_else(|| D::Error::custom(format!("{number} is no number of an event")))
}

/// How usage is added up.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UsageQuery {
    /// By what. Default: `day`.
    #[serde(default)]
    pub by: UsageBy,
}

/// The number of a conversation in a path.
fn number(id: &str) -> Result<u64, ErrorResponse> {
    // The store counts up to the largest number with a sign.
    let number = id.parse::<u64>().ok().filter(|number| i64::try_from(*number).is_ok());
    number.ok_or_else(|| ErrorResponse::not_found(format!("{id:.40?} is no number of a conversation")))
}

async fn conversations(
    Extension(chat): Extension<Chat>,
    Extension(client): Extension<Client>,
    Query(query): Query<ConversationQuery>,
) -> Result<Json<Vec<ConversationView>>, ErrorResponse> {
    if query.limit.is_some_and(|limit| !(1..=MAX_PAGE).contains(&limit)) {
        return Err(ErrorResponse::bad_request(format!("limit is 1 to {MAX_PAGE} conversations")));
    }
    let chat = chat.get()?;
    Ok(Json(look(&client, move || chat.store().list(&query)).await?))
}

async fn begin(
    Extension(chat): Extension<Chat>,
    Extension(client): Extension<Client>,
    Body(BeginConversation { model }): Body<BeginConversation>,
) -> Result<Json<ConversationView>, ErrorResponse> {
    let chat = chat.get()?;
    Ok(Json(change(&client, move || chat.begin(model.as_deref())).await?))
}

async fn conversation(
    Extension(chat): Extension<Chat>,
    Extension(client): Extension<Client>,
    Named(id): Named,
) -> Result<Json<ConversationView>, ErrorResponse> {
    let (chat, id) = (chat.get()?, number(&id)?);
    Ok(Json(look(&client, move || chat.store().view(id)).await?))
}

async fn say(
    Extension(chat): Extension<Chat>,
    Extension(client): Extension<Client>,
    Named(id): Named,
    Body(Say { text, model }): Body<Say>,
) -> Result<Json<TurnBegun>, ErrorResponse> {
    let (chat, id) = (chat.get()?, number(&id)?);
    let after = change(&client, move || chat.say(id, &text, model.as_deref())).await?;
    Ok(Json(TurnBegun { after }))
}

async fn cancel(Extension(chat): Extension<Chat>, Named(id): Named) -> Result<Json<()>, ErrorResponse> {
    Ok(Json(chat.get()?.cancel(number(&id)?)?))
}

async fn approve(
    Extension(chat): Extension<Chat>,
    Named(id): Named,
    Body(ApprovalAnswer { id: approval, agreed, phrase }): Body<ApprovalAnswer>,
) -> Result<Json<()>, ErrorResponse> {
    Ok(Json(chat.get()?.approve(number(&id)?, &approval, agreed, phrase.as_deref())?))
}

async fn fork(
    Extension(chat): Extension<Chat>,
    Extension(client): Extension<Client>,
    Named(id): Named,
    Body(ForkConversation { through }): Body<ForkConversation>,
) -> Result<Json<ConversationView>, ErrorResponse> {
    let (chat, id) = (chat.get()?, number(&id)?);
    Ok(Json(change(&client, move || chat.store().fork(id, through)).await?))
}

async fn delete(
    Extension(chat): Extension<Chat>,
    Extension(client): Extension<Client>,
    Named(id): Named,
) -> Result<Json<()>, ErrorResponse> {
    let (chat, id) = (chat.get()?, number(&id)?);
    Ok(Json(change(&client, move || chat.delete(id)).await?))
}

async fn usage(
    Extension(chat): Extension<Chat>,
    Extension(client): Extension<Client>,
    Query(UsageQuery { by }): Query<UsageQuery>,
) -> Result<Json<Vec<UsageRow>>, ErrorResponse> {
    let chat = chat.get()?;
    Ok(Json(look(&client, move || chat.store().usage(by)).await?))
}

async fn events(
    Extension(chat): Extension<Chat>,
    Extension(client): Extension<Client>,
    Named(id): Named,
    Query(ConversationEvents { after, follow }): Query<ConversationEvents>,
) -> Result<impl IntoResponse, ErrorResponse> {
    let (chat, id) = (chat.get()?, number(&id)?);
    let permit = client.quota.stream().inspect_err(|_| client.note(None, Misconduct::Streams))?;
    // Before the first look, so that nothing is missed that is kept in between.
    let last = follow.then(|| chat.follow(id));
    let there = Arc::clone(&chat);
    look(&client, move || there.store().view(id)).await?;
    let reader = Reader { chat, id, after, last };
    let lines = futures_util::stream::unfold((reader, permit), async |(mut reader, permit)| {
        let lines = reader.next().await?;
        Some((Ok::<_, Infallible>(Bytes::from(lines)), (reader, permit)))
    });
    Ok(([(header::CONTENT_TYPE, "application/x-ndjson")], axum::body::Body::from_stream(lines)))
}

/// A client's place in a conversation.
struct Reader {
    chat: Arc<Conversations>,
    id: u64,
    after: u64,
    /// `None` if the stream ends with what there is.
    last: Option<watch::Receiver<u64>>,
}

impl Reader {
    /// The next lines; `None` at the end.
    async fn next(&mut self) -> Option<String> {
        loop {
            if let Some(last) = &mut self.last {
                last.borrow_and_update();
            }
            let (chat, id, after) = (Arc::clone(&self.chat), self.id, self.after);
            let read = tokio::task::spawn_blocking(move || chat.store().events(id, after, MAX_BATCH)).await;
            // One that was deleted has no more.
            let events = read.ok()?.ok()?;
            if let Some(event) = events.last() {
                self.after = event.number;
                let line = |event: &Recorded| serde_json::to_string(event).ok();
                return Some(events.iter().filter_map(line).fold(String::new(), |all, line| all + &line + "\n"));
            }
            self.last.as_mut()?.changed().await.ok()?;
        }
    }
}

impl From<StoreError> for ErrorResponse {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NotFound(_) => Self::not_found(error),
            StoreError::Full | StoreError::TooLong(_) => Self::new(StatusCode::CONFLICT, Code::Conflict, error),
            StoreError::Layout { .. } | StoreError::File(_) | StoreError::Sqlite(_) | StoreError::Damaged(_) => {
                Self::internal(error)
            }
        }
    }
}

impl From<TurnError> for ErrorResponse {
    fn from(error: TurnError) -> Self {
        let (status, code) = match error {
            TurnError::Store(error) => return error.into(),
            TurnError::Busy(_) | TurnError::Idle(_) | TurnError::Off => (StatusCode::CONFLICT, Code::Conflict),
            TurnError::TooMany => (StatusCode::TOO_MANY_REQUESTS, Code::TooMany),
            TurnError::Length(_) => (StatusCode::UNPROCESSABLE_ENTITY, Code::BadRequest),
            TurnError::Model { .. } => (StatusCode::NOT_FOUND, Code::NotFound),
            TurnError::Stopping => (StatusCode::SERVICE_UNAVAILABLE, Code::Unavailable),
        };
        Self::new(status, code, error)
    }
}

impl From<ApprovalError> for ErrorResponse {
    fn from(error: ApprovalError) -> Self {
        Self::new(StatusCode::CONFLICT, Code::NotConfirmed, error)
    }
}
