//! What exchanges took and cost: kept for each, added up by conversation, model, provider or day.
//!
//! Tokens are counted as the API counts them. A cost is what the API reports, or what the prices say that the provider's
//! feature declares as of a day; where neither is known, it is unknown, and stays so in every sum. What an API did not say,
//! since its answer broke off or it never does, is estimated, upward, and marked so.

use rusqlite::params;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ConversationStore, StoreError};
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
    /// By the number of the conversation.
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
    /// The day, the model, the provider or the conversation.
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
}

/// What one answer took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Used<'a> {
    /// The conversation.
    pub conversation: u64,
    /// The model's name under `[models]`.
    pub model: &'a str,
    /// The provider.
    pub provider: &'a str,
    /// Tokens.
    pub tokens: Tokens,
    /// In billionths of a US dollar. `None` if unknown.
    pub cost: Option<u64>,
    /// Whether the tokens are estimated.
    pub estimated: bool,
}

impl ConversationStore {
    /// Keeps what an answer took, together with the events that tell of it.
    ///
    /// # Errors
    /// See [`StoreError`]; then neither is kept.
    pub fn append_answer(
        &self,
        used: &Used<'_>,
        events: &[crate::record::ChatEvent],
    ) -> Result<Vec<crate::record::Recorded>, StoreError> {
        self.change(|change| {
            let Used { conversation, model, provider, tokens, cost, estimated } = *used;
            let at = unix_millis();
            change.execute(
                "INSERT INTO usage (conversation, at, day, model, provider, input, cached, output, cost, estimated)
                 VALUES (?1, ?2, strftime('%Y-%m-%d', ?2 / 1000, 'unixepoch'), ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
                params![conversation, at, model, provider, tokens.input, tokens.cached, tokens.output, cost, estimated],
            )?;
            super::append(change, conversation, events)
        })
    }

    /// What was used, the largest cost first; by day, the last one first.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn usage(&self, by: UsageBy) -> Result<Vec<UsageRow>, StoreError> {
        let order = if by == UsageBy::Day { "1 DESC" } else { "6 DESC, 2 DESC" };
        // The column is one of four words of this program.
        let query = format!(
            "SELECT CAST({} AS TEXT), count(*), sum(input), sum(cached), sum(output), coalesce(sum(cost), 0),
                    count(*) - count(cost), sum(estimated) FROM usage GROUP BY 1 ORDER BY {order} LIMIT {MAX_ROWS}",
            by.as_str()
        );
        let connection = self.0.lock();
        let mut rows = connection.prepare(&query)?;
        let rows = rows.query_map([], row)?.collect::<Result<_, _>>()?;
        Ok(rows)
    }

    /// What was used today, UTC, in all.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn used_today(&self) -> Result<UsageRow, StoreError> {
        let query = "SELECT '', count(*), coalesce(sum(input), 0), coalesce(sum(cached), 0), coalesce(sum(output), 0),
                coalesce(sum(cost), 0), count(*) - count(cost), coalesce(sum(estimated), 0)
             FROM usage WHERE day = strftime('%Y-%m-%d', ?1 / 1000, 'unixepoch')";
        Ok(self.0.lock().query_row(query, [unix_millis()], row)?)
    }
}

fn row(row: &rusqlite::Row<'_>) -> rusqlite::Result<UsageRow> {
    let tokens = Tokens { input: row.get(2)?, cached: row.get(3)?, output: row.get(4)? };
    let (cost, unknown, estimated) = (row.get(5)?, row.get(6)?, row.get(7)?);
    Ok(UsageRow { of: row.get(0)?, exchanges: row.get(1)?, tokens, cost, unknown, estimated })
}
