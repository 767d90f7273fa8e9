//! What can be wrong with a skill, each with its place and what to do.

use crate::limits;

/// How much weighs what is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// It could be better.
    Advice,
    /// The skill is used, but is not what the specification allows; validation fails.
    Violation,
    /// The skill is not used.
    Refusal,
}

/// Why a name is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Nothing is left of it.
    #[error("is empty")]
    Empty,
    /// It is too long.
    #[error("has more than {} characters", limits::MAX_NAME)]
    TooLong,
    /// A character that names don't have.
    #[error("has {0:?}; a name has small letters, digits and hyphens")]
    Character(char),
    /// A hyphen where none may be.
    #[error("begins or ends with a hyphen, or has two in a row")]
    Hyphen,
}

/// Whether a text is the name of a skill.
///
/// # Errors
/// What is wrong with it.
pub fn check_name(name: &str) -> Result<(), NameError> {
    if name.is_empty() {
        return Err(NameError::Empty);
    }
    if name.chars().count() > limits::MAX_NAME {
        return Err(NameError::TooLong);
    }
    let fits = |c: char| c == '-' || (c.is_alphanumeric() && c.to_lowercase().eq([c]));
    if let Some(wrong) = name.chars().find(|c| !fits(*c)) {
        return Err(NameError::Character(wrong));
    }
    if name.starts_with('-') || name.ends_with('-') || name.contains("--") {
        return Err(NameError::Hyphen);
    }
    Ok(())
}

/// One thing that is wrong with a skill. Lines and columns count from 1, in `SKILL.md` unless a path is named.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The folder has no `SKILL.md`.
    #[error("SKILL.md is missing; a skill is a folder with a file of that name")]
    NoSkillFile,
    /// The system does not let it be read.
    #[error("{path}: can't be read: {message}")]
    Unreadable {
        /// Below the folder.
        path: String,
        /// What the system says.
        message: String,
    },
    /// It is too large.
    #[error("{path}: has {size} bytes; at most {max} are read. Move what is not always needed into references/")]
    TooLarge {
        /// Below the folder.
        path: String,
        /// Its bytes.
        size: u64,
        /// How many there may be.
        max: u64,
    },
    /// All files together are too large.
    #[error("the files have more than {max} bytes together")]
    TotalTooLarge {
        /// How many there may be.
        max: u64,
    },
    /// It is no text.
    #[error("{path}:{line}: is not UTF-8 text")]
    NotText {
        /// Below the folder.
        path: String,
        /// The first line that is not text.
        line: usize,
    },
    /// A character that can't be seen, or that moves what is around it.
    #[error("{path}:{line}:{column}: has the hidden character U+{code:04X}; remove it")]
    HiddenCharacter {
        /// Below the folder.
        path: String,
        /// Its line.
        line: usize,
        /// Its character in the line.
        column: usize,
        /// Which it is.
        code: u32,
    },
    /// There is no front matter.
    #[error("SKILL.md:1: begins without front matter; the first line is `---`")]
    NoFrontMatter,
    /// It does not end.
    #[error("SKILL.md:1: the front matter does not end; put a line `---` behind it")]
    UnclosedFrontMatter,
    /// It is too long.
    #[error("SKILL.md:1: the front matter has {size} bytes; at most {max} are read")]
    LongFrontMatter {
        /// Its bytes.
        size: usize,
        /// How many there may be.
        max: usize,
    },
    /// It is no YAML, or YAML that asks for too much.
    #[error("SKILL.md:{line}:{column}: {message}")]
    Yaml {
        /// Its line.
        line: usize,
        /// Its column.
        column: usize,
        /// What is wrong.
        message: String,
    },
    /// A field is missing.
    #[error("SKILL.md:1: the field `{field}` is missing")]
    MissingField {
        /// Its name.
        field: &'static str,
    },
    /// A field has a value of another type.
    #[error("SKILL.md:{line}: `{field}` has to be {expected}")]
    WrongType {
        /// Its name.
        field: &'static str,
        /// Its line.
        line: usize,
        /// What it should be.
        expected: &'static str,
    },
    /// A field that the specification does not know.
    #[error(
        "SKILL.md:{line}: `{field}` is no field of a skill{}; put values of your own under `metadata`",
        .nearest.as_ref().map(|field| format!("; `{field}` is one")).unwrap_or_default()
    )]
    UnknownField {
        /// Its name.
        field: String,
        /// Its line.
        line: usize,
        /// What was probably meant.
        nearest: Option<String>,
    },
    /// A field is empty.
    #[error("SKILL.md:{line}: `{field}` is empty")]
    Empty {
        /// Its name.
        field: &'static str,
        /// Its line.
        line: usize,
    },
    /// A field is too long.
    #[error("SKILL.md:{line}: `{field}` has {length} characters; at most {max} are allowed")]
    TooLong {
        /// Its name.
        field: &'static str,
        /// Its line.
        line: usize,
        /// Its characters.
        length: usize,
        /// How many there may be.
        max: usize,
    },
    /// The name is invalid.
    #[error("SKILL.md:{line}: the name {name:?} {reason}")]
    Name {
        /// The name.
        name: String,
        /// Its line.
        line: usize,
        /// Why.
        reason: NameError,
    },
    /// The name is not that of the folder.
    #[error("SKILL.md:{line}: the name is {name:?}, the folder's {folder:?}; they have to be the same")]
    NameIsNotFolder {
        /// The name.
        name: String,
        /// The folder's.
        folder: String,
        /// Its line.
        line: usize,
    },
    /// There are too many files.
    #[error("has more than {max} files; the rest was not looked at")]
    TooManyFiles {
        /// How many there may be.
        max: usize,
    },
    /// A folder lies too deep.
    #[error("{path}: lies more than {max} folders deep")]
    TooDeep {
        /// Below the folder.
        path: String,
        /// How many there may be.
        max: usize,
    },
    /// A file has a name that no address can have.
    #[error("{path:?}: can't be read as a file of a skill; names have letters, digits and . _ - + alone")]
    FileName {
        /// Below the folder.
        path: String,
    },
    /// A link leads out of the folder, or to a folder.
    #[error("{path}: is a link that leads out of the skill's folder, or to a folder; put the file itself there")]
    Link {
        /// Below the folder.
        path: String,
    },
    /// A pipe, a device, a socket.
    #[error("{path}: is no file and no folder")]
    NotAFile {
        /// Below the folder.
        path: String,
    },
    /// The body names a file that is not there.
    #[error("SKILL.md:{line}: links to {path}, which is not in the skill")]
    MissingFile {
        /// Its line.
        line: usize,
        /// What it names.
        path: String,
    },
    /// Name and description are long.
    #[error("name and description have about {tokens} tokens, which every conversation pays; stay below {max}")]
    LongMetadata {
        /// How many, estimated.
        tokens: usize,
        /// How many there should be.
        max: usize,
    },
    /// The body is long.
    #[error("the body has about {tokens} tokens; stay below {max}, and move the rest into references/")]
    LongBody {
        /// How many, estimated.
        tokens: usize,
        /// How many there should be.
        max: usize,
    },
    /// More folders than are looked into.
    #[error("has more than {max} folders; the rest was not looked at")]
    TooManySkills {
        /// How many there may be.
        max: usize,
    },
}

impl Problem {
    /// How much it weighs.
    pub fn severity(&self) -> Severity {
        match self {
            Self::LongMetadata { .. } | Self::LongBody { .. } => Severity::Advice,
            Self::UnknownField { .. } | Self::MissingFile { .. } | Self::FileName { .. } => Severity::Violation,
            _ => Severity::Refusal,
        }
    }
}

/// A folder that is used as no skill, and everything that speaks against it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name}: {}", .problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
pub struct RejectedSkill {
    /// The folder's name.
    pub name: String,
    /// What is wrong; at least one of them is a [refusal](Severity::Refusal).
    pub problems: Vec<Problem>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_small_letters_digits_and_single_hyphens() {
        for name in ["a", "pdf-processing", "données", "日本", "x1-2", &"a".repeat(64)] {
            assert_eq!(check_name(name), Ok(()), "{name}");
        }
        for (name, reason) in [
            ("", NameError::Empty),
            ("PDF", NameError::Character('P')),
            ("a b", NameError::Character(' ')),
            ("../x", NameError::Character('.')),
            ("a/b", NameError::Character('/')),
            ("a_b", NameError::Character('_')),
            ("a\u{202e}b", NameError::Character('\u{202e}')),
            ("-a", NameError::Hyphen),
            ("a-", NameError::Hyphen),
            ("a--b", NameError::Hyphen),
            (&"a".repeat(65), NameError::TooLong),
        ] {
            assert_eq!(check_name(name), Err(reason), "{name}");
        }
    }
}
