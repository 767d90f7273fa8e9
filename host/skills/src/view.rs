//! Skills as clients are shown them, one type for each level.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::library::{Found, Place};
use crate::limits::tokens;
use crate::skill::Skill;

/// Where a skill was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PlaceView {
    /// In the folder `skills` of the home.
    Home,
    /// In a folder of the project.
    Project,
    /// It comes with the program.
    Bundled,
    /// A feature contributes it.
    Feature,
}

impl From<Place> for PlaceView {
    fn from(place: Place) -> Self {
        match place {
            Place::Home => Self::Home,
            Place::Project => Self::Project,
            Place::Bundled => Self::Bundled,
            Place::Feature => Self::Feature,
        }
    }
}

impl std::fmt::Display for PlaceView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Home => "home",
            Self::Project => "project",
            Self::Bundled => "bundled",
            Self::Feature => "feature",
        })
    }
}

/// A skill by its metadata.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SkillView {
    /// Its name.
    pub name: String,
    /// What it does and when it is of use. Empty if it is refused.
    pub description: String,
    /// Where it was found.
    pub place: PlaceView,
    /// Its folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// The id of the feature that contributes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feature: Option<String>,
    /// Where the skill of the same name is that is used in its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shadowed_by: Option<PlaceView>,
    /// Old names that it still answers to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// Why it is not used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<String>,
    /// What is wrong with it without being a reason to refuse it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<String>,
}

impl From<&Found> for SkillView {
    fn from(found: &Found) -> Self {
        let texts = |problems: &[crate::problem::Problem]| problems.iter().map(ToString::to_string).collect();
        let (description, refused, findings) = match &found.skill {
            Ok(skill) => (skill.description.clone(), Vec::new(), texts(&skill.findings)),
            Err(why) => (String::new(), texts(&why.problems), Vec::new()),
        };
        Self {
            name: found.name.clone(),
            description,
            place: found.place.into(),
            folder: found.folder.as_ref().map(|folder| folder.display().to_string()),
            feature: found.feature.clone(),
            shadowed_by: found.shadowed_by.map(Into::into),
            aliases: found.aliases.clone(),
            refused,
            findings,
        }
    }
}

/// A file of a skill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SkillFileView {
    /// Its path below the folder.
    pub path: String,
    /// Its bytes.
    pub size: u64,
    /// The SHA-256 of its content, lower-case hex.
    pub sha256: String,
}

/// A skill with its body, and the names of its files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SkillText {
    /// Its metadata.
    #[serde(flatten)]
    pub skill: SkillView,
    /// Whether it was asked for by an old name.
    pub by_alias: bool,
    /// The whole `SKILL.md`.
    pub text: String,
    /// The tokens of the body, estimated.
    pub tokens: usize,
    /// Its files, `SKILL.md` first.
    pub files: Vec<SkillFileView>,
}

impl SkillText {
    /// The view of a skill that was found.
    pub fn new(found: &Found, skill: &Skill, by_alias: bool) -> Self {
        let size = |path: &str| {
            let resource = skill.resources().iter().find(|file| file.path == path);
            resource.map_or(skill.text().len() as u64, |file| file.size)
        };
        let digests = skill.digests().iter();
        let files = digests
            .map(|(path, sha256)| SkillFileView { path: path.clone(), size: size(path), sha256: sha256.clone() })
            .collect();
        Self { skill: found.into(), by_alias, text: skill.text().to_owned(), tokens: tokens(skill.body()), files }
    }
}

/// A file of a skill with its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SkillFileText {
    /// The skill.
    pub skill: String,
    /// Its path below the folder.
    pub path: String,
    /// What is in it.
    pub text: String,
}
