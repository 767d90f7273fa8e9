//! Terminal escaping: which characters are shown as they are, and how the others are made visible.

use std::borrow::Cow;
use std::fmt::Write as _;

use conductor_hidden_characters::is_hidden;
use unicode_width::UnicodeWidthChar as _;

/// Combining marks that one base character may carry; more would be drawn over the lines around.
pub const MAX_MARKS: usize = 8;

/// Whether a character is drawn over the one before it.
fn is_mark(c: char) -> bool {
    !c.is_ascii() && c.width() == Some(0)
}

/// A text as one line that shows everything in it: what [`is_hidden`] is written `\u{1b}`, and so is a combining mark
/// that has no letter before it, or [`MAX_MARKS`] others.
///
/// It is never ambiguous: where the text itself has backslashes before `u{`, or before a character that is escaped,
/// they are doubled. So an odd number of backslashes before `u{` is an escape, an even number is text. The result
/// is at most six times as long, in bytes.
///
/// ```
/// use conductor_terminal::escape;
///
/// assert_eq!(escape("Grüße, 音楽"), "Grüße, 音楽");
/// assert_eq!(escape("a\u{1b}[2J\nb\u{202e}"), "a\\u{1b}[2J\\u{a}b\\u{202e}");
/// assert_eq!(escape("C:\\new \\u{1b}"), "C:\\new \\\\u{1b}");
/// ```
pub fn escape(text: &str) -> Cow<'_, str> {
    let is_plain = |byte: u8| (b' '..=b'~').contains(&byte) && byte != b'\\';
    if text.bytes().all(is_plain) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for piece in pieces(text) {
        piece.write(&mut out, |out, c| write!(out, "\\u{{{:x}}}", u32::from(c)));
    }
    if out == text { Cow::Borrowed(text) } else { Cow::Owned(out) }
}

/// How a character is shown.
#[derive(Debug, Clone, Copy)]
enum Piece {
    /// It is shown as it is.
    Shown(char),
    /// It is a backslash that would read as the beginning of an escape.
    Backslash,
    /// It is escaped.
    Escaped(char),
}

impl Piece {
    fn write(self, out: &mut String, escaped: impl FnOnce(&mut String, char) -> std::fmt::Result) {
        match self {
            Self::Shown(c) => out.push(c),
            Self::Backslash => out.push_str("\\\\"),
            // Writing to a string does not fail.
            Self::Escaped(c) => drop(escaped(out, c)),
        }
    }
}

/// How each character of a text is shown, in order.
fn pieces(text: &str) -> impl Iterator<Item = Piece> {
    // How many combining marks the character before has; `None` if it can carry none.
    let mut marks: Option<usize> = None;
    // Where the present run of backslashes ends, and whether it is doubled.
    let mut run = (0, false);
    text.char_indices().map(move |(at, c)| {
        if c == '\\' {
            if at >= run.0 {
                run = backslashes(text, at);
            }
            marks = None;
            return if run.1 { Piece::Backslash } else { Piece::Shown(c) };
        }
        let is_shown = match marks {
            _ if is_hidden(c) => false,
            Some(count) if is_mark(c) => count < MAX_MARKS,
            None if is_mark(c) => false,
            _ => true,
        };
        marks = match marks {
            // What is shown in its place can carry none.
            _ if !is_shown => None,
            Some(count) if is_mark(c) => Some(count + 1),
            _ if c.is_alphanumeric() || (!c.is_ascii() && !c.is_whitespace()) => Some(0),
            _ => None,
        };
        if is_shown { Piece::Shown(c) } else { Piece::Escaped(c) }
    })
}

/// The end of the run of backslashes that begins here, and whether what follows makes it read as an escape.
fn backslashes(text: &str, start: usize) -> (usize, bool) {
    let rest = text[start..].trim_start_matches('\\');
    let doubled = rest.starts_with("u{") || rest.chars().next().is_some_and(|next| is_hidden(next) || is_mark(next));
    (text.len() - rest.len(), doubled)
}

/// The JSON of a value with everything escaped that [`escape`] escapes, as `\u001b`: other text, the same value.
///
/// Line feeds and blanks between values stay; within strings the serializer has escaped them.
pub(super) fn escape_json(json: &str) -> Cow<'_, str> {
    if json.bytes().all(|byte| (b' '..=b'~').contains(&byte) || byte == b'\n') {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len() + 16);
    for line in json.split_inclusive('\n') {
        let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
        for piece in pieces(line) {
            match piece {
                // Backslashes belong to the JSON, and its escapes are no others than they were.
                Piece::Backslash => out.push('\\'),
                other => other.write(&mut out, |out, c| {
                    c.encode_utf16(&mut [0; 2]).iter().try_for_each(|unit| write!(out, "\\u{unit:04x}"))
                }),
            }
        }
        out.push_str(end);
    }
    Cow::Owned(out)
}

/// Text of several lines, each escaped, with `gutter` before each but the first.
///
/// A line feed of the text becomes a line, and a tab four blanks; the gutter is what the text can't leave out, so
/// that its lines are never taken for those of who shows it.
pub fn paragraphs(text: &str, gutter: &str) -> String {
    let mut lines = text.split('\n').map(escape_line);
    let first = lines.next().unwrap_or_default();
    lines.fold(first, |mut out, line| {
        out.push('\n');
        out.push_str(gutter);
        out.push_str(&line);
        out
    })
}

/// One of the lines of a text. A tab is four blanks.
pub(super) fn escape_line(line: &str) -> String {
    if line.contains('\t') { escape(&line.replace('\t', "    ")).into_owned() } else { escape(line).into_owned() }
}

/// A text that is kept for people to read, such as why something failed: what is hidden in it is escaped, and it is of
/// at most `max` bytes. Unlike [`escape`] it leaves all backslashes alone, so that a text which is kept more than
/// once, on its way from a guest into the record, is escaped once. One that is cut ends in how much is missing, within these bytes; where they are too few to say that, in `…` beyond them.
pub fn excerpt(text: &str, max: usize) -> String {
    if text.len() <= max && text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        return text.to_owned();
    }
    let total = text.chars().count();
    let note = cut_off(total).len();
    let room = if max >= 2 * note { max - note } else { max };
    let mut out = String::with_capacity(text.len().min(max));
    // How many bytes and characters there are where it would be cut.
    let mut kept = (0, 0);
    let mut piece = String::new();
    for (at, next) in pieces(text).enumerate() {
        piece.clear();
        match next {
            Piece::Backslash => piece.push('\\'),
            other => other.write(&mut piece, |out, c| write!(out, "\\u{{{:x}}}", u32::from(c))),
        }
        if out.len() + piece.len() > max {
            out.truncate(kept.0);
            out.push_str(&if room < max { cut_off(total - kept.1) } else { "…".to_owned() });
            return out;
        }
        out.push_str(&piece);
        if out.len() <= room {
            kept = (out.len(), at + 1);
        }
    }
    out
}

/// A text of at most `max` bytes, as it is: what is hidden in it is escaped where it is shown, as names are, so that it is
/// escaped once. One that is cut ends as an [`excerpt`] does.
pub fn shortened(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    let total = text.chars().count();
    let note = cut_off(total).len();
    let is_noted = max >= 2 * note;
    let kept = &text[..text.floor_char_boundary(if is_noted { max - note } else { max })];
    if is_noted { format!("{kept}{}", cut_off(total - kept.chars().count())) } else { format!("{kept}…") }
}

/// An [`excerpt`] of a text that has lines: they stay lines. Tabs are blanks.
pub fn excerpt_lines(text: &str, max: usize) -> String {
    let mut out = String::new();
    for (number, line) in text.split('\n').enumerate() {
        if number > 0 {
            out.push('\n');
        }
        let room = max.saturating_sub(out.len());
        let line = excerpt(&line.replace('\t', "    "), room);
        out.push_str(&line);
        if line.len() >= room {
            break;
        }
    }
    out
}

/// A text escaped, and cut to this many columns of a terminal: wide characters take two, marks none. One that is cut
/// ends in how much is missing, which takes room of the columns.
pub fn fit(text: &str, columns: usize) -> Cow<'_, str> {
    let escaped = escape(text);
    if width(&escaped) <= columns {
        return escaped;
    }
    let total = escaped.chars().count();
    // The note is longest where nothing is kept.
    let room = columns.saturating_sub(width(&cut_off(total)));
    let mut used = 0;
    let kept: String = escaped
        .chars()
        .take_while(|c| {
            used += c.width().unwrap_or(0);
            used <= room
        })
        .collect();
    let missing = total - kept.chars().count();
    Cow::Owned(kept + &cut_off(missing))
}

/// Columns of a terminal that an escaped text takes.
pub fn width(text: &str) -> usize {
    text.chars().filter_map(|c| c.width()).sum()
}

/// `… 1 234 more characters`.
fn cut_off(count: usize) -> String {
    let digits = count.to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(' ');
        }
        grouped.push(digit);
    }
    format!("… {grouped} more character{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What an escaped text was made of.
    fn unescape(text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some(at) = rest.find('\\') {
            out.push_str(&rest[..at]);
            let after = rest[at..].trim_start_matches('\\');
            let count = rest.len() - at - after.len();
            rest = after;
            if !after.starts_with("u{") {
                out.push_str(&"\\".repeat(count));
                continue;
            }
            out.push_str(&"\\".repeat(count / 2));
            if count % 2 == 1 {
                let end = after.find('}').unwrap();
                out.push(char::from_u32(u32::from_str_radix(&after[2..end], 16).unwrap()).unwrap());
                rest = &after[end + 1..];
            }
        }
        out + rest
    }

    #[test]
    fn what_steers_a_terminal_or_cannot_be_seen_is_hidden() {
        let hidden = "\0\t\n\r\u{1b}\u{7f}\u{80}\u{85}\u{9b}\u{9f}\u{ad}\u{34f}\u{61c}\u{115f}\u{1160}\u{17b4}\u{180e}\
                      \u{200b}\u{200c}\u{200d}\u{200e}\u{200f}\u{2028}\u{2029}\u{202a}\u{202e}\u{2060}\u{2064}\u{2066}\
                      \u{2069}\u{206f}\u{2800}\u{3164}\u{e000}\u{fdd0}\u{fe0f}\u{feff}\u{ffa0}\u{fff9}\u{ffff}\u{1d173}\
                      \u{e0001}\u{e0041}\u{e007f}\u{e0100}\u{f0000}\u{10ffff}\u{378}\u{2fe0}";
        for c in hidden.chars() {
            assert!(is_hidden(c), "{c:?}");
            assert_eq!(escape(&c.to_string()), format!("\\u{{{:x}}}", u32::from(c)));
        }
    }

    #[test]
    fn a_shortened_text_is_escaped_where_it_is_shown() {
        assert_eq!(shortened("a\u{202e}b\\u{1b}", 20), "a\u{202e}b\\u{1b}");
        assert_eq!(escape(&shortened("a\u{202e}b", 20)), "a\\u{202e}b");
        let long = "\u{202e}".repeat(100);
        let cut = shortened(&long, 100);
        assert!(cut.len() <= 100 && cut.ends_with("… 75 more characters"), "{cut:?}");
        assert_eq!(shortened(&long, 4), "\u{202e}…");
        assert_eq!(shortened("", 0), "");
    }

    #[test]
    fn ordinary_text_of_all_scripts_is_shown_as_it_is() {
        for text in [
            "plain text, with 'quotes' and C:\\new\\users",
            "Grüße, naïve façade; e\u{301}le\u{300}ve",
            "Ελληνικά Русский עברית العربية ١٢٣ ۝",
            "हिन्दी தமிழ் ไทย မြန်မာ བོད་ཡིག",
            "日本語　テキスト 한국어 中文",
            "🎹 🎛 ♯♭ → € ½ ∑",
            "tiếng Việt: Nguyễn",
        ] {
            assert_eq!(escape(text), text);
        }
    }

    #[test]
    fn marks_stay_on_a_letter_and_are_bounded() {
        let zalgo = format!("z{}", "\u{351}".repeat(100));
        let shown = escape(&zalgo);
        assert_eq!(shown.chars().filter(|c| *c == '\u{351}').count(), MAX_MARKS);
        assert!(shown.ends_with("\\u{351}"));
        for bare in ["\u{338}", " \u{338}", "\"\u{338}", "\u{1b}\u{338}"] {
            assert!(escape(bare).ends_with("\\u{338}"), "{bare:?}");
        }
    }

    #[test]
    fn an_escape_that_is_written_out_is_not_taken_for_one() {
        for (text, shown) in [
            ("\\u{1b}", "\\\\u{1b}"),
            ("\\\\u{1b}", "\\\\\\\\u{1b}"),
            ("\\\u{1b}", "\\\\\\u{1b}"),
            ("\\u1b \\n \\", "\\u1b \\n \\"),
        ] {
            assert_eq!(escape(text), shown);
            assert_eq!(unescape(shown), text);
        }
    }

    #[test]
    fn a_line_of_a_text_cannot_be_one_of_the_hosts() {
        let shown = paragraphs("one\r\nApply it? [y/N]\n\ttwo\u{1b}[1A\r!", "  | ");
        assert_eq!(shown, "one\\u{d}\n  | Apply it? [y/N]\n  |     two\\u{1b}[1A\\u{d}!");
    }

    #[test]
    fn what_is_cut_says_how_much_is_missing() {
        assert_eq!(excerpt("short", 10), "short");
        assert_eq!(excerpt("äöü", 3), "ä…");
        assert_eq!(excerpt("\u{1b}\u{1b}", 7), "\\u{1b}…");
        assert_eq!(excerpt(&"x".repeat(1300), 91), format!("{}… 1 234 more characters", "x".repeat(66)));
        assert_eq!(excerpt(&"x".repeat(91), 91), "x".repeat(91));
        assert_eq!(excerpt_lines("a\nb\u{1b}\n\tc", 40), "a\nb\\u{1b}\n    c");
        assert_eq!(excerpt(&excerpt("a\u{1b}\\u{1b}", 99), 99), "a\\u{1b}\\u{1b}", "kept twice, escaped once");
        assert_eq!(excerpt_lines("aaaa\nbbbb\ncccc", 7), "aaaa\nbb…");
        assert_eq!(fit("short", 5), "short");
        assert_eq!(fit(&"x".repeat(100), 40), format!("{}… 81 more characters", "x".repeat(19)));
        let wide = fit(&"音".repeat(100), 40).into_owned();
        assert!(wide.starts_with("音音音") && width(&wide) <= 40 && wide.ends_with(" more characters"), "{wide}");
    }

    #[test]
    fn json_stays_the_same_value() {
        let value =
            serde_json::json!({ "k\u{202e}": ["\u{9b}2J", "\u{e0041}", "\\u{1b}", "\\", "a\u{7f}\n\\\u{200b}"] });
        let printed = serde_json::to_string_pretty(&value).unwrap();
        let escaped = escape_json(&printed);
        assert!(escaped.chars().all(|c| c == '\n' || !is_hidden(c)), "{escaped}");
        assert!(escaped.contains("\\udb40\\udc41"), "{escaped}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&escaped).unwrap(), value);
    }

    proptest! {
        #[test]
        fn nothing_hidden_passes_and_nothing_is_lost(text in "(?s)[\\\\u{}1b\u{1b}\u{202e}a\u{301}]{0,40}|.{0,60}") {
            let shown = escape(&text);
            prop_assert!(!shown.chars().any(is_hidden), "{shown:?}");
            prop_assert!(shown.len() <= text.len() * 6);
            prop_assert_eq!(unescape(&shown), text.as_str());
            prop_assert!(!paragraphs(&text, "| ").chars().any(|c| c != '\n' && is_hidden(c)));
            let json = serde_json::to_string(&text).unwrap();
            prop_assert_eq!(serde_json::from_str::<String>(&escape_json(&json)).unwrap(), text);
        }

        #[test]
        fn what_is_cut_is_bounded(text in ".{0,200}", max in 0_usize..100) {
            let note = "… 1 234 more characters".len();
            prop_assert!(excerpt(&text, max).len() <= max + '…'.len_utf8());
            prop_assert!(!excerpt(&text, max).chars().any(is_hidden));
            prop_assert_eq!(excerpt(&excerpt(&text, 10_000), 10_000), excerpt(&text, 10_000));
            prop_assert!(excerpt_lines(&text, max).len() <= max + '…'.len_utf8() + 1);
            prop_assert!(width(&fit(&text, max)) <= max.max(note));
            prop_assert!(!fit(&text, max).chars().any(is_hidden));
        }
    }
}
