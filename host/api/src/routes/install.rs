//! Installing features and changing what is installed. A person sees what a package asks for before it is granted: the
//! first request says so, and the second names the digest of what was shown.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Extension, State};
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{change, look};
use crate::door::Client;
use crate::error::{Body, Code, ErrorResponse, Named};
use crate::route::{Route, get, post};
use crate::scope::{By, Scope};
use conductor_audit::caller::Caller;
use conductor_host::host::Host;
use conductor_host::host::feature_change::FeatureChange;
use conductor_host::host::installer::{FetchOptions, InstallView, Installer, InstallerError, LeftData, Removed};
use conductor_install::installation::{ChangeError, GrantWords, InstallPlan};
use conductor_install::receipt::FeatureInstallReport;
use conductor_install::store::StoreError;
use conductor_package::Contributions;

pub(super) fn routes() -> Vec<Route> {
    const CHANGES: &[u16] = &[404, 409, 422, 423, 503];
    let change =
        |path, id, summary| post::<FeatureInstallReport>(path, id, summary).scope(Scope::Owner).refuses(CHANGES);
    vec![
        post::<InstallView>(
            "/v1/install/look",
            "lookAtPackage",
            "Fetch a package, and say what it is and what it asks for; nothing changes",
        )
        .scope(Scope::Owner)
        .body::<PackageSource>()
        .refuses(CHANGES)
        .by(look_at),
        change("/v1/install", "installFeature", "Install or upgrade a feature, after trying it out beside all others")
            .body::<InstallRequest>()
            .by(install),
        change("/v1/features/{name}/downgrade", "downgradeFeature", "Go back to the package before the last upgrade")
            .by(downgrade),
        change("/v1/features/{name}/grant", "grant", "Let a feature use more, after trying it out with that")
            .body::<GrantRequest>()
            .by(grant),
        change("/v1/features/{name}/revoke", "revoke", "Let a feature use less; nothing, if the list is empty")
            .body::<GrantRequest>()
            .by(revoke),
        change(
            "/v1/features/{name}/enable",
            "enableFeature",
            "Have hosts load a feature, or contributions of it that were refused, after trying it out",
        )
        .body::<Contributions>()
        .by(enable),
        change(
            "/v1/features/{name}/disable",
            "disableFeature",
            "Keep a feature installed, but have no host load it, or leave out single contributions",
        )
        .body::<Contributions>()
        .by(disable),
        post::<RemovedView>(
            "/v1/features/{name}/remove",
            "removeFeature",
            "Take a feature out, and say what is left of it",
        )
        .scope(Scope::Owner)
        .refuses(CHANGES)
        .body::<RemoveRequest>()
        .by(remove),
        get::<Vec<FeatureInstallReport>>(
            "/v1/receipts",
            "listReceipts",
            "What was installed and changed, oldest first; the last 200",
        )
        .scope(Scope::Owner)
        .refuses(&[409])
        .by(receipts),
    ]
}

/// A package, and what has to be true of it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PackageSource {
    /// A file of the host's machine, `https://…#sha256=HEX`, `oci://host/repository:tag`, or the name of a feature that
    /// comes with the host. An upgrade may do without: it comes from where the installed package came from.
    #[serde(default)]
    pub source: Option<String>,
    /// The name of the installed feature whose place it takes. Default: it is installed as a new one.
    #[serde(default)]
    pub upgrade: Option<String>,
    /// The SHA-256 that it has to have, 64 hex digits, perhaps after `sha256:`. To install a package, that of the one
    /// that was looked at.
    #[serde(default)]
    pub digest: Option<String>,
    /// Whether it may take the place of a feature that comes with the host. Default: false.
    #[serde(default)]
    pub replace_bundled: bool,
}

/// What is to be installed, and what a person lets it use.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InstallRequest {
    /// The package. `digest` has to be there.
    pub package: PackageSource,
    /// What a person grants of what it asks for, as words: `all`, KIND or KIND=VALUE, such as `alert` or
    /// `network=10.0.0.5:9000`. Default: nothing beyond what was granted to the package before.
    #[serde(default)]
    pub grant: Vec<String>,
}

/// What is granted, or taken away.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GrantRequest {
    /// KIND or KIND=VALUE, such as `alert` or `network=10.0.0.5:9000`; to grant, also `all`.
    pub capabilities: Vec<String>,
}

/// How a feature is taken out.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RemoveRequest {
    /// Whether what it keeps is deleted, too; of one that is not installed any more, what it has left. Default: false.
    #[serde(default)]
    pub data: bool,
}

/// What a removal did.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct RemovedView {
    /// The feature that was taken out; `null` if none of this name was installed.
    pub feature: Option<FeatureInstallReport>,
    /// What one of this name had left, and was deleted, if none was installed.
    pub deleted: Vec<LeftData>,
}

fn fetched(installer: &Installer, package: &PackageSource) -> Result<InstallPlan, InstallError> {
    let PackageSource { source, upgrade, digest, replace_bundled } = package.clone();
    let options = FetchOptions { name: None, digest, replace_bundled };
    Ok(match (upgrade, source) {
        (Some(name), source) => installer.fetch_upgrade(&name, source.as_deref(), &options)?,
        (None, Some(source)) => installer.fetch(&source, &options)?,
        (None, None) => return Err(InstallError::Incomplete("`source` says where the package comes from")),
    })
}

async fn look_at(
    State(host): State<Arc<Host>>,
    Extension(client): Extension<Client>,
    By(caller): By,
    Body(package): Body<PackageSource>,
) -> Result<Json<InstallView>, ErrorResponse> {
    let view = move || {
        let installer = host.installer(&caller)?;
        let plan = fetched(&installer, &package)?;
        Ok::<_, InstallError>(InstallView::new(&plan, installer.trusted()))
    };
    Ok(Json(change(&client, view).await?))
}

async fn install(
    State(host): State<Arc<Host>>,
    Extension(client): Extension<Client>,
    By(caller): By,
    Body(InstallRequest { package, grant }): Body<InstallRequest>,
) -> Result<Json<FeatureInstallReport>, ErrorResponse> {
    if package.digest.is_none() {
        let why = "`digest` of the package that was looked at has to be there; POST /v1/install/look says it";
        return Err(InstallError::Incomplete(why).into());
    }
    changed(host, &client, caller, move |installer| {
        let plan = fetched(installer, &package)?;
        let given = GrantWords::select(&words(&grant)?, &plan.package.info.descriptor.capabilities)?;
        Ok(installer.install(plan, given)?)
    })
    .await
    .map(Json)
}

/// Changes what is installed, and puts that in force.
async fn changed<T: Send + 'static>(
    host: Arc<Host>,
    client: &Client,
    caller: Caller,
    work: impl FnOnce(&Installer) -> Result<T, InstallError> + Send + 'static,
) -> Result<T, ErrorResponse> {
    change(client, move || {
        let done = work(&host.installer(&caller)?)?;
        // Rules that don't fit any more are reported by the status; what was changed is changed.
        let _ = host.reload_features();
        Ok::<_, InstallError>(done)
    })
    .await
}

fn words(words: &[String]) -> Result<Vec<GrantWords>, InstallError> {
    words.iter().map(|word| word.parse().map_err(|error| InstallError::Words(format!("{word:?}: {error}")))).collect()
}

async fn downgrade(
    State(host): State<Arc<Host>>,
    Extension(client): Extension<Client>,
    By(caller): By,
    Named(name): Named,
) -> Result<Json<FeatureInstallReport>, ErrorResponse> {
    let work = move |installer: &Installer| Ok(installer.install(installer.previous(&name)?, Vec::new())?);
    changed(host, &client, caller, work).await.map(Json)
}

async fn grant(
    State(host): State<Arc<Host>>,
    Extension(client): Extension<Client>,
    By(caller): By,
    Named(name): Named,
    Body(GrantRequest { capabilities }): Body<GrantRequest>,
) -> Result<Json<FeatureInstallReport>, ErrorResponse> {
    change_feature(host, &client, caller, name, FeatureChange::Grant(words(&capabilities)?)).await
}

async fn revoke(
    State(host): State<Arc<Host>>,
    Extension(client): Extension<Client>,
    By(caller): By,
    Named(name): Named,
    Body(GrantRequest { capabilities }): Body<GrantRequest>,
) -> Result<Json<FeatureInstallReport>, ErrorResponse> {
    change_feature(host, &client, caller, name, FeatureChange::Revoke(words(&capabilities)?)).await
}

async fn enable(
    State(host): State<Arc<Host>>,
    Extension(client): Extension<Client>,
    By(caller): By,
    Named(name): Named,
    Body(only): Body<Contributions>,
) -> Result<Json<FeatureInstallReport>, ErrorResponse> {
    change_feature(host, &client, caller, name, FeatureChange::enable(only)).await
}

async fn disable(
    State(host): State<Arc<Host>>,
    Extension(client): Extension<Client>,
    By(caller): By,
    Named(name): Named,
    Body(only): Body<Contributions>,
) -> Result<Json<FeatureInstallReport>, ErrorResponse> {
    change_feature(host, &client, caller, name, FeatureChange::disable(only)).await
}

async fn change_feature(
    host: Arc<Host>,
    client: &Client,
    caller: Caller,
    name: String,
    what: FeatureChange,
) -> Result<Json<FeatureInstallReport>, ErrorResponse> {
    let work = move || host.change_feature(&caller, &name, &what).map_err(InstallError::from);
    Ok(Json(change(client, work).await?))
}

async fn remove(
    State(host): State<Arc<Host>>,
    Extension(client): Extension<Client>,
    By(caller): By,
    Named(name): Named,
    Body(RemoveRequest { data }): Body<RemoveRequest>,
) -> Result<Json<RemovedView>, ErrorResponse> {
    let removed = changed(host, &client, caller, move |installer| Ok(installer.remove(&name, data)?)).await?;
    Ok(Json(match removed {
        Removed::Feature(report) => RemovedView { feature: Some(*report), deleted: Vec::new() },
        Removed::Data(deleted) => RemovedView { feature: None, deleted },
    }))
}

async fn receipts(
    State(host): State<Arc<Host>>,
    Extension(client): Extension<Client>,
) -> Result<Json<Vec<FeatureInstallReport>>, ErrorResponse> {
    Ok(Json(look(&client, move || host.receipts().map_err(InstallError::from)).await?))
}

/// Why nothing was changed.
#[derive(Debug, thiserror::Error)]
enum InstallError {
    /// The request lacks something.
    #[error("{0}")]
    Incomplete(&'static str),
    /// The words name no capability: see [`conductor_package::capability`].
    #[error("{0}")]
    Words(String),
    #[error(transparent)]
    Installer(#[from] InstallerError),
}

impl From<conductor_install::installation::GrantWordsError> for InstallError {
    fn from(error: conductor_install::installation::GrantWordsError) -> Self {
        Self::Words(error.to_string())
    }
}

impl From<InstallError> for ErrorResponse {
    fn from(error: InstallError) -> Self {
        let (status, code) = match error {
            InstallError::Installer(InstallerError::Configuration(error)) => return error.into(),
            InstallError::Installer(ref error) => kind(error),
            InstallError::Incomplete(_) | InstallError::Words(_) => {
                (StatusCode::UNPROCESSABLE_ENTITY, Code::BadRequest)
            }
        };
        Self::new(status, code, error)
    }
}

fn kind(error: &InstallerError) -> (StatusCode, Code) {
    match error {
        InstallerError::NoHome => (StatusCode::CONFLICT, Code::Conflict),
        InstallerError::Change(ChangeError::PackageStore(StoreError::Unrecorded(_))) => {
            (StatusCode::SERVICE_UNAVAILABLE, Code::Unavailable)
        }
        InstallerError::Change(ChangeError::PackageStore(_))
        | InstallerError::Signers(_)
        | InstallerError::Start(_)
        | InstallerError::Data(_)
        | InstallerError::Delete(_) => (StatusCode::INTERNAL_SERVER_ERROR, Code::Internal),
        InstallerError::Change(ChangeError::Unknown { .. }) => (StatusCode::NOT_FOUND, Code::NotFound),
        InstallerError::Change(ChangeError::Digest { .. } | ChangeError::Raced { .. }) => {
            (StatusCode::CONFLICT, Code::Stale)
        }
        InstallerError::Change(
            ChangeError::Taken { .. }
            | ChangeError::OtherFeature { .. }
            | ChangeError::NoPrevious { .. }
            | ChangeError::NotGranted { .. }
            | ChangeError::Displaces { .. },
        )
        | InstallerError::OnePackage { .. }
        | InstallerError::Configuration(_)
        | InstallerError::Included { .. } => (StatusCode::CONFLICT, Code::Conflict),
        InstallerError::Change(ChangeError::Words(_)) | InstallerError::NoSource(_) => {
            (StatusCode::UNPROCESSABLE_ENTITY, Code::BadRequest)
        }
        InstallerError::Change(_) | InstallerError::Fetch(_) | InstallerError::Refused(_) => {
            (StatusCode::UNPROCESSABLE_ENTITY, Code::Failed)
        }
    }
}
