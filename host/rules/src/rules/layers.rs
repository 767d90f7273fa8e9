//! Which mode lies over which.

use conductor_config::Config;
use conductor_engine::RuleSet;
use conductor_event::ModeIx;

/// The mode below each, [`ModeIx::NONE`] if there is none; and the modes, by their places, that lie over themselves or
/// over too many, each with what is wrong.
pub(super) fn below(config: &Config) -> (Vec<ModeIx>, Vec<(usize, String)>) {
    let number = |name: &str| config.modes.iter().position(|mode| mode.name == name);
    let under = |at: usize| config.modes[at].over.as_deref().and_then(number);
    let below = (0..config.modes.len()).map(under);
    let below = below.map(|under| under.and_then(|at| u16::try_from(at).ok()).map_or(ModeIx::NONE, ModeIx)).collect();
    let mut wrong = Vec::new();
    for (at, mode) in config.modes.iter().enumerate() {
        let mut lower = std::iter::successors(under(at), |at| under(*at)).take(RuleSet::<()>::MAX_BELOW + 1);
        if lower.by_ref().any(|lower| lower == at) {
            wrong.push((at, format!("the mode {:?} lies over itself", mode.name)));
        } else if std::iter::successors(under(at), |at| under(*at)).nth(RuleSet::<()>::MAX_BELOW).is_some() {
            wrong.push((at, format!("a mode lies over at most {} others", RuleSet::<()>::MAX_BELOW)));
        }
    }
    (below, wrong)
}
