//! No desktop: this build has no library that acts on the system's.

use super::Desktop;

/// Why this build can't act on the system's desktop.
pub const UNAVAILABLE: Option<&str> = Some(REASON);

/// Why this build can't make a gamepad.
pub const GAMEPAD_UNAVAILABLE: Option<&str> = UNAVAILABLE;

const REASON: &str = "nothing can be done on the desktop: this conductor was built without the feature `desktop`; build \
                      it with `--features desktop`";

/// Connects to nothing.
///
/// # Errors
/// Always: why there is no desktop, as text.
pub fn connect() -> Result<Box<dyn Desktop>, String> {
    Err(REASON.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_which_feature_is_missing() {
        let error = connect().err().unwrap();
        assert!(error.contains("--features desktop"), "{error}");
        assert_eq!((UNAVAILABLE, GAMEPAD_UNAVAILABLE), (Some(error.as_str()), Some(error.as_str())));
    }
}
