//! How alike the names of ports are: the two directions of one device are often two ports with names of their own.

/// Words that tell the two directions of one device apart, and nothing else.
const WAYS: [&str; 6] = ["in", "out", "input", "output", "capture", "playback"];
/// Characters of a name that are compared.
const MAX_COMPARED: usize = 120;

/// Which of these names is the most like `name`, the first of several; `None` if none is like it.
pub fn most_alike<'n>(name: &str, names: impl Iterator<Item = &'n str>) -> Option<usize> {
    let own = pairs(name);
    let rated = names.map(|other| likeness(&own, &pairs(other))).enumerate();
    let best = rated.reduce(|best, other| if other.1 > best.1 { other } else { best });
    best.filter(|(_, alike)| *alike > 0).map(|(at, _)| at)
}

/// How alike two names are, 0 to 1000: the pairs of characters that both have.
fn likeness(one: &[(char, char)], other: &[(char, char)]) -> usize {
    let mut left = other.to_vec();
    for pair in one {
        if let Some(at) = left.iter().position(|known| known == pair) {
            left.swap_remove(at);
        }
    }
    (2000 * (other.len() - left.len())).checked_div(one.len() + other.len()).unwrap_or(0)
}

/// The pairs of neighbouring characters of a name, whichever direction it is of.
fn pairs(name: &str) -> Vec<(char, char)> {
    let name: String = name.chars().take(MAX_COMPARED).collect::<String>().to_lowercase();
    let words = name.split(|c: char| !c.is_alphanumeric());
    let words: Vec<&str> = words.filter(|word| !word.is_empty() && !WAYS.contains(word)).collect();
    let letters: Vec<char> = words.join(" ").chars().collect();
    letters.iter().copied().zip(letters.iter().copied().skip(1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_directions_of_a_device_are_alike() {
        let alike = |one: &str, other: &str| likeness(&pairs(one), &pairs(other));
        assert_eq!(alike("Pads MIDI In", "pads midi out"), 1000);
        assert!(alike("Pads MIDI 1", "Pads MIDI 2") > alike("Pads MIDI 1", "Synth MIDI 1"));
        assert_eq!((alike("Pads", "Synth"), alike("", "")), (0, 0));
    }

    #[test]
    fn the_most_alike_is_the_first_of_several_and_none_that_has_nothing_in_common() {
        let at = |names: &[&'static str]| most_alike("Pads In", names.iter().copied());
        assert_eq!(at(&["Synth", "Pads Out", "pads out"]), Some(1));
        assert_eq!((at(&["Synth"]), at(&[])), (None, None));
    }
}
