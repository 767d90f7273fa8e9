//! Services: what a grant opens.
//!
//! Most files implement interfaces of the contract for [`InstanceState`]: the resource behind the
//! guest's handle holds its scope, and a revocation flag that is looked at on every call. Others know
//! nothing of the sandbox: [`notification_log`], where notifications end, and what works on the disk
//! for [`files`] and [`store`].
//!
//! [`InstanceState`]: crate::feature::sandbox::state::InstanceState

use std::sync::Arc;

pub mod devices;
pub mod files;
pub mod install;
pub mod notification_log;
pub mod refusal;
pub mod sinks;
pub mod store;
pub mod udp;

/// The host's side of all services, shared by every instance of every feature.
#[derive(Debug)]
pub struct Services {
    /// Names behind device numbers.
    pub devices: Arc<devices::DeviceTable>,
    /// Where diagnostics, alerts and notifications go.
    pub sinks: sinks::SinkQueue,
    /// How datagrams leave, and how host names are resolved.
    pub datagrams: Box<dyn udp::Datagrams>,
}
