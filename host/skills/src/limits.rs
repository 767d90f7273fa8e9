//! What a skill may have of each kind.
//!
//! Tokens are estimated as a quarter of the bytes, which is what common tokenizers make of English within a fifth.

/// Characters of a name.
pub const MAX_NAME: usize = 64;
/// Characters of a description.
pub const MAX_DESCRIPTION: usize = 1024;
/// Characters of what a skill says that it is compatible with.
pub const MAX_COMPATIBILITY: usize = 500;
/// Bytes of a front matter.
pub const MAX_FRONT_MATTER: usize = 8 * 1024;
/// Nesting of a front matter.
pub const MAX_FRONT_MATTER_DEPTH: usize = 4;
/// Values in a front matter.
pub const MAX_FRONT_MATTER_VALUES: usize = 256;
/// Bytes of a whole `SKILL.md`.
pub const MAX_SKILL_FILE: u64 = 64 * 1024;
/// Tokens of name and description together, beyond which a skill is advised to say less.
pub const METADATA_TOKENS: usize = 200;
/// Tokens of a body, beyond which a skill is advised to move something into its resources.
pub const BODY_TOKENS: usize = 5000;
/// Files beside `SKILL.md`.
pub const MAX_FILES: usize = 256;
/// Folders below one another.
pub const MAX_DEPTH: usize = 6;
/// Bytes of one resource.
pub const MAX_RESOURCE: u64 = 256 * 1024;
/// Bytes of all files of a skill together.
pub const MAX_TOTAL: u64 = 4 * 1024 * 1024;
/// Bytes of the path of a resource.
pub const MAX_PATH: usize = 256;
/// Folders that are looked into in one place of the search path.
pub const MAX_SKILLS: usize = 256;

/// The tokens of a text, estimated.
pub fn tokens(text: &str) -> usize {
    text.len().div_ceil(4)
}
