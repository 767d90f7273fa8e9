//! Room on the disk for a build of everything.
//!
//! A linker that runs out of room is killed by a bus error and says nothing of disks, so it is looked at before.

use std::{env, path::Path, process::Command};

use anyhow::{Result, bail};

use crate::{process, repo::Repo};

/// KiB that the test command writes from a clean checkout: 16.6 GiB, and a little more. Three quarters are test programs.
const WHOLE_BUILD: u64 = 17 * 1024 * 1024;
/// How much less of it there is without the lines for debuggers, as where [`NO_DEBUG_INFO`] is set to `none`.
const DEBUG_INFO: u64 = 4 * 1024 * 1024;
/// What cargo goes by for that.
const NO_DEBUG_INFO: &str = "CARGO_PROFILE_DEV_DEBUG";
/// KiB more that it writes for the next build to be faster, unless the environment has that switched off.
const INCREMENTAL: u64 = 6 * 1024 * 1024;
/// KiB that the folders of a whole build still grow by, when they are there already: a few test programs.
const ANOTHER_BUILD: u64 = 2 * 1024 * 1024;

/// Makes sure that the test command has room in the folders that it builds in.
///
/// # Errors
/// How much room there is, how much it takes, and what to do. Where nothing tells how much there is, none.
pub fn ensure(repo: &Repo) -> Result<()> {
    let target = repo.target();
    let written = kib(Command::new("du").arg("-sk").arg(target), 0, 0).unwrap_or(0);
    let is_incremental = env::var_os("CARGO_INCREMENTAL").is_none_or(|said| said != "0");
    let has_debug_info = env::var_os(NO_DEBUG_INFO).is_none_or(|said| said != "none");
    let whole =
        WHOLE_BUILD - if has_debug_info { 0 } else { DEBUG_INFO } + if is_incremental { INCREMENTAL } else { 0 };
    let needed = whole.saturating_sub(written).max(ANOTHER_BUILD);
    let Some(free) = free(target) else { return Ok(()) };
    if free < needed {
        bail!(
            "{} has room for {:.1} GiB, and the tests write {:.1} more; make room, or set CARGO_TARGET_DIR to a \
             folder where there is",
            target.display(),
            gib(free),
            gib(needed)
        );
    }
    Ok(())
}

/// KiB that are free where a folder is.
fn free(folder: &Path) -> Option<u64> {
    kib(Command::new("df").arg("-Pk").arg(folder), 1, 3)
}

/// The number in a line and column, both from 0, of what a command prints.
fn kib(command: &mut Command, line: usize, column: usize) -> Option<u64> {
    let told = process::read(command).ok()?;
    told.lines().nth(line)?.split_whitespace().nth(column)?.parse().ok()
}

fn gib(kib: u64) -> f64 {
    kib as f64 / (1024.0 * 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_read_off_what_df_prints() {
        let printed = "Filesystem 1024-blocks Used Available Capacity Mounted on\n/dev/vda 263 89 6501000 94% /\n";
        assert_eq!(kib(Command::new("printf").arg(printed.replace('%', "%%")), 1, 3), Some(6_501_000));
        assert_eq!(kib(Command::new("printf").arg("no table"), 1, 3), None);
        assert_eq!(kib(&mut Command::new("/nothing/there"), 1, 3), None);
        assert!(free(Path::new("/")).is_some_and(|free| free > 0));
    }
}
