//! Application names: those of processes.

use std::fs;
use std::path::Path;

/// The name of a process's program, by its folder in `/proc`; `None` if it is gone.
pub fn program_name(process: &Path) -> Option<String> {
    // The kernel cuts names off after 15 bytes; the program's file has the whole one, where we may see it.
    let file = fs::read_link(process.join("exe")).ok();
    let whole =
        file.as_ref().and_then(|file| Some(file.file_name()?.to_str()?.trim_end_matches(" (deleted)").to_owned()));
    let short = || fs::read_to_string(process.join("comm")).ok().map(|name| name.trim_end().to_owned());
    whole.or_else(short)
}
