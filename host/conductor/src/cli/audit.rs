//! `conductor audit`: shows the audit log of the hosts of this home, and verifies its hash chain.
//!
//! The file is read as it is; no host has to run.

use std::time::Duration;

use chrono::{DateTime, NaiveDate, SecondsFormat, Utc};
use clap::Subcommand;
use serde_json::{Value, json};

use super::{CommandResult, Failure, Output, Paths, beside};
use conductor_audit::{Chain, Kind, Row};
use conductor_stdx::clock::unix_millis;
use conductor_stdx::plural::plural;
use conductor_terminal::{self as terminal, outln};

/// Rows that are read at once.
const PAGE_ROWS: u32 = 1000;
/// How often a tail looks for more.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Columns of a row's number, and a blank.
const NUMBER: usize = 7;

#[derive(Debug, Subcommand)]
pub(super) enum AuditCommand {
    /// List the last rows
    List {
        #[command(flatten)]
        which: Which,
        /// At most this many, the last ones
        #[arg(long, default_value_t = 50)]
        limit: u32,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show the last rows, and those that come, until Ctrl-C
    Tail {
        /// This many that are there already
        #[arg(long, default_value_t = 10)]
        lines: u32,
        /// Print JSON, a row a line
        #[arg(long)]
        json: bool,
    },
    /// Check every row: exit code 0 if the record is whole, 1 if it was altered, 3 if that is unknown
    Verify(Output),
    /// Print every row as it is, as JSON, a row a line
    Export,
}

/// Which rows.
#[derive(Debug, clap::Args)]
pub(super) struct Which {
    /// About this only
    #[arg(long, value_enum)]
    kind: Option<Kind>,
    /// Of callers that hold this: mcp-, tcp:control, conductor-cli
    #[arg(long, value_name = "TEXT")]
    client: Option<String>,
    /// Not before this: 90s, 10m, 2h, 3d, 2026-11-21, or 2026-11-21T20:00:00Z
    #[arg(long, value_name = "WHEN", value_parser = moment)]
    since: Option<i64>,
}

pub(super) fn run(places: &Paths, command: &AuditCommand) -> CommandResult {
    let chain = Chain::at(&places.home);
    match command {
        AuditCommand::List { which: Which { kind, client, since }, limit, json } => {
            let rows = chain.find(*kind, client.as_deref(), since.unwrap_or(0), *limit)?;
            if *json {
                let rows: Vec<Value> = rows.iter().map(object).collect();
                terminal::json(&rows)?;
            } else if rows.is_empty() {
                outln!("no entry of the audit log matches");
            } else {
                rows.iter().for_each(print);
            }
            Ok(())
        }
        AuditCommand::Tail { lines, json } => tail(&chain, *lines, *json),
        AuditCommand::Verify(output) => verify(&chain, output.json),
        AuditCommand::Export => {
            let mut last = 0;
            loop {
                let rows = chain.after(last, PAGE_ROWS)?;
                let Some(end) = rows.last() else { return Ok(()) };
                last = end.number;
                for row in &rows {
                    terminal::try_json_line(row)?;
                }
            }
        }
    }
}

fn tail(chain: &Chain, lines: u32, json: bool) -> CommandResult {
    let mut last = (chain.last()? - i64::from(lines)).max(0);
    loop {
        let rows = chain.after(last, PAGE_ROWS)?;
        for row in &rows {
            if json {
                terminal::json_line(&object(row));
            } else {
                print(row);
            }
            last = row.number;
        }
        if rows.is_empty() {
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}

fn verify(chain: &Chain, as_json: bool) -> CommandResult {
    // What can't be read may be whole or not.
    let verdict = chain.verify().map_err(|error| Failure::Unknown(error.to_string()))?;
    if as_json {
        terminal::json(&verdict)?;
    }
    if let Some(wrong) = &verdict.wrong {
        return Err(Failure::Failed(anyhow::anyhow!("the audit was altered: row {}: {}", wrong.number, wrong.why)));
    }
    if !as_json {
        match usize::try_from(verdict.rows).unwrap_or(usize::MAX) {
            0 => outln!("nothing is on record"),
            rows => outln!("{}, each as it was written", plural(rows, "row")),
        }
    }
    match &verdict.unknown[..] {
        [] => Ok(()),
        why => Err(Failure::Unknown(why.join("; "))),
    }
}

/// A row for programs.
fn object(row: &Row) -> Value {
    let detail: Value = serde_json::from_str(&row.detail).unwrap_or_default();
    json!({
        "number": row.number, "at": time(row.at), "kind": row.kind, "what": row.what, "who": row.who,
        "door": row.door, "scope": row.scope, "client": row.client, "elicited": row.elicited.map(|elicited| elicited != 0),
        "subject": row.subject, "outcome": row.outcome, "took_us": row.took, "detail": detail,
    })
}

/// Prints a row for people.
fn print(row: &Row) {
    let detail: Value = serde_json::from_str(&row.detail).unwrap_or_default();
    let details = detail.as_object().into_iter().flatten();
    let details = details.map(|(key, value)| match value.as_str() {
        Some(text) => format!("{key}={text}"),
        None => format!("{key}={value}"),
    });
    let took = row.took.map(|took| format!(" in {:.1} ms", took as f64 / 1000.0)).unwrap_or_default();
    let Row { number, kind, what, who, subject, outcome, .. } = row;
    let what = format!("{kind} {what}");
    let details = details.collect::<Vec<_>>().join(" ");
    let at = time(row.at);
    let text = format!("{at}  {what:<15} {outcome:<8} {who:<30} {subject}{took}  {details}");
    beside::print(NUMBER, &format!("{number:>6}"), text.trim_end());
}

pub(super) fn time(at: i64) -> String {
    let time = DateTime::<Utc>::from_timestamp_millis(at).unwrap_or_default();
    time.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// A time, as milliseconds since 1970.
fn moment(text: &str) -> Result<i64, String> {
    if let Ok(time) = DateTime::parse_from_rfc3339(text) {
        return Ok(time.timestamp_millis());
    }
    if let Ok(day) = text.parse::<NaiveDate>() {
        return Ok(day.and_time(chrono::NaiveTime::MIN).and_utc().timestamp_millis());
    }
    let wrong = || "write 90s, 10m, 2h or 3d for how long ago, or 2026-11-21, or 2026-11-21T20:00:00Z".to_owned();
    let (count, unit) = text.split_at(text.len() - text.chars().next_back().map_or(0, char::len_utf8));
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return Err(wrong()),
    };
    let ago = count.parse::<u32>().map_err(|_| wrong())?;
    let now = i64::try_from(unix_millis()).unwrap_or(i64::MAX);
    Ok(now - i64::from(ago) * seconds * 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_a_time_or_so_long_ago() {
        assert_eq!(moment("1970-01-02"), Ok(86_400_000));
        assert_eq!(moment("1970-01-01T00:00:01+00:00"), Ok(1000));
        let now = i64::try_from(unix_millis()).unwrap();
        let ago = now - moment("2h").unwrap();
        assert!((7_190_000..=7_200_000).contains(&ago), "{ago}");
        for wrong in ["", "h", "2y", "-1h", "yesterday", "2ö"] {
            assert!(moment(wrong).is_err(), "{wrong}");
        }
    }
}
