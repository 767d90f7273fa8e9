//! The contract's enumerations as text, for what people and models read.

use std::fmt;

use crate::bindings::conductor::feature::types::{Risk, Tier};
use crate::host_state::{Direction, Health, PortState, Protocol, Severity, SideState};

/// A word for each case.
macro_rules! words {
    ($($type:ident { $($case:ident $word:literal),+ })+) => {
        $(impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(match self {
                    $(Self::$case => $word,)+
                })
            }
        })+
    };
}

words! {
    Protocol { Midi "midi", Hid "hid", Osc "osc", Artnet "artnet" }
    Direction { Input "input", Output "output" }
    SideState { Bound "bound", Unbound "unbound", Ambiguous "ambiguous" }
    Health { Green "green", Amber "amber", Red "red", Off "off" }
    Severity { Error "error", Warning "warning" }
    Tier {
        ReadOnly "read-only", Stateful "stateful", ConfigChange "config-change", HardwareIo "hardware-io",
        Privileged "privileged"
    }
    Risk { Usual "usual", Raised "raised", Privileged "privileged" }
}

impl fmt::Display for PortState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open => f.write_str("open"),
            Self::Closed => f.write_str("closed"),
            Self::Ambiguous(binding) => write!(f, "closed: another port could as well be {binding}"),
            Self::Ignored => f.write_str("closed: left alone by ignore_ports"),
            Self::OverLimit => f.write_str("closed: there are too many"),
            Self::Failed(why) => f.write_str(why),
        }
    }
}
