//! Conversions of the host's state into the types of the contract.

use crate::control::plan::Plan;
use crate::control::plan::risk::Level;
use conductor_config::Severity;
use conductor_ports::supervisor::{BindingStatus, DiscoveredPort, Health, PortState, SideState, SideStatus};
use conductor_ports::{Direction, PortMetadata, Protocol, SysExIdentity, UsbDevice};
use conductor_registry::{FeatureReport, ToolReport};
use conductor_sandbox::bindings::imports::{host_state, types};
use conductor_terminal::{MAX_TEXT, excerpt};

pub(super) fn port(port: DiscoveredPort) -> host_state::Port {
    let PortMetadata { core_midi_unique_id, sysex_identity, usb, .. } = port.port.metadata;
    let usb_device = |UsbDevice { vendor_id, product_id, serial, .. }| host_state::UsbDevice {
        vendor: vendor_id,
        product: product_id,
        serial,
    };
    host_state::Port {
        name: port.port.name,
        protocol: protocol(port.port.protocol),
        direction: match port.port.direction {
            Direction::Input => host_state::Direction::Input,
            Direction::Output => host_state::Direction::Output,
        },
        state: match port.state {
            PortState::Open => host_state::PortState::Open,
            PortState::Idle => host_state::PortState::Closed,
            PortState::Ambiguous(binding) => host_state::PortState::Ambiguous(binding),
            PortState::Ignored => host_state::PortState::Ignored,
            PortState::OverLimit => host_state::PortState::OverLimit,
            PortState::Failed(reason) => host_state::PortState::Failed(reason),
        },
        metadata: host_state::PortMetadata {
            backend: port.port.backend.into_owned(),
            platform_id: port.port.key,
            usb: usb.map(usb_device),
            sysex_identity: sysex_identity.map(identity),
            core_midi_unique_id,
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
        state: match side.state {
            SideState::Bound => host_state::SideState::Bound,
            SideState::Unbound => host_state::SideState::Unbound,
            SideState::Ambiguous => host_state::SideState::Ambiguous,
        },
        ports: side.ports,
        matched_by: side.matched_by,
        problem: side.problem,
    };
    host_state::Binding {
        alias: binding.alias,
        protocol: protocol(binding.protocol),
        health: match binding.health {
            Health::Green => host_state::Health::Green,
            Health::Amber => host_state::Health::Amber,
            Health::Red => host_state::Health::Red,
            Health::Off => host_state::Health::Off,
        },
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
        tools: tools.into_iter().map(tool).collect(),
        actions,
        denied: report.denied,
        done: report.calls + report.performed,
        failed: report.calls_failed + report.failed,
        memory: report.memory as u64,
    }
}

fn tool(tool: ToolReport) -> host_state::FeatureTool {
    host_state::FeatureTool { name: tool.name, tier: tool.tier.into() }
}

pub(super) fn plan(plan: Plan) -> host_state::WaitingPlan {
    host_state::WaitingPlan {
        id: plan.id,
        proposer: plan.proposer,
        // Features hand it to models, as it is.
        description: excerpt(&plan.description, MAX_TEXT),
        risk: risk(plan.risk.level),
        notes: plan.risk.notes,
        diff: plan.diff,
        expires: plan.expires,
    }
}

pub(super) const fn risk(level: Level) -> types::Risk {
    match level {
        Level::Usual => types::Risk::Usual,
        Level::Raised => types::Risk::Raised,
        Level::Privileged => types::Risk::Privileged,
    }
}

pub(super) const fn severity(severity: Severity) -> host_state::Severity {
    match severity {
        Severity::Error => host_state::Severity::Error,
        Severity::Warning => host_state::Severity::Warning,
    }
}

const fn protocol(protocol: Protocol) -> host_state::Protocol {
    match protocol {
        Protocol::Midi => host_state::Protocol::Midi,
        // The contract has no other word for them.
        Protocol::Hid | Protocol::Keyboard | Protocol::Mouse => host_state::Protocol::Hid,
        Protocol::Osc => host_state::Protocol::Osc,
        Protocol::ArtNet => host_state::Protocol::Artnet,
    }
}

pub(super) fn identity(identity: SysExIdentity) -> types::Identity {
    let [one, two, three] = identity.manufacturer;
    types::Identity { manufacturer: (one, two, three), family: identity.family, model: identity.model }
}
