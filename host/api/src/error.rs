//! The error response of all routes: one shape, with an error code for programs.

use std::fmt::Display;

use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use conductor_host::control::confirmation::Confirmation;
use conductor_host::control::gate::ToolError;
use conductor_host::control::lock::Locked;
use conductor_host::control::plan::PlanError;
use conductor_stdx::jobs::JobError;

/// Why it was not done, as a word that stays as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// The request is not understood: its path, its query, its body. 400, 405, 415, 422.
    BadRequest,
    /// The request is longer than is taken. 413.
    TooLong,
    /// The request did not come whole in time. 408.
    Timeout,
    /// There is no such thing. 404.
    NotFound,
    /// There is no token, or it is not one of this host. 401.
    Unauthorized,
    /// The caller may not do this. 403.
    Forbidden,
    /// The configuration, or a feature's hook, does not allow it. 403.
    Denied,
    /// A person has to agree first; `confirmation` says to what, and has the id for the next request. 409.
    ConfirmationRequired,
    /// The confirmation that was presented was used, has expired, or is of another call or caller. 409.
    NotConfirmed,
    /// The show is locked: only the home's owner changes anything. 423.
    Locked,
    /// It was asked too often, or there is no room for more; `retry-after` says when to ask again, where that is
    /// known. 429.
    TooMany,
    /// The plan has expired. 410.
    Expired,
    /// The configuration is not the one that it was meant for. 409.
    Stale,
    /// There is nothing to do it with: nothing to undo, no file, no such feature. 409.
    Conflict,
    /// The configuration is wrong, or would be. 422.
    Invalid,
    /// It was tried, and the feature did not do it (422), or an API elsewhere (502).
    Failed,
    /// It has to be on record first, and can't be; or the host is stopping. 503.
    Unavailable,
    /// The host's own records or files can't be read or written. 500.
    Internal,
}

/// Why it was not done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApiError {
    /// What is wrong, where, and what to do, for people.
    pub error: String,
    /// The same for programs.
    pub code: Code,
    /// What a person has to agree to, where `code` is `confirmation_required` and this client can have them agree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmation: Option<Box<Confirmation>>,
}

/// A refusal, on its way out.
#[derive(Debug)]
pub(super) struct ErrorResponse {
    status: StatusCode,
    refused: ApiError,
    /// Whole seconds.
    retry_after: Option<u64>,
}

impl ErrorResponse {
    pub(super) fn new(status: StatusCode, code: Code, error: impl ToString) -> Self {
        let refused = ApiError { error: error.to_string(), code, confirmation: None };
        Self { status, refused, retry_after: None }
    }

    /// Says after how many seconds it may be asked again.
    pub(super) fn retry_after(self, seconds: u64) -> Self {
        Self { retry_after: Some(seconds), ..self }
    }

    pub(super) fn not_found(error: impl ToString) -> Self {
        Self::new(StatusCode::NOT_FOUND, Code::NotFound, error)
    }

    pub(super) fn bad_request(error: impl ToString) -> Self {
        Self::new(StatusCode::BAD_REQUEST, Code::BadRequest, error)
    }

    pub(super) fn internal(error: impl ToString) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, Code::Internal, error)
    }

    /// What is wrong, for people.
    pub(super) fn text(&self) -> &str {
        &self.refused.error
    }
}

impl IntoResponse for ErrorResponse {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(self.refused)).into_response();
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
        }
        response
    }
}

impl From<PlanError> for ErrorResponse {
    fn from(error: PlanError) -> Self {
        let (status, code) = match &error {
            PlanError::NotFound(_) => (StatusCode::NOT_FOUND, Code::NotFound),
            PlanError::Expired(_) => (StatusCode::GONE, Code::Expired),
            PlanError::StaleState { .. } | PlanError::NotInForce { .. } => (StatusCode::CONFLICT, Code::Stale),
            PlanError::Nothing(_) | PlanError::NoFile => (StatusCode::CONFLICT, Code::Conflict),
            PlanError::Invalid(_)
            | PlanError::Edit(_)
            | PlanError::NoChange
            | PlanError::FileInvalid { .. }
            | PlanError::NotText { .. } => (StatusCode::UNPROCESSABLE_ENTITY, Code::Invalid),
            PlanError::NotOwn(_) => (StatusCode::FORBIDDEN, Code::Forbidden),
            PlanError::Denied(_) => (StatusCode::FORBIDDEN, Code::Denied),
            PlanError::Locked(_) => (StatusCode::LOCKED, Code::Locked),
            PlanError::Full(_) | PlanError::Busy => (StatusCode::TOO_MANY_REQUESTS, Code::TooMany),
            PlanError::Unrecorded(_) => (StatusCode::SERVICE_UNAVAILABLE, Code::Unavailable),
            PlanError::Record(_) | PlanError::Layout { .. } | PlanError::File { .. } => {
                (StatusCode::INTERNAL_SERVER_ERROR, Code::Internal)
            }
        };
        Self::new(status, code, error)
    }
}

impl From<Locked> for ErrorResponse {
    fn from(error: Locked) -> Self {
        Self::new(StatusCode::LOCKED, Code::Locked, error)
    }
}

impl From<ToolError> for ErrorResponse {
    fn from(error: ToolError) -> Self {
        let (status, code) = match &error {
            ToolError::Unknown { .. } => (StatusCode::NOT_FOUND, Code::NotFound),
            ToolError::NotAllowed(_) | ToolError::Denied { .. } => (StatusCode::FORBIDDEN, Code::Denied),
            ToolError::TooOften { .. } => (StatusCode::TOO_MANY_REQUESTS, Code::TooMany),
            ToolError::Unrecorded(_) => (StatusCode::SERVICE_UNAVAILABLE, Code::Unavailable),
            ToolError::NotForAgents { .. } => (StatusCode::FORBIDDEN, Code::Denied),
            ToolError::NeedsConfirmation { .. } => (StatusCode::CONFLICT, Code::ConfirmationRequired),
            ToolError::NotConfirmed(_) => (StatusCode::CONFLICT, Code::NotConfirmed),
            ToolError::Locked(_) => (StatusCode::LOCKED, Code::Locked),
            ToolError::TooLong(_) => (StatusCode::PAYLOAD_TOO_LARGE, Code::TooLong),
            ToolError::Failed { .. } => (StatusCode::UNPROCESSABLE_ENTITY, Code::Failed),
        };
        let retry_after = match &error {
            // In whole seconds, and not before there is one.
            ToolError::TooOften { left, .. } => Some(left.as_secs() + 1),
            _ => None,
        };
        let mut refusal = Self { retry_after, ..Self::new(status, code, &error) };
        if let ToolError::NeedsConfirmation { confirmation, .. } = error {
            refusal.refused.confirmation = confirmation;
        }
        refusal
    }
}

impl From<JsonRejection> for ErrorResponse {
    fn from(rejection: JsonRejection) -> Self {
        let error = format!("the request is not understood: {}", rejection.body_text());
        Self::new(rejection.status(), Code::BadRequest, error)
    }
}

impl From<JobError> for ErrorResponse {
    fn from(error: JobError) -> Self {
        match error {
            JobError::TimedOut => Self::new(StatusCode::SERVICE_UNAVAILABLE, Code::Unavailable, error).retry_after(1),
            JobError::Unfinished => Self::internal(error),
        }
    }
}

/// A body of JSON, an object. (A list of the values of its fields is rejected, although serde would accept it.)
#[derive(Debug)]
pub(super) struct Body<T>(pub(super) T);

/// A `T` from the fields of an object.
pub(super) fn from_object<T: serde::de::DeserializeOwned>(body: Value) -> Result<T, ErrorResponse> {
    let wrong = |why: &dyn Display| {
        let error = format!("the request is not understood: {why}");
        ErrorResponse::new(StatusCode::UNPROCESSABLE_ENTITY, Code::BadRequest, error)
    };
    match body {
        Value::Object(_) => serde_json::from_value(body).map_err(|error| wrong(&error)),
        _ => Err(wrong(&"a JSON object is wanted")),
    }
}

impl<S: Send + Sync, T: serde::de::DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = ErrorResponse;

    async fn from_request(request: Request, state: &S) -> Result<Self, ErrorResponse> {
        let Json(body) = Json::from_request(request, state).await?;
        Ok(Self(from_object(body)?))
    }
}

/// What stands behind the `?`.
#[derive(Debug)]
pub(super) struct Query<T>(pub(super) T);

impl<S: Send + Sync, T: serde::de::DeserializeOwned + Send> FromRequestParts<S> for Query<T> {
    type Rejection = ErrorResponse;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ErrorResponse> {
        let query = axum::extract::Query::from_request_parts(parts, state).await;
        let axum::extract::Query(query) =
            query.map_err(|rejection: QueryRejection| ErrorResponse::bad_request(rejection.body_text()))?;
        Ok(Self(query))
    }
}

/// A name in the path.
#[derive(Debug)]
pub(super) struct Named(pub(super) String);

impl<S: Send + Sync> FromRequestParts<S> for Named {
    type Rejection = ErrorResponse;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ErrorResponse> {
        let name = axum::extract::Path::from_request_parts(parts, state).await;
        let axum::extract::Path(name) =
            name.map_err(|rejection: PathRejection| ErrorResponse::bad_request(rejection.body_text()))?;
        Ok(Self(name))
    }
}

/// Two names in the path: of a thing, and of one within it.
#[derive(Debug)]
pub(super) struct NamedIn(pub(super) String, pub(super) String);

impl<S: Send + Sync> FromRequestParts<S> for NamedIn {
    type Rejection = ErrorResponse;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ErrorResponse> {
        let names = axum::extract::Path::from_request_parts(parts, state).await;
        let axum::extract::Path((outer, inner)) =
            names.map_err(|rejection: PathRejection| ErrorResponse::bad_request(rejection.body_text()))?;
        Ok(Self(outer, inner))
    }
}
