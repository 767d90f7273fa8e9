use std::time::Duration;

use conductor_feature::harness::{Failure, Harness};

/// The clock moves by hand: the test does not wait for 25 minutes.
#[test]
fn a_break_is_due_after_25_minutes() -> Result<(), Failure> {
    let mut feature = Harness::new()?{{others}}.grant("background_task = true\nalert = true").install()?;
    feature.until("the task runs", |feature| Ok(feature.task("reminder")? == "running"))?;
    assert!(feature.said()?.is_empty());
    feature.until("the reminder comes", |feature| {
        feature.advance(Duration::from_secs(25 * 60))?;
        Ok(feature.said()?.iter().any(|message| message.sink == "alert" && message.text == "Time for a break."))
    })
}
