//! Names of a keyboard's keys and a mouse's buttons: by their place on a US keyboard, whatever is printed on them.
//!
//! A key's number is 256 more than its code in Linux's `input-event-codes.h`: Escape is 257, F13 439. A wheel counts as
//! four keys of its own, which go down and up with each step.

/// Each name with its number; of several names of one key the one to show comes first.
const NAMES: &[(u16, &str)] = &[
    (257, "escape"),
    (257, "esc"),
    (258, "1"),
    (259, "2"),
    (260, "3"),
    (261, "4"),
    (262, "5"),
    (263, "6"),
    (264, "7"),
    (265, "8"),
    (266, "9"),
    (267, "0"),
    (268, "minus"),
    (269, "equal"),
    (270, "backspace"),
    (271, "tab"),
    (272, "q"),
    (273, "w"),
    (274, "e"),
    (275, "r"),
    (276, "t"),
    (277, "y"),
    (278, "u"),
    (279, "i"),
    (280, "o"),
    (281, "p"),
    (282, "left bracket"),
    (283, "right bracket"),
    (284, "enter"),
    (284, "return"),
    (285, "left ctrl"),
    (285, "left control"),
    (286, "a"),
    (287, "s"),
    (288, "d"),
    (289, "f"),
    (290, "g"),
    (291, "h"),
    (292, "j"),
    (293, "k"),
    (294, "l"),
    (295, "semicolon"),
    (296, "apostrophe"),
    (297, "grave"),
    (298, "left shift"),
    (299, "backslash"),
    (300, "z"),
    (301, "x"),
    (302, "c"),
    (303, "v"),
    (304, "b"),
    (305, "n"),
    (306, "m"),
    (307, "comma"),
    (308, "period"),
    (308, "dot"),
    (309, "slash"),
    (310, "right shift"),
    (311, "keypad multiply"),
    (312, "left alt"),
    (312, "left option"),
    (313, "space"),
    (314, "caps lock"),
    (314, "capslock"),
    (315, "f1"),
    (316, "f2"),
    (317, "f3"),
    (318, "f4"),
    (319, "f5"),
    (320, "f6"),
    (321, "f7"),
    (322, "f8"),
    (323, "f9"),
    (324, "f10"),
    (325, "num lock"),
    (325, "numlock"),
    (326, "scroll lock"),
    (327, "keypad 7"),
    (328, "keypad 8"),
    (329, "keypad 9"),
    (330, "keypad minus"),
    (331, "keypad 4"),
    (332, "keypad 5"),
    (333, "keypad 6"),
    (334, "keypad plus"),
    (335, "keypad 1"),
    (336, "keypad 2"),
    (337, "keypad 3"),
    (338, "keypad 0"),
    (339, "keypad period"),
    (339, "keypad dot"),
    (342, "102nd"),
    (343, "f11"),
    (344, "f12"),
    (352, "keypad enter"),
    (353, "right ctrl"),
    (353, "right control"),
    (354, "keypad divide"),
    (355, "print screen"),
    (355, "printscreen"),
    (356, "right alt"),
    (356, "right option"),
    (356, "alt gr"),
    (358, "home"),
    (359, "up"),
    (360, "page up"),
    (360, "pageup"),
    (361, "left"),
    (362, "right"),
    (363, "end"),
    (364, "down"),
    (365, "page down"),
    (365, "pagedown"),
    (366, "insert"),
    (366, "ins"),
    (367, "delete"),
    (367, "del"),
    (369, "volume mute"),
    (369, "mute"),
    (370, "volume down"),
    (371, "volume up"),
    (373, "keypad equal"),
    (375, "pause"),
    (381, "left meta"),
    (381, "left super"),
    (381, "left win"),
    (381, "left cmd"),
    (382, "right meta"),
    (382, "right super"),
    (382, "right win"),
    (382, "right cmd"),
    (383, "menu"),
    (387, "undo"),
    (389, "copy"),
    (391, "paste"),
    (392, "find"),
    (393, "cut"),
    (394, "help"),
    (396, "calculator"),
    (411, "mail"),
    (414, "browser back"),
    (415, "browser forward"),
    (419, "next track"),
    (420, "play pause"),
    (421, "previous track"),
    (422, "stop"),
    (423, "record"),
    (424, "rewind"),
    (428, "browser home"),
    (429, "browser refresh"),
    (439, "f13"),
    (440, "f14"),
    (441, "f15"),
    (442, "f16"),
    (443, "f17"),
    (444, "f18"),
    (445, "f19"),
    (446, "f20"),
    (447, "f21"),
    (448, "f22"),
    (449, "f23"),
    (450, "f24"),
    (464, "fast forward"),
    (473, "search"),
    (480, "brightness down"),
    (481, "brightness up"),
    (504, "mic mute"),
    (528, "mouse left"),
    (529, "mouse right"),
    (530, "mouse middle"),
    (531, "mouse side"),
    (532, "mouse extra"),
    (533, "mouse forward"),
    (534, "mouse back"),
    (535, "mouse task"),
    (912, "macro 1"),
    (913, "macro 2"),
    (914, "macro 3"),
    (915, "macro 4"),
    (916, "macro 5"),
    (917, "macro 6"),
    (918, "macro 7"),
    (919, "macro 8"),
    (920, "macro 9"),
    (921, "macro 10"),
    (922, "macro 11"),
    (923, "macro 12"),
    (924, "macro 13"),
    (925, "macro 14"),
    (926, "macro 15"),
    (927, "macro 16"),
    (928, "macro 17"),
    (929, "macro 18"),
    (930, "macro 19"),
    (931, "macro 20"),
    (932, "macro 21"),
    (933, "macro 22"),
    (934, "macro 23"),
    (935, "macro 24"),
    (936, "macro 25"),
    (937, "macro 26"),
    (938, "macro 27"),
    (939, "macro 28"),
    (940, "macro 29"),
    (941, "macro 30"),
    (1020, "wheel up"),
    (1021, "wheel down"),
    (1022, "wheel left"),
    (1023, "wheel right"),
];

/// How much higher a key's number is than Linux's code for it.
pub const ABOVE_CODE: u16 = 256;
/// The number of a wheel's step up, down, to the left and to the right.
pub const WHEEL: [u16; 4] = [1020, 1021, 1022, 1023];

/// The key of this name, 257 to 1023. Case does not count, and `_` and `-` are spaces.
pub fn number(name: &str) -> Option<u16> {
    let name = super::plain(name);
    NAMES.iter().find(|(_, known)| *known == name).map(|(number, _)| *number)
}

/// What a key is called.
pub fn name(key: u16) -> Option<&'static str> {
    NAMES.iter().find(|(known, _)| *known == key).map(|(_, name)| *name)
}

/// Every name, for suggesting the nearest.
pub fn names() -> impl Iterator<Item = &'static str> {
    NAMES.iter().map(|(_, name)| *name)
}

/// The name of the left one of two keys that are called so: `left ctrl` for `ctrl`.
pub fn left_of_two(name: &str) -> Option<&'static str> {
    let left = number(&format!("left {name}"))?;
    number(&format!("right {name}")).and(self::name(left))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_goes_by_its_names_however_they_are_written() {
        for (text, key) in
            [("F13", 439), ("Esc", 257), ("page_up", 360), ("LEFT-CTRL", 285), ("1", 258), ("wheel up", 1020)]
        {
            assert_eq!(number(text), Some(key), "{text}");
        }
        assert_eq!((number("any"), number(""), name(256), name(440)), (None, None, None, Some("f14")));
    }

    #[test]
    fn names_are_in_order_and_each_is_of_one_key() {
        assert!(NAMES.is_sorted_by_key(|(number, _)| *number));
        for (key, text) in NAMES {
            assert_eq!(number(text), Some(*key), "{text}");
            assert!((257..=1023).contains(key));
        }
    }

    #[test]
    fn of_two_keys_the_left_one_is_named() {
        assert_eq!(
            (left_of_two("ctrl"), left_of_two("Shift"), left_of_two("a")),
            (Some("left ctrl"), Some("left shift"), None)
        );
    }
}
