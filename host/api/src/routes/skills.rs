//! Skills: what agents read, in three levels.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Extension, State};
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::look;
use crate::door::Client;
use crate::error::{Code, ErrorResponse, Named, Query};
use crate::route::{Route, get};
use conductor_host::host::Host;
use conductor_skills::library::{FindError, Library};
use conductor_skills::skill::ReadError;
use conductor_skills::view::{SkillFileText, SkillText, SkillView};

pub(super) fn routes() -> Vec<Route> {
    let list = "Every skill by its metadata, in the order of the search path; with those that are shadowed or refused";
    vec![
        get::<Vec<SkillView>>("/v1/skills", "listSkills", list).by(all),
        get::<SkillText>("/v1/skills/{name}", "getSkill", "The skill of a name, with its text and its files")
            .refuses(&[404, 422])
            .by(one),
        get::<SkillFileText>("/v1/skills/{name}/file", "getSkillFile", "A file of a skill, as text")
            .query::<SkillFileQuery>()
            .refuses(&[404, 422])
            .by(file),
    ]
}

/// Which file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SkillFileQuery {
    /// Its path below the skill's folder, such as `references/actions.md`.
    pub path: String,
}

async fn all(
    State(host): State<Arc<Host>>,
    Extension(library): Extension<Arc<Library>>,
    Extension(client): Extension<Client>,
) -> Result<Json<Vec<SkillView>>, ErrorResponse> {
    let list = move || Ok::<_, ErrorResponse>(library.all(&host.skills()).iter().map(SkillView::from).collect());
    Ok(Json(look(&client, list).await?))
}

async fn one(
    State(host): State<Arc<Host>>,
    Extension(library): Extension<Arc<Library>>,
    Extension(client): Extension<Client>,
    Named(name): Named,
) -> Result<Json<SkillText>, ErrorResponse> {
    let read = move || {
        let named = library.find(&name, &host.skills())?;
        Ok::<_, ErrorResponse>(SkillText::new(&named.found, &named.skill, named.by_alias))
    };
    Ok(Json(look(&client, read).await?))
}

async fn file(
    State(host): State<Arc<Host>>,
    Extension(library): Extension<Arc<Library>>,
    Extension(client): Extension<Client>,
    Named(name): Named,
    Query(SkillFileQuery { path }): Query<SkillFileQuery>,
) -> Result<Json<SkillFileText>, ErrorResponse> {
    let read = move || {
        let named = library.find(&name, &host.skills())?;
        let text = named.skill.read(&path)?;
        Ok::<_, ErrorResponse>(SkillFileText { skill: named.skill.name.clone(), path, text })
    };
    Ok(Json(look(&client, read).await?))
}

impl From<FindError> for ErrorResponse {
    fn from(error: FindError) -> Self {
        match error {
            FindError::Unknown { .. } => Self::not_found(error.to_string()),
            FindError::Refused(_) => Self::new(StatusCode::UNPROCESSABLE_ENTITY, Code::Invalid, error.to_string()),
        }
    }
}

impl From<ReadError> for ErrorResponse {
    fn from(error: ReadError) -> Self {
        match error {
            // A path that no file can have is one that no file has.
            ReadError::NoFile { .. } | ReadError::Path(_) => Self::not_found(error.to_string()),
            ReadError::Content(_) => Self::new(StatusCode::UNPROCESSABLE_ENTITY, Code::Invalid, error.to_string()),
        }
    }
}
