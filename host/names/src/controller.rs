//! Names of controllers (control changes), from the MIDI 1.0 specification's table of controller numbers.

/// Each number that has a name, with it. The first name of a number is the one that is shown.
const NAMES: &[(u8, &str)] = &[
    (0, "bank select"),
    (0, "bank"),
    (1, "modulation"),
    (1, "mod wheel"),
    (1, "mod"),
    (2, "breath"),
    (4, "foot"),
    (5, "portamento time"),
    (6, "data entry"),
    (7, "volume"),
    (8, "balance"),
    (10, "pan"),
    (11, "expression"),
    (12, "effect 1"),
    (13, "effect 2"),
    (16, "general 1"),
    (17, "general 2"),
    (18, "general 3"),
    (19, "general 4"),
    (32, "bank select fine"),
    (33, "modulation fine"),
    (34, "breath fine"),
    (36, "foot fine"),
    (37, "portamento time fine"),
    (38, "data entry fine"),
    (39, "volume fine"),
    (40, "balance fine"),
    (42, "pan fine"),
    (43, "expression fine"),
    (64, "sustain"),
    (64, "hold"),
    (64, "damper"),
    (65, "portamento"),
    (66, "sostenuto"),
    (67, "soft"),
    (68, "legato"),
    (69, "hold 2"),
    (70, "variation"),
    (71, "resonance"),
    (71, "timbre"),
    (72, "release"),
    (73, "attack"),
    (74, "cutoff"),
    (74, "brightness"),
    (75, "decay"),
    (76, "vibrato rate"),
    (77, "vibrato depth"),
    (78, "vibrato delay"),
    (84, "portamento control"),
    (91, "reverb"),
    (92, "tremolo"),
    (93, "chorus"),
    (94, "detune"),
    (95, "phaser"),
    (96, "data increment"),
    (97, "data decrement"),
    (98, "nrpn fine"),
    (99, "nrpn coarse"),
    (100, "rpn fine"),
    (101, "rpn coarse"),
    (120, "all sound off"),
    (121, "reset all controllers"),
    (122, "local control"),
    (123, "all notes off"),
    (124, "omni off"),
    (125, "omni on"),
    (126, "mono"),
    (127, "poly"),
];

/// The controller of this name, 0 to 127. Case does not count, and `_` and `-` are spaces: `"mod_wheel"` is 1.
pub fn number(name: &str) -> Option<u8> {
    let name = super::plain(name);
    NAMES.iter().find(|(_, known)| *known == name).map(|(number, _)| *number)
}

/// The name of a controller, where it has one.
pub fn name(controller: u8) -> Option<&'static str> {
    NAMES.iter().find(|(number, _)| *number == controller).map(|(_, name)| *name)
}

/// Every name, for suggesting the nearest.
pub fn names() -> impl Iterator<Item = &'static str> {
    NAMES.iter().map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_lead_to_their_numbers() {
        for (at, (controller, known)) in NAMES.iter().enumerate() {
            assert_eq!(number(known), Some(*controller));
            assert!(NAMES[..at].iter().all(|(_, other)| other != known), "{known}");
            assert!(*controller < 128);
        }
        assert_eq!((number("Mod_Wheel"), number("all-notes-off"), number("x")), (Some(1), Some(123), None));
        assert_eq!((name(74), name(3)), (Some("cutoff"), None));
    }
}
