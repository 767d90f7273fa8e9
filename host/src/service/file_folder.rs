//! Files below the folders that a grant names: the handle to one of them.

/// The guest's handle to a folder.
#[derive(Debug)]
pub struct Folder;
