//! The mode that a profile has made active, and the way back to the one before.

use std::sync::Arc;

/// The mode that a profile has made active, and which to go back to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileMode {
    /// The profile's.
    mode: Arc<str>,
    /// The one before, or the one that was chosen since.
    back: Arc<str>,
}

impl ProfileMode {
    /// `next` is the mode of the profile that applies now, `None` if none does any more; `current` is the active mode. Returns the mode to make active,
    /// if that is another one.
    pub fn change(active: &mut Option<Self>, next: Option<&Arc<str>>, current: &Arc<str>) -> Option<Arc<str>> {
        let back = match active.take() {
            Some(Self { mode, back }) if mode == *current => back,
            // Somebody has chosen another mode meanwhile, or no profile applied: that is the one to keep.
            _ => Arc::clone(current),
        };
        let mode = match next {
            None => back,
            Some(mode) => {
                *active = Some(Self { mode: Arc::clone(mode), back });
                Arc::clone(mode)
            }
        };
        (mode != *current).then_some(mode)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What happens, and the mode that is active after it. A word is the mode of a profile that applies, `-` that none does; `=Mode` is a person.
    fn modes(steps: &str) -> String {
        let mut turned = None;
        let mut current: Arc<str> = "Play".into();
        let active = steps.split_whitespace().map(|step| {
            if let Some(mode) = step.strip_prefix('=') {
                current = mode.into();
            } else {
                let next = (step != "-").then(|| Arc::from(step));
                if let Some(mode) = ProfileMode::change(&mut turned, next.as_ref(), &current) {
                    current = mode;
                }
            }
            current.to_string()
        });
        active.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_mode_goes_with_the_profile_and_back() {
        assert_eq!(modes("Mix -"), "Mix Play");
        assert_eq!(modes("Mix Write - -"), "Mix Write Play Play");
        assert_eq!(modes("=Write Mix -"), "Write Mix Write");
        assert_eq!(modes("Play - =Mix"), "Play Play Mix", "it was active before");
    }

    #[test]
    fn what_a_person_chose_meanwhile_stays() {
        assert_eq!(modes("Mix =Write -"), "Mix Write Write");
        assert_eq!(modes("Mix =Play Write -"), "Mix Play Write Play", "and is what is gone back to");
        assert_eq!(modes("Mix =Write =Mix -"), "Mix Write Mix Play", "but not where it is the profile's own");
    }
}
