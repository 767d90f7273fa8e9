//! Progress of work that may take long: on a terminal a line that counts the seconds, elsewhere one line at its beginning
//! and one at its end. Work that is done within a second says nothing.

use std::fmt::Arguments;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::output::{end_transient, is_error_terminal, print_err_line, show_transient};

/// How long work may take without a word, and between two counts.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);

/// Work that is being done; it has ended when this is dropped.
#[derive(Debug)]
pub struct Progress {
    working: Option<Sender<()>>,
    shown: Option<JoinHandle<()>>,
}

impl Progress {
    /// Begins to count. `what` is what is being done: `compiling lamp.wasm, 12 MB`.
    pub fn start(what: Arguments<'_>) -> Self {
        let what = what.to_string();
        let begun = Instant::now();
        let on_terminal = is_error_terminal();
        Self::shown_by(move |step| {
            let seconds = begun.elapsed().as_secs();
            match step {
                Step::Begun if on_terminal => show_transient(&format!("{what}, {seconds} s")),
                Step::Begun => print_err_line(format_args!("{what} ...")),
                Step::Still if on_terminal => show_transient(&format!("{what}, {seconds} s")),
                Step::Still => {}
                Step::Done => print_err_line(format_args!("{what}: took {seconds} s")),
            }
        })
    }

    /// Begins to count for somebody else's work, such as `waiting for local`: nothing is left of it at its end, and there is
    /// nothing of it where standard error is no terminal.
    pub fn waiting(what: Arguments<'_>) -> Self {
        let what = what.to_string();
        let begun = Instant::now();
        let on_terminal = is_error_terminal();
        Self::shown_by(move |step| match step {
            _ if !on_terminal => {}
            Step::Begun | Step::Still => show_transient(&format!("{what}, {} s", begun.elapsed().as_secs())),
            Step::Done => end_transient(),
        })
    }

    fn shown_by(show: impl FnMut(Step) + Send + 'static) -> Self {
        let (working, ended) = mpsc::channel();
        // Without a thread nothing is shown, and the work is done all the same.
        let shown =
            thread::Builder::new().name("progress".into()).spawn(move || follow(&ended, REPORT_INTERVAL, show)).ok();
        Self { working: Some(working), shown }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        drop(self.working.take());
        if let Some(shown) = self.shown.take() {
            let _ = shown.join();
        }
    }
}

/// What there is to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Begun,
    Still,
    Done,
}

/// Shows the steps of what goes on until the other end of `ended` is dropped.
fn follow(ended: &Receiver<()>, every: Duration, mut show: impl FnMut(Step)) {
    let mut next = Step::Begun;
    while ended.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
        show(next);
        next = Step::Still;
    }
    if next == Step::Still {
        show(Step::Done);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_done_at_once_says_nothing() {
        let (working, ended) = mpsc::channel();
        drop(working);
        follow(&ended, Duration::from_secs(60), |step| panic!("{step:?}"));
    }

    #[test]
    fn what_takes_long_is_counted_and_has_an_end() {
        let (working, ended) = mpsc::channel();
        let (mut working, mut steps) = (Some(working), Vec::new());
        follow(&ended, Duration::from_millis(1), |step| {
            steps.push(step);
            if steps.len() == 3 {
                drop(working.take());
            }
        });
        assert_eq!(steps, [Step::Begun, Step::Still, Step::Still, Step::Done]);
    }
}
