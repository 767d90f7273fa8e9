//! "Did you mean": the known name that is nearest to a misspelled one, by edit distance.

/// How many candidates are compared with a word, at most.
const MAX_CANDIDATES: usize = 256;

/// The candidate that is so near to `word` that it was probably meant: one that differs only in case, or
/// by an edit (a letter more, less, changed or swapped with the next) per three letters.
///
/// Of several, the first of the nearest. Only the first 256 candidates are looked at, since there may be as
/// many words as candidates.
pub fn nearest<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<String> {
    let word = word.to_lowercase();
    let length = word.chars().count();
    let limit = length.max(3) / 3;
    candidates
        .into_iter()
        .take(MAX_CANDIDATES)
        .filter(|candidate| candidate.chars().count().abs_diff(length) <= limit)
        .map(|candidate| (strsim::osa_distance(&word, &candidate.to_lowercase()), candidate))
        .filter(|&(distance, _)| distance <= limit)
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, candidate)| candidate.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_has_to_be_near() {
        let names = ["exact_name", "name_contains", "name_regex"];
        assert_eq!(nearest("name_contians", names).as_deref(), Some("name_contains"));
        assert_eq!(nearest("NAME_REGEX", names).as_deref(), Some("name_regex"));
        assert_eq!(nearest("regex", names), None);
        assert_eq!(nearest("cc", ["CC", "Note"]).as_deref(), Some("CC"));
        assert_eq!(nearest("", ["a", "b"]).as_deref(), Some("a"));
    }
}
