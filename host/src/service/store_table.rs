//! A feature's own data: the handle to its store.

use wasmtime::component::Resource;

use super::install::Context;
use crate::feature::sandbox::bindings::Error;
use crate::feature::sandbox::bindings::imports::store;
use crate::feature::sandbox::state::InstanceState;

/// The guest's handle to its store.
#[derive(Debug)]
pub struct Table;
