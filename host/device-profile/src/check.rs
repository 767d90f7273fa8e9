//! Checks the tables of a file against the [fields](crate::fields) that there are, and names every mistake with its place.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde::Serialize;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use crate::fields::{Field, Shape};
use crate::numbers::{self, shortened};
use crate::profile::UsbId;

/// The largest file that is read, in bytes.
pub const MAX_FILE: usize = 256 * 1024;
/// Entries of a list, at most.
const MAX_LIST: usize = 512;
/// Characters of a name, at most.
const MAX_NAME: usize = 64;
/// Characters of a text, at most.
const MAX_TEXT: usize = 400;
/// More mistakes than this are not told.
const MAX_MISTAKES: usize = 200;

/// Something that is wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mistake {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// What is wrong, and what is allowed.
    pub message: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)
    }
}

/// All mistakes of a file.
pub(crate) struct Mistakes<'t> {
    text: &'t str,
    found: Vec<(usize, String)>,
}

impl<'t> Mistakes<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self { text, found: Vec::new() }
    }

    pub(crate) fn add(&mut self, place: Range<usize>, message: impl Into<String>) {
        if self.found.len() < MAX_MISTAKES {
            self.found.push((place.start, message.into()));
        }
    }

    pub(crate) fn line(&self, place: usize) -> usize {
        self.before(place).bytes().filter(|byte| *byte == b'\n').count() + 1
    }

    fn before(&self, place: usize) -> &'t str {
        &self.text[..self.text.floor_char_boundary(place)]
    }

    /// In the order of the file; none is reported twice.
    pub(crate) fn list(mut self) -> Vec<Mistake> {
        self.found.sort();
        self.found.dedup();
        let of = |(place, message): &(usize, String)| {
            let before = self.before(*place);
            let line = before.rsplit('\n').next().unwrap_or_default();
            Mistake { line: self.line(*place), column: line.chars().count() + 1, message: message.clone() }
        };
        self.found.iter().map(of).collect()
    }
}

/// Checks a table, and takes out of it what is wrong, so that the rest can be read. Returns whether it says all that it has
/// to: nothing is missing, and nothing was taken out but fields that are unknown.
pub(crate) fn table(
    table: &mut DeTable<'_>,
    place: &Range<usize>,
    fields: &[Field],
    mistakes: &mut Mistakes<'_>,
) -> bool {
    let (mut wrong, mut unknown_keys) = (Vec::new(), Vec::new());
    for (key, entry) in table.iter_mut() {
        let Some(field) = fields.iter().find(|field| field.name == *key.get_ref()) else {
            mistakes.add(key.span(), unknown(key.get_ref(), fields));
            unknown_keys.push(key.clone());
            continue;
        };
        let span = entry.span();
        if !value(entry.get_mut(), &span, &field.shape, field.name, mistakes) {
            wrong.push(key.clone());
        }
    }
    for key in wrong.iter().chain(&unknown_keys) {
        table.remove(key);
    }
    let missing: Vec<&Field> =
        fields.iter().filter(|field| field.required && !table.contains_key(field.name)).collect();
    for field in &missing {
        // What was taken out is wrong, but not missing.
        if !wrong.iter().any(|key| *key.get_ref() == field.name) {
            mistakes.add(place.start..place.start, format!("`{}` is missing: {}", field.name, field.about));
        }
    }
    missing.is_empty() && wrong.is_empty()
}

fn unknown(name: &str, fields: &[Field]) -> String {
    let near = fields
        .iter()
        .filter(|field| name.len() <= MAX_NAME && strsim::osa_distance(field.name, name) <= name.len().max(3) / 3)
        .min_by_key(|field| strsim::osa_distance(field.name, name));
    let name = shortened(name);
    match near {
        Some(near) => format!("there is no field `{name}`; did you mean `{}`?", near.name),
        None => {
            let names: Vec<&str> = fields.iter().map(|field| field.name).collect();
            format!("there is no field `{name}`; there are {}", names.join(", "))
        }
    }
}

/// Checks a value. Returns whether it can be read.
fn value(
    value: &mut DeValue<'_>,
    place: &Range<usize>,
    shape: &Shape,
    name: &str,
    mistakes: &mut Mistakes<'_>,
) -> bool {
    let wrong = match (shape, value) {
        (Shape::Table(fields), DeValue::Table(inner)) => return table(inner, place, fields, mistakes),
        (Shape::Tables(fields), DeValue::Array(list)) => {
            if list.is_empty() || list.len() > MAX_LIST {
                mistakes.add(place.clone(), format!("`{name}` has 1 to {MAX_LIST} entries, and not {}", list.len()));
            }
            keep(list, |entry| {
                let place = entry.span();
                match entry.get_mut() {
                    DeValue::Table(inner) => table(inner, &place, fields, mistakes),
                    other => {
                        mistakes.add(place, format!("`{name}` is a list of tables, and this is {}", kind(other)));
                        false
                    }
                }
            });
            return true;
        }
        (Shape::List(of), DeValue::Array(list)) => {
            if list.is_empty() || list.len() > MAX_LIST {
                mistakes.add(place.clone(), format!("`{name}` has 1 to {MAX_LIST} entries, and not {}", list.len()));
            }
            keep(list, |entry| {
                let place = entry.span();
                self::value(entry.get_mut(), &place, of, name, mistakes)
            });
            return true;
        }
        (Shape::Values, DeValue::Table(values)) => {
            let mut wrong = Vec::new();
            for (key, entry) in values.iter() {
                if let Err(message) = single(key.get_ref(), entry.get_ref()) {
                    mistakes.add(key.span(), format!("`{name}` {message}"));
                    wrong.push(key.clone());
                }
            }
            for key in wrong {
                values.remove(&key);
            }
            return true;
        }
        (shape, value) => plain(value, shape).err(),
    };
    if let Some(wrong) = &wrong {
        mistakes.add(place.clone(), format!("`{name}` {wrong}"));
    }
    wrong.is_none()
}

/// Leaves those in a list for which `is_right` returns true.
fn keep<'i>(list: &mut DeArray<'i>, mut is_right: impl FnMut(&mut Spanned<DeValue<'i>>) -> bool) {
    let mut kept = DeArray::new();
    for mut entry in std::mem::replace(list, DeArray::new()) {
        if is_right(&mut entry) {
            kept.push(entry);
        }
    }
    *list = kept;
}

fn single(name: &str, value: &DeValue<'_>) -> Result<(), String> {
    is_name(name)?;
    plain_number(value, 0, 127)
}

/// Checks a value without parts.
fn plain(value: &DeValue<'_>, shape: &Shape) -> Result<(), String> {
    let wanted = |wanted: &str| Err(format!("is {wanted}, and this is {}", kind(value)));
    let text = value.as_str();
    match shape {
        Shape::Name => text.map_or_else(|| wanted("a name"), is_name),
        Shape::Text => text.map_or_else(|| wanted("a text"), |text| is_text(text, MAX_TEXT)),
        Shape::Id => text.map_or_else(|| wanted("an id"), is_id),
        Shape::Word(words) => match text {
            Some(text) if words.contains(&text) => Ok(()),
            Some(text) => Err(format!("is one of {}, and not `{}`", words.join(", "), shortened(text))),
            None => wanted(&format!("one of {}", words.join(", "))),
        },
        Shape::Flag => value.as_bool().map_or_else(|| wanted("true or false"), |_| Ok(())),
        Shape::Number(min, max) => plain_number(value, *min, *max),
        Shape::Numbers(min, max) => match text {
            Some(text) => numbers::parse(text, *min, *max).map(|_| ()).map_err(|wrong| format!("is wrong: {wrong}")),
            None => plain_number(value, i64::from(*min), i64::from(*max)),
        },
        Shape::Bounds(min, max) => pair(value, "the lowest and the highest value", *min, *max, true),
        Shape::Place => pair(value, "a row and a column", 1, 128, false),
        Shape::Hex => text.map_or_else(|| wanted("bytes in hex"), is_hex),
        Shape::Usb => match text.map(UsbId::parse) {
            Some(Some(_)) => Ok(()),
            _ => Err("is a list of USB ids, each four hexadecimal digits, a colon and four more: \"1235:0103\"".into()),
        },
        Shape::Addresses => match value {
            DeValue::Array(list) => list.iter().try_for_each(|entry| plain(entry.get_ref(), &Shape::Addresses)),
            _ => match text {
                Some(text) if text.starts_with('/') => is_text(text, MAX_TEXT),
                _ => Err("is an OSC address, which begins with `/`, or a list of them".into()),
            },
        },
        Shape::Values => wanted("a table of names with numbers"),
        Shape::List(_) => wanted("a list"),
        Shape::Table(_) => wanted("a table"),
        Shape::Tables(_) => wanted("a list of tables"),
    }
}

fn plain_number(value: &DeValue<'_>, min: i64, max: i64) -> Result<(), String> {
    let Some(number) = value.as_integer() else { return Err(format!("is a number, and this is {}", kind(value))) };
    match i64::from_str_radix(&number.as_str().replace('_', ""), number.radix()) {
        Ok(number) if (min..=max).contains(&number) => Ok(()),
        _ => Err(format!("is from {min} to {max}, and not {}", shortened(&number.to_string()))),
    }
}

fn pair(value: &DeValue<'_>, what: &str, min: u16, max: u16, ascending: bool) -> Result<(), String> {
    let list = value.as_array().map(|list| list.iter().map(Spanned::get_ref).collect::<Vec<_>>());
    let Some([first, second]) = list.as_deref() else { return Err(format!("is {what}: [1, 2]")) };
    for number in [first, second] {
        plain_number(number, i64::from(min), i64::from(max))?;
    }
    let number = |value: &DeValue<'_>| value.as_integer().and_then(|number| number.as_str().parse::<u16>().ok());
    match (number(first), number(second)) {
        (Some(first), Some(second)) if ascending && first > second => {
            Err(format!("is backwards: {first} is above {second}"))
        }
        _ => Ok(()),
    }
}

fn is_name(text: &str) -> Result<(), String> {
    is_text(text, MAX_NAME)
}

fn is_text(text: &str, longest: usize) -> Result<(), String> {
    let length = text.chars().count();
    if length == 0 || length > longest {
        return Err(format!("has 1 to {longest} characters, and not {length}"));
    }
    if text.chars().any(char::is_control) || text.trim() != text {
        return Err("has a control character, or a space at its beginning or end".into());
    }
    Ok(())
}

fn is_id(text: &str) -> Result<(), String> {
    let is_it = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if text.is_empty() || text.len() > MAX_NAME || !text.bytes().all(is_it) {
        return Err(format!("has small letters, digits and hyphens, up to {MAX_NAME}, and not `{}`", shortened(text)));
    }
    Ok(())
}

/// Bytes in hex, between them spaces; a word in braces is a place.
fn is_hex(text: &str) -> Result<(), String> {
    is_text(text, MAX_TEXT)?;
    let is_byte = |word: &str| word.len() == 2 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_place = |word: &str| matches!(word, "{number}" | "{value}" | "{red}" | "{green}" | "{blue}");
    match text.split(' ').find(|word| !is_byte(word) && !is_place(word)) {
        None => Ok(()),
        Some(word) => Err(format!("is bytes in hex, such as `F0 7E`, and `{}` is none", shortened(word))),
    }
}

fn kind(value: &DeValue<'_>) -> Cow<'static, str> {
    match value {
        DeValue::String(_) => "a text".into(),
        DeValue::Integer(_) => "a number".into(),
        DeValue::Array(_) => "a list".into(),
        DeValue::Table(_) => "a table".into(),
        DeValue::Boolean(_) => "true or false".into(),
        other => format!("a {}", other.type_str()).into(),
    }
}
