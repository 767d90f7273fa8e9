//! `conductor tui`: the host on one screen of a terminal.

use conductor_tui::{End, TuiError};

use super::{CommandResult, Failure, Paths, signals};

pub(super) fn run(places: &Paths) -> CommandResult {
    let (ending, ended) = crossbeam_channel::unbounded();
    signals::listen(ending, |_| ())?;
    match conductor_tui::run(&places.home, &ended) {
        Ok(End::Quit) => Ok(()),
        Ok(End::Asked | End::TerminalGone) => Err(Failure::Interrupted("interrupted; the host goes on".into())),
        Err(error @ TuiError::NoTerminal) => Err(Failure::Wrong(format!("conductor: {error}"))),
        Err(error) => Err(error.into()),
    }
}
