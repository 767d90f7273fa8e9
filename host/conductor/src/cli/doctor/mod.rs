//! `conductor doctor`: diagnoses problems on this machine, and says how to repair them.
//!
//! Each subject has a file: it collects facts from the system, and judges them apart from that, so that every
//! judgement can be tried with facts that this machine doesn't have. What is tried (a file is written, an endpoint
//! bound) is taken back at once; only compiled features are kept in the cache, as by a start.

use std::time::Duration;

use serde_json::json;

use super::{CommandResult, Failure, Paths};
use conductor_api::client::{Client, if_running};
use conductor_host::host::status::Status;
use conductor_terminal as terminal;

mod configuration;
mod devices;
mod finding;
mod home;
mod models;
mod network;
mod record;
mod scheduling;
mod sockets;

use finding::{Finding, Level};

/// How long a host may take to say how it is before it counts as one that doesn't answer.
const STATUS_TIMEOUT: Duration = Duration::from_secs(5);

pub(super) fn run(places: &Paths, as_json: bool) -> CommandResult {
    let findings = look(places);
    let count = |level: Level| findings.iter().filter(|finding| finding.level == level).count();
    let (warnings, troubles) = (count(Level::Warning), count(Level::Trouble));
    if as_json {
        let answer = json!({
            "ok": count(Level::Ok), "warnings": warnings, "troubles": troubles, "findings": findings,
        });
        terminal::json(&answer)?;
    } else {
        terminal::print(&finding::shown(&findings));
    }
    match troubles {
        0 => Ok(()),
        1 => Err(Failure::Failed(anyhow::anyhow!("one thing is in trouble"))),
        troubles => Err(Failure::Failed(anyhow::anyhow!("{troubles} things are in trouble"))),
    }
}

/// All findings.
fn look(places: &Paths) -> Vec<Finding> {
    let status = asked(places);
    let sockets = sockets::SocketCheck::gather(&places.home, &status);
    let running = status.ok();
    let configuration = configuration::ConfigurationCheck::gather(places, running.as_ref());
    let devices = devices::DeviceCheck::gather(places, running.as_ref());
    let network = network::NetworkCheck::gather(configuration.loaded.as_ref(), running.as_ref());
    let scheduling = scheduling::SchedulingCheck::gather(configuration.loaded.as_ref());
    let mut findings = home::HomeCheck::gather(&places.home).judge();
    findings.extend(sockets.judge());
    findings.extend(configuration.judge());
    findings.extend(devices.judge());
    findings.extend(network.judge());
    findings.extend(scheduling.judge());
    // A host that keeps no conversations has no models to tell of.
    let models = running.as_ref().and_then(|_| Client::new(&places.home).models().ok());
    findings.extend(models::ModelCheck(models.unwrap_or_default()).judge());
    findings.extend(record::RecordCheck::gather(&places.home, running.as_ref()).judge());
    findings
}

/// What the host of this home says of itself.
fn asked(places: &Paths) -> Result<Status, sockets::Silence> {
    let (sender, answer) = crossbeam_channel::bounded(1);
    let home = places.home.clone();
    // An answer that comes too late has no reader.
    std::thread::spawn(move || drop(sender.send(if_running(Client::new(&home).status()))));
    match answer.recv_timeout(STATUS_TIMEOUT) {
        Ok(Ok(Some(status))) => Ok(status),
        Ok(Ok(None)) => Err(sockets::Silence::NotRunning),
        Ok(Err(error)) => Err(sockets::Silence::Failed(error.to_string())),
        Err(_) => Err(sockets::Silence::Failed(format!("it did not answer within {STATUS_TIMEOUT:?}"))),
    }
}
