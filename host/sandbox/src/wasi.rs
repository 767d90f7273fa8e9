//! WASI, for components whose toolchain puts it into them: a world with nothing in it.
//!
//! There are no arguments and no variables, no folder, no socket, no name to look up. Time and randomness are there, as
//! every feature has them from the contract, and what is printed goes to the log line by line, at the rate of what the
//! feature says itself. What a grant opens comes through the contract alone.
//!
//! WASI can wait, so the real-time lane does not have it; see [`conductor_package::check`].

use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncWrite;
use wasmtime::component::Linker;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamError};
use wasmtime_wasi::{HostMonotonicClock, HostWallClock, WasiCtx, WasiCtxView, WasiView, async_trait};

use crate::limits;
use crate::state::{FeatureFacts, InstanceState};
use conductor_observer::sink_message::{Severity, SinkKind};
use conductor_stdx::clock::Clock;

/// Bytes of randomness that are given at once; asking for more traps. Python takes 2.5 kB to shuffle with.
const MAX_RANDOM: u64 = 64 * 1024;

/// Bytes that are taken from a guest's print at once.
const MAX_WRITE: usize = 4096;

/// Puts it into a linker of the control lane.
///
/// # Errors
/// When it is in there already, which would be a mistake here.
pub fn link(linker: &mut Linker<InstanceState>) -> wasmtime::Result<()> {
    wasmtime_wasi::p2::add_to_linker_async(linker)
}

impl WasiView for InstanceState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        let ctx = self.wasi.0.get_or_insert_with(|| Box::new(empty(&self.facts)));
        WasiCtxView { ctx, table: &mut self.table }
    }
}

/// What is not said here is not there: folders, sockets, names, variables, arguments, input.
fn empty(facts: &Arc<FeatureFacts>) -> WasiCtx {
    let clock = facts.services.clock;
    WasiCtx::builder()
        .stdout(Log::new(facts, Severity::Info))
        .stderr(Log::new(facts, Severity::Warning))
        .max_random_size(MAX_RANDOM)
        .wall_clock(WasiClock(clock))
        .monotonic_clock(WasiClock(clock))
        .build()
}

/// The host's clock.
struct WasiClock(Clock);

impl HostWallClock for WasiClock {
    fn resolution(&self) -> Duration {
        Duration::from_millis(1)
    }

    fn now(&self) -> Duration {
        Duration::from_millis(self.0.wall())
    }
}

impl HostMonotonicClock for WasiClock {
    fn resolution(&self) -> u64 {
        1
    }

    fn now(&self) -> u64 {
        self.0.now()
    }
}

/// What a guest prints, on its way to the log. All its streams share the line that they are in.
#[derive(Debug, Clone)]
struct Log(Arc<Mutex<Line>>);

#[derive(Debug)]
struct Line {
    facts: Arc<FeatureFacts>,
    severity: Severity,
    /// What there is of it: no more than the log takes.
    text: Vec<u8>,
}

impl Log {
    fn new(facts: &Arc<FeatureFacts>, severity: Severity) -> Self {
        Self(Arc::new(Mutex::new(Line { facts: Arc::clone(facts), severity, text: Vec::new() })))
    }
}

impl Line {
    fn take(&mut self, printed: &[u8]) {
        for byte in printed {
            match byte {
                b'\n' => self.end(),
                // The log would cut it.
                _ if self.text.len() >= limits::MAX_TEXT => {}
                _ => self.text.push(*byte),
            }
        }
    }

    fn end(&mut self) {
        let text = std::mem::take(&mut self.text);
        if !text.is_empty() {
            let text = String::from_utf8_lossy(&text).into_owned();
            self.facts.say(SinkKind::Diagnostic(self.severity), text, limits::MAX_TEXT);
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.end();
    }
}

impl IsTerminal for Log {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Log {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        // Only a later WASI asks for it.
        Box::new(tokio::io::sink())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

#[async_trait]
impl Pollable for Log {
    async fn ready(&mut self) {}
}

impl OutputStream for Log {
    fn check_write(&mut self) -> Result<usize, StreamError> {
        Ok(MAX_WRITE)
    }

    fn write(&mut self, printed: bytes::Bytes) -> Result<(), StreamError> {
        self.0.lock().take(&printed);
        Ok(())
    }

    /// A line is logged when it ends: programs flush in the middle of one.
    fn flush(&mut self) -> Result<(), StreamError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datagrams::SystemDatagrams;
    use crate::services::Services;
    use crate::state::Shared;
    use conductor_observer::sink_message::SinkQueue;
    use conductor_package::{Descriptor, Grants};

    /// A line without an end takes no more memory than the log would take of it.
    #[test]
    fn a_line_without_an_end_is_not_kept() {
        let descriptor = Descriptor::parse(b"id = 'project:x'\nname = 'X'\nversion = '1'\ncontract = '0.1'\n").unwrap();
        let (sinks, said) = SinkQueue::new();
        let services = Arc::new(Services::new(sinks, Box::new(SystemDatagrams)));
        let facts = Arc::new(FeatureFacts::new(
            descriptor,
            String::new(),
            Grants::default().into(),
            &services,
            &Shared::new(&services),
        ));
        let log = Log::new(&facts, Severity::Info);
        let kept = |log: &Log| log.0.lock().text.len();
        for _ in 0..100 {
            log.clone().write(bytes::Bytes::from(vec![b'x'; MAX_WRITE])).unwrap();
            assert!(kept(&log) <= limits::MAX_TEXT, "{}", kept(&log));
        }
        assert!(said.is_empty());
        log.clone().write("\n".into()).unwrap();
        assert_eq!((kept(&log), said.len()), (0, 1));
    }
}
