//! Every input that was ever worth keeping, and what little changes make of it (REL-1, REL-2).
//!
//! The same inputs in every run: what fails here fails everywhere.

use std::fs;
use std::path::Path;

use conductor_fuzz::{ENGINE, HOST, target};

/// Changed inputs for each that is kept.
const CHANGED: usize = 20;

/// Knuth's MMIX generator; its high bits are random enough.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end.max(1)
    }
}

/// A few bytes changed, cut out, or repeated.
fn changed(input: &[u8], dice: &mut Dice) -> Vec<u8> {
    let mut bytes = input.to_vec();
    for _ in 0..=dice.below(4) {
        let at = dice.below(bytes.len() + 1);
        let to = (at + dice.below(9)).min(bytes.len());
        match dice.below(4) {
            0 => drop(bytes.drain(at..to)),
            1 => {
                let again = bytes[at..to].to_vec();
                bytes.splice(at..at, again);
            }
            2 => bytes.insert(at, dice.below(256) as u8),
            _ => bytes[at..to].iter_mut().for_each(|byte| *byte = dice.below(256) as u8),
        }
    }
    bytes
}

fn replay(name: &str) {
    let Some(target) = target(name) else { panic!("there is no target {name}") };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<_> = entries.map(|entry| entry.expect("the corpus can be listed").path()).collect();
    files.sort();
    assert!(!files.is_empty(), "{} is empty", folder.display());
    let mut dice = Dice(1);
    for file in files {
        let input = fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        (target.run)(&input);
        (0..CHANGED).for_each(|_| (target.run)(&changed(&input, &mut dice)));
    }
}

macro_rules! replayed {
    ($($name:ident)*) => {
        $(#[test] fn $name() { replay(stringify!($name)); })*

        #[test]
        fn every_target_is_replayed() {
            assert!(ENGINE.into_iter().chain(HOST).map(|target| target.name).eq([$(stringify!($name)),*]));
        }
    };
}

replayed! {
    midi timeline gestures rules expressions osc artnet config resolver terminal package descriptor signature token_realm plans
    provider_stream mcp_frames endpoints skills
}
