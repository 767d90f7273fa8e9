//! Datagrams: handles to the targets that a grant names.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use wasmtime::StoreContextMut;
use wasmtime::component::{HasSelf, Linker, Resource, WasmList};

use crate::bindings::Error;
use crate::bindings::imports::udp;
use crate::handles::{Context, Network, Target};
use crate::limits;
use crate::state::InstanceState;
use conductor_net::endpoint::Endpoint;
use conductor_package::consent;
use conductor_package::descriptor::CONTRACT;

/// The largest UDP payload over IPv4 (RFC 768: 65535 bytes less the headers).
const MAX_DATAGRAM: usize = 65_507;

impl udp::Host for InstanceState {}

impl udp::HostNetwork for InstanceState {
    fn open(
        &mut self,
        context: Resource<Context>,
        purpose: String,
    ) -> wasmtime::Result<Result<Resource<Network>, Error>> {
        self.table.get(&context)?;
        let Some(request) = self.facts.descriptor.network(&purpose) else {
            return Ok(Err(Error::Denied(format!("the descriptor requests no network for the purpose {purpose:?}"))));
        };
        if self.facts.grants.udp.is_empty() {
            return Ok(Err(self.facts.not_granted(&request.capability)));
        }
        let revoked = self.facts.revocation();
        Ok(Ok(self.table.push(Network { purpose, revoked })?))
    }

    fn target(
        &mut self,
        network: Resource<Network>,
        target: String,
    ) -> wasmtime::Result<Result<Resource<Target>, Error>> {
        let network = self.table.get(&network)?;
        let opened = self.open_target(network, &target);
        Ok(match opened {
            Ok(target) => Ok(self.table.push(target)?),
            Err(error) => Err(error),
        })
    }

    fn drop(&mut self, network: Resource<Network>) -> wasmtime::Result<()> {
        self.table.delete(network)?;
        Ok(())
    }
}

impl InstanceState {
    fn open_target(&self, network: &Network, target: &str) -> Result<Target, Error> {
        if network.revoked.load(Ordering::Acquire) {
            return Err(super::revoked());
        }
        let endpoint: Endpoint = target.parse().map_err(|error| Error::Invalid(format!("{error}")))?;
        if !self.facts.may_reach(&network.purpose, &endpoint) {
            let (line, purpose) = (format!("udp = [\"{endpoint}\"]"), &network.purpose);
            let advice =
                self.facts.grantee.advice(&line, &consent::word(&format!("network:{purpose}"), &endpoint.to_string()));
            return Err(Error::Denied(format!("{endpoint} is not granted; {advice}")));
        }
        let address = match endpoint.host.parse::<IpAddr>() {
            Ok(address) => address,
            Err(_) => self.facts.resolved.get(&endpoint.host).copied().ok_or_else(|| {
                Error::Unavailable(format!("the name {} could not be resolved when the grant was given", endpoint.host))
            })?,
        };
        let sender = self
            .facts
            .services
            .datagrams
            .connect((address, endpoint.port).into())
            .map_err(|error| Error::Unavailable(format!("{endpoint}: {error}")))?;
        Ok(Target { name: endpoint.to_string(), sender, revoked: Arc::clone(&network.revoked) })
    }
}

impl Target {
    fn send(&self, data: &[u8]) -> Result<(), Error> {
        if self.revoked.load(Ordering::Acquire) {
            return Err(super::revoked());
        }
        if data.len() > MAX_DATAGRAM {
            return Err(Error::Invalid(format!("a datagram has at most {MAX_DATAGRAM} bytes, not {}", data.len())));
        }
        self.sender.send(data).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => Error::Exhausted(format!("the socket to {} is full", self.name)),
            io::ErrorKind::ConnectionRefused => Error::Unavailable(format!("nothing listens at {}", self.name)),
            _ => Error::Unavailable(format!("{}: {error}", self.name)),
        })
    }
}

/// Puts the interface into a linker. `send` is on the event path, so it reads the datagram where it
/// lies in the guest's memory; what is generated for it would copy it to the heap first.
///
/// # Errors
/// If the interface is already linked.
pub fn add_to_linker(linker: &mut Linker<InstanceState>) -> wasmtime::Result<()> {
    udp::add_to_linker::<_, HasSelf<InstanceState>>(linker, |state| state)?;
    linker.allow_shadowing(true);
    let send = |store: StoreContextMut<'_, InstanceState>, (target, data): (Resource<Target>, WasmList<u8>)| {
        if !store.data().facts.datagram_rate.take(Instant::now()) {
            let limit = limits::DATAGRAM_RATE;
            return Ok((Err(Error::Exhausted(format!("more than {limit} datagrams a second"))),));
        }
        let target = store.data().table.get(&target)?;
        Ok((target.send(data.as_le_slice(&store)),))
    };
    let done = linker.instance(&format!("conductor:feature/udp@{CONTRACT}.0"))?.func_wrap("[method]target.send", send);
    linker.allow_shadowing(false);
    done
}

impl udp::HostTarget for InstanceState {
    fn send(&mut self, target: Resource<Target>, data: Vec<u8>) -> wasmtime::Result<Result<(), Error>> {
        Ok(self.table.get(&target)?.send(&data))
    }

    fn drop(&mut self, target: Resource<Target>) -> wasmtime::Result<()> {
        self.table.delete(target)?;
        Ok(())
    }
}
