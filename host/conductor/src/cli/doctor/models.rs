//! The models of the configuration: whether each can be asked, and how it was when it was asked last. None is asked for this:
//! that may cost something.

use super::finding::Finding;
use conductor_chat::models::ModelSummary;

/// What the running host says of its models; empty where none runs.
#[derive(Debug)]
pub(super) struct ModelCheck(pub(super) Vec<ModelSummary>);

impl ModelCheck {
    pub(super) fn judge(&self) -> Vec<Finding> {
        let of = |model: &ModelSummary| {
            let ModelSummary { name, provider, there, error, .. } = model;
            match error {
                _ if !there => Finding::warning(
                    "models",
                    format!("{name} can't be asked: no feature in force has the provider {provider}"),
                    "conductor feature list says which features are there, and why one is not",
                ),
                Some(error) => Finding::warning(
                    "models",
                    format!("{name} gave no answer when it was asked last: {error}"),
                    format!("conductor models check {name} asks it again"),
                ),
                None => Finding::ok("models", format!("{name} can be asked; conductor models check {name} does it")),
            }
        };
        self.0.iter().map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    #[test]
    fn a_model_that_gave_no_answer_or_has_no_provider_is_told() {
        let model = |there, error: Option<&str>| ModelSummary {
            name: "m".into(),
            provider: "p".into(),
            model: "x".into(),
            there,
            here: false,
            error: error.map(str::to_owned),
            declared: None,
        };
        let found = ModelCheck(vec![model(true, None), model(true, Some("401")), model(false, None)]).judge();
        let levels: Vec<Level> = found.iter().map(|finding| finding.level).collect();
        assert_eq!(levels, [Level::Ok, Level::Warning, Level::Warning]);
        assert!(found[1].what.contains("401") && found[2].what.contains("provider p"), "{found:?}");
    }
}
