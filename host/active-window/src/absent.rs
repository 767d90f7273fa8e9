//! No active window: this build has no library that asks a desktop for it.

use super::{ActiveWindow, ActiveWindowWatch, Callback};

const REASON: &str = "this conductor was built without the feature `active-window`, so it is not known which \
                      application is in front; build it with `--features active-window`";

/// The source for this system, which reports why nothing is known.
pub fn system() -> Box<dyn ActiveWindowWatch> {
    Box::new(AbsentWatch)
}

#[derive(Debug)]
struct AbsentWatch;

impl ActiveWindowWatch for AbsentWatch {
    fn start(self: Box<Self>, notify: Callback) -> std::io::Result<Box<dyn Send>> {
        notify(ActiveWindow::Unknown(REASON.to_owned()));
        Ok(Box::new(()))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn the_reason_is_the_missing_feature() {
        let (said, reports) = mpsc::channel();
        let _watch = system().start(Box::new(move |front| said.send(front).unwrap())).unwrap();
        let ActiveWindow::Unknown(why) = reports.try_recv().unwrap() else { panic!("something is known") };
        assert!(why.contains("--features active-window"), "{why}");
    }
}
