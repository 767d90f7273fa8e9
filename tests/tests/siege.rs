//! A short siege: clients of every door that are slow, silent, greedy and lying, all at once.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "in a test a panic is a result")]

use std::time::Duration;

use conductor_tests::siege::{self, Options};

// REL-1, API-1, MCP-1: under any load of clients, no event is lost, the owner is answered, and the memory is bounded.
#[test]
fn a_besieged_host_loses_nothing_and_answers_its_owner() {
    let report = siege::run(Options { duration: Duration::from_secs(20), rate: 200 });
    println!("{report}");
    assert!(report.broken().is_empty(), "{:?}", report.broken());
}
