//! Approvals: a person's consent to one call of one conversation, exactly as it was shown, once.
//!
//! What is shown, and the id that the gate takes once, come from the gate. Here only the person's answer is waited for:
//! where a phrase is to be typed after the first yes, an answer without it does not count.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::record::Approval;

/// Approvals that wait for a person.
#[derive(Debug, Default)]
pub(crate) struct Approvals(Mutex<HashMap<String, Waiting>>);

#[derive(Debug)]
struct Waiting {
    conversation: u64,
    phrase: Option<String>,
    answer: oneshot::Sender<bool>,
}

/// Why an answer to an approval does not count.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApprovalError {
    /// It does not wait.
    #[error("no approval of this id waits in this conversation: it was answered, or has expired")]
    Unknown,
    /// The second yes is not what was to be typed.
    #[error("to agree, the phrase {0:?} is given too; the call still waits")]
    Phrase(String),
}

impl Approvals {
    /// Waits for a person's answer, until what is returned is dropped.
    pub(crate) fn wait(self: &Arc<Self>, conversation: u64, asked: &Approval) -> Awaited {
        let (answer, waits) = oneshot::channel();
        self.0.lock().insert(asked.id.clone(), Waiting { conversation, phrase: asked.phrase.clone(), answer });
        Awaited { approvals: Arc::clone(self), id: asked.id.clone(), answer: waits }
    }

    /// A person's answer. It counts once.
    pub(crate) fn decide(
        &self,
        conversation: u64,
        id: &str,
        agreed: bool,
        phrase: Option<&str>,
    ) -> Result<(), ApprovalError> {
        let mut all = self.0.lock();
        let waiting = all.get(id).filter(|waiting| waiting.conversation == conversation);
        let Waiting { phrase: wanted, .. } = waiting.ok_or(ApprovalError::Unknown)?;
        if let (true, Some(wanted)) = (agreed, wanted)
            && phrase.map(str::trim) != Some(wanted.trim())
        {
            return Err(ApprovalError::Phrase(wanted.clone()));
        }
        let waiting = all.remove(id).ok_or(ApprovalError::Unknown)?;
        waiting.answer.send(agreed).map_err(|_| ApprovalError::Unknown)
    }
}

/// An answer that is waited for.
#[derive(Debug)]
pub(crate) struct Awaited {
    approvals: Arc<Approvals>,
    id: String,
    answer: oneshot::Receiver<bool>,
}

impl Awaited {
    /// Whether the person agrees. Without an answer in time they do not.
    pub(crate) async fn answer(mut self, timeout: Duration) -> bool {
        matches!(tokio::time::timeout(timeout, &mut self.answer).await, Ok(Ok(true)))
    }
}

impl Drop for Awaited {
    fn drop(&mut self) {
        self.approvals.0.lock().remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(id: &str, phrase: Option<&str>) -> Approval {
        Approval {
            id: id.into(),
            tool: "conductor_send_midi".into(),
            effect: "sends to \"synth\"".into(),
            shown: "bytes: 90 3C 64 (3 bytes)".into(),
            phrase: phrase.map(str::to_owned),
            expires_in_ms: 60_000,
        }
    }

    // PLN-3
    #[test]
    fn an_answer_counts_once_and_for_its_conversation() {
        let all = Arc::new(Approvals::default());
        let mut waits = all.wait(1, &asked("a", None));
        assert_eq!(all.decide(2, "a", true, None), Err(ApprovalError::Unknown), "of another conversation");
        assert_eq!(all.decide(1, "b", true, None), Err(ApprovalError::Unknown));
        assert!(waits.answer.try_recv().is_err());
        assert_eq!(all.decide(1, "a", true, None), Ok(()));
        assert_eq!(waits.answer.try_recv(), Ok(true));
        assert_eq!(all.decide(1, "a", true, None), Err(ApprovalError::Unknown), "again");
    }

    #[test]
    fn what_reaches_devices_takes_the_phrase_too() {
        let all = Arc::new(Approvals::default());
        let mut waits = all.wait(1, &asked("a", Some("synth")));
        for phrase in [None, Some(""), Some("yes"), Some("SYNTH")] {
            assert_eq!(all.decide(1, "a", true, phrase), Err(ApprovalError::Phrase("synth".into())));
        }
        assert!(waits.answer.try_recv().is_err(), "it waits on");
        assert_eq!(all.decide(1, "a", true, Some("synth")), Ok(()));
        assert_eq!(waits.answer.try_recv(), Ok(true));
        let mut waits = all.wait(1, &asked("b", Some("synth")));
        assert_eq!(all.decide(1, "b", false, None), Ok(()), "a no needs none");
        assert_eq!(waits.answer.try_recv(), Ok(false));
        drop(all.wait(1, &asked("c", None)));
        assert_eq!(all.decide(1, "c", true, None), Err(ApprovalError::Unknown), "no call waits for it any more");
    }
}
