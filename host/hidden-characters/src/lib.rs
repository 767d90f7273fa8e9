//! Hidden characters: which ones can't be seen, or move, hide or reorder what is around them.

/// Whether a character can't be seen, or moves, hides or reorders what is around it:
///
/// - control characters: C0, DEL and C1, line feeds and tabs included;
/// - bidi controls, zero-width and other default-ignorable characters: joiners, fillers, soft hyphens, variation
///   selectors, tags;
/// - line and paragraph separators;
/// - private use, noncharacters, and what Unicode has not assigned.
///
/// Spaces of all widths, letters and signs of all scripts, combining marks and emoji are none of these.
pub fn is_hidden(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_control();
    }
    if is_default_ignorable(c) {
        return true;
    }
    match c {
        // Format characters that are drawn: number signs of Arabic, Syriac and Kaithi.
        '\u{600}'..='\u{605}'
        | '\u{6dd}'
        | '\u{70f}'
        | '\u{890}'..='\u{891}'
        | '\u{8e2}'
        | '\u{110bd}'
        | '\u{110cd}' => false,
        // A blank that is no space.
        '\u{2800}' | '\u{2028}' | '\u{2029}' => true,
        c if c.is_whitespace() => c.is_control(),
        c => !is_printable(c),
    }
}

/// Default_Ignorable_Code_Point of Unicode, which includes Bidi_Control but for the few that are format characters
/// anyway. It is a property that grows only within these ranges.
fn is_default_ignorable(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// What the standard library's table of printable characters says: no control, format, private use, surrogate,
/// unassigned or separator.
fn is_printable(c: char) -> bool {
    // A mark behind a letter is left alone by `str::escape_debug`; alone, it would be escaped as a mark.
    let mut buffer = [b'a'; 5];
    c.encode_utf8(&mut buffer[1..]);
    let Ok(text) = std::str::from_utf8(&buffer[..=c.len_utf8()]) else { return false };
    text.escape_debug().nth(1) == Some(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_hides_or_reorders_is_hidden_and_text_of_all_scripts_is_not() {
        assert!(
            "\0\t\n\u{1b}\u{85}\u{ad}\u{200b}\u{202e}\u{2028}\u{2800}\u{e0041}\u{feff}\u{378}".chars().all(is_hidden)
        );
        assert!(!"a ü Ж ع 語 e\u{301} 🎹 \u{600}".chars().any(is_hidden));
    }
}
