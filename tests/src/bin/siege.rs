//! `cargo xtask siege`: a siege of as many minutes as are given, a line about it, and 1 if a bound is broken.

use std::process::ExitCode;

#[cfg(target_os = "linux")]
fn main() -> ExitCode {
    use std::time::Duration;

    use conductor_tests::siege::{self, Options};

    let minutes: f64 = std::env::args().nth(1).and_then(|minutes| minutes.parse().ok()).unwrap_or(10.0);
    let report = siege::run(Options { duration: Duration::from_secs_f64(minutes * 60.0), rate: 1000 });
    println!("{report}");
    let broken = report.broken_or_slow();
    broken.iter().for_each(|what| eprintln!("siege: {what}"));
    if broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[cfg(not(target_os = "linux"))]
fn main() -> ExitCode {
    eprintln!("siege: the memory of the host is measured on Linux only");
    ExitCode::FAILURE
}
