//! Packages: for any file, there is a result in bounded time, and nothing in it runs.

use std::path::Path;

use conductor_package::structure::{self, Bound, StructureError};
use conductor_package::{Package, check};

pub fn run(data: &[u8]) {
    let structure = structure::read(data);
    if let Err(StructureError::Over { bound, found }) = &structure {
        assert!(*found > bound.limit() && Bound::ALL.contains(bound));
    }
    let Ok(package) = Package::from_bytes(Path::new("x.wasm"), data.to_vec()) else { return };
    let structure = structure.expect("what is a package is within the bounds");
    assert_eq!(structure.descriptors.len(), 1);
    assert!(structure.imports.iter().eq(&package.info.imports) && structure.exports.iter().eq(&package.info.exports));
    // An error, and no panic, for everything that does not fit.
    if let Err(errors) = check::check(&package.info) {
        assert!(!errors.is_empty());
    }
}
