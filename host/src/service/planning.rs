//! The contract's `planning`: the guest's handle to propose changes. Nothing here changes anything.

use wasmtime::component::Resource;

use super::install::Context;
use crate::config::edit::Change;
use crate::config::hidden::{self, HIDDEN};
use crate::control::audit::{Entry, Kind};
use crate::control::caller::Caller;
use crate::control::plan::desk::{MAX_BYTES, MAX_CHANGES, one_line};
use crate::control::plan::{PlanError, Proposal};
use crate::feature::sandbox::bindings::imports::planning;
use crate::feature::sandbox::bindings::{Error, Lane};
use crate::feature::sandbox::limits;
use crate::feature::sandbox::state::InstanceState;
use crate::news::New;
use crate::terminal::{excerpt, excerpt_lines};

/// The guest's handle to propose.
#[derive(Debug, Clone, Default)]
pub struct Planner {
    /// Whether what is proposed by it needs more than a yes.
    privileged: bool,
    /// Who called the tool that it was lent to; `None` if the feature proposes by itself.
    caller: Option<Caller>,
}

impl Planner {
    /// A handle for the length of one call.
    pub(crate) fn for_call(caller: Caller, privileged: bool) -> Self {
        Self { privileged, caller: Some(caller) }
    }
}

impl InstanceState {
    fn propose(
        &self,
        planner: Planner,
        description: String,
        changes: Vec<planning::Change>,
    ) -> Result<planning::Proposal, Error> {
        if self.lane == Lane::RealTime {
            return Err(super::waits("a plan"));
        }
        if self.facts.is_revoked() {
            return Err(super::revoked());
        }
        // Before anything is parsed: what is too much must not cost more than counting it.
        let size = changes.iter().map(|change| change.path.len() + change.value.as_ref().map_or(0, String::len));
        let (count, size) = (changes.len(), size.sum::<usize>());
        if count > MAX_CHANGES {
            return Err(Error::Invalid(format!("a plan has 1 to {MAX_CHANGES} changes, not {count}")));
        }
        if size > MAX_BYTES {
            return Err(Error::Invalid(format!("the changes have {size} bytes; a plan has at most {MAX_BYTES}")));
        }
        let view = self.view()?;
        // Before line breaks are taken out, so that they are not hidden.
        one_line(&description).map_err(refusal)?;
        let proposal = Proposal {
            proposer: self.facts.descriptor.id.to_string(),
            caller: planner.caller,
            description: excerpt(&description, limits::MAX_TEXT),
            privileged: planner.privileged,
            changes: changes.into_iter().map(change).collect::<Result<_, _>>().map_err(Error::Invalid)?,
        };
        let (desk, audit) = (&self.facts.services.plans, &self.facts.services.audit);
        let (proposer, description) = (proposal.proposer.clone(), proposal.description.clone());
        let proposed =
            view.plan_base().and_then(|base| desk.propose(proposal, &base, |after| view.judge(&base, after)));
        let proposer = Caller::feature(&proposer);
        let entry = |subject| Entry::new(Kind::Plan, "propose", &proposer, subject).with("description", description);
        audit.note(match &proposed {
            Ok(plan) => entry(&plan.id).with("base", plan.base.as_str()).with("risk", format!("{:?}", plan.risk.level)),
            Err(error) => entry("").refused(error),
        });
        self.facts.services.news.tell(New::Plans);
        let mut plan = proposed.inspect(|plan| view.plan_waits(plan)).map_err(refusal)?;
        plan.hide(&view.config(), &view.hidden_config());
        Ok(planning::Proposal {
            id: plan.id.clone(),
            risk: plan.risk.level.as_str().to_owned(),
            notes: plan.risk.notes.clone(),
            diff: plan.diff.clone(),
        })
    }
}

/// Why there is no plan, as the guest is told.
fn refusal(error: PlanError) -> Error {
    let text = excerpt_lines(&error.to_string(), limits::MAX_TEXT);
    match error {
        PlanError::Denied(_) => Error::Denied(text),
        PlanError::Full(_) | PlanError::Busy => Error::Exhausted(text),
        PlanError::Record(_) => Error::Unavailable(text),
        _ => Error::Invalid(text),
    }
}

fn change(change: planning::Change) -> Result<Change, String> {
    let path: Vec<String> = change.path.split('/').map(str::to_owned).collect();
    if change.path.len() > limits::MAX_TEXT || path.iter().any(String::is_empty) {
        return Err(format!(
            "{:?} is no path; write keys and numbers from the top, such as modes/0/mappings/3/action",
            excerpt(&change.path, 64)
        ));
    }
    let value = change.value.map(|value| serde_json::from_str(&value)).transpose();
    let value = value.map_err(|error| format!("the value of {} is not JSON: {error}", path.join("/")))?;
    if value.as_ref().is_some_and(hidden::mentions_hidden) {
        return Err(format!(
            "the value of {} has {HIDDEN:?} in it, which stands for a value that is not shown to you: change only what \
             is beside it, by its own path, and the value stays as it is",
            path.join("/")
        ));
    }
    Ok(Change { path, value })
}

impl planning::Host for InstanceState {}

impl planning::HostPlanner for InstanceState {
    fn open(&mut self, context: Resource<Context>) -> wasmtime::Result<Result<Resource<Planner>, Error>> {
        self.table.get(&context)?;
        Ok(match self.granted("config-propose") {
            Ok(()) => Ok(self.table.push(Planner::default())?),
            Err(error) => Err(error),
        })
    }

    fn propose(
        &mut self,
        planner: Resource<Planner>,
        description: String,
        changes: Vec<planning::Change>,
    ) -> wasmtime::Result<Result<planning::Proposal, Error>> {
        let planner = self.table.get(&planner)?.clone();
        // A plan is written to the disk.
        Ok(super::waiting(|| InstanceState::propose(self, planner, description, changes)))
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
    fn a_change_names_a_place_and_has_json() {
        let taken = change(proposed("modes/0/mappings/1", Some(r#"{"a": 1}"#))).unwrap();
        assert_eq!(taken.path, ["modes", "0", "mappings", "1"]);
        assert_eq!(taken.value, Some(serde_json::json!({ "a": 1 })));
        assert!(
            change(proposed("a", Some(r#"{"env": {"KEY": "<hidden>"}}"#))).unwrap_err().contains("not shown to you")
        );
        assert!(change(proposed("a//b", None)).unwrap_err().contains("is no path"));
        assert!(change(proposed("a", Some("{"))).unwrap_err().contains("is not JSON"));
        assert!(change(proposed("a", Some(&"[".repeat(50_000)))).unwrap_err().contains("is not JSON"));
    }
}
