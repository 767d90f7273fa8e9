//! Templates: text with `{placeholders}` that an event fills in.
//!
//! `/mixer/{channel}/{name}` is split once, when a mapping is prepared; filling it in on the event
//! path only appends.

use std::fmt::Write as _;

use conductor_feature::Event;

/// What a placeholder stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// `{value}`: the value as it came (velocity, controller value, pitch bend 0-16383, OSC number).
    Value,
    /// `{unit}`: the value scaled to 0.0-1.0.
    Unit,
    /// `{note}`, `{cc}`, `{number}`: the note, controller or program number.
    Number,
    /// `{channel}`: the MIDI channel, 0-15; -1 where the event has none.
    Channel,
    /// `{name}`: the name of the device that the event came from.
    Name,
    /// `{n}`: the position within the trigger's range, from 0.
    Position,
}

/// Every placeholder, as error messages list them.
pub const PLACEHOLDERS: &str = "{value} {unit} {note} {cc} {number} {channel} {name} {n}";

impl Field {
    fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "value" => Self::Value,
            "unit" => Self::Unit,
            "note" | "cc" | "number" => Self::Number,
            "channel" => Self::Channel,
            "name" => Self::Name,
            "n" => Self::Position,
            _ => return None,
        })
    }

    /// The number behind the field; `{name}` has none and gives 0.
    pub fn number(self, event: &Event) -> f64 {
        match self {
            Self::Value => event.value,
            Self::Unit => f64::from(event.unit),
            Self::Number => f64::from(event.number),
            Self::Channel if event.channel == NO_CHANNEL => -1.0,
            Self::Channel => f64::from(event.channel),
            Self::Position => f64::from(event.position),
            Self::Name => 0.0,
        }
    }
}

/// What the contract puts into `channel` where an event has none.
const NO_CHANNEL: u8 = 255;

#[derive(Debug, Clone, PartialEq)]
enum Part {
    Text(String),
    Field(Field),
}

/// A parsed template.
#[derive(Debug, Clone, PartialEq)]
pub struct Template {
    parts: Vec<Part>,
}

impl Template {
    /// Splits `text` at its placeholders; `{{` and `}}` are literal braces.
    ///
    /// # Errors
    /// A sentence for the person who wrote the mapping: an unknown placeholder, or a lone brace.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '{' | '}' if chars.peek() == Some(&c) => {
                    chars.next();
                    literal.push(c);
                }
                '{' => {
                    let mut name = String::new();
                    loop {
                        match chars.next() {
                            Some('}') => break,
                            Some(c) => name.push(c),
                            None => return Err(format!("`{{{name}` in \"{text}\" is not closed")),
                        }
                    }
                    let field = Field::parse(&name).ok_or_else(|| {
                        format!("\"{text}\" has an unknown placeholder {{{name}}}; known are {PLACEHOLDERS}")
                    })?;
                    if !literal.is_empty() {
                        parts.push(Part::Text(std::mem::take(&mut literal)));
                    }
                    parts.push(Part::Field(field));
                }
                '}' => return Err(format!("\"{text}\" has a lone `}}`; write `}}}}` for a brace")),
                c => literal.push(c),
            }
        }
        if !literal.is_empty() {
            parts.push(Part::Text(literal));
        }
        Ok(Self { parts })
    }

    /// The whole text, where no placeholder is in it.
    pub fn as_text(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [] => Some(""),
            [Part::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// Whether `{name}` is in it, so that the caller has to look the device's name up.
    pub fn wants_name(&self) -> bool {
        self.parts.contains(&Part::Field(Field::Name))
    }

    /// Appends the filled-in template. `name` is passed through `escape`.
    pub fn fill(&self, event: &Event, name: &str, escape: fn(char) -> char, out: &mut String) {
        for part in &self.parts {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Field(Field::Name) => out.extend(name.chars().map(escape)),
                Part::Field(field) => {
                    // Writing to a String can't fail.
                    let _ = write!(out, "{}", field.number(event));
                }
            }
        }
    }
}

/// Splits `{field}` or `{field:t}`, when that is all there is in `text`.
pub fn lone_placeholder(text: &str) -> Option<(Field, Option<char>)> {
    let inner = text.strip_prefix('{')?.strip_suffix('}')?;
    let (name, tag) = match inner.split_once(':') {
        Some((name, tag)) => {
            let mut tag = tag.chars();
            let first = tag.next()?;
            tag.next().is_none().then_some(())?;
            (name, Some(first))
        }
        None => (inner, None),
    };
    Some((Field::parse(name)?, tag))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn event() -> Event {
        Event { at: 0, device: 1, kind: 4, channel: 9, number: 74, position: 3, value: 64.0, unit: 0.5 }
    }

    fn filled(template: &str) -> String {
        let mut out = String::new();
        Template::parse(template).unwrap().fill(&event(), "left pads", |c| if c == ' ' { '_' } else { c }, &mut out);
        out
    }

    #[test]
    fn every_placeholder_is_filled_in() {
        assert_eq!(filled("/x/{cc}/{channel}/{n}/{value}/{unit}/{name}"), "/x/74/9/3/64/0.5/left_pads");
        assert_eq!(filled("/{{literal}}"), "/{literal}");
        assert_eq!(filled(""), "");
    }

    #[test]
    fn an_event_without_a_channel_says_minus_one() {
        let mut out = String::new();
        let event = Event { channel: 255, ..event() };
        Template::parse("{channel}").unwrap().fill(&event, "", |c| c, &mut out);
        assert_eq!(out, "-1");
    }

    #[test]
    fn mistakes_name_what_is_allowed() {
        assert_eq!(
            Template::parse("/a/{velocity}").unwrap_err(),
            "\"/a/{velocity}\" has an unknown placeholder {velocity}; known are {value} {unit} {note} {cc} {number} {channel} {name} {n}"
        );
        assert!(Template::parse("/a/{note").unwrap_err().contains("not closed"));
        assert!(Template::parse("/a/}").unwrap_err().contains("lone"));
    }

    #[test]
    fn a_lone_placeholder_may_carry_a_type() {
        assert_eq!(lone_placeholder("{unit}"), Some((Field::Unit, None)));
        assert_eq!(lone_placeholder("{value:i}"), Some((Field::Value, Some('i'))));
        assert_eq!(lone_placeholder("{value:ii}"), None);
        assert_eq!(lone_placeholder("a{unit}"), None);
    }
}
