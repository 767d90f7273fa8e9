//! The contract's `signing`: what a feature states, signed for it.

use conductor_services::signing::{Signature, Validity};

use crate::bindings::Error;
use crate::bindings::imports::signing;
use crate::state::InstanceState;

impl signing::Host for InstanceState {
    fn sign(&mut self, statement: Vec<u8>) -> wasmtime::Result<Result<signing::Signature, Error>> {
        let signed = self.facts.services.signer.sign(self.facts.descriptor.id.as_str(), &statement);
        Ok(signed.map(|Signature { key, value }| signing::Signature { key, value }).map_err(Error::from))
    }

    fn verify(&mut self, statement: Vec<u8>, signature: signing::Signature) -> wasmtime::Result<signing::Validity> {
        let signature = Signature { key: signature.key, value: signature.value };
        Ok(match self.facts.services.signer.validity(self.facts.descriptor.id.as_str(), &statement, &signature) {
            Validity::ThisHost => signing::Validity::ThisHost,
            Validity::AnotherHost => signing::Validity::AnotherHost,
            Validity::Invalid => signing::Validity::Invalid,
        })
    }
}
