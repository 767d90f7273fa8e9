//! Log messages for agents that ask for them by `logging/setLevel`, which revisions before 2026-07-28 have.
//!
//! They say what goes wrong and what changes: failed actions, ports, reloads, modes, plans, the lock, and notifications
//! of features, which may speak to models. Events are left out, since whether an agent may see them is up to the tool
//! that shows them, and so are diagnostics and alerts, which are for people.

#![expect(deprecated, reason = "deprecated as of 2026-07-28, and there for clients of earlier revisions")]

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use rmcp::model::{LoggingLevel, LoggingMessageNotificationParam};
use rmcp::{Peer, RoleServer};
use serde_json::{Value, json};

use conductor_host::host::Host;
use conductor_observation::ObservationView;
use conductor_observer::{Observation, sink_message::SinkKind};
use conductor_stdx::rate::RateLimiter;

/// Messages a second for one client.
const RATE: f64 = 10.0;
/// Messages at once for one client.
const BURST: f64 = 20.0;
/// Observations that are looked at without a pause.
const MAX_BATCH: usize = 256;
/// How long observations are batched, so that a busy host does not wake the thread for each of them.
const BATCH_INTERVAL: Duration = Duration::from_millis(100);
/// How often it is checked whether the client is still there.
const CHECK_INTERVAL: Duration = Duration::from_secs(30);
/// The level of a client that has asked for no messages.
const OFF: u8 = u8::MAX;

/// The least level of which a client gets messages.
#[derive(Debug)]
pub(super) struct Threshold(AtomicU8);

impl Default for Threshold {
    fn default() -> Self {
        Self(AtomicU8::new(OFF))
    }
}

impl Threshold {
    /// Sets it; `true` if this client gets its first messages by it.
    pub(super) fn set(&self, level: LoggingLevel) -> bool {
        self.0.swap(level as u8, Ordering::Relaxed) == OFF
    }

    fn lets(&self, level: LoggingLevel) -> bool {
        level as u8 >= self.0.load(Ordering::Relaxed)
    }
}

/// Whether notifications of features are among the messages from this level on.
pub(super) fn has_notifications(level: LoggingLevel) -> bool {
    level as u8 <= LoggingLevel::Notice as u8
}

/// Sends a client its messages from now on, until it is gone or the host stops.
pub(super) fn start(host: &Weak<Host>, peer: Peer<RoleServer>, threshold: Arc<Threshold>) {
    let Some(strong) = host.upgrade() else { return };
    let (host, history) = (Weak::clone(host), strong.observed().history().clone());
    let (mut last, rate) = (history.last(), RateLimiter::new(RATE, BURST));
    let mut position = *last.borrow_and_update();
    drop(strong);
    tokio::spawn(async move {
        let mut left_out = 0_u64;
        loop {
            tokio::select! {
                changed = last.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    tokio::time::sleep(BATCH_INTERVAL).await;
                    last.borrow_and_update();
                }
                () = tokio::time::sleep(CHECK_INTERVAL) => {}
            }
            if peer.is_transport_closed() {
                return;
            }
            loop {
                let moments = history.after(position, MAX_BATCH);
                let Some(newest) = moments.last() else { break };
                position = newest.number;
                for moment in &moments {
                    let Some(level) = level(&moment.observation).filter(|level| threshold.lets(*level)) else {
                        continue;
                    };
                    if !rate.take(Instant::now()) {
                        left_out += 1;
                        continue;
                    }
                    let Some(host) = host.upgrade() else { return };
                    let data = data(ObservationView::of(&moment.observation, &host), std::mem::take(&mut left_out));
                    drop(host);
                    let message = LoggingMessageNotificationParam::new(level, data).with_logger("conductor");
                    if peer.notify_logging_message(message).await.is_err() && peer.is_transport_closed() {
                        return;
                    }
                }
            }
        }
    });
}

/// How much an observation matters; `None` if it is not for agents.
fn level(observation: &Observation) -> Option<LoggingLevel> {
    match observation {
        Observation::Failure(_) | Observation::Refused(_) => Some(LoggingLevel::Error),
        Observation::PortTrouble(_) => Some(LoggingLevel::Warning),
        Observation::Lock(_) | Observation::Plan(_) => Some(LoggingLevel::Notice),
        Observation::Sink(message) if message.kind == SinkKind::Notification => Some(LoggingLevel::Notice),
        Observation::Mode(_) | Observation::Port(_) | Observation::Reload(_) => Some(LoggingLevel::Info),
        Observation::Event(_)
        | Observation::Lights(_)
        | Observation::Sink(_)
        | Observation::Chat(_)
        | Observation::Model(_) => None,
    }
}

/// What happened, as the stream has it, and how many messages were left out before it.
fn data(view: ObservationView, left_out: u64) -> Value {
    // Of strings and numbers only: it always has a JSON form.
    let mut data = serde_json::to_value(view).unwrap_or_default();
    if left_out > 0
        && let Value::Object(data) = &mut data
    {
        data.insert("left_out".to_owned(), json!(left_out));
    }
    data
}

#[cfg(test)]
mod tests {
    use super::*;
    use conductor_observer::LockChange;

    #[test]
    fn only_what_is_for_agents_has_a_level() {
        assert_eq!(level(&Observation::Mode("Play".into())), Some(LoggingLevel::Info));
        assert_eq!(level(&Observation::Refused("x".into())), Some(LoggingLevel::Error));
        let lock = Observation::Lock(LockChange { locked: true, by: "owner".into() });
        assert_eq!(level(&lock), Some(LoggingLevel::Notice));
    }

    #[test]
    fn a_threshold_is_off_until_it_is_set() {
        let threshold = Threshold::default();
        assert!(!threshold.lets(LoggingLevel::Emergency));
        assert!(threshold.set(LoggingLevel::Warning));
        assert!(!threshold.set(LoggingLevel::Error), "it was set before");
        assert!(threshold.lets(LoggingLevel::Error) && !threshold.lets(LoggingLevel::Warning));
    }

    #[test]
    fn what_was_left_out_is_counted() {
        let view = || ObservationView::Mode { mode: "Play".into() };
        assert_eq!(data(view(), 0)["left_out"], Value::Null);
        assert_eq!(data(view(), 7)["left_out"], 7);
    }
}
