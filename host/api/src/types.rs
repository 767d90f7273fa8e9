//! What routes take and answer, where that is no type of the host.

pub use crate::error::{ApiError, Code};
pub use crate::routes::audit::{AuditQuery, AuditRow};
pub use crate::routes::config::{Candidate, InForce, IncludedFile, Reloaded, Verdict};
pub use crate::routes::conversations::{
    ApprovalAnswer, BeginConversation, ConversationEvents, ForkConversation, Say, TurnBegun, UsageQuery,
};
pub use crate::routes::devices::{Mute, Muted, Play, Played, Ports};
pub use crate::routes::features::Lifted;
pub use crate::routes::install::{GrantRequest, InstallRequest, PackageSource, RemoveRequest, RemovedView};
pub use crate::routes::lock::{LockState, SetLock};
pub use crate::routes::models::{ProposedModel, ProposedRemoval};
pub use crate::routes::modes::{ModeBody, Modes, Profiles};
pub use crate::routes::plans::{NextStep, ProposePlan};
pub use crate::routes::secrets::{SecretSet, SetSecret};
pub use crate::stream::{StreamItem, StreamQuery};
