//! The benchmark: small changes of which one half is right and the other has one seeded fault each, and what a panel makes
//! of them.
//!
//! The changes are in `benchmark/`. A panel is asked by anything that turns a [`Work`] into the JSON of a result: a scripted
//! one by [`rated`](crate::rated), real models by the program `council-benchmark`.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use similar::TextDiff;

/// The files with the changes.
const FILES: [&str; 5] = [
    include_str!("../benchmark/operations.toml"),
    include_str!("../benchmark/python.toml"),
    include_str!("../benchmark/rust.toml"),
    include_str!("../benchmark/systems.toml"),
    include_str!("../benchmark/web.toml"),
];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Changes {
    change: Vec<Change>,
}

/// A change, from which a right and a wrong one are made.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// What it is called.
    pub name: String,
    /// The kind of the fault.
    pub kind: String,
    /// The file that is changed.
    pub file: String,
    /// What the change is to do.
    pub requirements: String,
    /// The file before.
    pub before: String,
    /// The file after the change that is right.
    pub after: String,
    /// What is replaced in it by what, for the one that is wrong.
    pub fault: [String; 2],
}

impl Change {
    /// The file after the change that is wrong.
    pub fn faulty(&self) -> String {
        self.after.replacen(&self.fault[0], &self.fault[1], 1)
    }
}

/// All changes.
///
/// # Panics
/// When a file can't be read, which a test would show.
pub fn changes() -> Vec<Change> {
    let read = |text: &&str| toml::from_str::<Changes>(text).unwrap_or_else(|error| panic!("{error}")).change;
    FILES.iter().flat_map(read).collect()
}

/// Work for a panel: a change that is right or wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Work {
    /// The change.
    pub name: String,
    /// The file.
    pub file: String,
    /// What the change is to do.
    pub requirements: String,
    /// The change as a unified diff of the whole file.
    pub diff: String,
    /// The kind of the fault; `None` if it has none.
    pub fault: Option<String>,
}

/// The right and the wrong half.
pub fn works() -> Vec<Work> {
    let work = |change: &Change, after: &str, fault: Option<&String>| {
        let (from, to) = (format!("a/{}", change.file), format!("b/{}", change.file));
        let diff = TextDiff::from_lines(change.before.as_str(), after);
        Work {
            name: change.name.clone(),
            file: change.file.clone(),
            requirements: change.requirements.clone(),
            diff: diff.unified_diff().context_radius(1000).header(&from, &to).to_string(),
            fault: fault.cloned(),
        }
    };
    let both =
        |change: &Change| [work(change, &change.after, None), work(change, &change.faulty(), Some(&change.kind))];
    changes().iter().flat_map(both).collect()
}

/// How often each verdict came.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Verdicts {
    /// So many passed.
    pub pass: usize,
    /// So many failed.
    pub fail: usize,
    /// Of so many it could not be said, or there was no result.
    pub unclear: usize,
}

impl Verdicts {
    fn add(&mut self, verdict: &str) {
        match verdict {
            "pass" => self.pass += 1,
            "fail" => self.fail += 1,
            _ => self.unclear += 1,
        }
    }

    const fn all(&self) -> usize {
        self.pass + self.fail + self.unclear
    }
}

/// Verdicts of about one confidence.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Bin {
    /// So many.
    pub count: usize,
    /// The mean of the confidences.
    pub confidence: f64,
    /// The share of them that is true.
    pub accuracy: f64,
}

/// What a panel makes of the changes.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Report {
    /// What became of the changes that are right.
    pub right: Verdicts,
    /// What became of those that are wrong.
    pub wrong: Verdicts,
    /// Share of the right ones that failed, 0.0-1.0.
    pub false_positives: f64,
    /// Share of the wrong ones that passed, 0.0-1.0.
    pub false_negatives: f64,
    /// Of each kind of fault: how many failed, and of how many.
    pub found: BTreeMap<String, (usize, usize)>,
    /// Share of each model's reviews that are wrong: pass for a fault, or fail for a right one.
    pub errors: BTreeMap<String, f64>,
    /// Votes that the panel is worth by its families.
    pub votes_by_family: f64,
    /// Votes that it is worth by how much its members erred together: n / (1 + (n - 1) * the mean correlation of errors).
    pub votes_measured: f64,
    /// Passes and fails by confidence, in tenths.
    pub calibration: Vec<Bin>,
    /// The mean difference of confidence and accuracy, by how many there are (expected calibration error), 0.0-1.0.
    pub calibration_error: f64,
    /// How much being shown early helps: correlation of the place in which a review is shown and that in which it is ranked,
    /// -1.0 to 1.0; 0 is none.
    pub position_bias: f64,
    /// How much length helps: correlation of the length of a review and the place from the end in which it is ranked.
    pub length_bias: f64,
    /// How much better members rank their own review than others do: the mean difference of places, from 0.0 to 1.0.
    pub own_bias: f64,
    /// Tokens of a change: mean and most.
    pub tokens: (f64, u64),
    /// Milliseconds of a change: mean and most.
    pub time_ms: (f64, u64),
    /// Results that took more time or tokens than their operation may.
    pub over_budget: usize,
}

fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

/// Pearson's correlation; 0 where one of them does not vary.
fn correlation(pairs: &[(f64, f64)]) -> f64 {
    let (one, other): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    let (middle, other_middle) = (mean(&one), mean(&other));
    let product: f64 = pairs.iter().map(|(one, other)| (one - middle) * (other - other_middle)).sum();
    let spread = |values: &[f64], middle: f64| values.iter().map(|value| (value - middle).powi(2)).sum::<f64>();
    let spreads = (spread(&one, middle) * spread(&other, other_middle)).sqrt();
    if spreads > 0.0 { product / spreads } else { 0.0 }
}

fn texts(value: &Value) -> Vec<&str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// A place from 0 (the first) to 1 (the last).
fn share(names: &[&str], name: &str) -> Option<f64> {
    let place = names.iter().position(|one| *one == name)?;
    (names.len() > 1).then(|| place as f64 / (names.len() - 1) as f64)
}

impl Report {
    /// Of works, each with the JSON of its result; `None` if there is none.
    pub fn of(all: &[(Work, Option<Value>)]) -> Self {
        let mut report = Self::default();
        let (mut tokens, mut times) = (Vec::new(), Vec::new());
        let mut bins: BTreeMap<usize, Vec<(f64, bool)>> = BTreeMap::new();
        let mut errors: BTreeMap<String, BTreeMap<usize, f64>> = BTreeMap::new();
        let (mut by_place, mut by_length, mut own) = (Vec::new(), Vec::new(), Vec::new());
        let mut votes = Vec::new();
        for (number, (work, result)) in all.iter().enumerate() {
            let (nothing, is_wrong) = (Value::Null, work.fault.is_some());
            let result = result.as_ref().unwrap_or(&nothing);
            let verdict = result["verdict"].as_str().unwrap_or_default();
            if is_wrong { &mut report.wrong } else { &mut report.right }.add(verdict);
            if let Some(kind) = &work.fault {
                let (found, of) = report.found.entry(kind.clone()).or_default();
                *found += usize::from(verdict == "fail");
                *of += 1;
            }
            let is_true = |verdict: &str| (verdict == "fail") == is_wrong;
            if let (Some(confidence), "pass" | "fail") = (result["confidence"].as_f64(), verdict) {
                let tenth = ((confidence * 10.0) as usize).min(9);
                bins.entry(tenth).or_default().push((confidence, is_true(verdict)));
            }
            votes.extend(result["independent_votes"].as_f64());
            let cost = |key: &str| result["cost"][key].as_u64();
            tokens.extend(cost("tokens"));
            times.extend(cost("time_ms"));
            let over = |used: &str, limit: &str| cost(used) > cost(limit);
            report.over_budget += usize::from(over("tokens", "token_limit") || over("time_ms", "time_limit_ms"));
            let mut lengths = BTreeMap::new();
            for vote in result["votes"].as_array().into_iter().flatten() {
                let (Some(model), Some(verdict)) = (vote["model"].as_str(), vote["verdict"].as_str()) else { continue };
                let erred = verdict != "unclear" && !is_true(verdict);
                errors.entry(model.to_owned()).or_default().insert(number, f64::from(u8::from(erred)));
                lengths.insert(model, vote["length"].as_f64().unwrap_or_default());
            }
            for ranking in result["rankings"].as_array().into_iter().flatten() {
                let (shown, ranked) = (texts(&ranking["shown"]), texts(&ranking["ranked"]));
                let by = ranking["model"].as_str().unwrap_or_default();
                for name in &ranked {
                    let (Some(place), Some(at)) = (share(&ranked, name), share(&shown, name)) else { continue };
                    if *name == by {
                        own.push((number, by.to_owned(), place));
                    } else {
                        by_place.push((number, (*name).to_owned(), at, place));
                        by_length.push((lengths.get(name).copied().unwrap_or_default(), 1.0 - place));
                    }
                }
            }
        }
        let of_all = |count: usize, of: Verdicts| if of.all() == 0 { 0.0 } else { count as f64 / of.all() as f64 };
        report.false_positives = of_all(report.right.fail, report.right);
        report.false_negatives = of_all(report.wrong.pass, report.wrong);
        report.errors =
            errors.iter().map(|(model, of)| (model.clone(), mean(&of.values().copied().collect::<Vec<_>>()))).collect();
        report.votes_by_family = mean(&votes);
        report.votes_measured = votes_measured(&errors);
        for tenth in 0..10 {
            let of_it = bins.remove(&tenth).unwrap_or_default();
            let confidence = mean(&of_it.iter().map(|(confidence, _)| *confidence).collect::<Vec<_>>());
            let accuracy = mean(&of_it.iter().map(|(_, is_true)| f64::from(u8::from(*is_true))).collect::<Vec<_>>());
            report.calibration.push(Bin { count: of_it.len(), confidence, accuracy });
        }
        let decided: usize = report.calibration.iter().map(|bin| bin.count).sum();
        let apart = |bin: &Bin| (bin.confidence - bin.accuracy).abs() * bin.count as f64;
        report.calibration_error = report.calibration.iter().map(apart).sum::<f64>() / (decided.max(1) as f64);
        report.position_bias = correlation(&by_place.iter().map(|(.., at, place)| (*at, *place)).collect::<Vec<_>>());
        report.length_bias = correlation(&by_length);
        let others = |number: usize, model: &str| {
            let places = by_place.iter().filter(|(of, name, ..)| *of == number && name == model);
            mean(&places.map(|(.., place)| *place).collect::<Vec<_>>())
        };
        let better: Vec<f64> = own.iter().map(|(number, model, place)| others(*number, model) - place).collect();
        report.own_bias = mean(&better);
        let both = |values: &[u64]| {
            let all: Vec<f64> = values.iter().map(|value| *value as f64).collect();
            (mean(&all), values.iter().copied().max().unwrap_or_default())
        };
        (report.tokens, report.time_ms) = (both(&tokens), both(&times));
        report
    }
}

/// Votes that models are worth by their errors, each by the number of the work.
fn votes_measured(errors: &BTreeMap<String, BTreeMap<usize, f64>>) -> f64 {
    let models: Vec<&BTreeMap<usize, f64>> = errors.values().collect();
    let mut correlations = Vec::new();
    for (at, one) in models.iter().enumerate() {
        for other in &models[at + 1..] {
            let pairs: Vec<(f64, f64)> =
                one.iter().filter_map(|(number, error)| Some((*error, *other.get(number)?))).collect();
            correlations.push(correlation(&pairs).max(0.0));
        }
    }
    let count = models.len() as f64;
    if models.is_empty() { 0.0 } else { count / (1.0 + (count - 1.0) * mean(&correlations)) }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let row = |f: &mut fmt::Formatter<'_>, what: &str, of: &Verdicts| {
            writeln!(f, "{what:<22} {:>5} {:>5} {:>7}", of.pass, of.fail, of.unclear)
        };
        writeln!(f, "{:<22} {:>5} {:>5} {:>7}", "", "pass", "fail", "unclear")?;
        row(f, "right changes", &self.right)?;
        row(f, "seeded faults", &self.wrong)?;
        writeln!(f, "false positives        {:.1} %", self.false_positives * 100.0)?;
        writeln!(f, "false negatives        {:.1} %", self.false_negatives * 100.0)?;
        let families = self.votes_by_family;
        writeln!(f, "independent votes      {families:.2} by families, {:.2} by errors", self.votes_measured)?;
        for (model, errors) in &self.errors {
            writeln!(f, "  {model:<20} {:.1} % of its reviews are wrong", errors * 100.0)?;
        }
        writeln!(f, "calibration error      {:.3}", self.calibration_error)?;
        for (tenth, bin) in self.calibration.iter().enumerate().filter(|(_, bin)| bin.count > 0) {
            let (from, to) = (tenth as f64 / 10.0, (tenth + 1) as f64 / 10.0);
            writeln!(f, "  {from:.1}-{to:.1} {:>4} verdicts, {:.1} % true", bin.count, bin.accuracy * 100.0)?;
        }
        writeln!(f, "position bias          {:+.2}", self.position_bias)?;
        writeln!(f, "length bias            {:+.2}", self.length_bias)?;
        writeln!(f, "own answer bias        {:+.2}", self.own_bias)?;
        writeln!(f, "tokens                 {:.0} a change, {} at most", self.tokens.0, self.tokens.1)?;
        writeln!(f, "time                   {:.0} ms a change, {} ms at most", self.time_ms.0, self.time_ms.1)?;
        writeln!(f, "over their budget      {}", self.over_budget)?;
        let missed: Vec<String> = self
            .found
            .iter()
            .filter(|(_, (found, of))| found < of)
            .map(|(kind, (found, of))| format!("{kind} {found}/{of}"))
            .collect();
        if !missed.is_empty() {
            writeln!(f, "kinds not all found    {}", missed.join(", "))?;
        }
        Ok(())
    }
}
