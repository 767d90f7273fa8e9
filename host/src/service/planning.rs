//! Plans: proposed changes that wait for a person. Nothing here changes anything.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use wasmtime::component::Resource;

use super::install::Context;
use crate::feature::sandbox::bindings::Error;
use crate::feature::sandbox::bindings::imports::planning;
use crate::feature::sandbox::limits::{self, plain};
use crate::feature::sandbox::state::InstanceState;

/// Plans that wait at once.
const MAX_PLANS: usize = 64;
/// How long a plan waits.
const EXPIRES: Duration = Duration::from_secs(300);
/// Of those, plans of one feature: it must not take every place.
const MAX_OWN: usize = 16;
/// Bytes of the changes of one plan, paths and values.
const MAX_BYTES: usize = limits::MAX_RESULT;
/// Changes in one plan.
const MAX_CHANGES: usize = 256;

/// A proposed change.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// Where, as keys and numbers from the top.
    pub path: Vec<String>,
    /// The new value; none removes what is there.
    pub value: Option<serde_json::Value>,
}

/// A plan that waits.
#[derive(Debug, Clone, Serialize)]
pub struct Plan {
    /// 32 hex digits.
    pub id: String,
    /// Who proposed it.
    pub feature: String,
    /// A sentence for the person who decides.
    pub description: String,
    /// The changes.
    pub changes: Vec<Change>,
    #[serde(skip)]
    proposed: Instant,
}

/// The plans that wait.
#[derive(Debug, Default)]
pub struct Plans {
    waiting: Mutex<VecDeque<Plan>>,
}

impl Plans {
    fn waiting(&self) -> MutexGuard<'_, VecDeque<Plan>> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.retain(|plan| plan.proposed.elapsed() < EXPIRES);
        waiting
    }

    /// Every plan that has not expired, oldest first.
    pub fn list(&self) -> Vec<Plan> {
        self.waiting().iter().cloned().collect()
    }

    fn propose(&self, feature: &str, description: String, changes: Vec<planning::Change>) -> Result<String, Error> {
        if changes.is_empty() || changes.len() > MAX_CHANGES {
            return Err(Error::Invalid(format!("a plan has 1 to {MAX_CHANGES} changes, not {}", changes.len())));
        }
        let size = changes.iter().map(|change| change.path.len() + change.value.as_ref().map_or(0, String::len));
        let size: usize = size.sum();
        if size > MAX_BYTES {
            return Err(Error::Invalid(format!("the changes have {size} bytes; a plan has at most {MAX_BYTES}")));
        }
        let changes = changes.into_iter().map(change).collect::<Result<Vec<_>, _>>().map_err(Error::Invalid)?;
        let mut id = [0; 16];
        getrandom::fill(&mut id).map_err(|error| Error::Unavailable(format!("no randomness: {error}")))?;
        let id: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut waiting = self.waiting();
        if waiting.len() >= MAX_PLANS {
            return Err(Error::Exhausted(format!(
                "{MAX_PLANS} plans are waiting already; a person has to decide first"
            )));
        }
        if waiting.iter().filter(|plan| plan.feature == feature).count() >= MAX_OWN {
            return Err(Error::Exhausted(format!(
                "{MAX_OWN} plans of this feature are waiting already; a person has to decide first"
            )));
        }
        waiting.push_back(Plan {
            id: id.clone(),
            feature: feature.to_owned(),
            description: plain(description, limits::MAX_TEXT),
            changes,
            proposed: Instant::now(),
        });
        Ok(id)
    }
}

fn change(change: planning::Change) -> Result<Change, String> {
    let path: Vec<String> = change.path.split('/').map(str::to_owned).collect();
    if change.path.len() > limits::MAX_TEXT || path.iter().any(String::is_empty) {
        return Err(format!(
            "{:?} is no path; write keys and numbers from the top, such as modes/0/mappings/3/action",
            plain(change.path, 64)
        ));
    }
    let value = change.value.map(|value| serde_json::from_str(&value)).transpose();
    let value = value.map_err(|error| format!("the value of {} is not JSON: {error}", path.join("/")))?;
    Ok(Change { path, value })
}

/// The guest's handle to propose.
#[derive(Debug)]
pub struct Planner;

impl planning::Host for InstanceState {}

impl planning::HostPlanner for InstanceState {
    fn open(&mut self, context: Resource<Context>) -> wasmtime::Result<Result<Resource<Planner>, Error>> {
        self.table.get(&context)?;
        Ok(match self.granted("config-propose") {
            Ok(()) => Ok(self.table.push(Planner)?),
            Err(error) => Err(error),
        })
    }

    fn propose(
        &mut self,
        planner: Resource<Planner>,
        description: String,
        changes: Vec<planning::Change>,
    ) -> wasmtime::Result<Result<String, Error>> {
        self.table.get(&planner)?;
        if self.facts.is_revoked() {
            return Ok(Err(super::revoked()));
        }
        Ok(self.facts.services.plans.propose(self.facts.descriptor.id.as_str(), description, changes))
    }

    fn drop(&mut self, planner: Resource<Planner>) -> wasmtime::Result<()> {
        self.table.delete(planner)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proposed(path: &str, value: Option<&str>) -> planning::Change {
        planning::Change { path: path.into(), value: value.map(str::to_owned) }
    }

    #[test]
    fn a_plan_waits_with_its_changes() {
        let plans = Plans::default();
        let change = proposed("modes/0/mappings/1", Some(r#"{"a": 1}"#));
        let id = plans.propose("project:x", "Add one.".into(), vec![change]).unwrap();
        let waiting = plans.list();
        assert_eq!((waiting.len(), &waiting[0].id), (1, &id));
        assert_eq!(waiting[0].changes[0].path, ["modes", "0", "mappings", "1"]);
    }

    #[test]
    fn what_is_no_plan_is_refused_and_the_number_is_bounded() {
        let plans = Plans::default();
        let refused = |changes| plans.propose("project:x", String::new(), changes).unwrap_err();
        assert!(matches!(refused(vec![]), Error::Invalid(_)));
        assert!(matches!(refused(vec![proposed("a//b", None)]), Error::Invalid(_)));
        assert!(matches!(refused(vec![proposed("a", Some("{"))]), Error::Invalid(_)));
        let large = format!("\"{}\"", "x".repeat(MAX_BYTES / 2));
        assert!(matches!(refused(vec![proposed("a", Some(&large)), proposed("b", Some(&large))]), Error::Invalid(_)));
        for _ in 0..MAX_OWN {
            plans.propose("project:x", String::new(), vec![proposed("a", None)]).unwrap();
        }
        assert!(matches!(refused(vec![proposed("a", None)]), Error::Exhausted(_)));
        for n in MAX_OWN..MAX_PLANS {
            plans.propose(&format!("project:y{n}"), String::new(), vec![proposed("a", None)]).unwrap();
        }
        let last = plans.propose("project:z", String::new(), vec![proposed("a", None)]);
        assert!(matches!(last, Err(Error::Exhausted(_))), "others have taken every place");
    }
}
