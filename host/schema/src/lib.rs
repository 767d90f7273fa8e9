//! Schema validation: JSON values against the JSON Schemas of features, with bounded references.
//!
//! Schemas and values are both a feature's, so whatever is done with them is bounded in depth and steps.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::disallowed_macros))]

pub mod bounds;
pub mod references;
mod result_schema;
mod schema_text;

pub use result_schema::*;
pub use schema_text::SchemaText;
