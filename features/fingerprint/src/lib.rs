//! A tool that tells what kind of source each device is, from the events of the last seconds. What decides is in the
//! crate `source-kind`.

use conductor_feature::host_state::Direction;
use conductor_feature::json::{answer, register, unknown};
use conductor_feature::{Context, Error, Invocation, Lifecycle, ReadOnlyTools, Reader, tool_registrar};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use source_kind::Heard;

/// Seconds that are looked at, if the call does not say.
const USUAL_SECONDS: u16 = 30;
/// The longest window, in seconds.
const MAX_SECONDS: u16 = 300;

struct Fingerprint;

impl Lifecycle for Fingerprint {
    fn install(ctx: &Context) -> Result<(), Error> {
        let tools = tool_registrar::Registrar::open(ctx)?;
        register::<FingerprintArgs, Found>(&tools, "conductor_fingerprint")
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FingerprintArgs {
    /// Only this one.
    device: Option<String>,
    /// 1-300. Default: 30.
    seconds: Option<u16>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Found {
    devices: Vec<Device>,
    next: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Device {
    device: String,
    /// Events looked at.
    events: usize,
    /// From the first of them to the last.
    seconds: f64,
    /// Surest first; several share the port.
    sources: Vec<Source>,
    /// Events that are of none.
    unclear: usize,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Source {
    kind: String,
    /// 0-100.
    confidence: u8,
    evidence: Vec<String>,
    /// It may be this as well.
    #[serde(skip_serializing_if = "Option::is_none")]
    or_else: Option<String>,
    /// 0-15.
    channels: Vec<u8>,
    /// What to do to be surer.
    #[serde(skip_serializing_if = "Option::is_none")]
    surer: Option<String>,
}

impl From<source_kind::Source> for Source {
    fn from(source: source_kind::Source) -> Self {
        Self {
            kind: source.kind.to_string(),
            confidence: source.confidence,
            evidence: source.evidence,
            or_else: source.or_else.map(|kind| kind.to_string()),
            channels: source.channels,
            surer: source.surer.map(str::to_owned),
        }
    }
}

fn fingerprint(reader: &Reader, asked: &FingerprintArgs) -> Result<Found, Error> {
    let seconds = asked.seconds.unwrap_or(USUAL_SECONDS);
    if !(1..=MAX_SECONDS).contains(&seconds) {
        return Err(Error::Invalid(format!("seconds = {seconds}: it is 1 to {MAX_SECONDS}")));
    }
    if let Some(device) = &asked.device {
        let ports = reader.ports()?;
        let inputs = || ports.iter().filter(|port| port.direction == Direction::Input);
        if !inputs().any(|port| port.device == *device) {
            return Err(unknown("device", device, inputs().map(|port| port.device.as_str())));
        }
    }
    let heard = source_kind::heard(reader, seconds, asked.device.as_deref())?;
    let devices: Vec<Device> = heard.into_iter().map(|(device, heard)| Device::new(device, &heard)).collect();
    let shared = devices.iter().find(|device| device.sources.len() > 1);
    let surer = devices.iter().flat_map(|device| &device.sources).any(|source| source.surer.is_some());
    let next = match shared {
        _ if devices.is_empty() => "nothing came: have the person play or move something, then ask again".to_owned(),
        Some(device) => format!(
            "{} share {}: where their channels differ, conductor_create_device_identity with channels gives each a name",
            device.sources.iter().map(|source| source.kind.as_str()).collect::<Vec<_>>().join(" and "),
            device.device
        ),
        None if surer => "have the person do what makes it surer, then ask again".to_owned(),
        None => "conductor_suggest_binding names the device".to_owned(),
    };
    Ok(Found { devices, next })
}

impl Device {
    fn new(device: String, heard: &Heard) -> Self {
        let found = heard.window.classify();
        Self {
            device,
            events: heard.window.len(),
            seconds: heard.seconds(),
            sources: found.sources.into_iter().map(Source::from).collect(),
            unclear: found.unclear,
        }
    }
}

impl ReadOnlyTools for Fingerprint {
    fn call(name: String, args: String, _: &Invocation, reader: &Reader) -> Result<String, Error> {
        match name.as_str() {
            "conductor_fingerprint" => answer(&args, |asked: FingerprintArgs| fingerprint(reader, &asked)),
            _ => Err(Error::Invalid(format!("there is no tool {name}"))),
        }
    }
}

conductor_feature::feature!(Fingerprint, "../feature.toml", [read_only_tools]);
