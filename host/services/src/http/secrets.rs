//! Secret injection: values that the host puts into a header, and that a feature never sees.

use std::ffi::OsString;
use std::fmt;

use reqwest::header::HeaderValue;

/// The shortest secret, in bytes. A shorter one would be found in responses by chance, and could be
/// guessed from what was taken out of them.
pub const MIN_SECRET: usize = 8;

/// Where secrets are kept.
pub trait Secrets: fmt::Debug + Send + Sync {
    /// The value of the secret `id`. May wait; called where that holds nothing up.
    ///
    /// # Errors
    /// When there is none, or none that can be used. The text says what to do, and never the value.
    fn get(&self, id: &str) -> Result<Secret, SecretError>;
}

/// Records every secret that is sent.
pub trait SecretAudit: fmt::Debug + Send + Sync {
    /// The feature sends the secret `id` to `site`, as `https://host:port`. Must not wait.
    fn sent(&self, feature: &str, id: &str, site: &str, secret: &Secret);
}

/// A secret's value. It prints as `***`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

/// Why there is no secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    /// None is kept under this id.
    #[error("the secret {id:?} is not set; {remedy}")]
    Missing {
        /// The id.
        id: String,
        /// What to do about it.
        remedy: String,
    },
    /// It is shorter than [`MIN_SECRET`].
    #[error("the secret {0:?} has fewer than {MIN_SECRET} bytes, too short to be kept out of responses")]
    TooShort(String),
    /// It can't stand in a header.
    #[error("the secret {0:?} can't stand in a header; it may hold visible ASCII characters only, and no line break")]
    Unusable(String),
}

impl Secret {
    /// Takes the value of the secret `id`.
    ///
    /// # Errors
    /// When it has fewer than [`MIN_SECRET`] bytes, or others than visible ASCII.
    pub fn new(id: &str, value: String) -> Result<Self, SecretError> {
        if !value.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(SecretError::Unusable(id.to_owned()));
        }
        if value.len() < MIN_SECRET {
            return Err(SecretError::TooShort(id.to_owned()));
        }
        Ok(Self(value))
    }

    /// The value itself, for code that has to keep it out of something.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The value of a header: the prefix, then the secret. `None` if the prefix is not valid in a header.
    pub(super) fn header(&self, prefix: &str) -> Option<HeaderValue> {
        let mut value = HeaderValue::try_from(format!("{prefix}{}", self.0)).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    /// `text` with `***` wherever the secret stood.
    pub(super) fn taken_out_of(&self, text: Vec<u8>) -> Vec<u8> {
        replaced(text, self.0.as_bytes())
    }

    /// The same for a header's name, which always comes in lower case.
    pub(super) fn taken_out_of_name(&self, name: &str) -> Vec<u8> {
        replaced(name.as_bytes().to_vec(), self.0.to_ascii_lowercase().as_bytes())
    }
}

/// Takes a secret out of what comes in pieces, wherever they are cut.
#[derive(Debug)]
pub(super) struct Redactor {
    secret: Secret,
    /// What may be the beginning of the secret.
    held: Vec<u8>,
}

impl Redactor {
    pub(super) fn new(secret: Secret) -> Self {
        Self { secret, held: Vec::new() }
    }

    /// What may be passed on after this piece.
    pub(super) fn pass(&mut self, piece: &[u8]) -> Vec<u8> {
        let secret = self.secret.0.as_bytes();
        self.held.extend_from_slice(piece);
        let (mut out, mut at) = (Vec::with_capacity(self.held.len()), 0);
        while at < self.held.len() {
            let rest = &self.held[at..];
            if rest.starts_with(secret) {
                out.extend_from_slice(b"***");
                at += secret.len();
            } else if secret.starts_with(rest) {
                break;
            } else {
                out.push(rest[0]);
                at += 1;
            }
        }
        self.held.drain(..at);
        out
    }

    /// What was held back, when nothing more comes.
    pub(super) fn rest(self) -> Vec<u8> {
        self.held
    }
}

fn replaced(text: Vec<u8>, secret: &[u8]) -> Vec<u8> {
    let find = |from: usize| text[from..].windows(secret.len()).position(|bytes| bytes == secret).map(|at| from + at);
    let Some(mut at) = find(0) else { return text };
    let mut out = Vec::with_capacity(text.len());
    let mut done = 0;
    loop {
        out.extend_from_slice(&text[done..at]);
        out.extend_from_slice(b"***");
        done = at + secret.len();
        match find(done) {
            Some(next) => at = next,
            None => break,
        }
    }
    out.extend_from_slice(&text[done..]);
    out
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Secrets from the environment: `openai-key` is `CONDUCTOR_SECRET_OPENAI_KEY`.
#[derive(Debug, Clone, Copy, Default)]
pub struct EnvironmentSecrets;

impl Secrets for EnvironmentSecrets {
    fn get(&self, id: &str) -> Result<Secret, SecretError> {
        let name = variable(id);
        let value = std::env::var_os(&name);
        from_environment(id, &name, value)
    }
}

/// The environment variable of the secret `id`.
fn variable(id: &str) -> String {
    format!("CONDUCTOR_SECRET_{}", id.to_ascii_uppercase().replace('-', "_"))
}

pub(crate) fn from_environment(id: &str, name: &str, value: Option<OsString>) -> Result<Secret, SecretError> {
    let value = value.filter(|value| !value.is_empty()).ok_or_else(|| SecretError::Missing {
        id: id.to_owned(),
        remedy: format!("put it into the environment variable {name}"),
    })?;
    let value = value.into_string().map_err(|_| SecretError::Unusable(id.to_owned()))?;
    Secret::new(id, value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_names_an_environment_variable() {
        assert_eq!(variable("openai-key"), "CONDUCTOR_SECRET_OPENAI_KEY");
        let set = |value: &str| from_environment("key", "CONDUCTOR_SECRET_KEY", Some(value.into()));
        assert_eq!(set("hunter2hunter2").unwrap().header("Bearer ").unwrap(), "Bearer hunter2hunter2");
        assert_eq!(set("seven77"), Err(SecretError::TooShort("key".into())));
        assert_eq!(set("hunter2hunter2\n"), Err(SecretError::Unusable("key".into())));
        let missing = EnvironmentSecrets.get("not-set-anywhere").unwrap_err().to_string();
        assert!(missing.contains("CONDUCTOR_SECRET_NOT_SET_ANYWHERE"), "{missing}");
    }

    #[test]
    fn a_secret_never_prints() {
        let secret = Secret::new("key", "hunter2hunter2".into()).unwrap();
        let header = secret.header("Bearer ").unwrap();
        assert_eq!(format!("{secret:?}"), "***");
        assert!(!format!("{header:?}").contains("hunter2"), "{header:?}");
        assert!(secret.header("Bearer\r\n").is_none());
    }

    #[test]
    fn a_secret_is_taken_out_of_pieces_wherever_they_are_cut() {
        let text = b"<AbcdefghAbcdefgh> AbcAbcdefgh Abcdefg";
        for first in 0..=text.len() {
            for second in first..=text.len() {
                let mut redactor = Redactor::new(Secret::new("key", "Abcdefgh".into()).unwrap());
                let pieces = [&text[..first], &text[first..second], &text[second..]];
                let mut out: Vec<u8> = pieces.iter().flat_map(|piece| redactor.pass(piece)).collect();
                out.extend(redactor.rest());
                assert_eq!(String::from_utf8(out).unwrap(), "<******> Abc*** Abcdefg", "{first} {second}");
            }
        }
    }

    #[test]
    fn a_secret_is_taken_out_wherever_it_stands() {
        let secret = Secret::new("key", "Abcdefgh".into()).unwrap();
        let out = |text: &str| String::from_utf8(secret.taken_out_of(text.into())).unwrap();
        assert_eq!(out("Abcdefgh"), "***");
        assert_eq!(out("<AbcdefghAbcdefgh> AbcdefgAbcdefgh!"), "<******> Abcdefg***!");
        assert_eq!(out("abcdefgh Abcdefg"), "abcdefgh Abcdefg");
        assert_eq!(out(""), "");
        assert_eq!(secret.taken_out_of_name("x-abcdefgh"), b"x-***");
    }
}
