//! Real-time scheduling and memory locking for programs of this user, which JACK needs.

use super::super::finding::Finding;

/// Bytes of memory that JACK's clients lock, roughly.
const MIN_MEMLOCK_BYTES: u64 = 64 << 20;

/// The limits of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RealtimeCheck {
    /// Whether MIDI goes through JACK.
    jack: bool,
    /// The highest real-time priority that may be asked for; 0 is none.
    rtprio: u64,
    /// Bytes that may be locked; `None` if there is no limit.
    memlock: Option<u64>,
    /// Whether rtkit is installed, which grants real-time priority.
    rtkit: bool,
}

impl RealtimeCheck {
    /// None on systems that have no such limits.
    #[cfg(target_os = "linux")]
    pub(super) fn gather(jack: bool) -> Option<Self> {
        use rustix::process::{Resource, getrlimit};
        let rtkit = "/usr/share/dbus-1/system-services/org.freedesktop.RealtimeKit1.service";
        Some(Self {
            jack,
            rtprio: getrlimit(Resource::Rtprio).current.unwrap_or(99),
            memlock: getrlimit(Resource::Memlock).current,
            rtkit: std::path::Path::new(rtkit).exists(),
        })
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn gather(_: bool) -> Option<Self> {
        None
    }

    pub(super) fn judge(&self) -> Finding {
        const ABOUT: &str = "real time";
        let memlock = self.memlock.map_or("any memory".to_owned(), |bytes| format!("{} MiB", bytes >> 20));
        let rtkit = if self.rtkit { "rtkit is there" } else { "no rtkit" };
        let what = format!("priority up to {}, {memlock} may be locked, {rtkit}", self.rtprio);
        let enough = (self.rtprio > 0 || self.rtkit) && self.memlock.is_none_or(|bytes| bytes >= MIN_MEMLOCK_BYTES);
        if enough {
            return Finding::ok(ABOUT, what);
        }
        if !self.jack {
            return Finding::ok(ABOUT, format!("{what}; that is enough, since MIDI does not go through JACK"));
        }
        Finding::warning(
            ABOUT,
            format!("{what}: JACK and its clients may lose notes when the machine is busy"),
            "write these lines into /etc/security/limits.d/95-conductor.conf:\n\
             @audio - rtprio 95\n@audio - memlock unlimited\n\
             then `sudo usermod -aG audio \"$USER\"`, and log out and in again",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Level;
    use super::*;

    #[test]
    fn only_jack_needs_real_time() {
        let none = RealtimeCheck { jack: false, rtprio: 0, memlock: Some(8 << 20), rtkit: false };
        assert_eq!(none.judge().level, Level::Ok);
        assert_eq!(RealtimeCheck { jack: true, ..none }.judge().level, Level::Warning);
        assert_eq!(RealtimeCheck { jack: true, rtprio: 95, ..none }.judge().level, Level::Warning);
        assert_eq!(RealtimeCheck { jack: true, rtprio: 95, memlock: None, ..none }.judge().level, Level::Ok);
        assert_eq!(
            RealtimeCheck { jack: true, rtkit: true, memlock: Some(MIN_MEMLOCK_BYTES), ..none }.judge().level,
            Level::Ok
        );
    }
}
