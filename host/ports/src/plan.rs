//! Which ports are to be open, as a configuration has it.

use regex::Regex;

use super::{BindingSpec, PortInfo, Protocol};

/// Which ports are opened.
#[derive(Debug, Clone, Default)]
pub struct PortPlan {
    /// The configured bindings that are enabled.
    pub bindings: Vec<BindingSpec>,
    /// Those that are not.
    pub disabled: Vec<(String, Protocol)>,
    /// Open inputs that no binding matches, too.
    pub open_unbound: bool,
    /// Hear ambiguous ports under their own names: for looking only, where there are no rules.
    pub hear_ambiguous: bool,
    /// MIDI inputs open at once, at most.
    pub max_midi_ports: usize,
    /// Names of ports that are left alone.
    pub ignore: Vec<Regex>,
    /// Ask MIDI devices who they are.
    pub probe_identity: bool,
    /// The outputs that rules send to, by alias or port name.
    pub targets: Vec<String>,
}

impl PortPlan {
    /// The ports that are left alone, and the others.
    pub(super) fn without_ignored(&self, ports: Vec<PortInfo>) -> (Vec<PortInfo>, Vec<PortInfo>) {
        ports.into_iter().partition(|port| self.ignore.iter().any(|name| name.is_match(&port.name)))
    }
}
