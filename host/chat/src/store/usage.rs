//! What exchanges of conversations and of features took and cost: kept for each, added up by conversation or feature, model,
//! provider or day.
//!
//! Tokens are counted as the API counts them. A cost is what the API reports, or what the prices say that the provider's
//! feature declares as of a day; where neither is known, it is unknown, and stays so in every sum. What an API did not say,
//! since its answer broke off or it never does, is estimated, upward, and marked so.

use rusqlite::{Transaction, params};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ConversationStore, StoreError};
use crate::charge::Charge;
use crate::record::Tokens;
use conductor_stdx::clock::unix_millis;

/// Rows that are returned at most.
const MAX_ROWS: usize = 1000;

/// By what usage is added up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UsageBy {
    /// By day, UTC: `2026-11-24`.
    #[default]
    Day,
    /// By the model's name under `[models]`.
    Model,
    /// By provider.
    Provider,
    /// By the number of the conversation; of features that ask models by their ids.
    Conversation,
}

impl UsageBy {
    /// The word that queries use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Model => "model",
            Self::Provider => "provider",
            Self::Conversation => "conversation",
        }
    }
}

/// What a day, a model, a provider or a conversation took.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UsageRow {
    /// The day, the model, the provider, the conversation or the feature.
    pub of: String,
    /// Answers.
    pub exchanges: u64,
    /// Tokens.
    pub tokens: Tokens,
    /// What those answers cost whose cost is known, in billionths of a US dollar.
    pub cost: u64,
    /// Answers whose cost is unknown.
    pub unknown: u64,
    /// Answers whose API did not say what they took, as those that broke off: their tokens, and their cost where prices
    /// are known, are estimated.
    #[serde(default)]
    pub estimated: u64,
    /// The day of the prices that costs were calculated by, the first of several: `2026-11-24`. `None` if none was, since the
    /// APIs said the costs, they are not known, or the configuration has the prices.
    #[serde(default)]
    pub prices_as_of: Option<String>,
}

/// Who asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsedBy<'a> {
    /// A conversation.
    Conversation(u64),
    /// A feature, by its id.
    Feature(&'a str),
}

/// What one answer took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Used<'a> {
    /// Who asked.
    pub by: UsedBy<'a>,
    /// The model's name under `[models]`.
    pub model: &'a str,
    /// The provider.
    pub provider: &'a str,
    /// What it took and cost.
    pub charge: &'a Charge,
}

impl ConversationStore {
    /// Keeps what an answer of a conversation took, together with the events that tell of it there.
    ///
    /// # Errors
    /// See [`StoreError`]; then neither is kept. If the conversation is full, what the answer took is.
    pub fn append_answer(
        &self,
        used: &Used<'_>,
        events: &[crate::record::ChatEvent],
    ) -> Result<Vec<crate::record::Recorded>, StoreError> {
        let kept = self.change(|change| {
            insert(change, used)?;
            match used.by {
                UsedBy::Conversation(conversation) => super::append(change, conversation, events),
                UsedBy::Feature(_) => Ok(Vec::new()),
            }
        });
        if let Err(StoreError::TooLong(_)) = kept {
            self.append_usage(used)?;
        }
        kept
    }

    /// Keeps what an answer took.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn append_usage(&self, used: &Used<'_>) -> Result<(), StoreError> {
        self.change(|change| insert(change, used))
    }

    /// What was used, the largest cost first; by day, the last one first.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn usage(&self, by: UsageBy) -> Result<Vec<UsageRow>, StoreError> {
        let order = if by == UsageBy::Day { "1 DESC" } else { "6 DESC, 2 DESC" };
        let of = match by {
            UsageBy::Conversation => "coalesce(feature, conversation)",
            UsageBy::Day | UsageBy::Model | UsageBy::Provider => by.as_str(),
        };
        // No word of it is from outside.
        let query =
            format!("SELECT CAST({of} AS TEXT), {SUMS} FROM usage GROUP BY 1 ORDER BY {order} LIMIT {MAX_ROWS}");
        let connection = self.0.lock();
        let mut rows = connection.prepare(&query)?;
        let rows = rows.query_map([], row)?.collect::<Result<_, _>>()?;
        Ok(rows)
    }

    /// What conversations used today, UTC, in all.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn used_today(&self) -> Result<UsageRow, StoreError> {
        let query = format!(
            "SELECT '', {SUMS} FROM usage WHERE feature IS NULL AND day = strftime('%Y-%m-%d', ?1 / 1000, 'unixepoch')"
        );
        Ok(self.0.lock().query_row(&query, [unix_millis()], row)?)
    }
}

/// What [`row`] reads after what it is of.
const SUMS: &str = "count(*), coalesce(sum(input), 0), coalesce(sum(cached), 0), coalesce(sum(output), 0),
    coalesce(sum(cost), 0), count(*) - count(cost), coalesce(sum(estimated), 0), min(prices_as_of)";

fn insert(change: &Transaction<'_>, used: &Used<'_>) -> Result<(), StoreError> {
    let Used { by, model, provider, charge } = *used;
    let Charge { tokens: Tokens { input, cached, output }, estimated, cost, prices_as_of } = charge;
    let (conversation, feature) = match by {
        UsedBy::Conversation(conversation) => (conversation, None),
        UsedBy::Feature(feature) => (0, Some(feature)),
    };
    change.execute(
        "INSERT INTO usage
             (conversation, feature, at, day, model, provider, input, cached, output, cost, estimated, prices_as_of)
         VALUES (?1, ?2, ?3, strftime('%Y-%m-%d', ?3 / 1000, 'unixepoch'), ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        params![
            conversation,
            feature,
            unix_millis(),
            model,
            provider,
            input,
            cached,
            output,
            cost,
            estimated,
            prices_as_of
        ],
    )?;
    Ok(())
}

fn row(row: &rusqlite::Row<'_>) -> rusqlite::Result<UsageRow> {
    let tokens = Tokens { input: row.get(2)?, cached: row.get(3)?, output: row.get(4)? };
    let (cost, unknown, estimated, prices_as_of) = (row.get(5)?, row.get(6)?, row.get(7)?, row.get(8)?);
    Ok(UsageRow { of: row.get(0)?, exchanges: row.get(1)?, tokens, cost, unknown, estimated, prices_as_of })
}
