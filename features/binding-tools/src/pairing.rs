//! Which output is of the same device as an input: on some systems the two have names of their own, `Pads Out` and `Pads In`.

/// Words that tell the two directions of a device apart, and nothing else.
const DIRECTIONS: [&str; 6] = ["in", "out", "input", "output", "capture", "playback"];

/// The name of the output that differs from that of an input by its direction alone. `None` if there is no such output, or
/// several, or one of the input's own name, which the same matchers find.
pub fn paired_output<'o>(input: &str, outputs: impl IntoIterator<Item = &'o str>) -> Option<&'o str> {
    let device = without_direction(input);
    let mut alike = outputs.into_iter().filter(|output| *output == input || without_direction(output) == device);
    match (alike.next(), alike.next()) {
        (Some(output), None) if output != input && !device.is_empty() => Some(output),
        _ => None,
    }
}

/// The words of a name, in small letters, without those for a direction.
fn without_direction(name: &str) -> Vec<String> {
    let words = name.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase);
    words.filter(|word| !word.is_empty() && !DIRECTIONS.contains(&word.as_str())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_that_differs_by_its_direction_alone_is_of_the_same_device() {
        for (input, outputs, paired) in [
            ("Launchpad MK3 MI", &["Synth", "Launchpad MK3 MI In"][..], Some("Launchpad MK3 MI In")),
            ("Pads MIDI Out", &["Pads DAW In", "pads midi in"][..], Some("pads midi in")),
            ("system:capture_3", &["system:playback_2", "system:playback_3"][..], Some("system:playback_3")),
            // The binding's matchers find it.
            ("Pads", &["Pads", "Pads In"][..], None),
            ("Pads", &["Pads"][..], None),
            // Two are alike, or nothing but a direction is.
            ("Pads", &["Pads In", "Pads In"][..], None),
            ("Out", &["In"][..], None),
            ("Pads", &[][..], None),
        ] {
            assert_eq!(paired_output(input, outputs.iter().copied()), paired, "{input} {outputs:?}");
        }
    }
}
