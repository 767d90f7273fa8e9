//! The example configurations in `examples/configs`: each is loaded as a host would, without a mistake and
//! without a warning, and does what the tests beside it say.

#![allow(clippy::unwrap_used, reason = "in a test a panic is a result")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use conductor_config as config;
use conductor_engine::RuleSetHandle;
use conductor_host::host::{self, Rehearsal};
use conductor_timeline::parse_mapping_tests;

/// The bundled features: where `cargo xtask test` says, else beside the build of this test.
fn features() -> PathBuf {
    let beside = || std::env::current_exe().unwrap().ancestors().nth(3).unwrap().join("features");
    std::env::var_os("CONDUCTOR_FEATURES").map_or_else(beside, PathBuf::from)
}

// CFG-1: a copy of one works as it is.
#[test]
fn every_example_loads_and_does_what_it_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/configs");
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    // In a home, features are compiled once for all.
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("example-configs-{}", std::process::id()));
    assert!(files.len() >= 12, "only {} examples", files.len());
    for path in files {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        let loaded = config::parse(&text, &name).unwrap_or_else(|wrong| panic!("{}", wrong.render(false)));
        let rehearse = || {
            host::rehearse(&loaded, Some(&home), Some(&features())).unwrap_or_else(|wrong| panic!("{name}: {wrong}"))
        };
        let Rehearsal { compiled, .. } = rehearse();
        assert!(compiled.warnings.is_empty(), "{}", compiled.warnings.render(false));

        // Numbers are of a device, which the file names.
        assert!(text.starts_with("# ") && text.contains('"'), "{name} does not begin with what it is and whence");
        let tests =
            std::fs::read_to_string(path.with_extension("test")).unwrap_or_else(|wrong| panic!("{name}: {wrong}"));
        let tests = parse_mapping_tests(&tests).unwrap_or_else(|wrong| panic!("{name}: {wrong:?}"));
        assert!(!tests.is_empty(), "{name} has no tests");
        for test in tests {
            let Rehearsal { compiled, mut actions } = rehearse();
            let rules = Arc::new(RuleSetHandle::new(compiled.rules));
            let differences = test.run_on(&rules, &mut actions, ToString::to_string);
            assert!(differences.is_empty(), "{name}: {}: {differences:#?}", test.name);
        }
    }
    let _ = std::fs::remove_dir_all(home);
}
