//! What the host knows, in the types of the contract, as features get it.

use crate::control::plan::Plan;
use conductor_ports::SysExIdentity;
use conductor_ports::supervisor::{BindingStatus, DiscoveredPort, Health, PortState, SideStatus};
use conductor_registry::FeatureReport;
use conductor_sandbox::bindings::imports::{hardware, host_state};

pub(super) fn port(port: DiscoveredPort) -> host_state::Port {
    host_state::Port {
        name: port.port.name,
        protocol: port.port.protocol.to_string(),
        direction: port.port.direction.to_string(),
        state: match port.state {
            PortState::Open => "open".to_owned(),
            PortState::Idle => "closed".to_owned(),
            PortState::Ambiguous(binding) => format!("closed: another port could as well be {binding}"),
            PortState::Ignored => "closed: left alone by ignore_ports".to_owned(),
            PortState::OverLimit => "closed: there are too many".to_owned(),
            PortState::Failed(reason) => reason,
        },
        binding: port.binding,
        device: port.device,
        told_apart_by: port.told_apart_by.map(|matcher| matcher.to_string()),
        muted: port.muted,
        unheard: port.unheard,
    }
}

pub(super) fn binding(binding: BindingStatus) -> host_state::Binding {
    let side = |side: SideStatus| host_state::Side {
        state: side.state.to_owned(),
        ports: side.ports,
        matched_by: side.matched_by,
        problem: side.problem,
    };
    host_state::Binding {
        alias: binding.alias,
        protocol: binding.protocol.to_string(),
        health: match binding.health {
            Health::Green => "green",
            Health::Amber => "amber",
            Health::Red => "red",
            Health::Off => "off",
        }
        .to_owned(),
        input: binding.input.map(side),
        output: binding.output.map(side),
        muted: binding.muted,
        help: binding.help,
    }
}

pub(super) fn feature(report: FeatureReport) -> host_state::Feature {
    let (id, version, tools, actions) = match report.package {
        Some(package) => (Some(package.id), Some(package.version), package.tools, package.actions),
        None => (None, None, Vec::new(), Vec::new()),
    };
    host_state::Feature {
        name: report.name,
        id,
        version,
        bundled: report.bundled,
        refused: report.refused,
        tools,
        actions,
        denied: report.denied,
        done: report.calls + report.performed,
        failed: report.calls_failed + report.failed,
        memory: report.memory as u64,
    }
}

pub(super) fn plan(plan: Plan) -> host_state::WaitingPlan {
    host_state::WaitingPlan {
        id: plan.id,
        proposer: plan.proposer,
        description: plan.description,
        risk: plan.risk.level.as_str().to_owned(),
        notes: plan.risk.notes,
        diff: plan.diff,
        expires: plan.expires,
    }
}

pub(super) fn identity(identity: SysExIdentity) -> hardware::Identity {
    let [one, two, three] = identity.manufacturer;
    hardware::Identity { manufacturer: (one, two, three), family: identity.family, model: identity.model }
}
