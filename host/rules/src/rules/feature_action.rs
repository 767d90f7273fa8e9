//! Actions of features, and what is said where a feature has none, can do none now, or rejects its parameters.

use conductor_config::{self as config, Diagnostic, HOST_ACTIONS, PathStep};
use conductor_dispatch::Action;
use conductor_dispatch::feature_queue::FeatureQueue;
use conductor_registry::Lookup;
use conductor_sandbox::CallError;

use super::{Compiler, params};

impl Compiler<'_> {
    pub(super) fn feature_action(
        &mut self,
        type_name: &str,
        params: &serde_json::Value,
        path: &[PathStep<'_>],
    ) -> Option<Action> {
        match self.registry.find(type_name) {
            Lookup::Found { queue, action } => match queue.prepare(&action, &self.placed(params).to_string()) {
                Ok(prepared) => {
                    self.workers.follow(prepared.worker());
                    if let Some(reason) = queue.unavailable() {
                        self.unavailable(type_name, path, &reason);
                    }
                    return Some(Action::Feature(prepared));
                }
                Err(error) => self.feature_mistakes(type_name, params, (&queue, &action), &error, path),
            },
            Lookup::LeftOut { feature, reason } => {
                return Some(self.missing(type_name, path, format!("the feature {feature} leaves out the {reason}")));
            }
            Lookup::Refused { feature, reason } => {
                return Some(self.missing(
                    type_name,
                    path,
                    format!("the feature {feature} is not installed: {reason}"),
                ));
            }
            Lookup::Unknown => {
                let offered = self.registry.action_names();
                let names = || HOST_ACTIONS.iter().copied().chain(offered.iter().map(String::as_str));
                let nearest = config::nearest(type_name, names());
                // Nothing is like it: it is another feature's, which may come yet. What is nearly a name
                // that there is, is a mistake.
                if nearest.is_none() {
                    let list = names().collect::<Vec<_>>().join(", ");
                    let message =
                        format!("no feature that is installed has the action {type_name:?}; there are {list}");
                    return Some(self.missing(type_name, path, message));
                }
                let place = self.source.place(&[path, &["type".into()]].concat());
                let diagnostic = Diagnostic::error(place, format!("there is no action {type_name:?}"))
                    .with_allowed(names().collect::<Vec<_>>().join(", "))
                    .with_nearest(nearest);
                self.diagnostics.push(diagnostic);
            }
        }
        None
    }

    /// What is wrong with the parameters of a feature's action: first what its schema says, each at its key, then
    /// what the feature itself says of the others. It may say several things, one a line.
    fn feature_mistakes(
        &mut self,
        type_name: &str,
        params: &serde_json::Value,
        (queue, action): (&FeatureQueue, &str),
        error: &CallError,
        path: &[PathStep<'_>],
    ) {
        let schema = self.registry.action_schema(action);
        let wrong = schema.map(|schema| params::mistakes(params, &schema)).unwrap_or_default();
        let mut rest = params.clone();
        for params::Mistake { key, message, nearest } in &wrong {
            let at = match key {
                Some(key) => [path, &[key.as_str().into()]].concat(),
                None => path.to_vec(),
            };
            if let (Some(key), Some(rest)) = (key, rest.as_object_mut()) {
                rest.remove(key);
            }
            let place = self.source.place(&at);
            let message = format!("{type_name}: {message}");
            self.diagnostics.push(Diagnostic::error(place, message).with_nearest(nearest.clone()));
        }
        let is_whole = wrong.iter().all(|mistake| mistake.key.is_some());
        let said = match wrong.is_empty() {
            true => Some(error.to_string()),
            // Without a key that has to be there it would say only that.
            false if is_whole => {
                queue.prepare(action, &self.placed(&rest).to_string()).err().map(|error| error.to_string())
            }
            false => None,
        };
        for line in said.iter().flat_map(|said| said.lines()).filter(|line| !line.trim().is_empty()) {
            // A key that was taken out for its mistake is not missing.
            let is_told =
                |mistake: &params::Mistake| mistake.key.as_ref().is_some_and(|key| line.contains(key.as_str()));
            if wrong.iter().any(is_told) {
                continue;
            }
            let at = match about(line, params) {
                Some(key) => [path, &[key.into()]].concat(),
                None => path.to_vec(),
            };
            self.error(&at, format!("{type_name}: {line}"));
        }
    }

    /// The parameters with the aliases of endpoints in `target` as `host:port`. What may be sent there is the
    /// feature's grants' business, whichever way it is written.
    fn placed(&self, params: &serde_json::Value) -> serde_json::Value {
        let mut params = params.clone();
        let place = |target: &mut serde_json::Value| {
            if let Some(place) = target.as_str().and_then(|alias| self.places.get(alias)) {
                *target = place.as_str().into();
            }
        };
        match params.get_mut("target") {
            Some(serde_json::Value::Array(targets)) => targets.iter_mut().for_each(place),
            Some(target) => place(target),
            None => {}
        }
        params
    }

    /// The mapping stays, does nothing for a while, and says why.
    fn unavailable(&mut self, type_name: &str, path: &[PathStep<'_>], reason: &str) {
        let place = self.source.place(&[path, &["type".into()]].concat());
        let warning = Diagnostic::warning(place, format!("{type_name} is unavailable: {reason}"))
            .with_help("the mapping works again after that, or `conductor feature enable` ends it now".to_owned());
        self.diagnostics.push(warning);
    }

    /// The mapping stays, and says why it does nothing.
    fn missing(&mut self, type_name: &str, path: &[PathStep<'_>], reason: String) -> Action {
        let place = self.source.place(&[path, &["type".into()]].concat());
        let warning = Diagnostic::warning(place, reason.clone())
            .with_help("the mapping is kept and does nothing until a feature has it".to_owned());
        self.diagnostics.push(warning);
        Action::Missing { name: type_name.into(), reason: reason.into() }
    }
}

/// The parameter that a feature's words are about: the first that is named between backticks.
fn about<'l>(line: &'l str, params: &serde_json::Value) -> Option<&'l str> {
    line.split('`').skip(1).step_by(2).find(|key| params.get(key).is_some())
}
