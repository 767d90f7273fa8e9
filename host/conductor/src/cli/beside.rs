//! Text beside a name or a number, in as many lines as a terminal has columns for.

use conductor_screen_text::wrapped_line;
use conductor_terminal::{self as terminal, Lines};

/// Columns that the text must have to be broken to them.
const MIN_ROOM: usize = 20;

/// Prints `text` beside `name`, which has `width` columns. On a terminal the text goes on in lines below; in a pipe it is
/// one line.
pub(super) fn print(width: usize, name: &str, text: &str) {
    terminal::print(&lines(width, name, text, terminal::output_columns()));
}

fn lines(width: usize, name: &str, text: &str, columns: Option<u16>) -> Lines {
    let room = columns.map(|columns| usize::from(columns).saturating_sub(width + 1));
    let parts = match room.filter(|room| *room >= MIN_ROOM) {
        Some(room) => wrapped_line(text, room),
        None => vec![terminal::escape(text).into_owned()],
    };
    let names = std::iter::once(terminal::escape(name)).chain(std::iter::repeat("".into()));
    let mut lines = Lines::new();
    for (name, part) in names.zip(parts) {
        lines.push_escaped(&format!("{name:<width$} {part}"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_a_name_fits_a_terminal() {
        let text =
            "not granted: network:chat (HTTP to api.example.com, as often as it likes), secret:a-key-with-a-name";
        for columns in [80, 200] {
            let lines = lines(26, "builtin:openai-compatible", text, Some(columns)).to_string();
            assert!(lines.starts_with("builtin:openai-compatible  not granted"), "{lines}");
            assert!(lines.lines().all(|line| terminal::width(line) <= columns.into()), "{lines}");
            let said: Vec<&str> = lines.lines().map(|line| line[27..].trim()).collect();
            assert_eq!(said.join(" "), text, "nothing is lost");
        }
        for columns in [None, Some(40)] {
            assert_eq!(lines(26, "x", text, columns).to_string(), format!("{:<26} {text}\n", "x"));
        }
    }
}
