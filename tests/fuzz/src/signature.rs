//! Signatures: bytes that are not signed are rejected.

use conductor_install::signature::{self, MAX_SIGNATURES};

pub fn run(data: &[u8]) {
    let Ok(keys) = signature::verify(data) else { return };
    assert!(keys.len() <= MAX_SIGNATURES);
    if keys.is_empty() {
        return;
    }
    // Bytes after a signature are not signed.
    let mut more = data.to_vec();
    more.extend([0, 2, 1, b'x']);
    assert!(signature::verify(&more).is_err());
}
