//! The contract's `planning`: the guest's handle to propose changes. Nothing here changes anything.

use wasmtime::component::Resource;

use crate::bindings::imports::planning;
use crate::bindings::{Error, Lane};
use crate::handles::{Context, Planner};
use crate::host_view::{MAX_CHANGES, MAX_CHANGES_BYTES, ProposedChange, ProposedPlan};
use crate::limits;
use crate::state::InstanceState;
use conductor_package::capability::CapabilityKind;
use conductor_stdx::hidden::{self, HIDDEN};
use conductor_terminal::excerpt;

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
        if size > MAX_CHANGES_BYTES {
            return Err(Error::Invalid(format!(
                "the changes have {size} bytes; a plan has at most {MAX_CHANGES_BYTES}"
            )));
        }
        let changes = changes.into_iter().map(change).collect::<Result<_, _>>().map_err(Error::Invalid)?;
        let Planner { privileged, caller, proposed } = planner;
        let proposer = self.facts.descriptor.id.to_string();
        let proposal = self.view()?.propose(ProposedPlan { proposer, caller, description, privileged, changes })?;
        proposed.push(proposal.id.clone());
        Ok(proposal)
    }
}

fn change(change: planning::Change) -> Result<ProposedChange, String> {
    let path: Vec<String> = change.path.split('/').map(str::to_owned).collect();
    if change.path.len() > limits::MAX_TEXT || path.iter().any(String::is_empty) {
        return Err(format!(
            "{:?} is not a path; write keys and numbers from the top, such as modes/0/mappings/3/action",
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
    Ok(ProposedChange { path, value })
}

impl planning::Host for InstanceState {}

impl planning::HostPlanner for InstanceState {
    fn open(&mut self, context: Resource<Context>) -> wasmtime::Result<Result<Resource<Planner>, Error>> {
        self.table.get(&context)?;
        Ok(match self.granted(CapabilityKind::ConfigPropose) {
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
        assert!(change(proposed("a//b", None)).unwrap_err().contains("is not a path"));
        assert!(change(proposed("a", Some("{"))).unwrap_err().contains("is not JSON"));
        assert!(change(proposed("a", Some(&"[".repeat(50_000)))).unwrap_err().contains("is not JSON"));
    }
}
