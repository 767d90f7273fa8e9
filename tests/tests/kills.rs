//! What a kill leaves of conversations; `cargo xtask kills` does it 300 times.

use conductor_tests::kills;

// LLM-4, REL-3
#[test]
fn a_host_that_is_killed_keeps_what_was_shown_and_what_it_cost() {
    let report = kills::run(6, 7);
    println!("{report}");
    assert!(report.wrong.is_empty(), "{report}\n{}", report.wrong.join("\n"));
    assert!(report.shown > 0);
}
