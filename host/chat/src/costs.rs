//! What an exchange costs, and whether the next one stays within the limits of `[chat]`.
//!
//! A limit stops an exchange before it would be passed. What a question takes is estimated from its bytes, upward; the
//! answer's length is bounded by what is left. Where a limit of money is set, a model without known prices is not asked:
//! it is not known whether it stays within the limit. Another one may be asked then. What an exchange took whose API does not say is estimated, too.

use std::time::Duration;

use conductor_config::Chat;
use conductor_package::descriptor::{ModelDeclaration, Tokens as Counted};

use crate::record::Tokens;

/// Bytes of a question for one token at least: texts of all languages have more.
const BYTES_PER_TOKEN: u64 = 2;
/// Tokens of an answer where the model's limit is not known.
const ASSUMED_OUTPUT: u64 = 32_768;
/// Tokens that an answer must have room for at least; with less room the model is not asked.
const MIN_OUTPUT: u64 = 256;
/// Tokens a second that a model may think without a word of it being seen: more than those that hide their thoughts do.
const HIDDEN_TOKENS_PER_SECOND: u64 = 500;
/// Billionths of a dollar.
const NANOS: f64 = 1e9;

/// What was used so far, of a turn and of today.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spent {
    /// Tokens of the turn.
    pub turn_tokens: u64,
    /// Billionths of a dollar of the turn.
    pub turn_cost: u64,
    /// Tokens of the day, with those of the turn.
    pub day_tokens: u64,
    /// Billionths of a dollar of the day, with those of the turn.
    pub day_cost: u64,
}

impl Spent {
    /// Adds an exchange to those of the turn.
    pub fn add(&mut self, tokens: Tokens, cost: Option<u64>) {
        self.turn_tokens = self.turn_tokens.saturating_add(tokens.input).saturating_add(tokens.output);
        self.turn_cost = self.turn_cost.saturating_add(cost.unwrap_or(0));
    }
}

/// Why an exchange is not admitted, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BudgetError {
    /// It could pass a limit.
    #[error("{0}")]
    Limit(String),
    /// A limit of money is set, and the price of the model is unknown.
    #[error("{0}")]
    Price(String),
}

/// What an exchange may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowance {
    /// Tokens of the question, estimated upward.
    pub input: u64,
    /// The limit of the answer that the API gets. `None` if the model's own limit is within all others.
    pub max_tokens: Option<u32>,
    /// Tokens of the answer at most, as far as is known.
    pub most_output: u64,
    /// Billionths of a dollar of both at most. `None` if the price is unknown.
    pub most_cost: Option<u64>,
}

impl Allowance {
    /// What an exchange took that was sent, and whose API did not say it: `came` bytes of an answer within this time. What
    /// the API has said so far, if anything, is less than the whole. A model that may think does so unseen.
    pub fn estimated(&self, came: usize, took: Duration, may_think: bool, so_far: Tokens) -> Tokens {
        let hidden =
            if may_think { took.as_secs().saturating_add(1).saturating_mul(HIDDEN_TOKENS_PER_SECOND) } else { 0 };
        let output = estimate(came).saturating_add(hidden).min(self.most_output).max(so_far.output);
        let input = if so_far.input > 0 { so_far.input } else { self.input };
        Tokens { input, cached: so_far.cached, output }
    }
}

/// The tokens that a request with this many bytes takes, rounded up.
pub fn estimate(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(BYTES_PER_TOKEN)
}

/// What an exchange cost by the prices that are declared. `None` if they are unknown.
pub fn cost(declared: Option<&ModelDeclaration>, tokens: Tokens, cache_written: u64) -> Option<u64> {
    let number = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
    let Tokens { input, cached, output } = tokens;
    declared?.cost(Counted {
        input: number(input),
        cached: number(cached),
        cache_written: number(cache_written),
        output: number(output),
    })
}

/// What an exchange may take where no limit is set. `max_tokens` are those that the question allows an answer.
pub fn unlimited(declared: Option<&ModelDeclaration>, question: usize, max_tokens: Option<u32>) -> Allowance {
    let (input, most_output) = (estimate(question), longest(declared, max_tokens));
    Allowance { input, max_tokens, most_output, most_cost: None }
}

/// Tokens of an answer at most, as far as is known.
fn longest(declared: Option<&ModelDeclaration>, max_tokens: Option<u32>) -> u64 {
    max_tokens.or(declared.and_then(|model| model.output)).map_or(ASSUMED_OUTPUT, u64::from)
}

/// What the next exchange may take. `max_tokens` are those that the configuration allows an answer.
///
/// # Errors
/// See [`BudgetError`].
pub fn admit(
    limits: &Chat,
    declared: Option<&ModelDeclaration>,
    model: &str,
    question: usize,
    max_tokens: Option<u32>,
    spent: &Spent,
) -> Result<Allowance, BudgetError> {
    let input = estimate(question);
    let most = longest(declared, max_tokens);
    let least_output = most.min(MIN_OUTPUT);
    let mut output = most;
    for (limit, used, name) in [
        (Some(limits.tokens_per_turn), spent.turn_tokens, "tokens_per_turn"),
        (limits.tokens_per_day, spent.day_tokens, "tokens_per_day"),
    ] {
        let Some(limit) = limit else { continue };
        let left = limit.saturating_sub(used).saturating_sub(input);
        if left < least_output {
            return Err(BudgetError::Limit(format!(
                "the next question may take {input} tokens, and {used} of `{name} = {limit}` under [chat] are used"
            )));
        }
        output = output.min(left);
    }
    // What is written to a cache may cost more than what is only read.
    let price = |output| {
        let tokens = Tokens { input, cached: 0, output };
        cost(declared, tokens, input).max(cost(declared, tokens, 0))
    };
    for (limit, used, name) in [
        (limits.dollars_per_turn, spent.turn_cost, "dollars_per_turn"),
        (limits.dollars_per_day, spent.day_cost, "dollars_per_day"),
    ] {
        let Some(limit) = limit else { continue };
        let (Some(least), Some(whole)) = (price(least_output), price(output)) else {
            return Err(BudgetError::Price(format!(
                "the price of {model} is unknown, so that `{name}` under [chat] could be passed; remove the limit, set one \
                 of tokens, or ask a model whose price is known"
            )));
        };
        let left = nanos(limit).saturating_sub(used);
        if least > left {
            return Err(BudgetError::Limit(format!(
                "the next question may cost {}, and {} of `{name} = {limit}` under [chat] are used",
                dollars(least),
                dollars(used)
            )));
        }
        if whole > left {
            output = affordable(least_output, output, left, price);
        }
    }
    let bounded = max_tokens.is_some() || output < most;
    let max_tokens = bounded.then(|| u32::try_from(output).unwrap_or(u32::MAX));
    Ok(Allowance { input, max_tokens, most_output: output, most_cost: price(output) })
}

/// The longest answer, in tokens, that costs no more than what is left. The shortest one does not.
fn affordable(least: u64, most: u64, left: u64, price: impl Fn(u64) -> Option<u64>) -> u64 {
    let (mut low, mut high) = (least, most);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if price(middle).is_some_and(|cost| cost <= left) { low = middle } else { high = middle - 1 }
    }
    low
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "limits are checked to be 0 to 100000")]
fn nanos(dollars: f64) -> u64 {
    (dollars * NANOS) as u64
}

/// A cost for people: `$0.0123`.
#[expect(clippy::cast_precision_loss, reason = "costs are far below 2^53 billionths of a dollar")]
pub fn dollars(cost: u64) -> String {
    format!("${:.4}", cost as f64 / NANOS)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn declared(input: f64, output: f64) -> ModelDeclaration {
        serde_json::from_value(serde_json::json!({
            "name": "m", "output": 8000, "prices": [{ "input": input, "output": output, "cache_written": 1.25 * input }],
            "source": "https://example.com", "as_of": "2026-11-24",
        }))
        .unwrap()
    }

    fn limits(per_turn: Option<f64>, per_day: Option<f64>) -> Chat {
        Chat { dollars_per_turn: per_turn, dollars_per_day: per_day, ..Chat::default() }
    }

    // LLM-5
    #[test]
    fn a_limit_of_money_needs_a_price() {
        let set = limits(Some(1.0), None);
        let priced = declared(3.0, 15.0);
        let admitted = |limits: &Chat, declared, model, configured| {
            admit(limits, declared, model, 100, configured, &Spent::default()).map(|allowed| allowed.max_tokens)
        };
        let refused = admitted(&set, None, "local", None).unwrap_err();
        assert!(
            matches!(&refused, BudgetError::Price(why) if why.contains("the price of local is unknown")),
            "{refused:?}"
        );
        assert_eq!(admitted(&limits(None, None), None, "local", None), Ok(None));
        assert_eq!(admitted(&set, Some(&priced), "m", None), Ok(None));
        assert_eq!(admitted(&set, Some(&priced), "m", Some(100)), Ok(Some(100)), "as the person said");
    }

    #[test]
    fn a_limit_of_tokens_stops_what_would_pass_it() {
        let set = Chat { tokens_per_turn: 2000, ..Chat::default() };
        let used = |turn_tokens| Spent { turn_tokens, ..Spent::default() };
        assert_eq!(admit(&set, None, "m", 2000, None, &used(0)).unwrap().max_tokens, Some(1000));
        let refused = admit(&set, None, "m", 2000, None, &used(900)).unwrap_err();
        assert!(matches!(&refused, BudgetError::Limit(why) if why.contains("tokens_per_turn = 2000")), "{refused:?}");
    }

    // LLM-5
    #[test]
    fn an_exchange_without_a_report_is_estimated_upward_and_within_what_it_was_allowed() {
        let allowed = Allowance { input: 50, max_tokens: None, most_output: 2000, most_cost: None };
        let (nothing, second) = (Tokens::default(), Duration::from_secs(1));
        let estimated = |came, may_think, so_far| allowed.estimated(came, second, may_think, so_far);
        assert_eq!(estimated(40, false, nothing), Tokens { input: 50, cached: 0, output: 20 });
        assert_eq!(estimated(40, true, nothing).output, 1020, "thoughts that are not shown count, too");
        assert_eq!(estimated(1_000_000, true, nothing).output, 2000);
        let so_far = Tokens { input: 31, cached: 7, output: 600 };
        assert_eq!(estimated(40, false, so_far), so_far, "what the API has said is more exact");
    }

    proptest! {
        // Whatever is asked, an exchange as long as it was admitted stays within the limit.
        #[test]
        fn no_admitted_exchange_passes_a_limit(
            limit in 0.0001_f64..10.0, used in 0_u64..10_000_000_000, bytes in 0_usize..1_000_000,
            input in 0.01_f64..20.0, output in 0.01_f64..100.0,
        ) {
            let model = declared(input, output);
            let spent = Spent { day_cost: used, ..Spent::default() };
            if let Ok(allowed) = admit(&limits(None, Some(limit)), Some(&model), "m", bytes, None, &spent) {
                prop_assert!(used + allowed.most_cost.unwrap() <= nanos(limit));
                prop_assert_eq!(allowed.most_output, allowed.max_tokens.map_or(8000, u64::from));
                let tokens = Tokens { input: estimate(bytes), cached: 0, output: allowed.most_output };
                for written in [0, tokens.input] {
                    let cost = cost(Some(&model), tokens, written).unwrap();
                    prop_assert!(used + cost <= nanos(limit));
                }
            }
        }
    }
}
