//! Templates: texts with expressions in braces, `level {value -> -60..10 dB}`, that are split once and then filled in.

use std::fmt::{self, Write as _};

use conductor_number::Shown;

use crate::{Expression, Mistake, Names, Slots};

/// A part of a template in braces.
#[derive(Debug, Clone, PartialEq)]
pub enum Hole {
    /// A number.
    Number(Expression),
    /// A text that the caller knows by this name.
    Text(String),
}

#[derive(Debug, Clone, PartialEq)]
enum Part {
    Text(String),
    Hole(Hole),
}

/// A text with expressions in braces; `{{` and `}}` are braces themselves.
#[derive(Debug, Clone, PartialEq)]
pub struct Template {
    parts: Vec<Part>,
}

impl Template {
    /// Splits a text. Names of which `is_text` is true stand for a text, not for a number.
    ///
    /// # Errors
    /// What is wrong with an expression, or a brace that stands alone, with its place in the whole text.
    pub fn parse(text: &str, names: Names, is_text: impl Fn(&str) -> bool) -> Result<Self, Mistake> {
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(brace) = rest.find(['{', '}']) {
            literal.push_str(&rest[..brace]);
            let at = text.len() - rest.len() + brace;
            let (sign, after) = rest[brace..].split_at(1);
            if after.starts_with(sign) {
                literal.push_str(sign);
                rest = &after[1..];
                continue;
            }
            let Some((inner, after)) = (sign == "{").then(|| after.split_once('}')).flatten() else {
                let message =
                    if sign == "{" { "the brace is not closed" } else { "a brace stands alone; write `}}` for one" };
                return Err(Mistake::new(text, at..at + 1, message));
            };
            let hole = if is_text(inner.trim()) {
                Hole::Text(inner.trim().to_owned())
            } else {
                let number = Expression::parse(inner, names).map_err(|mistake| {
                    let place = mistake.place.start + at + 1..mistake.place.end + at + 1;
                    Mistake::new(text, place, mistake.message)
                })?;
                Hole::Number(number)
            };
            if !literal.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut literal)));
            }
            parts.push(Part::Hole(hole));
            rest = after;
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            parts.push(Part::Text(literal));
        }
        Ok(Self { parts })
    }

    /// The whole text, where nothing is to be filled in.
    pub fn as_text(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [] => Some(""),
            [Part::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// What is to be filled in.
    pub fn holes(&self) -> impl Iterator<Item = &Hole> {
        self.parts.iter().filter_map(|part| match part {
            Part::Hole(hole) => Some(hole),
            Part::Text(_) => None,
        })
    }

    /// Appends the filled-in text. `text` writes what a text's name stands for.
    pub fn fill(&self, slots: &impl Slots, out: &mut String, text: impl Fn(&str, &mut String)) {
        for part in &self.parts {
            match part {
                Part::Text(fixed) => out.push_str(fixed),
                Part::Hole(Hole::Text(name)) => text(name, out),
                Part::Hole(Hole::Number(expression)) => {
                    let shown = Shown { number: expression.eval(slots), unit: expression.unit() };
                    // Writing to a String can't fail.
                    let _: fmt::Result = write!(out, "{shown}");
                }
            }
        }
    }
}
