//! The contract's `http`: the guest's handle to the hosts that a grant names.

use std::sync::Arc;

use wasmtime::component::Resource;

use crate::bindings::imports::http;
use crate::bindings::{Error, waiting_http};
use crate::handles::{Client, Context};
use crate::state::InstanceState;
use conductor_services::http::{HttpError, Request, Response, SecretUse};

impl InstanceState {
    fn open_client(
        &mut self,
        context: &Resource<Context>,
        purpose: &str,
    ) -> wasmtime::Result<Result<Resource<Client>, Error>> {
        self.table.get(context)?;
        Ok(match self.facts.http_scope(purpose) {
            Ok(scope) => Ok(self.table.push(Client { scope: Arc::new(scope) })?),
            Err(error) => Err(error),
        })
    }
}

impl From<HttpError> for Error {
    fn from(error: HttpError) -> Self {
        match error {
            HttpError::Denied(text) => Self::Denied(text),
            HttpError::Unavailable(text) => Self::Unavailable(text),
            HttpError::Invalid(text) => Self::Invalid(text),
            HttpError::Exhausted(text) => Self::Exhausted(text),
            HttpError::Failed(text) => Self::Failed(text),
        }
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
        request: waiting_http::Request,
    ) -> wasmtime::Result<Result<waiting_http::Response, Error>> {
        let scope = Arc::clone(&self.table.get(&client)?.scope);
        let waiting_http::Request { method, url, headers, body, secret } = request;
        let secret = secret.map(|secret| SecretUse { id: secret.id, header: secret.header, prefix: secret.prefix });
        let request = Request { method, url, headers, body, secret, variable: None };
        let facts = &self.facts;
        let answer = facts.services.http.send(&facts.http_account, &scope, request, facts.ended()).await;
        let response = |answer: Response| waiting_http::Response {
            status: answer.status,
            headers: answer.headers,
            body: answer.body,
        };
        Ok(answer.map(response).map_err(Error::from))
    }

    fn drop(&mut self, client: Resource<Client>) -> wasmtime::Result<()> {
        self.table.delete(client)?;
        Ok(())
    }
}
