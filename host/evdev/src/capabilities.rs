//! What an input device can send, from the bit maps that sysfs has of it, and what kind of device that makes it.

/// The kind of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// It has keys: a keyboard, a macro pad, a remote control.
    Keyboard,
    /// It has buttons and moves a pointer by relative steps.
    Mouse,
}

/// Codes of `input-event-codes.h`.
mod code {
    pub const KEY_POWER: u16 = 116;
    pub const KEY_SLEEP: u16 = 142;
    pub const KEY_WAKEUP: u16 = 143;
    /// Buttons begin here (`BTN_MISC`), with those of mice (`BTN_LEFT`), joysticks and gamepads.
    pub const BTN_MISC: u16 = 0x100;
    pub const BTN_LEFT: u16 = 0x110;
    pub const BTN_JOYSTICK: u16 = 0x120;
    /// The last button before keys go on.
    pub const BTN_LAST: u16 = 0x15f;
    pub const REL_X: u16 = 0;
    pub const REL_Y: u16 = 1;
    pub const ABS_X: u16 = 0;
}

/// A bit map as sysfs writes it: hexadecimal words of the machine, the highest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Bits(Vec<u64>);

impl Bits {
    /// Reads the text of a file such as `capabilities/key`. What is no number counts as no bit.
    pub(crate) fn parse(text: &str) -> Self {
        Self(text.split_whitespace().rev().map(|word| u64::from_str_radix(word, 16).unwrap_or(0)).collect())
    }

    pub(crate) fn has(&self, bit: u16) -> bool {
        // The kernel's words are as wide as its own, which on all systems that this is built for has 64 bits.
        self.0.get(usize::from(bit / 64)).is_some_and(|word| word >> (bit % 64) & 1 == 1)
    }

    fn all(&self) -> impl Iterator<Item = u16> {
        (0..(self.0.len() * 64) as u16).filter(|bit| self.has(*bit))
    }
}

/// What a device can send.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Capabilities {
    pub(crate) keys: Bits,
    pub(crate) relative: Bits,
    pub(crate) absolute: Bits,
}

impl Capabilities {
    /// The kind of the device; `None` for what is neither: joysticks and gamepads, touch pads and tablets, sensors, and
    /// the buttons of the machine itself for power and sleep.
    pub(crate) fn class(&self) -> Option<Class> {
        if self.keys.all().any(|code| (code::BTN_JOYSTICK..code::BTN_JOYSTICK + 0x20).contains(&code)) {
            return None;
        }
        let is_key = |code: &u16| {
            let is_button = (code::BTN_MISC..=code::BTN_LAST).contains(code);
            !is_button && !matches!(*code, code::KEY_POWER | code::KEY_SLEEP | code::KEY_WAKEUP)
        };
        if self.keys.all().any(|code| is_key(&code)) {
            return Some(Class::Keyboard);
        }
        let moves = self.relative.has(code::REL_X) && self.relative.has(code::REL_Y);
        (moves && self.keys.has(code::BTN_LEFT) && !self.absolute.has(code::ABS_X)).then_some(Class::Mouse)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(keys: &str, relative: &str, absolute: &str) -> Option<Class> {
        let [keys, relative, absolute] = [keys, relative, absolute].map(Bits::parse);
        Capabilities { keys, relative, absolute }.class()
    }

    #[test]
    fn words_are_read_from_the_lowest() {
        let bits = Bits::parse("1 8000000000000000 3\n");
        assert_eq!(bits.all().collect::<Vec<_>>(), [0, 1, 127, 128]);
        assert!(!bits.has(700) && !Bits::parse("what?").has(0));
    }

    // As `/sys/class/input/event*/device/capabilities` has them on usual machines.
    #[test]
    fn a_device_is_what_its_keys_make_it() {
        let keyboard = "1000000000007 ff9f207ac14057ff febeffdfffefffff fffffffffffffffe";
        assert_eq!(class(keyboard, "0", "0"), Some(Class::Keyboard));
        // F13 to F24 alone.
        assert_eq!(class("7 ff80000000000000 0 0", "0", "0"), Some(Class::Keyboard));
        let mouse = "1f0000 0 0 0 0";
        assert_eq!(class(mouse, "1943", "0"), Some(Class::Mouse));
        let gamepad = "7cdb000000000000 0 0 0 0";
        assert_eq!(class(gamepad, "0", "3003f"), None);
        let (power, touch_pad) = ("10000000000000 0", "e520 10000 0 0 0 0");
        assert_eq!(class(power, "0", "0"), None);
        assert_eq!(class(touch_pad, "0", "2608000 3"), None);
        assert_eq!(class("0", "0", "0"), None);
    }
}
