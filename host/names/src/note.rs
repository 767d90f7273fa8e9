//! Names of notes: a letter, `#` or `b`, and the octave, with C4 as middle C (60).

/// The twelve notes of an octave, with sharps.
const SHARPS: [&str; 12] = ["C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B"];

/// The number of the lowest octave: note 0 is C-1, note 127 is G9.
const LOWEST_OCTAVE: i32 = -1;

/// The note of this name, 0 to 127: `"C4"` is 60, `"F#2"` 42, `"Eb-1"` 3. Case counts only in `b`: `"bb2"` is B flat.
/// `♯` and `♭` are read as well. `None` if it is no such name, or one below C-1 or above G9.
pub fn number(name: &str) -> Option<u8> {
    let mut rest = name.chars();
    let step = match rest.next()?.to_ascii_uppercase() {
        'C' => 0,
        'D' => 2,
        'E' => 4,
        'F' => 5,
        'G' => 7,
        'A' => 9,
        'B' => 11,
        _ => return None,
    };
    let octave = rest.as_str();
    let (shift, octave) = match octave.chars().next()? {
        '#' | '♯' => (1, &octave[octave.chars().next()?.len_utf8()..]),
        'b' | '♭' => (-1, &octave[octave.chars().next()?.len_utf8()..]),
        _ => (0, octave),
    };
    let digits = octave.strip_prefix('-').unwrap_or(octave);
    if digits.len() != 1 || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let octave: i32 = octave.parse().ok()?;
    u8::try_from((octave - LOWEST_OCTAVE) * 12 + step + shift).ok().filter(|&note| note < 128)
}

/// The name of a note, with a sharp where it needs one: 60 is `C4`. A number above 127 is called as if it were a note.
pub fn name(note: u8) -> String {
    let octave = i32::from(note / 12) + LOWEST_OCTAVE;
    format!("{}{octave}", SHARPS[usize::from(note % 12)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_note_is_found_by_its_name() {
        for note in 0..=127 {
            assert_eq!(number(&name(note)), Some(note));
            assert_eq!(number(&name(note).to_ascii_lowercase()), Some(note));
        }
        assert_eq!((name(60).as_str(), name(0).as_str(), name(127).as_str()), ("C4", "C-1", "G9"));
    }

    #[test]
    fn flats_are_the_sharps_below() {
        for (flat, sharp) in
            [("Db4", "C#4"), ("Eb-1", "D#-1"), ("Cb4", "B3"), ("B#3", "C4"), ("bb2", "A#2"), ("G♭5", "F♯5")]
        {
            assert_eq!(number(flat), number(sharp), "{flat}");
            assert!(number(flat).is_some());
        }
    }

    #[test]
    fn what_is_no_note_has_no_number() {
        for name in ["", "C", "H4", "C44", "C-2", "G#9", "Cb-1", "C4 ", "#4", "C+4", "36", "C##4", "é4", "Cé"] {
            assert_eq!(number(name), None, "{name}");
        }
    }
}
