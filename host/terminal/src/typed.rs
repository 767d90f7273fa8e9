//! A line that a person types, key by key, for programs that have the whole screen.

/// Bytes of a line.
const MAX_LINE: usize = 16 * 1024;

/// The line, and where in it the cursor is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Line {
    text: String,
    /// In bytes, at the beginning of a character.
    cursor: usize,
}

impl Line {
    /// A line with this text, and the cursor behind it.
    pub fn new(text: &str) -> Self {
        Self { text: text.to_owned(), cursor: text.len() }
    }

    /// A line with the cursor between two texts.
    pub fn between(before: &str, behind: &str) -> Self {
        let mut line = Self::default();
        line.insert(behind);
        line.first();
        line.insert(before);
        line
    }

    /// All of it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What is before the cursor, and what is behind it.
    pub fn parts(&self) -> (&str, &str) {
        self.text.split_at(self.cursor)
    }

    /// Puts text in at the cursor. Line feeds become blanks, and control characters are left out.
    pub fn insert(&mut self, text: &str) {
        for c in text.chars().map(|c| if matches!(c, '\n' | '\r' | '\t') { ' ' } else { c }) {
            if !c.is_control() && self.text.len() + c.len_utf8() <= MAX_LINE {
                self.text.insert(self.cursor, c);
                self.cursor += c.len_utf8();
            }
        }
    }

    /// Erases the character before the cursor.
    pub fn erase_back(&mut self) {
        if self.left() {
            self.text.remove(self.cursor);
        }
    }

    /// Erases the character behind the cursor.
    pub fn erase_ahead(&mut self) {
        if self.cursor < self.text.len() {
            self.text.remove(self.cursor);
        }
    }

    /// Erases all of it.
    pub fn erase_all(&mut self) {
        *self = Self::default();
    }

    /// Moves the cursor to the left. Returns whether there was room.
    pub fn left(&mut self) -> bool {
        let before = self.text[..self.cursor].chars().next_back();
        self.cursor -= before.map_or(0, char::len_utf8);
        before.is_some()
    }

    /// Moves the cursor to the right, if there is room.
    pub fn right(&mut self) {
        self.cursor += self.text[self.cursor..].chars().next().map_or(0, char::len_utf8);
    }

    /// Moves the cursor before all of it.
    pub fn first(&mut self) {
        self.cursor = 0;
    }

    /// Moves the cursor behind all of it.
    pub fn last(&mut self) {
        self.cursor = self.text.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_edited_by_characters() {
        let mut line = Line::new("aü");
        line.left();
        line.insert("音\n\u{1b}");
        assert_eq!(line.parts(), ("a音 ", "ü"));
        line.erase_back();
        line.erase_ahead();
        assert_eq!(line.text(), "a音");
        line.right();
        line.first();
        line.erase_back();
        assert_eq!(line.parts(), ("", "a音"));
        assert_eq!(Line::between("a\u{1b}", "ü\n").parts(), ("a", "ü "));
    }
}
