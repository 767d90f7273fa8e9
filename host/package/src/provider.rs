//! Providers as a descriptor declares them: the APIs by which models are reached, and what is known of their models.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Models that a descriptor may declare for one provider.
pub const MAX_MODELS: usize = 64;

/// The longest source of what is known of a model, in bytes.
const MAX_SOURCE: usize = 500;

/// The most that a million tokens may cost, in US dollars.
const MAX_PRICE: f64 = 100_000.0;

/// A provider that the feature contributes: an API by which models are reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProviderDeclaration {
    /// The name that the configuration writes under `provider`: lower-case letters, digits and `-`.
    pub name: String,
    /// Which API it speaks, in a sentence.
    pub summary: String,
    /// The purpose of the `network` capability by which the host sends its requests.
    pub network: String,
    /// Keys of the capabilities without which it is left out, such as `store` or `files:notes`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
    /// Whether the component exports the contract's `exchange-details`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub details: bool,
    /// Whether it passes on to others what it is asked: then an address on this machine says nothing about where its
    /// models are, and what they cost.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub relays: bool,
    /// Where the API is and how it lists its models. `None` if it can't be asked that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listing: Option<Listing>,
    /// What is known of the API's models. Others can be asked, too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<ModelDeclaration>,
}

/// How the host asks an API which models there are: a `GET` whose answer is JSON, with a list of objects in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listing {
    /// The base URL where nothing else is configured, without `/` at its end.
    pub url: String,
    /// What is asked for, behind the base URL: `/models?limit=1000`. Where it begins with a version, a base URL may end in
    /// it, too.
    pub path: String,
    /// The secret that the API itself is asked with. `None` if it needs none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// The header for a secret, in lower case.
    pub header: String,
    /// What stands before the secret in the header.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub prefix: String,
    /// Headers beside it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The key of the list.
    pub list: String,
    /// The key of a model's name.
    pub name: String,
    /// What stands before the names, and is no part of them.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub strip: String,
    /// The key of the tokens of a question and its answer together. `None` if the API does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// A key, and a text that is in its list with models that can be talked with. `None` if all can be, or it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only: Option<(String, String)>,
}

/// What a document says of a model on a day. What is not said is unknown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelDeclaration {
    /// As the API calls it.
    pub name: String,
    /// Other names that the API has for it, such as those with a date.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// Tokens of a question and its answer together at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<u32>,
    /// Tokens of an answer at most, thoughts included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<u32>,
    /// Whether it takes tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<bool>,
    /// Whether it answers piece by piece.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streams: Option<bool>,
    /// Whether it takes a JSON Schema for its answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<bool>,
    /// Whether it takes pictures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub images: Option<bool>,
    /// Whether it thinks before it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinks: Option<bool>,
    /// What it costs, for exchanges from the shortest to the longest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prices: Vec<Prices>,
    /// The document that says so: its address.
    pub source: String,
    /// The day on which it was read: `2026-11-24`.
    pub as_of: String,
    /// Another document, which says what it costs. `None` if it is the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices_source: Option<String>,
    /// The day on which that was read. `None` if it is the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices_as_of: Option<String>,
}

/// Prices of exchanges that have more than `above` tokens of input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// Tokens of input above which these prices hold.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub above: u32,
    /// What is read, except from a cache.
    pub input: Price,
    /// What is written.
    pub output: Price,
    /// What is read from a cache. `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<Price>,
    /// What is read and written to a cache. `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_written: Option<Price>,
}

impl Prices {
    /// Of what costs nothing, however long it is.
    pub const NOTHING: Self =
        Self { above: 0, input: Price(0), output: Price(0), cached: Some(Price(0)), cache_written: Some(Price(0)) };
}

/// A price in US dollars for a million tokens, as descriptors write it; kept in millionths of that, so that it can be
/// added up without rounding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Price(u64);

/// Tokens of one exchange.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tokens {
    /// Read, in all.
    pub input: u32,
    /// Of those: from a cache.
    pub cached: u32,
    /// Of those: written to a cache.
    pub cache_written: u32,
    /// Written, thoughts included.
    pub output: u32,
}

impl TryFrom<f64> for Price {
    type Error = String;

    fn try_from(dollars: f64) -> Result<Self, String> {
        if !(0.0..=MAX_PRICE).contains(&dollars) {
            return Err(format!("a price is 0 to {MAX_PRICE} US dollars for a million tokens, not {dollars}"));
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range was checked")]
        Ok(Self((dollars * 1e6).round() as u64))
    }
}

impl From<Price> for f64 {
    fn from(price: Price) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "the largest price is far below 2^53")]
        let millionths = price.0 as Self;
        millionths / 1e6
    }
}

impl ModelDeclaration {
    /// What an exchange costs by these prices, in billionths of a US dollar, rounded up. `None` if a price that it needs
    /// is unknown.
    pub fn cost(&self, tokens: Tokens) -> Option<u64> {
        let prices = self.prices.iter().rev().find(|prices| prices.above == 0 || tokens.input > prices.above)?;
        let Tokens { input, cached, cache_written, output } = tokens;
        let read = input.saturating_sub(cached).saturating_sub(cache_written);
        let part = |tokens: u32, price: Option<Price>| match tokens {
            0 => Some(0),
            _ => Some(u128::from(tokens) * u128::from(price?.0)),
        };
        // A millionth of a dollar for a million tokens is 10^-12 dollars for one.
        let sum = part(read, Some(prices.input))?
            + part(output, Some(prices.output))?
            + part(cached, prices.cached)?
            + part(cache_written, prices.cache_written)?;
        u64::try_from(sum.div_ceil(1000)).ok()
    }
}

impl ProviderDeclaration {
    /// What is known of the model that the API calls `name`. `None` if it is not declared.
    pub fn model(&self, name: &str) -> Option<&ModelDeclaration> {
        self.models.iter().find(|model| model.name == name || model.aliases.iter().any(|alias| alias == name))
    }

    /// Rejects a listing that the host could not ask, and models whose data can't be right.
    pub(crate) fn validate_models(&self) -> Result<(), String> {
        let provider = &self.name;
        if let Some(Listing { url, path, .. }) = &self.listing {
            if !(url.starts_with("https://") || url.starts_with("http://")) || url.ends_with('/') {
                return Err(format!(
                    "the provider {provider} has the address {url:?}; write https://… without / at its end"
                ));
            }
            if !path.starts_with('/') {
                return Err(format!(
                    "the provider {provider} lists its models at {path:?}, which does not begin with /"
                ));
            }
        }
        if self.models.len() > MAX_MODELS {
            let count = self.models.len();
            return Err(format!("the provider {provider} declares {count} models; at most {MAX_MODELS} can be"));
        }
        let mut seen = std::collections::BTreeSet::new();
        for model in &self.models {
            for name in std::iter::once(&model.name).chain(&model.aliases) {
                if name.is_empty() || name.len() > 128 || name.chars().any(|c| c.is_control() || c.is_whitespace()) {
                    return Err(format!("the provider {provider} has the model {name:?}; 1 to 128 characters print"));
                }
                if !seen.insert(name) {
                    return Err(format!("the provider {provider} declares the model {name} twice"));
                }
            }
            let name = &model.name;
            for date in std::iter::once(&model.as_of).chain(&model.prices_as_of) {
                if !is_date(date) {
                    return Err(format!("the model {name} has the date {date:?}, which is not YYYY-MM-DD"));
                }
            }
            for source in std::iter::once(&model.source).chain(&model.prices_source) {
                if !source.starts_with("https://") || source.len() > MAX_SOURCE {
                    return Err(format!("the model {name} has the source {source:?}, which is not an https address"));
                }
            }
            if model.context == Some(0) || model.output == Some(0) {
                return Err(format!("the model {name} has a limit of 0 tokens; leave out what is unknown"));
            }
            let above: Vec<u32> = model.prices.iter().map(|prices| prices.above).collect();
            if above.first().is_some_and(|first| *first != 0) || !above.is_sorted_by(|a, b| a < b) {
                return Err(format!("the prices of the model {name} must begin without `above`, and then rise by it"));
            }
        }
        Ok(())
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_zero(value: &u32) -> bool {
    *value == 0
}

/// Whether this is a day, `YYYY-MM-DD`.
fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    let shaped = bytes.len() == 10
        && bytes
            .iter()
            .enumerate()
            .all(|(at, byte)| if at == 4 || at == 7 { *byte == b'-' } else { byte.is_ascii_digit() });
    let number = |at: usize| text.get(at..at + 2).and_then(|part| part.parse::<u8>().ok());
    shaped
        && number(5).is_some_and(|month| (1..=12).contains(&month))
        && number(8).is_some_and(|day| (1..=31).contains(&day))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Descriptor;

    const GOOD: &str = r#"
        id = "project:api"
        name = "API"
        version = "1"
        contract = "0.1"
        [[capabilities]]
        kind = "network"
        purpose = "chat"
        http = ["api.example"]
        reason = "Ask."
        [[providers]]
        name = "api"
        summary = "An API."
        network = "chat"
        details = true
        [[providers.models]]
        name = "large"
        aliases = ["large-2026-11-01"]
        context = 200000
        output = 64000
        tools = false
        prices = [
            { input = 3, output = 15, cached = 0.3, cache_written = 3.75 },
            { above = 200000, input = 6, output = 22.5 },
        ]
        source = "https://api.example/prices"
        as_of = "2026-11-24"
    "#;

    fn declared() -> ProviderDeclaration {
        Descriptor::parse(GOOD.as_bytes()).unwrap().providers.remove(0)
    }

    #[test]
    fn a_model_is_found_by_each_of_its_names() {
        let provider = declared();
        assert!(provider.details);
        let model = provider.model("large").unwrap();
        assert_eq!(
            (model.context, model.output, model.tools, model.images),
            (Some(200_000), Some(64_000), Some(false), None)
        );
        assert_eq!(provider.model("large-2026-11-01"), Some(model));
        assert_eq!(provider.model("small"), None);
    }

    #[test]
    fn a_cost_is_what_the_document_says_and_unknown_where_it_says_nothing() {
        let provider = declared();
        let model = provider.model("large").unwrap();
        let tokens = Tokens { input: 1_000_000, output: 0, cached: 0, cache_written: 0 };
        assert_eq!(model.cost(tokens), Some(6_000_000_000), "the long tier: six dollars");
        let tokens = Tokens { input: 100_000, cached: 40_000, cache_written: 20_000, output: 10_000 };
        // 0.12 + 0.012 + 0.075 + 0.15 dollars.
        assert_eq!(model.cost(tokens), Some(357_000_000));
        assert_eq!(model.cost(Tokens { input: 1, ..Tokens::default() }), Some(3_000));
        assert_eq!(model.cost(Tokens::default()), Some(0));
        let long_and_cached = Tokens { input: 300_000, cached: 1, ..Tokens::default() };
        assert_eq!(model.cost(long_and_cached), None, "the price of a long cached input is not declared");
        let free = ModelDeclaration { prices: Vec::new(), ..model.clone() };
        assert_eq!(free.cost(tokens), None, "unknown, not zero");
    }

    #[test]
    fn data_that_cannot_be_right_is_refused() {
        let refused =
            |from: &str, to: &str| Descriptor::parse(GOOD.replace(from, to).as_bytes()).unwrap_err().to_string();
        assert!(refused("input = 3,", "input = -3,").contains("a price is 0 to"));
        assert!(refused("input = 3,", "input = nan,").contains("a price is 0 to"));
        assert!(refused("above = 200000, ", "").contains("must begin without `above`"));
        assert!(refused("2026-11-24", "2026-13-24").contains("not YYYY-MM-DD"));
        assert!(refused("2026-11-24", "+026-11-24").contains("not YYYY-MM-DD"));
        assert!(refused("2026-11-24", "today").contains("not YYYY-MM-DD"));
        assert!(refused("https://api", "ftp://api").contains("not an https address"));
        assert!(refused("output = 64000", "output = 0").contains("limit of 0 tokens"));
        assert!(refused("large-2026-11-01", "large").contains("twice"));
        assert!(refused("as_of = \"2026-11-24\"", "").contains("as_of"));
        assert!(refused("context = 200000", "contexts = 1").contains("contexts"));
    }
}
