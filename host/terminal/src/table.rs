//! Tables: cells in columns, which are as wide as what is in them, or as a terminal has room for.

use std::fmt::Display;

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement};

use super::Lines;
use super::escape::fit;

/// Columns of a terminal that a cell takes at most, where others of its row follow: one long name of a device must not
/// move all that is right of it out of sight.
const MAX_CELL: usize = 120;
/// The same for the last cell of a row, of which nothing is cut that a person could want to read.
const MAX_LAST_CELL: usize = 30_000;
/// Columns of a terminal that a table needs to be arranged for it; in a narrower one lines go on below.
const MIN_WIDTH: u16 = 40;
/// Blanks between two columns of a table.
const GAP: u16 = 2;

/// A table of `N` columns. All text in it is escaped when it is added, so that a cell is one line, whatever is in it.
#[derive(Debug, Clone)]
pub struct Table<const N: usize>(comfy_table::Table);

impl<const N: usize> Table<N> {
    /// A table without rows. Its head says what is in each column.
    pub fn new(head: [&str; N]) -> Self {
        let mut table = comfy_table::Table::new();
        table.load_style(NOTHING).set_header(cells(head.each_ref().map(|title| title as &dyn Display)));
        for (at, column) in table.column_iter_mut().enumerate() {
            column.set_padding((0, if at + 1 < N { GAP } else { 0 }));
        }
        Self(table)
    }

    /// Aligns the cells of a column, counted from 0, at their right: numbers are easier to compare so.
    pub fn right(mut self, column: usize) -> Self {
        if let Some(column) = self.0.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        self
    }

    /// Adds a row. Cells are cut as [`fit`](super::fit) does: the last to 30 000 columns of a terminal, the others to
    /// 120.
    pub fn row(&mut self, row: [&dyn Display; N]) {
        self.0.add_row(cells(row));
    }

    /// The table as lines. On a terminal of `width` columns, cells that have no room go on below; the first cell of a row
    /// stays in one piece, since it is a name to copy, unless it takes more than half of the terminal. If `width` is
    /// `None`, or less than 40, each row is one line.
    pub fn lines(&self, width: Option<u16>) -> Lines {
        let mut table = self.0.clone();
        if let Some(width) = width.filter(|width| *width >= MIN_WIDTH) {
            table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
            let is_short = table.column_max_content_widths().first().is_some_and(|first| *first <= width / 2);
            if let Some(first) = table.column_mut(0).filter(|_| is_short) {
                first.set_constraint(ColumnConstraint::ContentWidth);
            }
        }
        let mut lines = Lines::new();
        table.lines().for_each(|line| lines.push_escaped(line.trim_end()));
        lines
    }
}

/// The cells of a row, escaped.
fn cells<const N: usize>(row: [&dyn Display; N]) -> Vec<String> {
    let cut = |(at, cell): (usize, &&dyn Display)| {
        fit(&cell.to_string(), if at + 1 < N { MAX_CELL } else { MAX_LAST_CELL }).into_owned()
    };
    row.iter().enumerate().map(cut).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use unicode_width::UnicodeWidthStr as _;

    use super::*;
    use crate::is_hidden;

    fn ports() -> Table<3> {
        let mut table = Table::new(["PORT", "EVENTS", "STATE"]).right(1);
        table.row([&"pads", &7, &"open"]);
        table.row([&"音楽", &12_345, &"failed: another program has it, and does not let go of it before it ends"]);
        table
    }

    #[test]
    fn columns_are_as_wide_as_what_is_in_them() {
        let expected = "\
PORT  EVENTS  STATE
pads       7  open
音楽   12345  failed: another program has it, and does not let go of it before it ends
";
        assert_eq!(ports().lines(None).to_string(), expected);
        assert_eq!(ports().lines(Some(20)).to_string(), expected, "too narrow to be arranged");
        assert_eq!(ports().lines(Some(200)).to_string(), expected);
    }

    #[test]
    fn what_a_terminal_has_no_room_for_goes_on_below() {
        let expected = "\
PORT  EVENTS  STATE
pads       7  open
音楽   12345  failed: another program has it, and does not
              let go of it before it ends
";
        assert_eq!(ports().lines(Some(60)).to_string(), expected);
    }

    #[test]
    fn the_first_cell_of_a_row_stays_in_one_piece() {
        let mut table = Table::new(["TOOL", "FEATURE", "WHAT IT DOES"]);
        table.row([&"conductor_set_device", &"builtin:binding", &"Hear or mute a device until the host stops."]);
        let text = table.lines(Some(50)).to_string();
        assert!(text.contains("\nconductor_set_device  "), "{text}");
        assert!(text.lines().count() > 2 && text.lines().all(|line| line.len() <= 50), "{text}");
        let text = table.lines(Some(40)).to_string();
        assert!(text.lines().all(|line| line.len() <= 40), "{text}");
    }

    #[test]
    fn a_cell_is_one_line_whatever_is_in_it() {
        let mut table = Table::new(["A", "B"]);
        table.row([&"a\nb\u{1b}[2J", &"\u{202e}\u{9b}1A\r\n\tc"]);
        let expected = "A               B\na\\u{a}b\\u{1b}[2J  \\u{202e}\\u{9b}1A\\u{d}\\u{a}\\u{9}c\n";
        let lines = table.lines(None).to_string();
        assert_eq!(lines.lines().nth(1), expected.lines().nth(1));
        assert_eq!(lines.lines().count(), 2);
        assert_eq!(table.lines(None).render(true), lines, "no colour is in it");
    }

    #[test]
    fn one_long_cell_does_not_move_the_rest_out_of_sight() {
        let mut table = Table::new(["A", "B"]);
        table.row([&"x".repeat(70_000), &"y".repeat(20_000)]);
        table.row([&"short", &"z".repeat(70_000)]);
        let lines: Vec<String> = table.lines(None).to_string().lines().map(str::to_owned).collect();
        assert_eq!(lines.len(), 3, "a row is one line");
        assert!(lines[1].contains("more characters  yyy"), "{:.200}", lines[1]);
        assert!(lines[1].ends_with(&"y".repeat(20_000)), "the last cell is whole");
        assert!(lines[2].ends_with("z… 40 024 more characters"), "{}", lines[2].len());
    }

    fn table(rows: &[[String; 3]]) -> Table<3> {
        let mut table = Table::new(["NAME", "DEVICE", "WHAT IT IS"]);
        rows.iter().for_each(|[a, b, c]| table.row([a, b, c]));
        table
    }

    fn rows<S: Strategy<Value = String>>(cell: S) -> impl Strategy<Value = Vec<[String; 3]>> {
        prop::collection::vec(prop::array::uniform3(cell), 0..6)
    }

    proptest! {
        // What names and messages hold is chosen by others.
        #[test]
        fn no_text_hides_anything_in_a_table(rows in rows(any::<String>()), columns in 0_u16..200) {
            for limit in [None, Some(columns)] {
                let text = table(&rows).lines(limit).to_string();
                prop_assert!(!text.chars().any(|c| c != '\n' && is_hidden(c)), "{text:?}");
                prop_assert!(limit.is_some() || text.lines().count() == rows.len() + 1, "{text}");
            }
        }

        // A mark that a break parts from its letter is escaped, which takes more columns than it had.
        #[test]
        fn no_line_is_wider_than_the_terminal(
            rows in rows("[ -~äßæ音楽かЖ🎵\u{1b}\u{202e}\u{200b}\t\n]{0,80}"),
            columns in MIN_WIDTH..200,
        ) {
            let text = table(&rows).lines(Some(columns)).to_string();
            for line in text.lines() {
                prop_assert!(line.width() <= usize::from(columns), "{columns}: {line:?}");
            }
        }
    }
}
