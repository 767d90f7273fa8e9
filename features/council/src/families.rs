//! Families of models, by their vendors: models of one family err together, and what a panel is worth goes by that.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::request::Wrong;

/// How far the errors of two models of one family are alike, from 0 (independent) to 1 (the same). Models agree in about
/// 60 % of the cases in which both err ("Correlated Errors in Large Language Models", 2025); those of one vendor no less.
pub const ALIKE: f64 = 0.6;

/// The family of models of which it is not known who made them. They count as one.
pub const UNKNOWN: &str = "unknown";

/// What a vendor's models are called, by the beginnings of their names.
const NAMES: [(&str, &str); 28] = [
    ("claude", "anthropic"),
    ("gpt", "openai"),
    ("chatgpt", "openai"),
    ("o1", "openai"),
    ("o3", "openai"),
    ("o4", "openai"),
    ("codex", "openai"),
    ("gemini", "google"),
    ("gemma", "google"),
    ("grok", "xai"),
    ("llama", "meta"),
    ("codellama", "meta"),
    ("mistral", "mistral"),
    ("mixtral", "mistral"),
    ("codestral", "mistral"),
    ("devstral", "mistral"),
    ("magistral", "mistral"),
    ("ministral", "mistral"),
    ("qwen", "alibaba"),
    ("qwq", "alibaba"),
    ("deepseek", "deepseek"),
    ("phi", "microsoft"),
    ("command", "cohere"),
    ("glm", "zhipu"),
    ("kimi", "moonshot"),
    ("nova", "amazon"),
    ("granite", "ibm"),
    ("nemotron", "nvidia"),
];
/// Vendors as `VENDOR/MODEL` has them where that is not the family's own name.
const VENDORS: [(&str, &str); 6] = [
    ("meta-llama", "meta"),
    ("mistralai", "mistral"),
    ("x-ai", "xai"),
    ("z-ai", "zhipu"),
    ("moonshotai", "moonshot"),
    ("ibm-granite", "ibm"),
];
/// Providers that reach the models of one vendor.
const PROVIDERS: [(&str, &str); 3] = [("anthropic", "anthropic"), ("gemini", "google"), ("openai", "openai")];

/// How sure a panel has to be that its members do not err together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Assurance {
    /// Any panel.
    #[default]
    Basic,
    /// Two independent votes at least: models of two vendors, neither of them the author's.
    Diverse,
    /// Three, all of which have to come; no model of the author's family is on the panel.
    High,
}

impl Assurance {
    /// As requests have it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Basic => "basic",
            Self::Diverse => "diverse",
            Self::High => "high",
        }
    }

    /// Independent votes that a panel has to be worth.
    pub const fn votes(self) -> f64 {
        match self {
            Self::Basic => 0.0,
            Self::Diverse => 2.0,
            Self::High => 3.0,
        }
    }
}

/// A member of a panel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Seat {
    /// The model.
    pub model: String,
    /// The vendor, or `unknown`.
    pub family: String,
    /// Whether a model of this family wrote the work, as the request says: it is likely to overlook what that one did.
    pub is_authors: bool,
}

/// The family of a model, by the provider that reaches it and by what that calls it.
pub fn family(provider: &str, model: &str) -> &'static str {
    let lower = model.to_lowercase();
    // `VENDOR/MODEL`, `ROUTE/VENDOR/MODEL`: the name of the model says most, and then who stands before it.
    let mut parts = lower.rsplit('/');
    let name = parts.next().unwrap_or_default().rsplit("anthropic.").next().unwrap_or_default();
    if let Some((_, family)) = NAMES.iter().find(|(begins, _)| name.starts_with(begins)) {
        return family;
    }
    for vendor in parts {
        let known = VENDORS.iter().find(|(name, _)| *name == vendor).map(|(_, family)| *family);
        if let Some(family) = known.or_else(|| NAMES.iter().map(|(_, family)| *family).find(|name| *name == vendor)) {
            return family;
        }
    }
    PROVIDERS.iter().find(|(name, _)| *name == provider).map_or(UNKNOWN, |(_, family)| family)
}

/// Families by the names that a configuration (TOML) gives its models under `[models]`.
pub fn of_configuration(text: &str) -> BTreeMap<String, String> {
    #[derive(Deserialize)]
    struct Configuration {
        #[serde(default)]
        models: BTreeMap<String, Model>,
    }
    #[derive(Deserialize)]
    struct Model {
        #[serde(default)]
        provider: String,
        #[serde(default)]
        model: String,
    }
    let models = toml::from_str::<Configuration>(text).map(|it| it.models).unwrap_or_default();
    models.into_iter().map(|(name, it)| (name, family(&it.provider, &it.model).to_owned())).collect()
}

/// Every family that there is, in the order of the names.
pub fn all() -> Vec<&'static str> {
    let mut all: Vec<&str> = NAMES.iter().map(|(_, family)| *family).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Independent votes that a panel is worth: in a family of n whose errors are alike by [`ALIKE`], n / (1 + (n - 1) * ALIKE),
/// as of a sample in clusters. The author's family has none.
pub fn votes(seats: &[Seat]) -> f64 {
    let mut sizes: BTreeMap<&str, u32> = BTreeMap::new();
    for seat in seats.iter().filter(|seat| !seat.is_authors) {
        *sizes.entry(&seat.family).or_default() += 1;
    }
    let of_family = |size: &u32| f64::from(*size) / (1.0 + f64::from(size - 1) * ALIKE);
    // The sum of nothing would be -0.0.
    sizes.values().map(of_family).fold(0.0, |all, votes| all + votes)
}

/// The seats of these models. `author` is the family that wrote the work.
pub fn seats(models: &[String], families: &BTreeMap<String, String>, author: Option<&str>) -> Vec<Seat> {
    let seat = |model: &String| {
        let family = families.get(model).map_or(UNKNOWN, String::as_str);
        Seat { model: model.clone(), family: family.to_owned(), is_authors: author == Some(family) }
    };
    models.iter().map(seat).collect()
}

/// The models in an order in which the first of them are of as many families as there are, and those of the author's come
/// last, or, for `high`, not at all.
pub fn mixed(
    models: &[String],
    families: &BTreeMap<String, String>,
    author: Option<&str>,
    assurance: Assurance,
) -> Vec<String> {
    if assurance == Assurance::Basic {
        return models.to_vec();
    }
    let mut before: BTreeMap<String, u32> = BTreeMap::new();
    let mut placed: Vec<(bool, u32, Seat)> = Vec::new();
    for seat in seats(models, families, author) {
        let number = before.entry(seat.family.clone()).or_default();
        placed.push((seat.is_authors, *number, seat));
        *number += 1;
    }
    placed.sort_by_key(|(is_authors, number, _)| (*is_authors, *number));
    let fits = |is_authors: bool| !(is_authors && assurance == Assurance::High);
    placed.into_iter().filter(|(is_authors, ..)| fits(*is_authors)).map(|(.., seat)| seat.model).collect()
}

/// Whether a panel gives the assurance that is asked for.
///
/// # Errors
/// What it is worth, what is asked for, and what to do.
pub fn assured(seats: &[Seat], assurance: Assurance) -> Result<(), Wrong> {
    let place = format!("assurance = {:?}", assurance.as_str());
    let shown = || {
        let one = |seat: &Seat| {
            let authors = if seat.is_authors { ", who wrote the work" } else { "" };
            format!("{} ({}{authors})", seat.model, seat.family)
        };
        seats.iter().map(one).collect::<Vec<_>>().join(", ")
    };
    if assurance == Assurance::High && seats.iter().any(|seat| seat.is_authors) {
        let problem = format!("the family that wrote the work has no seat then, and the panel is {}", shown());
        return Err(Wrong::new(place, problem));
    }
    let (worth, needed) = (votes(seats), assurance.votes());
    if worth < needed {
        let problem = format!(
            "the panel is worth {worth:.2} independent votes, and {needed} are needed: models of one vendor err together. The \
             panel is {}; grant models of other vendors under [features.council.grants], or name them in `models`",
            shown()
        );
        return Err(Wrong::new(place, problem));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn panel(families: &[&str], author: Option<&str>) -> Vec<Seat> {
        let names: Vec<String> = (0..families.len()).map(|number| format!("m{number}")).collect();
        let by_name = names.iter().cloned().zip(families.iter().map(|family| (*family).to_owned())).collect();
        seats(&names, &by_name, author)
    }

    #[test]
    fn a_family_is_known_by_the_name_of_the_model_and_by_who_reaches_it() {
        for (provider, model, expected) in [
            ("anthropic", "claude-opus-4-5", "anthropic"),
            ("openrouter", "anthropic/claude-sonnet-4.5", "anthropic"),
            ("litellm", "bedrock/anthropic.claude-3", "anthropic"),
            ("openrouter", "x-ai/some-new-one", "xai"),
            ("openai-compatible", "Qwen/Qwen3-Coder", "alibaba"),
            ("openai-compatible", "gpt-oss:20b", "openai"),
            ("gemini", "a-new-name", "google"),
            ("openai-compatible", "my-own", UNKNOWN),
            ("litellm", "my-own", UNKNOWN),
        ] {
            assert_eq!(family(provider, model), expected, "{provider} {model}");
        }
        let text =
            "[models.a]\nprovider = 'openai'\nmodel = 'gpt-5.2'\n\n[models.b]\nprovider = 'x'\nmodel = 'llama3.2'\n";
        let families = of_configuration(text);
        assert_eq!((families["a"].as_str(), families["b"].as_str()), ("openai", "meta"));
        assert!(of_configuration("not = [toml").is_empty());
    }

    /// CNC-6, CNC-8: however many models of one family there are, they are worth less than two.
    #[test]
    fn a_panel_is_worth_its_families() {
        assert!((votes(&panel(&["openai"], None)) - 1.0).abs() < 1e-9);
        assert!((votes(&panel(&["openai", "openai"], None)) - 1.25).abs() < 1e-9);
        assert!(votes(&panel(&["openai"; 9], None)) < 2.0);
        assert!((votes(&panel(&["openai", "meta"], None)) - 2.0).abs() < 1e-9);
        assert!(votes(&panel(&[UNKNOWN; 5], None)) < 2.0, "it is not known that they are of several");
        assert!((votes(&panel(&["openai", "meta"], Some("meta"))) - 1.0).abs() < 1e-9);
        assert!(votes(&[]).is_sign_positive(), "no votes are 0, not -0");
    }

    #[test]
    fn what_a_panel_does_not_assure_is_refused_with_what_to_do() {
        let wrong = |families: &[&str], author, assurance| {
            assured(&panel(families, author), assurance).map_err(|it| it.to_string())
        };
        assert_eq!(wrong(&["openai"; 3], None, Assurance::Basic), Ok(()));
        assert_eq!(wrong(&["openai", "meta"], None, Assurance::Diverse), Ok(()));
        let error = wrong(&["openai"; 3], None, Assurance::Diverse).expect_err("it is refused");
        assert!(error.starts_with("assurance = \"diverse\": the panel is worth 1.36 independent votes"), "{error}");
        assert!(error.contains("m0 (openai), m1 (openai)"), "{error}");
        assert!(wrong(&["openai", "meta"], Some("openai"), Assurance::Diverse).is_err());
        assert_eq!(wrong(&["openai", "meta", "google"], Some("openai"), Assurance::Diverse), Ok(()));
        assert!(wrong(&["openai", "meta"], None, Assurance::High).is_err());
        assert_eq!(wrong(&["openai", "meta", "google"], None, Assurance::High), Ok(()));
        let error =
            wrong(&["openai", "meta", "google", "xai"], Some("xai"), Assurance::High).expect_err("it is refused");
        assert!(error.contains("m3 (xai, who wrote the work)"), "{error}");
    }

    #[test]
    fn a_mixed_panel_begins_with_one_model_of_each_family() {
        let names = ["a", "b", "c", "d"].map(str::to_owned);
        let families = ["openai", "openai", "meta", "google"].map(str::to_owned);
        let families: BTreeMap<String, String> = names.iter().cloned().zip(families).collect();
        let mixed = |author, assurance| mixed(&names, &families, author, assurance).concat();
        assert_eq!(mixed(None, Assurance::Basic), "abcd");
        assert_eq!(mixed(None, Assurance::Diverse), "acdb");
        assert_eq!(mixed(Some("openai"), Assurance::Diverse), "cdab");
        assert_eq!(mixed(Some("openai"), Assurance::High), "cd");
    }

    #[test]
    fn families_are_listed_once() {
        let all = all();
        assert!(all.contains(&"anthropic") && all.windows(2).all(|two| two[0] < two[1]), "{all:?}");
    }
}
