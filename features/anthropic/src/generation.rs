//! What differs between generations of models: how they are made to think, and whether they can be sampled otherwise.
//!
//! From "Thinking" and "Migration guide" (platform.claude.com/docs, November 2026): models before Claude 3.7 do not think;
//! those up to 4.5 think within a budget of tokens; from 4.6 on they decide themselves, with an effort. From 4.7 on,
//! `temperature` and `top_p` are refused. A model that is not known is taken to be a new one.

/// How a model is made to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thinking {
    /// It does not.
    Never,
    /// With a budget of tokens.
    Budget,
    /// It decides, guided by an effort.
    Adaptive,
}

/// How `model` is made to think.
pub fn thinking(model: &str) -> Thinking {
    match version(model) {
        Some(version) if version < (3, 7) => Thinking::Never,
        Some(version) if version < (4, 6) => Thinking::Budget,
        _ => Thinking::Adaptive,
    }
}

/// Whether `model` takes `temperature` and `top_p`.
pub fn is_sampled(model: &str) -> bool {
    version(model).is_some_and(|version| version < (4, 7))
}

/// The version in a name such as `claude-opus-4-5-20251101`, `claude-3-5-haiku-20241022` or `claude-opus-4-20250514`: its
/// first number and the one after it, unless that is a date. `None` if there is none.
fn version(model: &str) -> Option<(u32, u32)> {
    let numbers = |part: &str| part.parse::<u32>().ok().filter(|number| *number < 100);
    let mut parts = model.split(['-', '.', '@', ':']).skip_while(|part| numbers(part).is_none());
    let major = numbers(parts.next()?)?;
    Some((major, parts.next().and_then(numbers).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_generation_is_asked_as_it_understands() {
        for (model, how, sampled) in [
            ("claude-3-5-haiku-20241022", Thinking::Never, true),
            ("claude-3-haiku-20240307", Thinking::Never, true),
            ("claude-3-7-sonnet-20250219", Thinking::Budget, true),
            ("claude-opus-4-20250514", Thinking::Budget, true),
            ("claude-haiku-4-5", Thinking::Budget, true),
            ("claude-sonnet-4-6", Thinking::Adaptive, true),
            ("claude-opus-4-7", Thinking::Adaptive, false),
            ("claude-opus-5-5", Thinking::Adaptive, false),
            ("claude-fable-5-1", Thinking::Adaptive, false),
            ("some-model", Thinking::Adaptive, false),
        ] {
            assert_eq!((thinking(model), is_sampled(model)), (how, sampled), "{model}");
        }
    }
}
