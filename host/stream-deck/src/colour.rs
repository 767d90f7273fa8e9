//! Colours of keys: the velocity of a note, which has room for 128.

/// Red, green and blue, 0 to 255 each.
pub type Rgb = [u8; 3];

/// The colour of a velocity, 0 to 127: two bits of red, three of green and two of blue, the highest first. So 0 is dark, 96 red,
/// 28 green, 3 blue, 124 yellow and 127 white.
pub fn of_velocity(velocity: u8) -> Rgb {
    let part = |shift: u8, bits: u8| {
        let most = (1_u16 << bits) - 1;
        let value = u16::from(velocity >> shift) & most;
        // At most 255: the value is at most `most`.
        (value * 255 / most) as u8
    };
    [part(5, 2), part(2, 3), part(0, 2)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_colours_that_the_profile_names_are_these() {
        let named: [(u8, Rgb); 9] = [
            (0, [0, 0, 0]),
            (96, [255, 0, 0]),
            (108, [255, 109, 0]),
            (124, [255, 255, 0]),
            (28, [0, 255, 0]),
            (31, [0, 255, 255]),
            (3, [0, 0, 255]),
            (67, [170, 0, 255]),
            (127, [255, 255, 255]),
        ];
        for (velocity, colour) in named {
            assert_eq!(of_velocity(velocity), colour, "{velocity}");
        }
    }

    #[test]
    fn each_velocity_has_a_colour_of_its_own() {
        let all: std::collections::HashSet<Rgb> = (0..128).map(of_velocity).collect();
        assert_eq!(all.len(), 128);
    }
}
