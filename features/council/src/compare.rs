//! Whether two verifications of the same work came to the same, also if other callers asked for them on other hosts.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// How far the confidences of two verifications may be apart.
const CONFIDENCE_TOLERANCE: f64 = 0.01;

/// What a comparison finds.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Compared {
    /// Whether both are of the same work, with the same verdict, and confidences less than 0.01 apart.
    pub consistent: bool,
    /// 0 if they are, else 1.
    pub exit_code: u8,
    /// What is different, in the words of the results' fields.
    pub differences: Vec<String>,
    /// Whether all that decides was equal too: criteria, models and seed.
    pub reproduced: bool,
    /// The one by which the other was measured, and the other: their ids.
    pub verifications: Vec<String>,
}

/// Compares two results.
pub fn compare(reference: &Value, result: &Value) -> Compared {
    let mut differences = Vec::new();
    for field in ["original_response_hash", "verdict"] {
        let (one, other) = (&reference[field], &result[field]);
        if one != other || one.is_null() {
            differences.push(format!("{field}: {one} and {other}"));
        }
    }
    let confidence = |of: &Value| of["confidence"].as_f64();
    match (confidence(reference), confidence(result)) {
        (Some(one), Some(other)) if (one - other).abs() < CONFIDENCE_TOLERANCE => {}
        (one, other) => {
            let shown = |value: Option<f64>| value.map_or_else(|| "none".to_owned(), |value| format!("{value:.3}"));
            differences.push(format!("confidence: {} and {}", shown(one), shown(other)));
        }
    }
    let hash = |of: &Value| of["reproducibility_hash"].as_str().map(str::to_owned);
    let id = |of: &Value| of["verification_id"].as_str().unwrap_or_default().to_owned();
    Compared {
        consistent: differences.is_empty(),
        exit_code: u8::from(!differences.is_empty()),
        differences,
        reproduced: hash(reference).is_some() && hash(reference) == hash(result),
        verifications: vec![id(reference), id(result)],
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// CNC-7, ADR-034 "Cross-Agent Consistency"
    #[test]
    fn the_same_work_with_the_same_verdict_and_about_the_same_confidence_is_consistent() {
        let result = |hash: &str, verdict: &str, confidence: f64| {
            json!({ "original_response_hash": hash, "verdict": verdict, "confidence": confidence,
                "reproducibility_hash": "r", "verification_id": "i" })
        };
        let reference = result("a", "pass", 0.9);
        let same = compare(&reference, &result("a", "pass", 0.909));
        assert!(same.consistent && same.reproduced && same.exit_code == 0, "{same:?}");
        for (other, field) in [
            (result("b", "pass", 0.9), "original_response_hash"),
            (result("a", "fail", 0.9), "verdict"),
            (result("a", "pass", 0.911), "confidence"),
            // Exactly 0.01 apart is too far.
            (result("a", "pass", 0.9 + CONFIDENCE_TOLERANCE), "confidence"),
            (json!({}), "original_response_hash"),
        ] {
            let compared = compare(&reference, &other);
            assert!(!compared.consistent && compared.exit_code == 1, "{compared:?}");
            assert!(compared.differences[0].starts_with(field), "{compared:?}");
        }
        assert!(!compare(&json!({}), &json!({})).consistent, "what is missing in both is not the same");
    }
}
