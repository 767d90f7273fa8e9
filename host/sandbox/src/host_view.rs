//! The host as features see it: what host functions ask of the host, and the plans that they hand it.

use std::fmt::Debug;
use std::sync::Arc;

use conductor_event::{DeviceId, Event, Nanos};
use conductor_listening::Listening;
use serde_json::Value;

use crate::bindings::Error;
use crate::bindings::imports::{hardware, host_state, planning};
use conductor_audit::caller::Caller;

/// The host, as features see it within their grants. Nothing that it returns holds private values of the configuration.
pub trait HostView: Debug + Send + Sync {
    /// The mode in force; empty if there are no modes.
    fn mode(&self) -> String;
    /// The configuration in force.
    fn config(&self) -> String;
    /// What is wrong with another configuration, or doubtful.
    fn findings(&self, text: &str) -> Vec<host_state::Finding>;
    /// Every port.
    fn ports(&self) -> Vec<host_state::Port>;
    /// Every binding.
    fn bindings(&self) -> Vec<host_state::Binding>;
    /// How it is.
    fn status(&self) -> host_state::Status;
    /// Every feature.
    fn features(&self) -> Vec<host_state::Feature>;
    /// Every action that a mapping may have: the host's, then those of the features in force.
    fn actions(&self) -> Vec<host_state::Action>;
    /// The plans that wait for a person. Reads the disk.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if they can't be read.
    fn plans(&self) -> Result<Vec<host_state::WaitingPlan>, Error>;
    /// Has a plan wait for a person. Nothing is changed, installed or started. Writes to the disk.
    ///
    /// # Errors
    /// [`Error::Invalid`] with everything that is wrong, [`Error::Denied`] if only a person may change that,
    /// [`Error::Exhausted`] if too many plans wait, [`Error::Unavailable`] if it can't be kept.
    fn propose(&self, proposal: ProposedPlan) -> Result<planning::Proposal, Error>;
    /// What each rule would make of an event, in the words of the timeline language.
    ///
    /// # Errors
    /// A sentence, if it is no event, or there is no such mode.
    fn explain(&self, device: &str, event: &str, mode: Option<&str>) -> Result<Vec<host_state::Explanation>, String>;
    /// The last events, oldest first.
    fn events(&self, limit: usize) -> Vec<(Nanos, DeviceId, Event)>;
    /// The last events with the rules that fired, oldest first.
    fn captured(&self, limit: usize) -> Vec<Captured>;
    /// Makes a mode the one in force.
    ///
    /// # Errors
    /// A sentence, if there is no such mode.
    fn switch_mode(&self, mode: &str) -> Result<(), String>;
    /// Stops hearing a device, or hears it again. Waits for the ports thread.
    ///
    /// # Errors
    /// A sentence, if there is no such device.
    fn mute(&self, device: &str, muted: bool) -> Result<(), String>;
    /// The sessions in which every port is heard; `None` if there are no ports.
    fn listening(&self) -> Option<&Arc<Listening>> {
        None
    }
    /// Sends one MIDI message, whole, to the output of this name.
    ///
    /// # Errors
    /// A sentence: no such output, no MIDI message, a port that is gone.
    fn send_midi(&self, target: &str, message: &[u8]) -> Result<(), MidiRefusal>;
    /// Asks the device behind an output who it is, and waits for the answer; `None` if it does not answer.
    ///
    /// # Errors
    /// As of [`send_midi`](Self::send_midi).
    fn probe(&self, target: &str) -> Result<Option<hardware::Identity>, MidiRefusal>;
    /// Does an action once, and says what was done.
    ///
    /// # Errors
    /// What is wrong with it, or who could not do it.
    fn perform(&self, action: Value) -> Result<String, String>;
}

/// An event that came, and what came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Captured {
    /// When.
    pub at: Nanos,
    /// Where it came from.
    pub device: DeviceId,
    /// What it is.
    pub event: Event,
    /// The rules that fired.
    pub fired: Vec<String>,
}

/// Why a message was not sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MidiRefusal {
    /// The bytes are no MIDI message.
    Invalid(String),
    /// The output is not there, or is behind.
    Unavailable(String),
}

impl From<MidiRefusal> for Error {
    fn from(refusal: MidiRefusal) -> Self {
        match refusal {
            MidiRefusal::Invalid(text) => Self::Invalid(text),
            MidiRefusal::Unavailable(text) => Self::Unavailable(text),
        }
    }
}

/// Changes in one plan.
pub const MAX_CHANGES: usize = 256;
/// Bytes of the changes of one plan, paths and values (256 KiB).
pub const MAX_CHANGES_BYTES: usize = 256 * 1024;

/// A plan that a feature proposes.
#[derive(Debug, Clone, PartialEq)]
pub struct ProposedPlan {
    /// The id of the feature.
    pub proposer: String,
    /// Who called the tool that proposes it; `None` if the feature proposes by itself.
    pub caller: Option<Caller>,
    /// What it does, in the proposer's words: as they came, of any length.
    pub description: String,
    /// Whether it comes from a privileged tool.
    pub privileged: bool,
    /// At most [`MAX_CHANGES`], of [`MAX_CHANGES_BYTES`].
    pub changes: Vec<ProposedChange>,
}

/// One change of the configuration: what stands at a place from then on.
#[derive(Debug, Clone, PartialEq)]
pub struct ProposedChange {
    /// Keys and numbers from the top, none of them empty.
    pub path: Vec<String>,
    /// What stands there; `None` to remove it.
    pub value: Option<Value>,
}
