//! `WWW-Authenticate` headers: what a registry says of where tokens are to be had.

use conductor_install::oci::{Challenge, MAX_CHALLENGE};

pub fn run(data: &[u8]) {
    let Ok(header) = std::str::from_utf8(data) else { return };
    let Some(challenge) = Challenge::parse(header) else { return };
    assert!(header.len() <= MAX_CHALLENGE);
    let longest = challenge.service.as_ref().map_or(0, String::len).max(challenge.realm.len());
    assert!(longest <= header.len(), "nothing is made up");
    assert!(header.to_ascii_lowercase().contains("bearer"));
}
