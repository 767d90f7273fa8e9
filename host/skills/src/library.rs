//! The library: every skill that is found in the search path, among those of the program, and among what features
//! contribute. The first of a name is used; the others are listed as shadowed.
//!
//! A folder is listed at each look, and read again if one of its files is another than before, has another size, was
//! written or changed. One that was written within two seconds before it was read is read again in any case, since a
//! second change within the clock's step would not show.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use parking_lot::Mutex;

use crate::bundled::{self, Bundled};
use crate::folder::{self, Stamp};
use crate::limits::MAX_SKILLS;
use crate::problem::{Problem, RejectedSkill};
use crate::skill::{Loaded, Skill};
use conductor_stdx::nearest::nearest;
use conductor_terminal::excerpt;

/// The folder of skills in a home of Conductor.
pub const HOME_FOLDER: &str = "skills";
/// The folders of skills in a project, in the order in which they are looked into.
pub const PROJECT_FOLDERS: [&str; 3] = [".agents/skills", ".claude/skills", ".github/skills"];
/// How long a file has to have been left alone before what was read of it is kept.
const SETTLED: Duration = Duration::from_secs(2);
/// Folders above the current one that are looked at for the project's root.
const MAX_ANCESTORS: usize = 64;

/// Where a skill was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Place {
    /// In the home of Conductor.
    Home,
    /// In the folder of a project.
    Project,
    /// In the program.
    Bundled,
    /// A feature contributes it.
    Feature,
}

/// One folder of the search path. It need not be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchFolder {
    /// What it is.
    pub place: Place,
    /// Where.
    pub path: PathBuf,
}

/// A skill as a feature contributes it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Contributed {
    /// Its name.
    pub name: String,
    /// The feature's id.
    pub feature: String,
    /// When it is of use, as the feature declares.
    pub summary: String,
    /// Its `SKILL.md`.
    pub text: String,
}

/// What was found in one place under one name.
#[derive(Debug, Clone)]
pub struct Found {
    /// The name, of the skill and of its folder.
    pub name: String,
    /// Where.
    pub place: Place,
    /// The folder; `None` if it is in none.
    pub folder: Option<PathBuf>,
    /// The feature's id, of one that a feature contributes.
    pub feature: Option<String>,
    /// The skill, or why it is not used.
    pub skill: Loaded,
    /// Where the skill is that is used in its place: one of the same name, found earlier.
    pub shadowed_by: Option<Place>,
    /// Old names that it still answers to.
    pub aliases: Vec<String>,
}

/// A skill that was asked for by name.
#[derive(Debug, Clone)]
pub struct Named {
    /// Where it was found.
    pub found: Found,
    /// It.
    pub skill: Arc<Skill>,
    /// Whether it was asked for by an old name.
    pub by_alias: bool,
}

/// Why no skill answers to a name.
#[derive(Debug, Clone, thiserror::Error)]
pub enum FindError {
    /// None has it.
    #[error(
        "there is no skill {name:?}{}; there are {}",
        .nearest.as_ref().map(|name| format!(", perhaps {name}")).unwrap_or_default(),
        excerpt(&.known.join(", "), 512)
    )]
    Unknown {
        /// What was asked for.
        name: String,
        /// What was probably meant.
        nearest: Option<String>,
        /// What there is.
        known: Vec<String>,
    },
    /// The one that has it is not used.
    #[error("the skill can't be used: {0}")]
    Refused(#[from] Arc<RejectedSkill>),
}

/// What was read of a folder, and what it was read from.
#[derive(Debug)]
struct Cached {
    stamps: Vec<Stamp>,
    skill: Loaded,
}

/// The skills of a search path. Many threads may look at once.
#[derive(Debug)]
pub struct Library {
    folders: Vec<SearchFolder>,
    settled: Duration,
    cache: Mutex<HashMap<PathBuf, Cached>>,
}

impl Library {
    /// The library of a home, and of the project that a folder belongs to, where there is one.
    pub fn new(home: Option<&Path>, project: Option<&Path>) -> Self {
        let home = home.map(|home| SearchFolder { place: Place::Home, path: home.join(HOME_FOLDER) });
        let of_project =
            |root: &Path| PROJECT_FOLDERS.map(|folder| SearchFolder { place: Place::Project, path: root.join(folder) });
        Self::of(home.into_iter().chain(project.into_iter().flat_map(of_project)).collect())
    }

    /// The library of a search path, and of the program.
    pub fn of(folders: Vec<SearchFolder>) -> Self {
        Self { folders, settled: SETTLED, cache: Mutex::default() }
    }

    /// The folders that are looked into, in their order.
    pub fn folders(&self) -> &[SearchFolder] {
        &self.folders
    }

    /// All that there is, in the order of the search path: by name within a place.
    pub fn all(&self, contributed: &[Contributed]) -> Vec<Found> {
        let mut found = Vec::new();
        let mut seen = Vec::new();
        for folder in &self.folders {
            self.look_into(folder, &mut found, &mut seen);
        }
        self.cache.lock().retain(|folder, _| seen.contains(folder));
        found.extend(bundled::all().iter().map(|Bundled { name, skill }| Found {
            name: (*name).to_owned(),
            place: Place::Bundled,
            folder: None,
            feature: None,
            skill: skill.clone(),
            shadowed_by: None,
            aliases: skill.as_ref().map(|skill| bundled::aliases(skill)).unwrap_or_default(),
        }));
        found.extend(contributed.iter().map(|one| Found {
            name: one.name.clone(),
            place: Place::Feature,
            folder: None,
            feature: Some(one.feature.clone()),
            skill: Skill::from_text(&one.name, &one.text).map(Arc::new).map_err(Arc::new),
            shadowed_by: None,
            aliases: Vec::new(),
        }));
        let mut used: HashMap<String, Place> = HashMap::new();
        for one in &mut found {
            match used.get(&one.name) {
                Some(place) => one.shadowed_by = Some(*place),
                None if one.skill.is_ok() => drop(used.insert(one.name.clone(), one.place)),
                None => {}
            }
        }
        found
    }

    /// The skills that are used: the first of each name.
    pub fn used(&self, contributed: &[Contributed]) -> Vec<(Found, Arc<Skill>)> {
        let found = self.all(contributed).into_iter().filter(|found| found.shadowed_by.is_none());
        found.filter_map(|found| found.skill.clone().ok().map(|skill| (found, skill))).collect()
    }

    /// The skill of a name, or of an old name.
    ///
    /// # Errors
    /// See [`FindError`].
    pub fn find(&self, name: &str, contributed: &[Contributed]) -> Result<Named, FindError> {
        let all = self.all(contributed);
        let of_name = |found: &&Found| found.name == name && found.shadowed_by.is_none();
        let named = all.iter().filter(of_name).find(|found| found.skill.is_ok());
        let (found, by_alias) = match named.or_else(|| all.iter().find(of_name)) {
            Some(found) => (found, false),
            None => match all.iter().find(|found| found.aliases.iter().any(|alias| alias == name)) {
                Some(found) => (found, true),
                None => {
                    let used = all.iter().filter(|found| found.skill.is_ok() && found.shadowed_by.is_none());
                    let known: Vec<String> = used.map(|found| found.name.clone()).collect();
                    let nearest = nearest(name, known.iter().map(String::as_str));
                    return Err(FindError::Unknown { name: excerpt(name, 128), nearest, known });
                }
            },
        };
        Ok(Named { found: found.clone(), skill: found.skill.clone()?, by_alias })
    }

    fn look_into(&self, folder: &SearchFolder, found: &mut Vec<Found>, seen: &mut Vec<PathBuf>) {
        let refused = |path: &Path, problem| Found {
            name: path.file_name().map(|name| excerpt(&name.to_string_lossy(), 128)).unwrap_or_default(),
            place: folder.place,
            folder: Some(path.to_owned()),
            feature: None,
            skill: Err(Arc::new(RejectedSkill {
                name: path.file_name().map(|name| excerpt(&name.to_string_lossy(), 128)).unwrap_or_default(),
                problems: vec![problem],
            })),
            shadowed_by: None,
            aliases: Vec::new(),
        };
        let unreadable = |error: std::io::Error| Problem::Unreadable {
            path: ".".to_owned(),
            message: excerpt(&error.to_string(), 256),
        };
        let root = match Dir::open_ambient_dir(&folder.path, ambient_authority()) {
            Ok(root) => root,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return,
            Err(error) => return found.push(refused(&folder.path, unreadable(error))),
        };
        let entries = match root.entries() {
            Ok(entries) => entries,
            Err(error) => return found.push(refused(&folder.path, unreadable(error))),
        };
        let mut names = Vec::new();
        for entry in entries.flatten() {
            let kind = entry.file_type();
            let name = entry.file_name();
            // Files beside the skills, and what is being installed, are none of its business.
            if name.as_encoded_bytes().starts_with(b".") || !kind.is_ok_and(|kind| kind.is_dir() || kind.is_symlink()) {
                continue;
            }
            if names.len() == MAX_SKILLS {
                found.push(refused(&folder.path, Problem::TooManySkills { max: MAX_SKILLS }));
                break;
            }
            names.push(name);
        }
        names.sort();
        for name in names {
            let path = folder.path.join(&name);
            // A link may lead to another folder of this place, and nowhere else.
            match root.open_dir(&name) {
                Ok(dir) => {
                    let skill = self.read(&name.to_string_lossy(), &path, &dir);
                    found.push(Found {
                        name: excerpt(&name.to_string_lossy(), 128),
                        place: folder.place,
                        folder: Some(path.clone()),
                        feature: None,
                        skill,
                        shadowed_by: None,
                        aliases: Vec::new(),
                    });
                    seen.push(path);
                }
                Err(error) if root.symlink_metadata(&name).is_ok_and(|one| one.is_symlink()) => {
                    tracing::debug!("{}: {error}", path.display());
                    found.push(refused(&path, Problem::Link { path: ".".to_owned() }));
                }
                Err(error) => found.push(refused(&path, unreadable(error))),
            }
        }
    }

    /// What is in a folder: as it was read before if nothing has changed since.
    fn read(&self, name: &str, path: &Path, dir: &Dir) -> Loaded {
        let (stamps, problems) = folder::list(dir);
        if problems.is_empty()
            && let Some(cached) = self.cache.lock().get(path)
            && cached.stamps == stamps
        {
            return cached.skill.clone();
        }
        let now = SystemTime::now();
        let keeps = problems.is_empty() && stamps.iter().all(|stamp| self.is_settled(stamp, now));
        let skill = Skill::open(name, path, dir, &stamps, problems).map(Arc::new).map_err(Arc::new);
        if keeps {
            self.cache.lock().insert(path.to_owned(), Cached { stamps, skill: skill.clone() });
        }
        skill
    }

    fn is_settled(&self, stamp: &Stamp, now: SystemTime) -> bool {
        stamp.modified().is_some_and(|written| now.duration_since(written).is_ok_and(|age| age >= self.settled))
    }
}

/// The root of the project that a folder belongs to: the nearest folder above it, or itself, that has a `.git`; else the
/// folder itself.
pub fn project_root(folder: &Path) -> PathBuf {
    let root = folder.ancestors().take(MAX_ANCESTORS).find(|ancestor| ancestor.join(".git").exists());
    root.unwrap_or(folder).to_owned()
}

#[cfg(test)]
mod tests;
