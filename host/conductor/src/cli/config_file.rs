//! Changing the files of a configuration: the old text is kept beside the new one.

use std::path::{Path, PathBuf};

use super::{CommandResult, Failure, wrong};
use conductor_config::{Loaded, PathStep};
use conductor_config_text::edit::{Change, edited};
use conductor_stdx::atomic_file::{keep_backup, replace};
use conductor_stdx::plain_file;

/// Makes changes of tables at the top (`features/NAME/...`, `models/NAME/...`), each in the file in which that name stands.
///
/// # Errors
/// A change that can't be made, a configuration that would be wrong with it, a file that was changed since it was read.
/// Nothing is written then.
pub(super) fn write(loaded: &Loaded, changes: &[Change]) -> CommandResult {
    let mut files: Vec<(&str, &str, Vec<Change>)> = Vec::new();
    for change in changes {
        let path: Vec<PathStep<'_>> = change.path.iter().take(2).map(|key| key.as_str().into()).collect();
        let (file, text) = loaded.source.file_of(&path);
        match files.iter_mut().find(|(known, ..)| *known == file) {
            Some((.., changes)) => changes.push(change.clone()),
            None => files.push((file, text, vec![change.clone()])),
        }
    }
    let mut source = loaded.source.clone();
    let mut texts = Vec::new();
    for (file, before, changes) in files {
        let after = edited(before, &changes)?;
        // What is written is read again by the next reader.
        source = source.with_text(file, &after).map_err(wrong)?.source;
        texts.push((file, before, after));
    }
    for (file, before, after) in texts {
        replace_text(file, before, &after)?;
    }
    Ok(())
}

/// Replaces the text of a file, unless it was changed since it was read. The file as it was is returned.
///
/// # Errors
/// A file that was changed, or can't be written.
pub(super) fn replace_text(file: &str, before: &str, after: &str) -> Result<PathBuf, Failure> {
    // What a link names is replaced, not the link.
    let path = Path::new(file).canonicalize()?;
    if plain_file::read_text(&path, plain_file::MAX_TEXT)? != before {
        return Err(Failure::Failed(anyhow::anyhow!("{file} has changed meanwhile; nothing is written")));
    }
    let backup = keep_backup(&path)?;
    replace(&path, after.as_bytes())?;
    Ok(backup)
}
