//! What was measured: figures with their peers, and targets.

use std::fmt;

use serde::Serialize;

use crate::rows::Row;

/// What a number counts.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    Nanoseconds,
    Microseconds,
    Milliseconds,
    Seconds,
    Kilobytes,
    Megabytes,
    Percent,
    Times,
    Count,
}

/// Something measured.
#[derive(Debug, Serialize)]
struct Figure {
    row: Row,
    what: String,
    value: f64,
    unit: Unit,
    #[serde(skip_serializing_if = "Option::is_none")]
    beside: Option<Beside>,
}

/// The same, measured of a peer in the same run.
#[derive(Debug, Serialize)]
struct Beside {
    peer: String,
    value: f64,
    /// How many times the peer's the figure is.
    ratio: f64,
}

/// On which side of a number a target lies.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    AtMost(f64),
    AtLeast(f64),
}

/// What must be reached.
#[derive(Debug, Serialize)]
struct Target {
    row: Row,
    what: String,
    value: f64,
    unit: Unit,
    limit: Limit,
    met: bool,
}

/// Everything that was measured.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    figures: Vec<Figure>,
    targets: Vec<Target>,
    /// What could not be measured, and why.
    failures: Vec<String>,
    /// Peers that are not there, and how to get them.
    missing: Vec<String>,
}

/// The part of the report that one row writes.
pub struct Section<'a> {
    report: &'a mut Report,
    row: Row,
}

impl Report {
    /// Where this row writes.
    pub fn section(&mut self, row: Row) -> Section<'_> {
        Section { report: self, row }
    }

    /// Notes that a row could not be measured.
    pub fn failed(&mut self, row: Row, error: &anyhow::Error) {
        self.failures.push(format!("{row}: {error:#}"));
    }

    /// Whether everything could be measured.
    pub fn is_complete(&self) -> bool {
        self.failures.is_empty()
    }
}

impl Section<'_> {
    /// Adds a figure.
    pub fn figure(&mut self, what: impl Into<String>, value: f64, unit: Unit) {
        self.add(what.into(), value, unit, None);
    }

    /// Adds a figure and a peer's.
    pub fn beside(&mut self, what: impl Into<String>, value: f64, unit: Unit, peer: impl Into<String>, peers: f64) {
        self.add(what.into(), value, unit, Some(Beside { peer: peer.into(), value: peers, ratio: value / peers }));
    }

    /// Adds a target and what was reached.
    pub fn target(&mut self, what: impl Into<String>, value: f64, unit: Unit, limit: Limit) {
        let met = match limit {
            Limit::AtMost(most) => value <= most,
            Limit::AtLeast(least) => value >= least,
        };
        self.report.targets.push(Target { row: self.row, what: what.into(), value, unit, limit, met });
    }

    /// Notes that a peer is not measured since it is not there.
    pub fn missing(&mut self, peer: &str, how: &str) {
        self.report.missing.push(format!("{}: {peer} is not there; {how}", self.row));
    }

    fn add(&mut self, what: String, value: f64, unit: Unit, beside: Option<Beside>) {
        self.report.figures.push(Figure { row: self.row, what, value, unit, beside });
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nanoseconds => "ns",
            Self::Microseconds => "µs",
            Self::Milliseconds => "ms",
            Self::Seconds => "s",
            Self::Kilobytes => "kB",
            Self::Megabytes => "MB",
            Self::Percent => "%",
            Self::Times => "×",
            Self::Count => "",
        })
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtMost(most) => write!(f, "≤ {}", Number(*most)),
            Self::AtLeast(least) => write!(f, "≥ {}", Number(*least)),
        }
    }
}

/// A number with about three digits.
struct Number(f64);

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decimals = match self.0.abs() {
            whole if whole == self.0.abs().trunc() => 0,
            large if large >= 100.0 => 0,
            medium if medium >= 10.0 => 1,
            small if small >= 0.1 => 2,
            _ => 4,
        };
        f.pad(&format!("{:.decimals$}", self.0))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut row = None;
        for figure in &self.figures {
            if row.replace(figure.row) != Some(figure.row) {
                writeln!(f, "\n{}  {}", figure.row, figure.row.subject())?;
            }
            let Figure { what, value, unit, beside, .. } = figure;
            write!(f, "  {what:<58} {:>8} {unit:<2}", Number(*value))?;
            match beside {
                Some(Beside { peer, value, ratio }) => {
                    writeln!(f, "  {peer} {} {unit}, {} ×", Number(*value), Number(*ratio))?;
                }
                None => writeln!(f)?,
            }
        }
        if !self.targets.is_empty() {
            writeln!(f, "\nTargets")?;
        }
        for Target { row, what, value, unit, limit, met } in &self.targets {
            let met = if *met { "met" } else { "NOT MET" };
            writeln!(f, "  {row}  {what:<50} {:>8} {unit:<2} {:<10} {met}", Number(*value), limit.to_string())?;
        }
        self.missing.iter().try_for_each(|peer| writeln!(f, "\nwithout a peer: {peer}"))?;
        self.failures.iter().try_for_each(|failure| writeln!(f, "\nnot measured: {failure}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_about_three_digits() {
        let shown = [1234.5, 12.34, 1.234, 0.0123, 600.0, 0.0].map(|number| Number(number).to_string());
        assert_eq!(shown, ["1234", "12.3", "1.23", "0.0123", "600", "0"]);
    }

    #[test]
    fn a_target_that_is_no_number_is_not_met() {
        let mut report = Report::default();
        report.section(Row::Match).target("x", f64::NAN, Unit::Count, Limit::AtMost(1.0));
        assert!(report.to_string().contains("NOT MET"));
    }
}
