//! Templates: texts with placeholders that are filled in in one pass; inserted text is never expanded again.

use std::borrow::Cow;

/// The template with `value(NAME)` in the place of each `{NAME}`, or of what stands between other marks. A name for
/// which `value` returns `None` stays as it is, marks included.
pub fn fill<'v>(template: &str, [open, close]: [&str; 2], value: impl Fn(&str) -> Option<Cow<'v, str>>) -> String {
    let mut out = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once(open) {
        out.push_str(before);
        let found = after.split_once(close).and_then(|(name, after)| Some((value(name)?, after)));
        match found {
            Some((text, after)) => {
                out.push_str(&text);
                rest = after;
            }
            None => {
                out.push_str(open);
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BRACES: [&str; 2] = ["{", "}"];

    #[test]
    fn what_is_filled_in_is_not_filled_in_again() {
        let value = |name: &str| match name {
            "a" => Some(Cow::Borrowed("{b}{a}")),
            "b" => Some(Cow::Borrowed("x")),
            _ => None,
        };
        assert_eq!(fill("{a}, {b} {c} {a", BRACES, value), "{b}{a}, x {c} {a");
        assert_eq!(fill("{{a}} }", BRACES, value), "{{b}{a}} }");
        assert_eq!(fill("{{a}}{a}", ["{{", "}}"], value), "{b}{a}{a}");
    }

    proptest! {
        #[test]
        fn the_result_is_as_long_as_its_parts(template in "[ab{} ]{0,40}", text in "[ab{}]{0,40}") {
            let filled = fill(&template, BRACES, |name| (name == "a").then_some(Cow::Borrowed(text.as_str())));
            let places = template.matches("{a}").count();
            prop_assert_eq!(filled.len(), template.len() - 3 * places + text.len() * places);
        }
    }
}
