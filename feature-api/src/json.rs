//! Typed arguments and results for tools and actions: what crosses the boundary is JSON, what a
//! feature works with are its own types.

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Error;
use crate::tool_registrar::Registrar;

/// The JSON Schema of a type, as registrars take it.
pub fn schema<T: JsonSchema>() -> String {
    schemars::schema_for!(T).to_value().to_string()
}

/// Reads parameters or arguments.
///
/// # Errors
/// `invalid`, with what does not fit.
pub fn read<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    serde_json::from_str(text).map_err(|error| Error::Invalid(error.to_string()))
}

/// Registers a tool with the schemas of its arguments and its result.
///
/// # Errors
/// The registrar's: a name that the descriptor does not declare, or one that is there already.
pub fn register<Args: JsonSchema, Result_: JsonSchema>(registrar: &Registrar, name: &str) -> Result<(), Error> {
    registrar.register(name, &schema::<Args>(), Some(&schema::<Result_>()))
}

/// Reads a tool's arguments, works, and writes its result.
///
/// # Errors
/// `invalid` for arguments that do not fit, and whatever `work` gives.
pub fn answer<Args: DeserializeOwned, Result_: Serialize>(
    args: &str,
    work: impl FnOnce(Args) -> Result<Result_, Error>,
) -> Result<String, Error> {
    serde_json::to_string(&work(read(args)?)?).map_err(|error| Error::Failed(error.to_string()))
}
