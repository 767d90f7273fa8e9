//! The contract's `signing`: what a feature states, signed for it.

use conductor_services::signing::{Signature, Signer, Validity};

use crate::bindings::imports::signing;
use crate::bindings::{Error, Lane};
use crate::state::InstanceState;

impl InstanceState {
    /// The signer, and the whole id of this feature. In the real-time lane there is none: its key is on the disk.
    fn signer(&self) -> Result<(&Signer, &str), Error> {
        if self.lane == Lane::RealTime {
            return Err(super::waits("signing"));
        }
        Ok((&self.facts.services.signer, self.facts.descriptor.id.as_str()))
    }
}

impl signing::Host for InstanceState {
    fn sign(&mut self, statement: Vec<u8>) -> wasmtime::Result<Result<signing::Signature, Error>> {
        let signed = self.signer().and_then(|(signer, feature)| Ok(signer.sign(feature, &statement)?));
        Ok(signed.map(|Signature { key, value }| signing::Signature { key, value }))
    }

    fn verify(
        &mut self,
        statement: Vec<u8>,
        signing::Signature { key, value }: signing::Signature,
    ) -> wasmtime::Result<Result<signing::Validity, Error>> {
        let validity = self.signer().map(|(it, feature)| it.validity(feature, &statement, &Signature { key, value }));
        Ok(validity.map(|validity| match validity {
            Validity::ThisHost => signing::Validity::ThisHost,
            Validity::AnotherHost => signing::Validity::AnotherHost,
            Validity::Invalid => signing::Validity::Invalid,
        }))
    }
}
