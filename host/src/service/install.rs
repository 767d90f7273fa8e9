//! Installing: the context that `install` is lent, and the registrar for actions.

use wasmtime::component::Resource;

use crate::feature::sandbox::bindings::Error;
use crate::feature::sandbox::bindings::imports::{action_registrar, install, types};
use crate::feature::sandbox::limits;
use crate::feature::sandbox::state::{InstanceState, RegisteredAction};

/// The installation that is under way. In the handle table for the length of `install` only.
#[derive(Debug)]
pub struct Context;

/// The registrar for actions.
#[derive(Debug)]
pub struct ActionRegistrar;

impl types::Host for InstanceState {}
impl install::Host for InstanceState {}

impl install::HostContext for InstanceState {
    fn feature_id(&mut self, context: Resource<Context>) -> wasmtime::Result<String> {
        self.table.get(&context)?;
        Ok(self.facts.descriptor.id.as_str().to_owned())
    }

    fn drop(&mut self, context: Resource<Context>) -> wasmtime::Result<()> {
        self.table.delete(context)?;
        Ok(())
    }
}

impl action_registrar::Host for InstanceState {}

impl action_registrar::HostRegistrar for InstanceState {
    fn open(&mut self, context: Resource<Context>) -> wasmtime::Result<Result<Resource<ActionRegistrar>, Error>> {
        self.table.get(&context)?;
        if self.facts.descriptor.actions.is_empty() {
            return Ok(Err(Error::Denied("the descriptor declares no action".into())));
        }
        Ok(Ok(self.table.push(ActionRegistrar)?))
    }

    fn register(
        &mut self,
        registrar: Resource<ActionRegistrar>,
        name: String,
        schema: String,
    ) -> wasmtime::Result<Result<(), Error>> {
        self.table.get(&registrar)?;
        Ok(self.register_action(name, schema).map_err(Error::Invalid))
    }

    fn drop(&mut self, registrar: Resource<ActionRegistrar>) -> wasmtime::Result<()> {
        self.table.delete(registrar)?;
        Ok(())
    }
}

impl InstanceState {
    fn register_action(&mut self, name: String, schema: String) -> Result<(), String> {
        let declared = &self.facts.descriptor.actions;
        if !declared.iter().any(|action| action.name == name) {
            let names = declared.iter().map(|action| action.name.as_str()).collect::<Vec<_>>().join(", ");
            return Err(format!("{:?} is not declared in the descriptor, which has {names}", limits::plain(name, 64)));
        }
        if self.registered.iter().any(|action| action.name == name) {
            return Err(format!("{name} is registered already"));
        }
        if schema.len() > limits::MAX_SCHEMA {
            return Err(format!(
                "the schema of {name} has {} bytes; at most {} are taken",
                schema.len(),
                limits::MAX_SCHEMA
            ));
        }
        match serde_json::from_str::<serde_json::Value>(&schema) {
            Ok(value) if value.is_object() => {}
            Ok(_) => return Err(format!("the schema of {name} is not a JSON object")),
            Err(error) => return Err(format!("the schema of {name} is not JSON: {error}")),
        }
        self.registered.push(RegisteredAction { name, schema });
        Ok(())
    }
}
