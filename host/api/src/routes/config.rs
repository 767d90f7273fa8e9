//! Routes of the configuration: the one in force, its mappings, validation of another, reload.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Extension, State};
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{change, look};
use crate::door::Client;
use crate::error::{Body, Code, ErrorResponse};
use crate::route::{Route, get, post};
use crate::scope::By;
use conductor_config::Severity;
use conductor_config_text::mappings::Mappings;
use conductor_host::control::plan::state_hash;
use conductor_host::host::{Host, ReloadError};
use conductor_rules::Overlaps;
use conductor_stdx::hidden::hide;

pub(super) fn routes() -> Vec<Route> {
    vec![
        get::<InForce>("/v1/config", "getConfig", "The configuration in force, as its author wrote it").by(config),
        get::<Mappings>("/v1/mappings", "listMappings", "The mappings of the configuration's own file, as written")
            .by(mappings),
        get::<Overlaps>("/v1/overlaps", "listOverlaps", "Pairs of mappings that fire for some of the same events")
            .by(overlaps),
        post::<Verdict>(
            "/v1/config/validate",
            "validateConfig",
            "Say what is wrong with a configuration; nothing changes",
        )
        .body::<Candidate>()
        .scope(crate::scope::Scope::Read)
        .refuses(&[409])
        .by(validate),
        post::<Reloaded>("/v1/reload", "reload", "Read the configuration file, and what is installed, anew")
            .refuses(&[409, 422, 423])
            .by(reload),
    ]
}

/// The configuration in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InForce {
    /// Its file, as messages show it.
    pub file: String,
    /// Its text, TOML. For tokens other than the owner's `<hidden>` stands in the place of private values: of `env`,
    /// passwords, the user's part of URLs.
    pub text: String,
    /// The files that it includes, in the order in which they count. Plans don't change them.
    #[serde(default)]
    pub included: Vec<IncludedFile>,
    /// SHA-256 of the whole text, lower-case hex: what plans are made for.
    pub state: String,
    /// What was said of the last configuration, where it was refused; the one in force is older then.
    pub refused: Option<String>,
}

/// A file that the configuration in force includes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IncludedFile {
    /// Its name, as messages show it.
    pub file: String,
    /// Its text, TOML, with private values as in that of the configuration.
    pub text: String,
}

async fn config(State(host): State<Arc<Host>>, By(caller): By) -> Json<InForce> {
    let (source, refused) = host.config_in_force();
    let seen = |text: &str| if caller.is_owner() { text.to_owned() } else { hide(text) };
    let files = source.files().map(|(file, text)| IncludedFile { file: file.to_owned(), text: seen(text) });
    let included = files.skip(1).collect();
    let (file, text, state) = (source.file().to_owned(), seen(source.text()), state_hash(source.text()));
    Json(InForce { file, text, included, state, refused })
}

async fn mappings(
    State(host): State<Arc<Host>>,
    Extension(client): Extension<Client>,
    By(caller): By,
) -> Result<Json<Mappings>, ErrorResponse> {
    let (source, _) = host.config_in_force();
    let read = move || {
        let text = if caller.is_owner() { source.text().to_owned() } else { hide(source.text()) };
        Mappings::read(&text).map_err(ErrorResponse::internal)
    };
    Ok(Json(look(&client, read).await?))
}

async fn overlaps(
    State(host): State<Arc<Host>>,
    Extension(client): Extension<Client>,
) -> Result<Json<Overlaps>, ErrorResponse> {
    Ok(Json(look(&client, move || Ok::<_, ErrorResponse>(host.overlaps())).await?))
}

/// A configuration to look at.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Candidate {
    /// Its text, TOML. Default: what the file says now.
    #[serde(default)]
    pub text: Option<String>,
}

/// What there is to say about a configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// Whether it would be taken.
    pub valid: bool,
    /// How many mistakes it has.
    pub errors: usize,
    /// How much in it is doubtful.
    pub warnings: usize,
    /// Each with `severity`, `message`, `file`, `line`, `column`, `end_line`, `end_column`, `place`, `allowed`, `nearest` and
    /// `help`.
    pub diagnostics: Value,
}

async fn validate(
    State(host): State<Arc<Host>>,
    Extension(client): Extension<Client>,
    By(caller): By,
    Body(candidate): Body<Candidate>,
) -> Result<Json<Verdict>, ErrorResponse> {
    let found = look(&client, move || host.check_config_for(&caller, candidate.text)).await?;
    let (errors, warnings) = (found.count(Severity::Error), found.count(Severity::Warning));
    let report = serde_json::to_value(&found).map_err(ErrorResponse::internal)?;
    Ok(Json(Verdict { valid: errors == 0, errors, warnings, diagnostics: report["diagnostics"].clone() }))
}

/// What is in force now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reloaded {
    /// How often the rules were replaced.
    pub generation: u64,
    /// Rules in use.
    pub rules: usize,
    /// What is doubtful in the configuration, for people.
    pub warnings: String,
}

async fn reload(
    State(host): State<Arc<Host>>,
    Extension(client): Extension<Client>,
    By(caller): By,
) -> Result<Json<Reloaded>, ErrorResponse> {
    let done = change(&client, move || host.reload_from_file(&caller)).await?;
    let warnings = done.warnings.render(false);
    Ok(Json(Reloaded { generation: done.generation, rules: done.rules, warnings }))
}

impl From<ReloadError> for ErrorResponse {
    fn from(error: ReloadError) -> Self {
        match &error {
            ReloadError::Locked(locked) => (*locked).into(),
            ReloadError::NoFile => Self::new(StatusCode::CONFLICT, Code::Conflict, error),
            ReloadError::File { .. } => Self::internal(error),
            ReloadError::Busy => Self::new(StatusCode::TOO_MANY_REQUESTS, Code::TooMany, error),
            ReloadError::NotText { .. } | ReloadError::Wrong(_) => {
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, Code::Invalid, error)
            }
        }
    }
}
