//! Names of a gamepad's buttons, sticks and triggers: by their place, and in the words of each family of gamepads.
//!
//! The families do not agree: `a` is the lower button of an Xbox pad, and the right one of a Nintendo pad. So a name that
//! two families give to different buttons needs the family before it: `"xbox a"`, `"nintendo a"`.

/// Each name by place, with its number: buttons 128 to 144, then what moves, 128 to 133.
const POSITIONS: &[(u8, &str)] = &[
    (128, "south"),
    (129, "east"),
    (130, "west"),
    (131, "north"),
    (132, "dpad up"),
    (133, "dpad down"),
    (134, "dpad left"),
    (135, "dpad right"),
    (136, "left bumper"),
    (137, "right bumper"),
    (138, "left stick press"),
    (139, "right stick press"),
    (140, "start"),
    (141, "select"),
    (142, "mode"),
    (143, "left trigger press"),
    (144, "right trigger press"),
];

/// What each family prints on its buttons.
const FAMILIES: &[(&str, &[(u8, &str)])] = &[
    (
        "xbox",
        &[
            (128, "a"),
            (129, "b"),
            (130, "x"),
            (131, "y"),
            (136, "lb"),
            (137, "rb"),
            (138, "ls"),
            (139, "rs"),
            (140, "menu"),
            (141, "view"),
            (142, "guide"),
            (143, "lt"),
            (144, "rt"),
        ],
    ),
    (
        "playstation",
        &[
            (128, "cross"),
            (129, "circle"),
            (130, "square"),
            (131, "triangle"),
            (136, "l1"),
            (137, "r1"),
            (138, "l3"),
            (139, "r3"),
            (140, "options"),
            (141, "share"),
            (141, "create"),
            (142, "ps"),
            (143, "l2"),
            (144, "r2"),
        ],
    ),
    (
        "nintendo",
        &[
            (128, "b"),
            (129, "a"),
            (130, "y"),
            (131, "x"),
            (136, "l"),
            (137, "r"),
            (140, "plus"),
            (141, "minus"),
            (142, "home"),
            (143, "zl"),
            (144, "zr"),
        ],
    ),
];

const STICKS: &[(u8, &str)] = &[(128, "left x"), (129, "left y"), (130, "right x"), (131, "right y")];
const TRIGGERS: &[(u8, &str)] = &[
    (132, "left trigger"),
    (133, "right trigger"),
    (132, "lt"),
    (133, "rt"),
    (132, "l2"),
    (133, "r2"),
    (132, "zl"),
    (133, "zr"),
    (132, "left"),
    (133, "right"),
];

/// Why a name stands for no button.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoButton {
    /// No family has it.
    Unknown,
    /// Two families mean different buttons by it; these are the names to choose from, `"xbox a"` and so on.
    Ambiguous(Vec<String>),
}

/// The button of this name, 128 to 144. Case does not count, and `_` and `-` are spaces.
///
/// # Errors
/// A name that is not known, or not by one family alone.
pub fn button(name: &str) -> Result<u8, NoButton> {
    let name = super::plain(name);
    if let Some(number) = find(POSITIONS, &name) {
        return Ok(number);
    }
    let of_family =
        |(family, buttons): &(&str, &[(u8, &str)])| find(buttons, name.strip_prefix(family)?.strip_prefix(' ')?);
    if let Some(number) = FAMILIES.iter().find_map(of_family) {
        return Ok(number);
    }
    let found: Vec<(&str, u8)> =
        FAMILIES.iter().filter_map(|(family, buttons)| Some((*family, find(buttons, &name)?))).collect();
    match found[..] {
        [] => Err(NoButton::Unknown),
        [(_, number), ref others @ ..] if others.iter().all(|(_, other)| *other == number) => Ok(number),
        _ => Err(NoButton::Ambiguous(found.iter().map(|(family, _)| format!("{family} {name}")).collect())),
    }
}

/// The stick's axis of this name, 128 to 131: `"left x"`.
pub fn stick(name: &str) -> Option<u8> {
    find(STICKS, &super::plain(name))
}

/// The analog trigger of this name, 132 or 133: `"left trigger"`, `"lt"`, `"l2"`, `"zl"`.
pub fn trigger(name: &str) -> Option<u8> {
    find(TRIGGERS, &super::plain(name))
}

/// What a button is called by its place.
pub fn button_name(button: u8) -> Option<&'static str> {
    first(POSITIONS, button)
}

/// What an axis of a stick, or an analog trigger, is called.
pub fn axis_name(axis: u8) -> Option<&'static str> {
    first(STICKS, axis).or_else(|| first(TRIGGERS, axis))
}

fn find(names: &[(u8, &str)], name: &str) -> Option<u8> {
    names.iter().find(|(_, known)| *known == name).map(|(number, _)| *number)
}

fn first(names: &'static [(u8, &'static str)], number: u8) -> Option<&'static str> {
    names.iter().find(|(known, _)| *known == number).map(|(_, name)| *name)
}

/// Every name of a button, for suggesting the nearest.
pub fn button_names() -> impl Iterator<Item = &'static str> {
    POSITIONS.iter().chain(FAMILIES.iter().flat_map(|(_, buttons)| buttons.iter())).map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_button_has_the_word_of_each_family() {
        for name in ["south", "xbox a", "Cross", "playstation cross", "nintendo b"] {
            assert_eq!(button(name), Ok(128), "{name}");
        }
        assert_eq!((button("DPAD_UP"), button("l1"), button("zr")), (Ok(132), Ok(136), Ok(144)));
    }

    #[test]
    fn a_word_of_two_families_needs_its_family() {
        assert_eq!(button("a"), Err(NoButton::Ambiguous(vec!["xbox a".into(), "nintendo a".into()])));
        assert_eq!(button("z"), Err(NoButton::Unknown));
        assert_eq!(button("xbox cross"), Err(NoButton::Unknown));
    }

    #[test]
    fn every_button_and_axis_has_a_name() {
        for number in 128..=144 {
            assert_eq!(button(button_name(number).unwrap()), Ok(number));
        }
        for axis in 128..=131 {
            assert_eq!(stick(axis_name(axis).unwrap()), Some(axis));
        }
        assert_eq!(
            (trigger("LT"), trigger("right_trigger"), axis_name(133)),
            (Some(132), Some(133), Some("right trigger"))
        );
    }
}
