//! From text to tokens.

use std::ops::Range;

use crate::Mistake;

/// One token.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Token<'t> {
    Number(f64),
    /// A name, a function or a word of the language.
    Word(&'t str),
    /// One of [`SIGNS`].
    Sign(&'static str),
    /// Where the text is over.
    End,
}

/// The signs, longer ones before those that they begin with.
const SIGNS: [&str; 20] =
    ["->", "..", "<=", ">=", "==", "!=", "<", ">", "+", "-", "*", "/", "%", "(", ")", "{", "}", ",", "=", "!"];

/// Splits a text into tokens with their places, an [`Token::End`] behind them.
pub(crate) fn tokens(text: &str) -> Result<Vec<(Token<'_>, Range<usize>)>, Mistake> {
    let mut tokens = Vec::new();
    let mut at = 0;
    loop {
        let rest = text[at..].trim_start();
        at = text.len() - rest.len();
        let Some(first) = rest.chars().next() else {
            tokens.push((Token::End, at..at));
            return Ok(tokens);
        };
        let (token, length) = if let Some((number, after)) = conductor_number::prefix(rest) {
            (Token::Number(number), rest.len() - after.len())
        } else if first.is_alphabetic() || first == '_' || first == '°' {
            let length = word(rest);
            (Token::Word(&rest[..length]), length)
        } else if let Some(sign) = SIGNS.into_iter().find(|sign| rest.starts_with(sign)) {
            (Token::Sign(sign), sign.len())
        } else {
            let message = match first {
                '0'..='9' => "this number is too large".to_owned(),
                '.' => "a number begins with a digit: write 0.5".to_owned(),
                '&' | '|' => "write `and`, `or`".to_owned(),
                _ => format!("`{}` has no meaning here", first.escape_debug()),
            };
            return Err(Mistake::new(text, at..at + first.len_utf8(), message));
        };
        tokens.push((token, at..at + length));
        at += length;
    }
}

/// How long the word is that a text starts with. The sign of a note belongs to it, and the minus of a note's octave:
/// `F#2`, `C-1`.
fn word(text: &str) -> usize {
    if let Some(length) = [6, 5, 4, 3, 2].into_iter().find(|length| {
        let ends = text.get(*length..).is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'));
        // Only capitals: `b-1` is a variable less one.
        ends && text.starts_with(|c: char| c.is_ascii_uppercase())
            && conductor_names::note::number(&text[..*length]).is_some()
    }) {
        return length;
    }
    if text.starts_with('°') {
        return '°'.len_utf8();
    }
    text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len())
}
