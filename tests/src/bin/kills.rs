//! `cargo xtask kills`: as many kills amid turns as are given, by a seed if one follows; a line about it, and 1 if anything
//! is wrong.

use std::process::ExitCode;

#[cfg(unix)]
fn main() -> ExitCode {
    use std::time::{SystemTime, UNIX_EPOCH};

    let mut numbers = std::env::args().skip(1).map(|number| number.parse::<u64>().ok());
    let kills = numbers.next().flatten().and_then(|kills| usize::try_from(kills).ok()).unwrap_or(300);
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |time| time.as_secs());
    let seed = numbers.next().flatten().unwrap_or_else(now);
    println!("seed {seed}");
    let report = conductor_tests::kills::run(kills, seed);
    report.wrong.iter().for_each(|what| eprintln!("kills: {what}"));
    println!("{report}");
    if report.wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[cfg(not(unix))]
fn main() -> ExitCode {
    eprintln!("kills: hosts are talked to over their Unix socket");
    ExitCode::FAILURE
}
