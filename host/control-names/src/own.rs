//! A person's own profiles: files in the folder `devices` of the home.

use std::path::{Path, PathBuf};

use conductor_device_profile::{Library, MAX_FILE, Mistake, Profile};
use conductor_stdx::plain_file;

/// The folder in the home.
pub const FOLDER: &str = "devices";
/// Files that are read, at most.
const MAX_FILES: usize = 1000;

/// The profiles that come with the program, and the person's own; one with the id of a bundled profile stands in its place.
/// A file with mistakes is left out; the first mistake of each comes with its path.
pub fn library(home: &Path) -> (Library, Vec<(PathBuf, Mistake)>) {
    let mut profiles = Library::bundled().profiles().to_vec();
    let mut left_out = Vec::new();
    for path in files(home) {
        match read(&path) {
            Ok(own) => {
                profiles.retain(|profile| profile.id != own.id);
                profiles.push(own);
            }
            Err(mistakes) => left_out.extend(mistakes.into_iter().next().map(|first| (path, first))),
        }
    }
    (Library::new(profiles), left_out)
}

/// The files of the person's own profiles, in the order of their names.
pub fn files(home: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(home.join(FOLDER)).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .take(MAX_FILES)
        .collect();
    files.sort();
    files
}

/// Reads the file of a profile.
///
/// # Errors
/// Every mistake with its line; that the file can't be read is one of line 1.
pub fn read(path: &Path) -> Result<Profile, Vec<Mistake>> {
    let unreadable =
        |error: std::io::Error| vec![Mistake { line: 1, column: 1, message: format!("can't be read: {error}") }];
    let text = plain_file::read_text(path, MAX_FILE as u64).map_err(unreadable)?;
    Profile::parse(&text)
}
