//! Pieces of a text that came whole, so that it is shown as a stream would be.

/// Pieces that one text is cut into at most.
const MAX_PIECES: usize = 256;
/// Bytes of a piece at least.
const SMALLEST: usize = 48;

/// Cuts a text into at most 256 pieces, after spaces where there are some.
pub fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let size = (text.len().div_ceil(MAX_PIECES)).max(SMALLEST);
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        // Never a piece that is smaller than `size`, but for the last: that bounds their number.
        let from = rest.ceil_char_boundary(size);
        let until = rest.ceil_char_boundary(size * 2);
        let end = match rest[from..until].find([' ', '\n']) {
            Some(space) => from + space + 1,
            None if until - from > SMALLEST => until,
            None => from,
        };
        let (piece, after) = rest.split_at(end);
        rest = after;
        Some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_make_up_the_text_and_are_few() {
        for text in ["", "short", &"word ".repeat(5000), &"ü".repeat(3000), &"x".repeat(300_000)] {
            let all: Vec<&str> = pieces(text).collect();
            assert_eq!(all.concat(), text);
            assert!(all.len() <= MAX_PIECES, "{}", all.len());
        }
        assert!(pieces(&"word ".repeat(100)).count() > 5);
        assert!(pieces(&"word ".repeat(100)).all(|piece| piece.ends_with(' ')));
    }
}
