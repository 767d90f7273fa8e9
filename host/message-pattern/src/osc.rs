//! OSC 1.0 addresses and address patterns: checking, matching, and what each wildcard of a pattern matched.
//!
//! The rules are those of "OSC Address Patterns" and "OSC Message Dispatching and Pattern Matching" in "The Open Sound
//! Control 1.0 Specification" (opensoundcontrol.org).

/// What is wrong with an OSC address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OscAddressError {
    /// It does not begin with `/`.
    #[error("an OSC address starts with '/', as in /mixer/1/fader")]
    NoLeadingSlash,
    /// It holds a character that OSC keeps for patterns, or that is not printable ASCII.
    #[error("{found:?} may not appear in an OSC address; for wildcards use an address pattern")]
    Character {
        /// The character.
        found: char,
        /// Where it is, in bytes from the start.
        at: usize,
    },
}

/// Checks that `address` is an OSC 1.0 address: `/`, then printable ASCII without space and `#*,?[]{}`.
///
/// # Errors
/// The first thing that is wrong.
pub fn check_address(address: &str) -> Result<(), OscAddressError> {
    if !address.starts_with('/') {
        return Err(OscAddressError::NoLeadingSlash);
    }
    match address.char_indices().find(|&(_, c)| !is_address_char(c)) {
        Some((at, found)) => Err(OscAddressError::Character { found, at }),
        None => Ok(()),
    }
}

fn is_address_char(c: char) -> bool {
    c.is_ascii_graphic() && !"#*,?[]{}".contains(c)
}

/// The longest pattern, in bytes. With [`MAX_PART`] it bounds the work of one comparison.
const MAX_PATTERN: usize = 1024;

/// The longest address part (between two slashes) that wildcards are tried on, in bytes.
const MAX_PART: usize = 1023;

/// A compiled OSC 1.0 address pattern.
///
/// | Write | to match |
/// |---|---|
/// | `?` | any one character |
/// | `*` | any number of characters, also none |
/// | `[a-z0]` | one of these characters |
/// | `[!a-z]` | one character that is none of these |
/// | `{in,out}` | one of these words |
///
/// Several `*` side by side are one. Nothing matches across a `/`: a pattern and an address have the same number of parts.
///
/// Matching allocates nothing and cannot blow up: the work is at most the length of the pattern times
/// the length of the address. A part of an address longer than 1023 bytes matches no wildcard.
///
/// ```
/// # use conductor_message_pattern::OscPattern;
/// let pattern = OscPattern::parse("/mixer/[1-4]/{fader,pan}")?;
/// assert!(pattern.matches("/mixer/3/pan"));
/// assert!(!pattern.matches("/mixer/5/pan"));
/// # Ok::<(), conductor_message_pattern::OscPatternError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OscPattern {
    text: Box<str>,
    parts: Vec<Part>,
}

/// What stands between two slashes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Part {
    Literal(Box<str>),
    /// `*` alone, by far the most common wildcard.
    Anything,
    Steps(Box<[Step]>),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Step {
    Literal(Box<str>),
    One,
    Any,
    Set { negated: bool, ranges: Box<[(char, char)]> },
    Words(Box<[Box<str>]>),
}

/// What is wrong with an OSC address pattern, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind} (at byte {at})")]
pub struct OscPatternError {
    /// Bytes from the start of the pattern.
    pub at: usize,
    /// What is wrong.
    pub kind: OscPatternErrorKind,
}

/// The ways a pattern can be wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OscPatternErrorKind {
    /// It does not begin with `/`.
    #[error("an OSC address pattern starts with '/', as in /mixer/*/fader")]
    NoLeadingSlash,
    /// It is longer than 1024 bytes.
    #[error("an OSC address pattern has at most {MAX_PATTERN} bytes")]
    TooLong,
    /// A `[` or `{` is not closed before the next `/` or the end.
    #[error("'{0}' is not closed")]
    Unclosed(char),
    /// A `]` or `}` without its opening.
    #[error("'{0}' was not opened")]
    Unopened(char),
    /// `[]`, `[!]` or a range that runs backwards.
    #[error("{0}")]
    Set(&'static str),
    /// A character that may not appear here.
    #[error("{0:?} may not appear here; patterns know ? * [a-z] [!a-z] {{a,b}}")]
    Character(char),
}

impl OscPattern {
    /// Compiles a pattern. Text without wildcards is a pattern too.
    ///
    /// # Errors
    /// The first thing that is wrong, with its place.
    pub fn parse(text: &str) -> Result<Self, OscPatternError> {
        let fail = |at, kind| Err(OscPatternError { at, kind });
        if text.len() > MAX_PATTERN {
            return fail(MAX_PATTERN, OscPatternErrorKind::TooLong);
        }
        let Some(rest) = text.strip_prefix('/') else {
            return fail(0, OscPatternErrorKind::NoLeadingSlash);
        };
        let mut at = 1;
        let mut parts = Vec::new();
        for part in rest.split('/') {
            parts.push(parse_part(part, at)?);
            at += part.len() + 1;
        }
        Ok(Self { text: text.into(), parts })
    }

    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The first part (without slashes) when it has no wildcards: every address that matches begins
    /// with it.
    pub fn literal_first_segment(&self) -> Option<&str> {
        match self.parts.first() {
            Some(Part::Literal(text)) => Some(text),
            _ => None,
        }
    }

    /// How many wildcards it has.
    pub fn wildcards(&self) -> usize {
        self.parts.iter().map(Part::wildcards).sum()
    }

    /// Whether the whole of `address` matches.
    pub fn matches(&self, address: &str) -> bool {
        let Some(mut rest) = address.strip_prefix('/') else { return false };
        let Some((last, parts)) = self.parts.split_last() else { return false };
        for part in parts {
            let Some((text, after)) = rest.split_once('/') else { return false };
            if !part.matches(text) {
                return false;
            }
            rest = after;
        }
        !rest.contains('/') && last.matches(rest)
    }

    /// What a wildcard has matched in an address: the wildcard with this position in the pattern, counted from 0.
    /// Where there are several ways, each wildcard takes as much as it can, the first one first. `None` if the
    /// address does not match, if there are fewer wildcards, or if its part of the pattern has more than
    /// [`MAX_CAPTURED`](Self::MAX_CAPTURED) literals and wildcards. Allocates nothing.
    pub fn matched<'a>(&self, address: &'a str, wildcard: usize) -> Option<&'a str> {
        if !self.matches(address) {
            return None;
        }
        let mut left = wildcard;
        for (part, text) in self.parts.iter().zip(address.strip_prefix('/')?.split('/')) {
            let here = part.wildcards();
            if left < here {
                return part.matched(text, left);
            }
            left -= here;
        }
        None
    }

    /// Literals and wildcards that a part of a pattern may have so that what it matched can be asked.
    pub const MAX_CAPTURED: usize = 32;
}

impl Part {
    fn wildcards(&self) -> usize {
        match self {
            Self::Literal(_) => 0,
            Self::Anything => 1,
            Self::Steps(steps) => steps.iter().filter(|step| step.is_wildcard()).count(),
        }
    }

    /// What one of its wildcards takes of a text that it matches.
    fn matched<'a>(&self, text: &'a str, wildcard: usize) -> Option<&'a str> {
        match self {
            Self::Literal(_) => None,
            Self::Anything => Some(text),
            Self::Steps(steps) => captured(steps, text, wildcard),
        }
    }

    fn matches(&self, text: &str) -> bool {
        match self {
            Self::Literal(literal) => **literal == *text,
            Self::Anything => true,
            Self::Steps(steps) => run(steps, text),
        }
    }
}

impl Step {
    fn is_wildcard(&self) -> bool {
        !matches!(self, Self::Literal(_))
    }

    /// The places in `text` behind what this step takes from `at` on: each to `visit`, the farthest last.
    fn ends(&self, text: &str, at: usize, mut visit: impl FnMut(usize)) {
        let starts = |word: &str| text.as_bytes()[at..].starts_with(word.as_bytes());
        match self {
            Self::Any => (at..=text.len()).for_each(visit),
            Self::Literal(literal) if starts(literal) => visit(at + literal.len()),
            Self::Literal(_) => {}
            Self::Words(words) => words.iter().filter(|word| starts(word)).for_each(|word| visit(at + word.len())),
            Self::One => char_at(text, at).into_iter().for_each(|c| visit(at + c.len_utf8())),
            Self::Set { negated, ranges } => {
                let fits = |c: &char| ranges.iter().any(|(first, last)| (first..=last).contains(&c)) != *negated;
                char_at(text, at).filter(fits).into_iter().for_each(|c| visit(at + c.len_utf8()));
            }
        }
    }
}

/// What one of the wildcards takes of a text that the steps match.
fn captured<'a>(steps: &[Step], text: &'a str, wildcard: usize) -> Option<&'a str> {
    if steps.len() > OscPattern::MAX_CAPTURED || text.len() > MAX_PART {
        return None;
    }
    // From where on the steps from this one on match the rest.
    let mut ways = [const { OffsetSet::NONE }; OscPattern::MAX_CAPTURED + 1];
    ways[steps.len()].insert(text.len());
    for (number, step) in steps.iter().enumerate().rev() {
        let (before, behind) = ways.split_at_mut(number + 1);
        let (here, next) = (&mut before[number], &behind[0]);
        match step {
            // Every place up to the last one.
            Step::Any => next.last().into_iter().for_each(|last| here.insert_from(0, last)),
            step => {
                for at in 0..=text.len() {
                    step.ends(text, at, |end| {
                        if next.contains(end) {
                            here.insert(at);
                        }
                    });
                }
            }
        }
    }
    let (mut at, mut left) = (0, wildcard);
    for (step, next) in steps.iter().zip(&ways[1..]) {
        let mut taken = None;
        step.ends(text, at, |end| {
            if next.contains(end) && text.is_char_boundary(end) && taken.is_none_or(|taken| taken < end) {
                taken = Some(end);
            }
        });
        let end = taken?;
        if step.is_wildcard() {
            if left == 0 {
                return text.get(at..end);
            }
            left -= 1;
        }
        at = end;
    }
    None
}

/// Runs the steps over all the places in `text` that the steps before may have reached, at once: no
/// choice is ever undone, so none can multiply.
fn run(steps: &[Step], text: &str) -> bool {
    if text.len() > MAX_PART {
        return false;
    }
    let mut here = OffsetSet::default();
    here.insert(0);
    for step in steps {
        let mut next = OffsetSet::default();
        match step {
            Step::Any => {
                if let Some(first) = here.first() {
                    next.insert_from(first, text.len());
                }
            }
            step => here.each(|at| step.ends(text, at, |end| next.insert(end))),
        }
        here = next;
        if here.first().is_none() {
            return false;
        }
    }
    here.contains(text.len())
}

/// The character that begins at byte `at`; none at the end, or inside of a character, where `*` may
/// have put a place.
fn char_at(text: &str, at: usize) -> Option<char> {
    text.get(at..)?.chars().next()
}

/// A set of byte offsets into one part of an address, `0..=MAX_PART`.
#[derive(Default)]
struct OffsetSet([u64; (MAX_PART + 1) / 64]);

impl OffsetSet {
    const NONE: Self = Self([0; (MAX_PART + 1) / 64]);

    fn insert(&mut self, at: usize) {
        self.0[at / 64] |= 1 << (at % 64);
    }

    fn insert_from(&mut self, first: usize, last: usize) {
        for at in first..=last {
            self.insert(at);
        }
    }

    fn contains(&self, at: usize) -> bool {
        self.0[at / 64] & 1 << (at % 64) != 0
    }

    fn first(&self) -> Option<usize> {
        let word = self.0.iter().position(|&bits| bits != 0)?;
        Some(word * 64 + self.0[word].trailing_zeros() as usize)
    }

    fn last(&self) -> Option<usize> {
        let word = self.0.iter().rposition(|&bits| bits != 0)?;
        Some(word * 64 + 63 - self.0[word].leading_zeros() as usize)
    }

    fn each(&self, mut visit: impl FnMut(usize)) {
        for (word, &bits) in self.0.iter().enumerate() {
            let mut bits = bits;
            while bits != 0 {
                visit(word * 64 + bits.trailing_zeros() as usize);
                bits &= bits - 1;
            }
        }
    }
}

/// Compiles what stands between two slashes; `base` is where it begins in the pattern.
fn parse_part(text: &str, base: usize) -> Result<Part, OscPatternError> {
    let mut steps = Vec::new();
    let mut literal = String::new();
    let mut at = 0;
    while let Some(c) = char_at(text, at) {
        let fail = |kind| Err(OscPatternError { at: base + at, kind });
        let (step, len) = match c {
            '?' => (Step::One, 1),
            '*' => (Step::Any, 1),
            '[' | '{' => {
                let close = if c == '[' { ']' } else { '}' };
                let Some(len) = text[at + 1..].find(close) else {
                    return fail(OscPatternErrorKind::Unclosed(c));
                };
                let inner = &text[at + 1..at + 1 + len];
                let inner_at = base + at + 1;
                let step = if c == '[' { parse_set(inner, inner_at)? } else { parse_words(inner, inner_at)? };
                (step, len + 2)
            }
            ']' | '}' => return fail(OscPatternErrorKind::Unopened(c)),
            c if is_address_char(c) => {
                literal.push(c);
                at += c.len_utf8();
                continue;
            }
            c => return fail(OscPatternErrorKind::Character(c)),
        };
        flush(&mut literal, &mut steps);
        // Two stars in a row say no more than one.
        if step != Step::Any || steps.last() != Some(&Step::Any) {
            steps.push(step);
        }
        at += len;
    }
    if steps.is_empty() {
        return Ok(Part::Literal(literal.into()));
    }
    flush(&mut literal, &mut steps);
    if steps == [Step::Any] {
        return Ok(Part::Anything);
    }
    Ok(Part::Steps(steps.into()))
}

fn flush(literal: &mut String, steps: &mut Vec<Step>) {
    if !literal.is_empty() {
        steps.push(Step::Literal(std::mem::take(literal).into()));
    }
}

/// The inside of `[…]`. A `-` at either end stands for itself, as does a `!` that is not first.
fn parse_set(inner: &str, at: usize) -> Result<Step, OscPatternError> {
    let (negated, body) = match inner.strip_prefix('!') {
        Some(body) => (true, body),
        None => (false, inner),
    };
    if body.is_empty() {
        let kind = OscPatternErrorKind::Set("write the characters between [ and ], as in [a-z]");
        return Err(OscPatternError { at, kind });
    }
    let at = at + usize::from(negated);
    if let Some((offset, c)) = body.char_indices().find(|&(_, c)| !is_address_char(c)) {
        let kind = OscPatternErrorKind::Character(c);
        return Err(OscPatternError { at: at + offset, kind });
    }
    let mut ranges = Vec::new();
    let mut chars = body.chars().peekable();
    while let Some(first) = chars.next() {
        let mut rest = chars.clone();
        match (rest.next(), rest.next()) {
            (Some('-'), Some(last)) => {
                if last < first {
                    let kind = OscPatternErrorKind::Set("a range runs upwards, as in [a-z]");
                    return Err(OscPatternError { at, kind });
                }
                ranges.push((first, last));
                chars = rest;
            }
            _ => ranges.push((first, first)),
        }
    }
    Ok(Step::Set { negated, ranges: ranges.into() })
}

/// The inside of `{…}`: words between commas. An empty word is allowed: `{,s}` makes an s optional.
fn parse_words(inner: &str, at: usize) -> Result<Step, OscPatternError> {
    match inner.char_indices().find(|&(_, c)| c != ',' && !is_address_char(c)) {
        Some((offset, c)) => Err(OscPatternError { at: at + offset, kind: OscPatternErrorKind::Character(c) }),
        None => Ok(Step::Words(inner.split(',').map(Into::into).collect())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pattern(text: &str) -> OscPattern {
        OscPattern::parse(text).unwrap_or_else(|e| panic!("{text}: {e}"))
    }

    #[test]
    fn what_a_wildcard_matched_can_be_asked() {
        let all = |text: &str, address: &'static str| -> Vec<Option<&'static str>> {
            let pattern = pattern(text);
            (0..=pattern.wildcards()).map(|wildcard| pattern.matched(address, wildcard)).collect()
        };
        assert_eq!(all("/mixer/*/gain", "/mixer/3/gain"), [Some("3"), None]);
        assert_eq!(
            all("/ch[0-9]?/{mute,solo}/*", "/ch12/solo/on"),
            [Some("1"), Some("2"), Some("solo"), Some("on"), None]
        );
        assert_eq!(all("/a*b*c", "/aXbYbZc"), [Some("XbY"), Some("Z"), None], "the first takes as much as it can");
        assert_eq!(all("/{a,ab}*", "/abc"), [Some("ab"), Some("c"), None]);
        assert_eq!(all("/{a,ab}bc", "/abc"), [Some("a"), None], "and leaves what the others need");
        assert_eq!(all("/*", "/é"), [Some("é"), None]);
        assert_eq!(all("/x", "/x"), [None], "no wildcard at all");
        assert_eq!(all("/x*", "/y"), [None, None], "it does not match");
        let many = format!("/{}", "*a".repeat(OscPattern::MAX_CAPTURED / 2 + 1));
        let address = format!("/{}", "a".repeat(OscPattern::MAX_CAPTURED));
        assert!(pattern(&many).matches(&address));
        assert_eq!(pattern(&many).matched(&address, 0), None);
    }

    proptest! {
        /// Put together again, what the wildcards took and the literals between them are the address.
        #[test]
        fn what_wildcards_matched_makes_up_the_address(
            steps in prop::collection::vec(prop::sample::select(vec!["*", "?", "[a-c]", "{a,ab,b}", "a", "bc"]), 1..8),
            text in "[abc]{0,12}",
        ) {
            // Stars side by side are one.
            let mut steps = steps;
            steps.dedup_by(|one, other| (*one, *other) == ("*", "*"));
            let (pattern, address) = (pattern(&format!("/{}", steps.concat())), format!("/{text}"));
            let mut wildcards = 0..;
            let rebuilt: Option<String> = steps
                .iter()
                .map(|step| match *step {
                    "a" | "bc" => Some(*step),
                    _ => pattern.matched(&address, wildcards.next()?),
                })
                .collect();
            match pattern.matches(&address) {
                true => prop_assert_eq!(rebuilt, Some(text)),
                false => prop_assert_eq!(pattern.matched(&address, 0), None),
            }
        }
    }

    #[test]
    fn each_wildcard_does_what_osc_says() {
        let cases = [
            ("/a/b", &["/a/b"][..], &["/a", "/a/b/c", "/a/bc", "a/b", ""][..]),
            ("/?", &["/a", "/1"], &["/", "/ab", "/a/b"]),
            ("/*", &["/", "/abc"], &["/a/b", "abc"]),
            ("/a*c", &["/ac", "/abc", "/abcc"], &["/ab", "/a/c", "/bac"]),
            ("/*/x", &["/1/x", "//x"], &["/x", "/1/2/x"]),
            ("/[a-c1]", &["/a", "/c", "/1"], &["/d", "/", "/ab"]),
            ("/[!a-c]", &["/d", "/-"], &["/a", "/"]),
            ("/[a-]", &["/a", "/-"], &["/b"]),
            ("/{in,out}put", &["/input", "/output"], &["/put", "/inoutput"]),
            ("/{a,ab}c", &["/ac", "/abc"], &["/abbc", "/c"]),
            ("/x{,s}", &["/x", "/xs"], &["/xss"]),
            ("/**", &["/", "/x"], &["/x/y"]),
        ];
        for (text, yes, no) in cases {
            for address in yes {
                assert!(pattern(text).matches(address), "{text} should match {address}");
            }
            for address in no {
                assert!(!pattern(text).matches(address), "{text} should not match {address}");
            }
        }
    }

    #[test]
    fn mistakes_are_named_with_their_place() {
        use OscPatternErrorKind as Kind;
        let cases = [
            ("mixer", 0, Kind::NoLeadingSlash),
            ("/a/[1-", 3, Kind::Unclosed('[')),
            ("/a/{x/y}", 3, Kind::Unclosed('{')),
            ("/a]", 2, Kind::Unopened(']')),
            ("/a b", 2, Kind::Character(' ')),
            ("/[]", 2, Kind::Set("write the characters between [ and ], as in [a-z]")),
            ("/[z-a]", 2, Kind::Set("a range runs upwards, as in [a-z]")),
            ("/{a*}", 3, Kind::Character('*')),
        ];
        for (text, at, kind) in cases {
            assert_eq!(OscPattern::parse(text), Err(OscPatternError { at, kind }), "{text}");
        }
        let long = format!("/{}", "x".repeat(MAX_PATTERN));
        assert_eq!(OscPattern::parse(&long).unwrap_err().kind, OscPatternErrorKind::TooLong);
    }

    #[test]
    fn the_first_part_is_known_when_it_is_plain() {
        assert_eq!(pattern("/mixer/*").literal_first_segment(), Some("mixer"));
        assert_eq!(pattern("/mix*/1").literal_first_segment(), None);
    }

    #[test]
    fn a_pattern_made_to_explode_costs_little() {
        // A matcher that tries and takes back would need about 2^60 steps here.
        let pattern = pattern(&format!("/{}b", "{a,aa}*".repeat(60)));
        assert!(!pattern.matches(&format!("/{}", "a".repeat(1000))));
        assert!(!pattern.matches(&format!("/{}b", "a".repeat(5000))));
    }

    #[test]
    fn addresses_are_checked() {
        assert_eq!(check_address("/mixer/1/fader"), Ok(()));
        assert_eq!(check_address("mixer"), Err(OscAddressError::NoLeadingSlash));
        let found = OscAddressError::Character { found: '*', at: 2 };
        assert_eq!(check_address("/a*"), Err(found));
    }

    /// What OSC says, written for the reader and not for speed.
    fn naive(steps: &[Step], text: &str) -> bool {
        let Some((step, rest)) = steps.split_first() else { return text.is_empty() };
        let first = text.chars().next();
        let tail = || &text[first.map_or(0, char::len_utf8)..];
        match step {
            Step::Any => (0..=text.len()).filter(|&at| text.is_char_boundary(at)).any(|at| naive(rest, &text[at..])),
            Step::One => first.is_some() && naive(rest, tail()),
            Step::Set { negated, ranges } => first.is_some_and(|c| {
                ranges.iter().any(|&(low, high)| low <= c && c <= high) != *negated && naive(rest, tail())
            }),
            Step::Literal(word) => text.strip_prefix(&**word).is_some_and(|t| naive(rest, t)),
            Step::Words(words) => words.iter().any(|word| text.strip_prefix(&**word).is_some_and(|t| naive(rest, t))),
        }
    }

    proptest! {
        #[test]
        fn one_part_matches_as_the_definition_says(
            text in "([ab]|\\*|\\?|\\[ab\\]|\\[!a\\]|\\{a,ab\\}){0,6}",
            address in "[abcé]{0,8}",
        ) {
            let pattern = pattern(&format!("/{text}"));
            let expected = match &pattern.parts[0] {
                Part::Literal(literal) => **literal == *address,
                Part::Anything => true,
                Part::Steps(steps) => naive(steps, &address),
            };
            prop_assert_eq!(pattern.matches(&format!("/{address}")), expected);
        }

        #[test]
        fn no_text_makes_parsing_or_matching_panic(text in "\\PC{0,40}", address in "\\PC{0,40}") {
            if let Ok(pattern) = OscPattern::parse(&text) {
                pattern.matches(&address);
            }
            let _ = OscPattern::parse(&format!("/{text}"));
            let _ = check_address(&address);
        }
    }
}
