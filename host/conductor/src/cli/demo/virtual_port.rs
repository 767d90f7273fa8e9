//! Virtual MIDI ports for the demo to play on: the system's, or JACK's in a build for it.

use crossbeam_channel::Sender;

/// A port that plays.
pub(super) struct Output(
    #[cfg(not(feature = "jack"))] midir::MidiOutputConnection,
    #[cfg(feature = "jack")] conductor_jack::Output,
);

impl Output {
    /// Plays one message.
    pub(super) fn send(&mut self, message: &[u8]) -> anyhow::Result<()> {
        Ok(self.0.send(message)?)
    }
}

/// A port that sounds.
pub(super) struct Input(
    #[cfg(not(feature = "jack"))]
    #[allow(dead_code, reason = "it is open for as long as it lives")]
    Connection,
    #[cfg(feature = "jack")]
    #[allow(dead_code, reason = "it is open for as long as it lives")]
    conductor_jack::Input,
);

#[cfg(not(feature = "jack"))]
type Connection = midir::MidiInputConnection<Sender<Vec<u8>>>;

/// What ports are made of.
pub(super) struct Ports(#[cfg(feature = "jack")] conductor_jack::Client);

#[cfg(not(feature = "jack"))]
impl Ports {
    pub(super) fn new() -> anyhow::Result<Self> {
        Ok(Self())
    }

    pub(super) fn output(&self, name: &str) -> anyhow::Result<Output> {
        use midir::os::unix::VirtualOutput as _;
        let port = midir::MidiOutput::new(name)?.create_virtual("out");
        Ok(Output(port.map_err(|error| anyhow::anyhow!("{name}: {error}"))?))
    }

    pub(super) fn input(&self, name: &str, heard: Sender<Vec<u8>>) -> anyhow::Result<Input> {
        use midir::os::unix::VirtualInput as _;
        let client = midir::MidiInput::new(name)?;
        let port = client.create_virtual("in", |_, bytes, heard| drop(heard.send(bytes.to_vec())), heard);
        Ok(Input(port.map_err(|error| anyhow::anyhow!("{name}: {error}"))?))
    }
}

#[cfg(feature = "jack")]
impl Ports {
    pub(super) fn new() -> anyhow::Result<Self> {
        Ok(Self(conductor_jack::Client::open("demo")?))
    }

    pub(super) fn output(&self, name: &str) -> anyhow::Result<Output> {
        Ok(Output(self.0.output(name)?))
    }

    pub(super) fn input(&self, name: &str, heard: Sender<Vec<u8>>) -> anyhow::Result<Input> {
        Ok(Input(self.0.input(name, move |bytes| drop(heard.send(bytes.to_vec())))?))
    }
}
