//! A skill: what it says about itself, its body, and its resources.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use serde_json::{Map, Value};

use crate::folder::{self, SKILL_FILE, Stamp};
use crate::front_matter::{FrontMatter, divide};
use crate::limits::{BODY_TOKENS, MAX_FILES, MAX_RESOURCE, MAX_SKILL_FILE, MAX_TOTAL, METADATA_TOKENS, tokens};
use crate::problem::{Problem, RejectedSkill, Severity};
use conductor_stdx::digest::sha256;
use conductor_terminal::excerpt;

/// A file of a skill beside its `SKILL.md`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillFile {
    /// Below the folder, with `/` between names.
    pub path: String,
    /// Its bytes.
    pub size: u64,
}

/// Where the files of a skill are.
#[derive(Debug, Clone)]
enum Files {
    /// In a folder. It is opened anew for each file.
    Folder(PathBuf),
    /// In the program, or in memory.
    Memory(Vec<(String, std::borrow::Cow<'static, [u8]>)>),
}

/// A skill that may be used.
#[derive(Debug)]
pub struct Skill {
    /// Its name, which is that of its folder.
    pub name: String,
    /// What it does and when it is of use, on one line.
    pub description: String,
    /// Under which terms it may be used.
    pub license: Option<String>,
    /// What it needs.
    pub compatibility: Option<String>,
    /// Whatever else its author says about it.
    pub metadata: BTreeMap<String, String>,
    /// Tools that its author would have allowed. It allows nothing here.
    pub allowed_tools: Option<String>,
    /// What is wrong with it without being a reason to refuse it.
    pub findings: Vec<Problem>,
    front_matter: Map<String, Value>,
    text: String,
    body: usize,
    resources: Vec<SkillFile>,
    files: Files,
    digests: OnceLock<Vec<(String, String)>>,
}

/// A skill, or why a folder is not one.
pub type Loaded = Result<Arc<Skill>, Arc<RejectedSkill>>;

/// Why a resource is not read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The path names no file below a folder.
    #[error("{0:?} is no path of a file of a skill: names with / between them, such as references/actions.md")]
    Path(String),
    /// The skill has no such file.
    #[error("the skill {skill} has no file {path:?}; it has {}", list(.has))]
    NoFile {
        /// The skill's name.
        skill: String,
        /// What was asked for.
        path: String,
        /// The files that it has.
        has: Vec<String>,
    },
    /// It has no text that could be shown.
    #[error(transparent)]
    Content(#[from] Problem),
}

fn list(files: &[String]) -> String {
    match files {
        [] => "none".to_owned(),
        _ => excerpt(&files.join(", "), 512),
    }
}

impl Skill {
    /// Reads the skill in a folder.
    ///
    /// # Errors
    /// All that speaks against it.
    pub fn load(folder: &Path) -> Result<Self, RejectedSkill> {
        let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        match Dir::open_ambient_dir(folder, ambient_authority()) {
            Ok(dir) => {
                let (stamps, problems) = folder::list(&dir);
                Self::open(&name, folder, &dir, &stamps, problems)
            }
            Err(error) => Err(RejectedSkill { name, problems: vec![unreadable(".", &error)] }),
        }
    }

    /// The same for a folder that was opened and listed.
    pub(crate) fn open(
        name: &str,
        path: &Path,
        dir: &Dir,
        stamps: &[Stamp],
        mut problems: Vec<Problem>,
    ) -> Result<Self, RejectedSkill> {
        let text = match stamps.iter().find(|stamp| stamp.path == SKILL_FILE) {
            None => Err(Problem::NoSkillFile),
            Some(stamp) if stamp.size > MAX_SKILL_FILE => Err(too_large(SKILL_FILE, stamp.size, MAX_SKILL_FILE)),
            Some(_) => match folder::read(dir, SKILL_FILE, MAX_SKILL_FILE) {
                Ok(bytes) => folder::text(SKILL_FILE, bytes),
                Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                    Err(too_large(SKILL_FILE, MAX_SKILL_FILE + 1, MAX_SKILL_FILE))
                }
                Err(error) => Err(unreadable(SKILL_FILE, &error)),
            },
        };
        let others = stamps.iter().filter(|stamp| stamp.path != SKILL_FILE);
        let resources = others.map(|stamp| SkillFile { path: stamp.path.clone(), size: stamp.size }).collect();
        match text {
            Ok(text) => Self::checked(name, text, resources, Files::Folder(path.to_owned()), problems),
            Err(problem) => {
                problems.insert(0, problem);
                Err(RejectedSkill { name: name.to_owned(), problems })
            }
        }
    }

    /// Reads a skill whose files are in memory, by path. It has the folder's name `name`.
    ///
    /// # Errors
    /// All that speaks against it.
    pub fn from_files(
        name: &str,
        files: Vec<(String, std::borrow::Cow<'static, [u8]>)>,
    ) -> Result<Self, RejectedSkill> {
        let refused = |problems| Err(RejectedSkill { name: name.to_owned(), problems });
        let Some((_, bytes)) = files.iter().find(|(path, _)| path == SKILL_FILE) else {
            return refused(vec![Problem::NoSkillFile]);
        };
        if bytes.len() as u64 > MAX_SKILL_FILE {
            return refused(vec![too_large(SKILL_FILE, bytes.len() as u64, MAX_SKILL_FILE)]);
        }
        let text = match folder::text(SKILL_FILE, bytes.to_vec()) {
            Ok(text) => text,
            Err(problem) => return refused(vec![problem]),
        };
        let others = files.iter().filter(|(path, _)| path != SKILL_FILE);
        let mut resources: Vec<SkillFile> =
            others.map(|(path, bytes)| SkillFile { path: path.clone(), size: bytes.len() as u64 }).collect();
        resources.sort_by(|a, b| a.path.cmp(&b.path));
        let mut problems = Vec::new();
        if resources.len() > MAX_FILES {
            problems.push(Problem::TooManyFiles { max: MAX_FILES });
        }
        if resources.iter().map(|file| file.size).sum::<u64>() > MAX_TOTAL {
            problems.push(Problem::TotalTooLarge { max: MAX_TOTAL });
        }
        let wrong = resources.extract_if(.., |file| !folder::is_inner_path(&file.path));
        problems.extend(wrong.map(|file| Problem::FileName { path: excerpt(&file.path, 256) }));
        Self::checked(name, text, resources, Files::Memory(files), problems)
    }

    /// Reads a skill that is one text, as features register it.
    ///
    /// # Errors
    /// All that speaks against it.
    pub fn from_text(name: &str, text: &str) -> Result<Self, RejectedSkill> {
        Self::from_files(name, vec![(SKILL_FILE.to_owned(), text.as_bytes().to_vec().into())])
    }

    fn checked(
        folder: &str,
        text: String,
        resources: Vec<SkillFile>,
        files: Files,
        mut problems: Vec<Problem>,
    ) -> Result<Self, RejectedSkill> {
        let (front, body) = match divide(&text) {
            Ok((yaml, body)) => (FrontMatter::read(yaml, &mut problems), body),
            Err(problem) => {
                problems.push(problem);
                (FrontMatter::default(), text.len())
            }
        };
        if !front.name.is_empty() && front.name != folder {
            let (name, folder) = (excerpt(&front.name, 128), excerpt(folder, 128));
            problems.push(Problem::NameIsNotFolder { name, folder, line: front.name_line });
        }
        let large = resources.iter().filter(|file| file.size > MAX_RESOURCE);
        problems.extend(large.map(|file| too_large(&file.path, file.size, MAX_RESOURCE)));
        let lines_before = text[..body].matches('\n').count();
        for (line, path) in links(&text[body..]) {
            if !resources.iter().any(|file| file.path == path || file.path.starts_with(&format!("{path}/"))) {
                problems.push(Problem::MissingFile { line: line + lines_before, path: excerpt(&path, 256) });
            }
        }
        let count = tokens(&front.name) + tokens(&front.description);
        if count > METADATA_TOKENS {
            problems.push(Problem::LongMetadata { tokens: count, max: METADATA_TOKENS });
        }
        let count = tokens(&text[body..]);
        if count > BODY_TOKENS {
            problems.push(Problem::LongBody { tokens: count, max: BODY_TOKENS });
        }
        if problems.iter().any(|problem| problem.severity() == Severity::Refusal) {
            return Err(RejectedSkill { name: folder.to_owned(), problems });
        }
        let FrontMatter { name, description, license, compatibility, metadata, allowed_tools, whole, .. } = front;
        let description = description.split_whitespace().collect::<Vec<_>>().join(" ");
        Ok(Self {
            name,
            description,
            license,
            compatibility,
            metadata,
            allowed_tools,
            findings: problems,
            front_matter: whole,
            text,
            body,
            resources,
            files,
            digests: OnceLock::new(),
        })
    }

    /// The front matter as it was written, as JSON.
    pub fn front_matter(&self) -> &Map<String, Value> {
        &self.front_matter
    }

    /// The whole `SKILL.md`, front matter included.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What stands behind the front matter.
    pub fn body(&self) -> &str {
        self.text[self.body..].trim_start_matches(['\r', '\n'])
    }

    /// The files beside `SKILL.md`, sorted by path.
    pub fn resources(&self) -> &[SkillFile] {
        &self.resources
    }

    /// Its folder; `None` if it is in memory.
    pub fn folder(&self) -> Option<&Path> {
        match &self.files {
            Files::Folder(path) => Some(path),
            Files::Memory(_) => None,
        }
    }

    /// The bytes of a file of the skill, `SKILL.md` included.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn bytes(&self, path: &str) -> Result<Vec<u8>, ReadError> {
        if path == SKILL_FILE {
            return Ok(self.text.clone().into_bytes());
        }
        if !folder::is_inner_path(path) {
            return Err(ReadError::Path(excerpt(path, 256)));
        }
        if !self.resources.iter().any(|file| file.path == path) {
            let has = self.resources.iter().map(|file| file.path.clone()).collect();
            return Err(ReadError::NoFile { skill: self.name.clone(), path: path.to_owned(), has });
        }
        match &self.files {
            Files::Memory(files) => {
                Ok(files.iter().find(|(name, _)| name == path).map(|(_, bytes)| bytes.to_vec()).unwrap_or_default())
            }
            Files::Folder(folder) => {
                let read = Dir::open_ambient_dir(folder, ambient_authority())
                    .and_then(|folder| folder::read(&folder, path, MAX_RESOURCE));
                read.map_err(|error| match error.kind() {
                    io::ErrorKind::FileTooLarge => too_large(path, MAX_RESOURCE + 1, MAX_RESOURCE).into(),
                    io::ErrorKind::PermissionDenied if error.raw_os_error().is_none() => {
                        Problem::Link { path: path.to_owned() }.into()
                    }
                    _ => unreadable(path, &error).into(),
                })
            }
        }
    }

    /// A file of the skill as text, `SKILL.md` included.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn read(&self, path: &str) -> Result<String, ReadError> {
        Ok(folder::text(path, self.bytes(path)?)?)
    }

    /// Every file with its SHA-256 (lower-case hex), `SKILL.md` first. What can't be read is left out.
    pub fn digests(&self) -> &[(String, String)] {
        self.digests.get_or_init(|| {
            let paths = std::iter::once(SKILL_FILE).chain(self.resources.iter().map(|file| file.path.as_str()));
            paths.filter_map(|path| Some((path.to_owned(), sha256(&self.bytes(path).ok()?)))).collect()
        })
    }

    /// One SHA-256 (lower-case hex) for the paths and contents of all files.
    pub fn digest(&self) -> String {
        let lines: String = self.digests().iter().map(|(path, digest)| format!("{digest}  {path}\n")).collect();
        sha256(lines.as_bytes())
    }
}

fn unreadable(path: &str, error: &io::Error) -> Problem {
    Problem::Unreadable { path: path.to_owned(), message: excerpt(&error.to_string(), 256) }
}

fn too_large(path: &str, size: u64, max: u64) -> Problem {
    Problem::TooLarge { path: path.to_owned(), size, max }
}

/// The files that Markdown links to below the folder, with their lines: `[text](references/x.md#part)`. Code is skipped.
fn links(body: &str) -> Vec<(usize, String)> {
    let (mut found, mut in_code) = (Vec::new(), false);
    for (number, line) in body.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        if in_code {
            continue;
        }
        for piece in line.split("](").skip(1) {
            let Some((target, _)) = piece.split_once(')') else { continue };
            let path = target.split(['#', ' ']).next().unwrap_or_default();
            let path = path.strip_prefix("./").unwrap_or(path).trim_end_matches('/');
            if !path.is_empty() && !path.contains(':') && !path.starts_with('/') {
                found.push((number + 1, path.to_owned()));
            }
        }
    }
    found
}
