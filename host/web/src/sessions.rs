//! Authentication of browsers: the pending sign-in link, and the sessions (cookies), kept in memory only.
//!
//! Codes of links and ids of sessions are 256 random bits. Their digests are kept and compared, so that the
//! time of a comparison does not depend on them (no timing attack).

use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

use conductor_stdx::digest::{hex, sha256};
use conductor_stdx::rate::RateLimiter;
use conductor_terminal::log::NOTICE;
use hyper::StatusCode;
use hyper::header::{self, HeaderMap};
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::Limits;
use super::answer::ErrorAnswer;

/// Lines a second of the log about wrong codes and cookies.
const LOG_RATE: f64 = 1.0 / 60.0;

/// A browser that is signed in.
#[derive(Debug, Clone)]
pub(super) struct Session {
    ends: Instant,
    /// Its place went to another one.
    displaced: CancellationToken,
}

impl Session {
    /// Waits for its end.
    pub(super) async fn ended(self) {
        tokio::select! {
            () = tokio::time::sleep_until(self.ends.into()) => {}
            () = self.displaced.cancelled() => {}
        }
    }
}

/// A new session, for the browser that keeps it.
#[derive(Debug)]
pub(super) struct SignedIn {
    /// The value of `Set-Cookie`.
    pub(super) cookie: String,
}

#[derive(Debug, Default)]
struct SessionState {
    /// The digest of the code that was not used yet, and until when it can be.
    link: Option<(String, Instant)>,
    /// Digests of ids, the oldest first.
    sessions: VecDeque<(String, Session)>,
}

/// The link and the sessions of one server.
#[derive(Debug)]
pub(super) struct Sessions {
    /// The cookie's, which has the port: browsers send the cookies of all ports of a computer to each.
    name: String,
    link_life: Duration,
    session_life: Duration,
    most: usize,
    kept: Mutex<SessionState>,
    wrong: Wrong,
}

impl Sessions {
    pub(super) fn new(port: u16, limits: &Limits) -> Self {
        let wrong = Wrong {
            delay: limits.wrong_delay,
            places: Semaphore::new(limits.wrong_at_once),
            log: RateLimiter::new(LOG_RATE, 1.0),
            count: Mutex::new(0),
        };
        Self {
            name: format!("conductor-shell-{port}"),
            link_life: limits.link_life,
            session_life: limits.session_life,
            most: limits.sessions,
            kept: Mutex::default(),
            wrong,
        }
    }

    /// The code of a new link. The link before it signs in no longer.
    ///
    /// # Errors
    /// Where the system has no randomness.
    pub(super) fn link(&self) -> io::Result<String> {
        let code = secret()?;
        self.kept.lock().link = Some((sha256(code.as_bytes()), Instant::now() + self.link_life));
        Ok(code)
    }

    /// Signs a browser in with the code of a link, which serves once.
    ///
    /// # Errors
    /// 401 for another code, or one whose time is up, after a while; 429 if too many wait for that.
    pub(super) async fn sign_in(&self, code: &str) -> Result<SignedIn, ErrorAnswer> {
        if self.used(code) {
            return self.begin().map_err(|error| {
                ErrorAnswer::new(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    "internal",
                    format!("there is no randomness: {error}"),
                )
            });
        }
        Err(self.wrong.answer("link", "this link was used, or is too old").await)
    }

    /// Takes the link away if the code is its own and its time is not up.
    fn used(&self, code: &str) -> bool {
        let (said, mut kept) = (sha256(code.as_bytes()), self.kept.lock());
        let opens = kept.link.as_ref().is_some_and(|(code, until)| *code == said && Instant::now() < *until);
        if opens {
            kept.link = None;
        }
        opens
    }

    fn begin(&self) -> io::Result<SignedIn> {
        let id = secret()?;
        let session = Session { ends: Instant::now() + self.session_life, displaced: CancellationToken::new() };
        let mut kept = self.kept.lock();
        kept.forget_ended();
        while kept.sessions.len() >= self.most {
            let oldest = kept.sessions.pop_front();
            oldest.inspect(|(_, session)| session.displaced.cancel());
        }
        kept.sessions.push_back((sha256(id.as_bytes()), session));
        tracing::info!(target: NOTICE, "a browser has signed in, {} of at most {}", kept.sessions.len(), self.most);
        let (name, seconds) = (&self.name, self.session_life.as_secs());
        Ok(SignedIn { cookie: format!("{name}={id}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict") })
    }

    /// The session of the browser that sent these headers.
    ///
    /// # Errors
    /// 401 if there is none, for a wrong cookie after a while; 429 if too many wait for that.
    pub(super) async fn of(&self, headers: &HeaderMap) -> Result<Session, ErrorAnswer> {
        match self.find(headers) {
            Ok(session) => Ok(session),
            Err(NoSession::Wrong) => Err(self.wrong.answer("cookie", SIGNED_OUT).await),
            Err(NoSession::None) => Err(ErrorAnswer::new(StatusCode::UNAUTHORIZED, "unauthorized", SIGNED_OUT)),
        }
    }

    /// Whether the browser that sent these headers is signed in.
    pub(super) fn has(&self, headers: &HeaderMap) -> bool {
        self.find(headers).is_ok()
    }

    fn find(&self, headers: &HeaderMap) -> Result<Session, NoSession> {
        let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let pairs = cookies.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
        let mut kept = self.kept.lock();
        kept.forget_ended();
        let mut found = Err(NoSession::None);
        for (_, id) in pairs.filter(|(name, _)| *name == self.name) {
            let said = sha256(id.as_bytes());
            match kept.sessions.iter().find(|(digest, _)| *digest == said) {
                Some((_, session)) => return Ok(session.clone()),
                None => found = Err(NoSession::Wrong),
            }
        }
        found
    }
}

/// What a browser without a session can do.
const SIGNED_OUT: &str = "this browser is not signed in; press Enter where `conductor ui` runs, and open the link that \
                          it prints";

enum NoSession {
    None,
    Wrong,
}

impl SessionState {
    fn forget_ended(&mut self) {
        let now = Instant::now();
        self.sessions.retain(|(_, session)| now < session.ends);
    }
}

/// Codes and cookies that are wrong: each waits, and they are counted in the log, without what they say.
#[derive(Debug)]
struct Wrong {
    delay: Duration,
    places: Semaphore,
    log: RateLimiter,
    /// Since the server began.
    count: Mutex<u64>,
}

impl Wrong {
    async fn answer(&self, what: &str, why: &str) -> ErrorAnswer {
        {
            let mut count = self.count.lock();
            *count += 1;
            if self.log.take(Instant::now()) {
                tracing::warn!(
                    "a browser came with a {what} that opens nothing; wrong links and cookies so far: {count}"
                );
            }
        }
        let Ok(_place) = self.places.try_acquire() else {
            let error = "too many wrong links and cookies; try again later";
            return ErrorAnswer::new(StatusCode::TOO_MANY_REQUESTS, "too_many", error);
        };
        tokio::time::sleep(self.delay).await;
        ErrorAnswer::new(StatusCode::UNAUTHORIZED, "unauthorized", why)
    }
}

/// 256 random bits as hex digits.
fn secret() -> io::Result<String> {
    let mut random = [0; 32];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    Ok(hex(&random))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cookie(signed_in: &SignedIn) -> HeaderMap {
        let (pair, _) = signed_in.cookie.split_once(';').unwrap();
        let mut headers = HeaderMap::new();
        headers.append(header::COOKIE, "other=1".parse().unwrap());
        headers.append(header::COOKIE, format!("a=b; {pair}; c=d").parse().unwrap());
        headers
    }

    #[test]
    fn a_link_serves_once_and_ends_the_one_before() {
        let sessions = Sessions::new(7, &Limits::default());
        let (first, second) = (sessions.link().unwrap(), sessions.link().unwrap());
        assert_eq!(first.len(), 64);
        assert!(!sessions.used(&first) && !sessions.used(""));
        assert!(sessions.used(&second) && !sessions.used(&second));
        let old = Sessions::new(7, &Limits { link_life: Duration::ZERO, ..Limits::default() });
        assert!(!old.used(&old.link().unwrap()));
    }

    #[test]
    fn one_browser_too_many_signs_the_first_one_out() {
        let sessions = Sessions::new(7, &Limits { sessions: 2, ..Limits::default() });
        let [first, second, third] = [0; 3].map(|_| sessions.begin().unwrap());
        assert!(
            first.cookie.starts_with("conductor-shell-7=") && first.cookie.ends_with("; HttpOnly; SameSite=Strict")
        );
        assert!(!sessions.has(&cookie(&first)) && sessions.has(&cookie(&second)) && sessions.has(&cookie(&third)));
        let other = Sessions::new(8, &Limits::default());
        assert!(!other.has(&cookie(&second)), "each server has its own");
        let short = Sessions::new(7, &Limits { session_life: Duration::ZERO, ..Limits::default() });
        assert!(!short.has(&cookie(&short.begin().unwrap())));
    }
}
