//! The decision: calculated from the reviews, the rankings and the chairman's answer, by rules that no model can talk its
//! way around.
//!
//! - **Quorum.** Two thirds of the panel must have reviewed, and with high assurance all. Without it nothing is said: unclear.
//! - **Fail** if more than half of the reviews say so, or if one does, with a critical or major issue, and the chairman agrees.
//! - **Pass** if two thirds of the reviews say so, the chairman does, no review has a critical issue, no major issue has two
//!   reviewers, everything that was to be reviewed was, and the confidence is the threshold or more.
//! - **Unclear** in every other case.
//!
//! So the chairman can hold back a pass and can confirm a fail, and turns no fail into a pass; and neither does any one
//! reviewer of three or more.

use crate::review::{Chairman, Issue, Review, Severity, Verdict};

/// How much the most and the least praised review count.
const WEIGHTS: (f64, f64) = (0.5, 1.5);

/// A member with its review.
#[derive(Debug, Clone, PartialEq)]
pub struct Reviewed {
    /// The model.
    pub model: String,
    /// What it says.
    pub review: Review,
}

/// What a decision is made from.
#[derive(Debug)]
pub struct Evidence<'e> {
    /// Members of the panel, those included that did not review.
    pub panel: usize,
    /// Reviews that there have to be, as [`quorum`] says.
    pub needed: usize,
    /// The reviews.
    pub reviews: &'e [Reviewed],
    /// How much each review counts, as [`weights`] says.
    pub weights: &'e [f64],
    /// The chairman's answer; `None` if there is none.
    pub chairman: Option<&'e Chairman>,
    /// Confidence below which nothing passes.
    pub threshold: f64,
    /// Why there can be no verdict in any case: something was left out, or the budget is used up.
    pub incomplete: Vec<String>,
}

/// The decision.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// The outcome.
    pub verdict: Verdict,
    /// 0.0 to 1.0: how much of the panel's weight agrees, times how sure those are.
    pub confidence: f64,
    /// Why it is no pass; empty for a pass.
    pub reasons: Vec<String>,
}

/// Reviews that a panel of this many needs.
pub const fn quorum(panel: usize) -> usize {
    let thirds = (panel * 2).div_ceil(3);
    if thirds < 2 { 2 } else { thirds }
}

/// How much each of `count` reviews counts, by rankings of all of them, the best first: 1 without a ranking. A member's
/// own place for its own review counts for nothing. Each entry of `rankings` is the number of the review whose author
/// ranked, and its ranking.
pub fn weights(count: usize, rankings: &[(usize, Vec<usize>)]) -> Vec<f64> {
    let weight = |review: usize| {
        let of_others = rankings.iter().filter(|(author, _)| *author != review);
        let places: Vec<f64> = of_others
            .filter_map(|(author, ranking)| {
                let rest: Vec<usize> = ranking.iter().copied().filter(|number| number != author).collect();
                let place = rest.iter().position(|number| *number == review)?;
                Some(if rest.len() < 2 { 0.5 } else { 1.0 - place as f64 / (rest.len() - 1) as f64 })
            })
            .collect();
        let mean = if places.is_empty() { 0.5 } else { places.iter().sum::<f64>() / places.len() as f64 };
        WEIGHTS.0 + (WEIGHTS.1 - WEIGHTS.0) * mean
    };
    (0..count).map(weight).collect()
}

/// What a review comes to: one that passes and names a critical issue contradicts itself.
fn vote(review: &Review) -> Verdict {
    let is_critical = review.issues.iter().any(|issue| issue.severity == Severity::Critical);
    if review.verdict == Verdict::Pass && is_critical { Verdict::Unclear } else { review.verdict }
}

/// Whether two issues are about the same place; those without a place are not.
fn same_place(one: &Issue, other: &Issue) -> bool {
    one.file.is_some() && one.file == other.file && one.line.is_some() && one.line == other.line
}

/// To six decimals: the mean of models that are all sure by 0.9 is 0.9, and so at a threshold of 0.9.
fn rounded(confidence: f64) -> f64 {
    (confidence * 1e6).round() / 1e6
}

/// Decides.
pub fn decide(evidence: &Evidence<'_>) -> Decision {
    let Evidence { panel, needed, reviews, weights, chairman, threshold, incomplete } = evidence;
    let count = |verdict: Verdict| reviews.iter().filter(|one| vote(&one.review) == verdict).count();
    let (passes, fails) = (count(Verdict::Pass), count(Verdict::Fail));
    let confidence = |verdict: Verdict| {
        let all: f64 = weights.iter().sum();
        let agree = reviews.iter().zip(*weights).filter(|(one, _)| vote(&one.review) == verdict);
        let sure: f64 = agree.map(|(one, weight)| weight * one.review.confidence).sum();
        if all > 0.0 { rounded((sure / all).clamp(0.0, 1.0)) } else { 0.0 }
    };
    let unclear = |reasons: Vec<String>| {
        let larger = confidence(Verdict::Pass).max(confidence(Verdict::Fail));
        Decision { verdict: Verdict::Unclear, confidence: larger, reasons }
    };
    if reviews.len() < *needed {
        let text = format!("no quorum: {} of {panel} models reviewed, and {needed} have to", reviews.len());
        let mut reasons = vec![text];
        reasons.extend(incomplete.iter().cloned());
        return unclear(reasons);
    }
    let chairs = chairman.map(|chairman| chairman.verdict);
    let blocked = |one: &Reviewed| {
        let blocking = one.review.issues.iter().any(|issue| issue.severity != Severity::Minor);
        vote(&one.review) == Verdict::Fail && blocking
    };
    if fails * 2 > reviews.len() {
        let reasons = vec![format!("{fails} of {} reviews say that it fails", reviews.len())];
        return Decision { verdict: Verdict::Fail, confidence: confidence(Verdict::Fail), reasons };
    }
    if chairs == Some(Verdict::Fail) && reviews.iter().any(blocked) {
        let reasons = vec![format!("{fails} of {} reviews say that it fails, and the chairman agrees", reviews.len())];
        return Decision { verdict: Verdict::Fail, confidence: confidence(Verdict::Fail), reasons };
    }
    let mut against = incomplete.clone();
    if passes * 3 < reviews.len() * 2 {
        against.push(format!("{passes} of {} reviews say that it passes; two thirds have to", reviews.len()));
    }
    let issues = || {
        let of = |(index, one): (usize, &'_ Reviewed)| {
            one.review.issues.clone().into_iter().map(move |issue| (index, issue))
        };
        reviews.iter().enumerate().flat_map(of)
    };
    if let Some((index, _)) = issues().find(|(_, issue)| issue.severity == Severity::Critical) {
        against.push(format!("{} has a critical issue", reviews[index].model));
    }
    let majors: Vec<(usize, Issue)> = issues().filter(|(_, issue)| issue.severity == Severity::Major).collect();
    let twice =
        majors.iter().find(|(by, issue)| majors.iter().any(|(other, same)| other != by && same_place(issue, same)));
    if let Some((_, issue)) = twice {
        let (file, line) = (issue.file.as_deref().unwrap_or_default(), issue.line.unwrap_or_default());
        against.push(format!("several have a major issue in line {line} of {file:?}"));
    }
    match chairs {
        None => against.push("there is no verdict of the chairman".to_owned()),
        Some(Verdict::Pass) => {}
        Some(other) => against.push(format!("the chairman says {}", other.as_str())),
    }
    let sure = confidence(Verdict::Pass);
    if sure < *threshold {
        against.push(format!("the confidence is {sure}, and the threshold {threshold}"));
    }
    if against.is_empty() {
        return Decision { verdict: Verdict::Pass, confidence: sure, reasons: Vec::new() };
    }
    unclear(against)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::review::Scores;

    fn review(verdict: Verdict, issues: &[Severity]) -> Review {
        let issue = |severity: &Severity| Issue {
            severity: *severity,
            file: Some("a.rs".into()),
            line: Some(3),
            message: "off by one".into(),
        };
        let issues = issues.iter().map(issue).collect();
        Review { verdict, confidence: 0.9, scores: Scores::default(), issues, rationale: String::new() }
    }

    fn chairman(verdict: Verdict) -> Chairman {
        Chairman { verdict, confidence: 1.0, rationale: String::new(), dissent: String::new() }
    }

    fn decided(panel: usize, reviews: &[Review], chairs: Option<Verdict>, threshold: f64) -> Decision {
        weighted(panel, reviews, &vec![1.0; reviews.len()], chairs, threshold)
    }

    fn weighted(
        panel: usize,
        reviews: &[Review],
        weights: &[f64],
        chairs: Option<Verdict>,
        threshold: f64,
    ) -> Decision {
        let reviewed =
            |(number, review): (usize, &Review)| Reviewed { model: format!("m{number}"), review: review.clone() };
        let reviews: Vec<Reviewed> = reviews.iter().enumerate().map(reviewed).collect();
        let chairman = chairs.map(chairman);
        let evidence = Evidence {
            panel,
            needed: quorum(panel),
            reviews: &reviews,
            weights,
            chairman: chairman.as_ref(),
            threshold,
            incomplete: Vec::new(),
        };
        decide(&evidence)
    }

    use Severity::{Critical, Major, Minor};
    use Verdict::{Fail, Pass, Unclear};

    /// CNC-2, ADR-034 "Machine-Actionable Output Schema"
    #[test]
    fn a_panel_that_agrees_passes_or_fails() {
        let pass = decided(3, &[review(Pass, &[]), review(Pass, &[Minor]), review(Pass, &[])], Some(Pass), 0.7);
        assert_eq!((pass.verdict, pass.reasons.len()), (Pass, 0));
        assert!((pass.confidence - 0.9).abs() < 1e-9);
        let fail = decided(3, &[review(Fail, &[Critical]), review(Fail, &[]), review(Pass, &[])], Some(Fail), 0.7);
        assert_eq!(fail.verdict, Fail);
        assert!((fail.confidence - 0.6).abs() < 1e-9);
    }

    #[test]
    fn a_panel_that_is_as_sure_as_the_threshold_passes() {
        for models in 2..=9 {
            for weight in [0.5, 0.7, 1.0, 1.1, 1.5] {
                let weights: Vec<f64> = (0..models).map(|number| if number % 2 == 0 { weight } else { 1.3 }).collect();
                let decision = weighted(models, &vec![review(Pass, &[]); models], &weights, Some(Pass), 0.9);
                assert_eq!((decision.verdict, decision.confidence), (Pass, 0.9), "{:?}", decision.reasons);
            }
        }
    }

    /// CNC-2: without a quorum it is unclear, whatever is said.
    #[test]
    fn a_model_that_is_missing_counts_against_the_quorum() {
        assert_eq!([2, 3, 4, 5, 9].map(quorum), [2, 2, 3, 4, 6]);
        for verdict in [Pass, Fail] {
            let decision = decided(5, &vec![review(verdict, &[]); 3], Some(verdict), 0.7);
            assert_eq!(decision.verdict, Unclear);
            assert_eq!(decision.reasons, ["no quorum: 3 of 5 models reviewed, and 4 have to"]);
        }
        assert_eq!(decided(5, &vec![review(Pass, &[]); 4], Some(Pass), 0.7).verdict, Pass);
        assert_eq!(decided(2, &[review(Pass, &[])], Some(Pass), 0.0).verdict, Unclear);
        assert_eq!(decided(5, &[], None, 0.0).verdict, Unclear);
    }

    /// CNC-2, CNC-5, ADR-034 "Proposed Skills", "Exit Codes"
    #[test]
    fn no_pass_below_the_threshold_without_the_chairman_or_with_a_blocking_issue() {
        let three = |one: Review| [one, review(Pass, &[]), review(Pass, &[])];
        for (reviews, chairs, threshold, why) in [
            (three(review(Pass, &[])), Some(Pass), 0.95, "the confidence is 0.9, and the threshold 0.95"),
            (three(review(Pass, &[])), Some(Unclear), 0.7, "the chairman says unclear"),
            (three(review(Pass, &[])), Some(Fail), 0.7, "the chairman says fail"),
            (three(review(Pass, &[])), None, 0.7, "there is no verdict of the chairman"),
            (three(review(Fail, &[Critical])), Some(Pass), 0.0, "m0 has a critical issue"),
            (three(review(Pass, &[Critical])), Some(Pass), 0.0, "m0 has a critical issue"),
            (
                [review(Pass, &[Major]), review(Pass, &[Major]), review(Pass, &[])],
                Some(Pass),
                0.0,
                "several have a major issue in line 3 of \"a.rs\"",
            ),
        ] {
            let decision = decided(3, &reviews, chairs, threshold);
            assert_eq!(decision.verdict, Unclear, "{why}");
            assert!(decision.reasons.iter().any(|reason| reason == why), "{why}: {:?}", decision.reasons);
        }
        let one_major = three(review(Pass, &[Major]));
        assert_eq!(decided(3, &one_major, Some(Pass), 0.7).verdict, Pass, "one reviewer's own opinion");
    }

    #[test]
    fn the_chairman_confirms_a_fail_that_has_a_ground() {
        let reviews = [review(Fail, &[Major]), review(Pass, &[]), review(Pass, &[])];
        assert_eq!(decided(3, &reviews, Some(Fail), 0.7).verdict, Fail);
        let no_ground = [review(Fail, &[]), review(Pass, &[]), review(Pass, &[])];
        assert_eq!(decided(3, &no_ground, Some(Fail), 0.7).verdict, Unclear);
    }

    /// Whatever one of the reviewers and the chairman say, together or alone, a fail of the others does not pass.
    #[test]
    fn one_fooled_model_turns_no_fail_into_a_pass() {
        for panel in 3..=9 {
            for fooled in 0..panel {
                let mut reviews = vec![review(Fail, &[Critical]); panel];
                reviews[fooled] = review(Pass, &[]);
                reviews[fooled].confidence = 1.0;
                for chairs in [Some(Pass), Some(Unclear), Some(Fail), None] {
                    assert_eq!(decided(panel, &reviews, chairs, 0.0).verdict, Fail, "{panel} {fooled} {chairs:?}");
                }
            }
        }
        let two = [review(Fail, &[]), review(Pass, &[])];
        assert_ne!(decided(2, &two, Some(Pass), 0.0).verdict, Pass);
    }

    #[test]
    fn what_is_incomplete_does_not_pass_and_may_fail() {
        let reviews: Vec<Reviewed> =
            (0..3).map(|number| Reviewed { model: format!("m{number}"), review: review(Pass, &[]) }).collect();
        let chairman = chairman(Pass);
        let mut evidence = Evidence {
            panel: 3,
            needed: 2,
            reviews: &reviews,
            weights: &[1.0; 3],
            chairman: Some(&chairman),
            threshold: 0.7,
            incomplete: vec!["a file was left out".into()],
        };
        assert_eq!(decide(&evidence).verdict, Unclear);
        let fails: Vec<Reviewed> =
            (0..3).map(|number| Reviewed { model: format!("m{number}"), review: review(Fail, &[]) }).collect();
        evidence.reviews = &fails;
        assert_eq!(decide(&evidence).verdict, Fail);
    }

    #[test]
    fn weights_follow_the_rankings_of_others() {
        assert_eq!(weights(3, &[]), [1.0, 1.0, 1.0]);
        let rankings = [(0, vec![0, 2, 1]), (1, vec![1, 2, 0]), (2, vec![2, 1, 0])];
        assert_eq!(weights(3, &rankings), [0.5, 1.0, 1.5], "each put itself first, and that counts for nothing");
        assert_eq!(weights(2, &[(0, vec![0, 1]), (1, vec![1, 0])]), [1.0, 1.0]);
    }
}
