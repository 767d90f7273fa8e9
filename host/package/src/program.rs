//! Programs of this machine that a feature may run: which, with which arguments, and what each can reach.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The longest text of a program, in bytes.
const MAX_PROGRAM: usize = 1024;
/// The word in front of a program that reaches the network.
const NETWORK: &str = "network";
/// What the words in front of a program begin with that name what it can read.
const READS: &str = "read=";

/// A program with its arguments, as a person grants it: exactly this is run, and nothing is added to it.
///
/// Its text is that of a command, quoted as in a shell. Words in front of the program say what it can reach beyond the
/// system's own folders: `network`, and `read=/A/PATH` for a file or a folder; `NAME=value` is a variable of its environment.
/// `network read=/home/me/.codex CODEX_HOME=/home/me/.codex /usr/bin/codex exec -`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String", inline, extend("format" = "program"))]
pub struct Program {
    path: String,
    args: Vec<String>,
    network: bool,
    reads: Vec<String>,
    variables: Vec<(String, String)>,
}

/// The text is no program.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ProgramError(String);

impl Program {
    /// The program's whole path.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Its arguments.
    pub fn args(&self) -> &[String] {
        &self.args
    }

    /// Whether it reaches the network.
    pub const fn has_network(&self) -> bool {
        self.network
    }

    /// Files and folders that it can read, by their whole paths, beyond those of the system.
    pub fn reads(&self) -> &[String] {
        &self.reads
    }

    /// Variables of its environment, in their order.
    pub fn variables(&self) -> impl Iterator<Item = (&str, &str)> {
        self.variables.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The program with its variables and its arguments, as they are typed into a shell.
    pub fn command(&self) -> String {
        let variables = self.variables().map(|(name, value)| format!("{name}={}", quoted(value)));
        let words = std::iter::once(&self.path).chain(&self.args).map(|word| quoted(word).into_owned());
        variables.chain(words).collect::<Vec<_>>().join(" ")
    }

    /// What it is called where several are: the last name of its path.
    fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }
}

/// What programs are called, in their order: the last names of their paths. The second of one name is `NAME-2`.
pub fn names(programs: &[Program]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for program in programs {
        let numbered = (1..).map(|number: usize| match number {
            1 => program.name().to_owned(),
            _ => format!("{}-{number}", program.name()),
        });
        names.extend(numbered.into_iter().find(|name| !names.contains(name)));
    }
    names
}

/// A word as it is typed into a shell. Only a NUL can't be, and no program has one.
fn quoted(word: &str) -> Cow<'_, str> {
    shlex::try_quote(word).unwrap_or_default()
}

/// A variable of the environment, if the word sets one.
fn variable(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    let is_name = name.starts_with(|c: char| c.is_ascii_uppercase() || c == '_')
        && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
    is_name.then_some((name, value))
}

impl FromStr for Program {
    type Err = ProgramError;

    fn from_str(text: &str) -> Result<Self, ProgramError> {
        let wrong = |what: &str| ProgramError(what.to_owned());
        if text.len() > MAX_PROGRAM {
            return Err(ProgramError(format!("it has {} bytes; {MAX_PROGRAM} are allowed", text.len())));
        }
        if text.contains(|c: char| c.is_control()) {
            return Err(wrong("there is a control character in it"));
        }
        let words = shlex::split(text).ok_or_else(|| wrong("a quotation mark is not closed"))?;
        let mut words = words.into_iter();
        let mut program =
            Self { path: String::new(), args: Vec::new(), network: false, reads: Vec::new(), variables: Vec::new() };
        while program.path.is_empty() {
            let word = words.next().ok_or_else(|| wrong("there is no program in it"))?;
            if let Some((name, value)) = variable(&word) {
                program.variables.push((name.to_owned(), value.to_owned()));
            } else if let Some(read) = word.strip_prefix(READS) {
                if !is_whole(read) {
                    return Err(ProgramError(format!("{read:?} is not the whole path of a file or a folder")));
                }
                program.reads.push(read.to_owned());
            } else if word == NETWORK {
                program.network = true;
            } else if is_whole(&word) {
                program.path = word;
            } else {
                return Err(ProgramError(format!("{word:?} is not the whole path of a program")));
            }
        }
        Ok(Self { args: words.collect(), ..program })
    }
}

/// Whether a path begins at the top, names something there, and leads nowhere else than it says.
fn is_whole(path: &str) -> bool {
    let mut names = path.strip_prefix('/').into_iter().flat_map(|path| path.split('/')).peekable();
    names.peek().is_some() && names.all(|name| !matches!(name, "" | "." | ".."))
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.network {
            write!(f, "{NETWORK} ")?;
        }
        for read in &self.reads {
            write!(f, "{READS}{} ", quoted(read))?;
        }
        f.write_str(&self.command())
    }
}

impl TryFrom<String> for Program {
    type Error = ProgramError;

    fn try_from(text: String) -> Result<Self, ProgramError> {
        text.parse()
    }
}

impl From<Program> for String {
    fn from(program: Program) -> Self {
        program.to_string()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn program(text: &str) -> Program {
        text.parse().unwrap()
    }

    #[test]
    fn what_a_program_reaches_is_written_in_front_of_it() {
        let codex = program("network read=/home/me/.codex '/opt/my tools/codex' exec - 'a b'");
        assert_eq!(codex.path(), "/opt/my tools/codex");
        assert_eq!(codex.args(), ["exec", "-", "a b"]);
        assert!(codex.has_network());
        assert_eq!(codex.reads(), ["/home/me/.codex"]);
        assert_eq!(codex.command(), "'/opt/my tools/codex' exec - 'a b'");
        let plain = program("/usr/bin/llm network read=/etc A=b");
        assert!(!plain.has_network() && plain.reads().is_empty(), "behind the program they are its arguments");
        assert_eq!((plain.variables().count(), plain.args().len()), (0, 3));
        let set = program("HOME=/home/me A_1='b c' /usr/bin/llm");
        assert_eq!(set.variables().collect::<Vec<_>>(), [("HOME", "/home/me"), ("A_1", "b c")]);
        assert_eq!(set.command(), "HOME=/home/me A_1='b c' /usr/bin/llm");
    }

    #[test]
    fn what_is_no_program_is_rejected_with_a_reason() {
        for (text, why) in [
            ("", "there is no program in it"),
            ("network", "there is no program in it"),
            ("a=b /usr/bin/x", "\"a=b\" is not the whole path of a program"),
            ("codex exec", "\"codex\" is not the whole path of a program"),
            ("/", "\"/\" is not the whole path of a program"),
            ("/usr/../bin/x", "\"/usr/../bin/x\" is not the whole path of a program"),
            ("/usr/bin/", "\"/usr/bin/\" is not the whole path of a program"),
            ("read=/ /usr/bin/x", "\"/\" is not the whole path of a file or a folder"),
            ("read=.. /usr/bin/x", "\"..\" is not the whole path of a file or a folder"),
            ("/usr/bin/x 'a", "a quotation mark is not closed"),
            ("/usr/bin/x a\nb", "there is a control character in it"),
        ] {
            assert_eq!(text.parse::<Program>().unwrap_err().to_string(), why, "{text:?}");
        }
        assert!(format!("/{}", "x".repeat(MAX_PROGRAM)).parse::<Program>().is_err());
    }

    #[test]
    fn programs_of_one_name_are_numbered() {
        let all = ["/usr/bin/llm -m a", "/opt/llm", "/usr/bin/codex", "/usr/bin/llm -m b"].map(program);
        assert_eq!(names(&all), ["llm", "llm-2", "codex", "llm-3"]);
    }

    proptest! {
        #[test]
        fn a_program_is_the_same_after_it_was_written_and_read(
            network: bool,
            reads in prop::collection::vec("(/[^\\pC/]{1,8}){1,2}", 0..3),
            path in "(/[^\\pC/]{1,8}){1,3}",
            args in prop::collection::vec("\\PC{0,12}", 0..4),
            variables in prop::collection::vec(("[A-Z_][A-Z0-9_]{0,4}", "\\PC{0,12}"), 0..3),
        ) {
            prop_assume!(is_whole(&path) && reads.iter().all(|read| is_whole(read)));
            let program = Program { path, args, network, reads, variables };
            prop_assert_eq!(program.to_string().parse(), Ok(program));
        }
    }
}
