//! The front matter of a `SKILL.md`: YAML between two lines `---`, with bounds that no skill needs more than.
//!
//! Anchors, aliases and merge keys are refused: no skill has them, and they are what YAML is blown up with.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::folder::{SKILL_FILE, is_out_of_place};
use crate::limits::{
    MAX_COMPATIBILITY, MAX_DESCRIPTION, MAX_FRONT_MATTER, MAX_FRONT_MATTER_DEPTH, MAX_FRONT_MATTER_VALUES,
};
use crate::problem::{Problem, check_name};
use conductor_stdx::nearest::nearest;
use conductor_terminal::excerpt;

/// The fields of the specification.
const FIELDS: [&str; 6] = ["name", "description", "license", "compatibility", "metadata", "allowed-tools"];

/// What a front matter says.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct FrontMatter {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) license: Option<String>,
    pub(crate) compatibility: Option<String>,
    pub(crate) metadata: BTreeMap<String, String>,
    pub(crate) allowed_tools: Option<String>,
    /// All of it, as it was written.
    pub(crate) whole: Map<String, Value>,
    /// The line of the name.
    pub(crate) name_line: usize,
}

/// Where a text is divided: the YAML, and the byte that the body begins at.
///
/// # Errors
/// [`Problem::NoFrontMatter`], [`Problem::UnclosedFrontMatter`], [`Problem::LongFrontMatter`].
pub(crate) fn divide(text: &str) -> Result<(&str, usize), Problem> {
    let first = text.split_inclusive('\n').next().unwrap_or_default();
    if first.trim_end() != "---" {
        return Err(Problem::NoFrontMatter);
    }
    let mut at = first.len();
    for line in text[at..].split_inclusive('\n') {
        if line.trim_end() == "---" {
            let yaml = &text[first.len()..at];
            if yaml.len() > MAX_FRONT_MATTER {
                return Err(Problem::LongFrontMatter { size: yaml.len(), max: MAX_FRONT_MATTER });
            }
            return Ok((yaml, at + line.len()));
        }
        at += line.len();
    }
    Err(Problem::UnclosedFrontMatter)
}

impl FrontMatter {
    /// Reads the YAML of a front matter, and puts what is wrong with it into `problems`. What is returned is whole only
    /// if none of these is a refusal.
    pub(crate) fn read(yaml: &str, problems: &mut Vec<Problem>) -> Self {
        let whole = match parse(yaml) {
            Ok(whole) => whole,
            Err(problem) => {
                problems.push(problem);
                return Self::default();
            }
        };
        let mut fields = Fields { yaml, whole: &whole, problems };
        let name = fields.text("name", true, usize::MAX).unwrap_or_default();
        let name_line = fields.line("name");
        if whole.contains_key("name")
            && !name.is_empty()
            && let Err(reason) = check_name(&name)
        {
            fields.problems.push(Problem::Name { name: excerpt(&name, 128), line: name_line, reason });
        }
        let description = fields.text("description", true, MAX_DESCRIPTION).unwrap_or_default();
        let license = fields.text("license", false, usize::MAX);
        let compatibility = fields.text("compatibility", false, MAX_COMPATIBILITY);
        let metadata = fields.texts("metadata");
        let allowed_tools = fields.text("allowed-tools", false, usize::MAX);
        // What is written with an escape is hidden as well.
        for (field, value) in &whole {
            if let Some(c) = hidden(field, value) {
                let (path, line) = (SKILL_FILE.to_owned(), fields.line(field));
                fields.problems.push(Problem::HiddenCharacter { path, line, column: 1, code: u32::from(c) });
            }
        }
        for field in whole.keys().filter(|field| !FIELDS.contains(&field.as_str())) {
            let (nearest, line) = (nearest(field, FIELDS), fields.line(field));
            fields.problems.push(Problem::UnknownField { field: excerpt(field, 64), line, nearest });
        }
        Self { name, description, license, compatibility, metadata, allowed_tools, whole, name_line }
    }
}

/// The fields of a front matter while they are read.
struct Fields<'f> {
    yaml: &'f str,
    whole: &'f Map<String, Value>,
    problems: &'f mut Vec<Problem>,
}

impl Fields<'_> {
    /// The line in `SKILL.md` that a field begins at. The front matter's first line if the field is not at the beginning
    /// of one, as in the short form with braces.
    fn line(&self, field: &str) -> usize {
        let begins = |line: &str| {
            let line = line.trim_start_matches(['"', '\'']);
            line.strip_prefix(field).is_some_and(|rest| rest.trim_start_matches(['"', '\'', ' ']).starts_with(':'))
        };
        self.yaml.lines().position(begins).map_or(1, |line| line + 2)
    }

    fn text(&mut self, field: &'static str, needed: bool, max: usize) -> Option<String> {
        let line = self.line(field);
        let text = match self.whole.get(field) {
            None if needed => {
                self.problems.push(Problem::MissingField { field });
                return None;
            }
            None => return None,
            Some(value) => scalar(value),
        };
        let Some(text) = text else {
            self.problems.push(Problem::WrongType { field, line, expected: "text" });
            return None;
        };
        let text = text.trim().to_owned();
        let length = text.chars().count();
        if text.is_empty() && (needed || field == "compatibility") {
            self.problems.push(Problem::Empty { field, line });
        } else if length > max {
            self.problems.push(Problem::TooLong { field, line, length, max });
        }
        Some(text)
    }

    fn texts(&mut self, field: &'static str) -> BTreeMap<String, String> {
        let pairs = match self.whole.get(field) {
            None => return BTreeMap::new(),
            Some(Value::Object(pairs)) => {
                pairs.iter().map(|(key, value)| Some((key.clone(), scalar(value)?))).collect()
            }
            Some(_) => None,
        };
        if pairs.is_none() {
            let line = self.line(field);
            self.problems.push(Problem::WrongType {
                field,
                line,
                expected: "names with texts, such as `version: \"1\"`",
            });
        }
        pairs.unwrap_or_default()
    }
}

/// What is written as text, a number or a yes; the specification takes all of them for text.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(yes) => Some(yes.to_string()),
        // Nothing behind the colon.
        Value::Null => Some(String::new()),
        _ => None,
    }
}

/// The first character of a field that has no place in a skill.
fn hidden(field: &str, value: &Value) -> Option<char> {
    let of_text = |text: &str| text.chars().find(|c| is_out_of_place(*c));
    of_text(field).or_else(|| match value {
        Value::String(text) => of_text(text),
        Value::Array(values) => values.iter().find_map(|value| hidden("", value)),
        Value::Object(pairs) => pairs.iter().find_map(|(key, value)| hidden(key, value)),
        _ => None,
    })
}

fn parse(yaml: &str) -> Result<Map<String, Value>, Problem> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            flow_nesting_limit: MAX_FRONT_MATTER_DEPTH,
            max_depth: MAX_FRONT_MATTER_DEPTH,
            max_nodes: MAX_FRONT_MATTER_VALUES,
            max_events: 4 * MAX_FRONT_MATTER_VALUES,
            max_anchors: 0,
            max_aliases: 0,
            max_merge_keys: 0,
            max_documents: 1,
            max_total_scalar_bytes: MAX_FRONT_MATTER,
        },
        merge_keys: serde_saphyr::options::MergeKeyPolicy::Error,
        duplicate_keys: serde_saphyr::options::DuplicateKeyPolicy::Error,
    };
    serde_saphyr::from_str_with_options(yaml, options).map_err(|error| {
        let place = error.location();
        let at = |place: u64| usize::try_from(place).unwrap_or(usize::MAX);
        let (line, column) = place.map_or((1, 1), |place| (at(place.line()).saturating_add(1), at(place.column())));
        let message = error.without_snippet().to_string();
        Problem::Yaml { line, column, message: excerpt(message.lines().next().unwrap_or_default(), 256) }
    })
}
