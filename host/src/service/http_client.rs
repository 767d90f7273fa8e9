//! HTTP, to the hosts that a grant names.

use wasmtime::component::Resource;

use super::install::Context;
use crate::feature::sandbox::bindings::imports::http;
use crate::feature::sandbox::bindings::{Error, waiting_http};
use crate::feature::sandbox::state::InstanceState;

/// The guest's handle to the hosts of one grant.
#[derive(Debug)]
pub struct Client {}

impl InstanceState {
    fn open_client(
        &mut self,
        context: &Resource<Context>,
        purpose: &str,
    ) -> wasmtime::Result<Result<Resource<Client>, Error>> {
        self.table.get(context)?;
        let Some(request) = self.facts.descriptor.network(purpose) else {
            return Ok(Err(Error::Denied(format!("the descriptor requests no network for the purpose {purpose:?}"))));
        };
        if self.facts.grants.http.is_empty() {
            return Ok(Err(self.not_granted(&request.capability)));
        }
        Ok(Ok(self.table.push(Client {})?))
    }
}

impl http::Host for InstanceState {}

impl http::HostClient for InstanceState {
    fn open(
        &mut self,
        context: Resource<Context>,
        purpose: String,
    ) -> wasmtime::Result<Result<Resource<Client>, Error>> {
        self.open_client(&context, &purpose)
    }

    fn send(&mut self, client: Resource<Client>, _: http::Request) -> wasmtime::Result<Result<http::Response, Error>> {
        self.table.get(&client)?;
        Ok(Err(Error::Unavailable("HTTP waits, and nothing may wait in the real-time lane".into())))
    }

    fn drop(&mut self, client: Resource<Client>) -> wasmtime::Result<()> {
        self.table.delete(client)?;
        Ok(())
    }
}

impl waiting_http::Host for InstanceState {}

impl waiting_http::HostClient for InstanceState {
    fn open(
        &mut self,
        context: Resource<Context>,
        purpose: String,
    ) -> wasmtime::Result<Result<Resource<Client>, Error>> {
        self.open_client(&context, &purpose)
    }

    async fn send(
        &mut self,
        client: Resource<Client>,
        _request: waiting_http::Request,
    ) -> wasmtime::Result<Result<waiting_http::Response, Error>> {
        self.table.get(&client)?;
        Ok(Err(Error::Unavailable("wired later".into())))
    }

    fn drop(&mut self, client: Resource<Client>) -> wasmtime::Result<()> {
        self.table.delete(client)?;
        Ok(())
    }
}
