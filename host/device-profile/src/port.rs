//! Which device a port is of, by the port's name and the USB ids.

use serde::Serialize;

use crate::profile::{Profile, UsbId};

/// By what a port fits a profile. The greater one is the stronger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PortFit {
    /// Its name fits a pattern, with this many characters that are no `*`.
    Name(usize),
    /// The USB ids are the device's.
    Usb,
    /// Both.
    UsbAndName(usize),
}

/// Names longer than this fit nothing; no system has such ports.
const MAX_PORT_NAME: usize = 512;

/// Whether a port is of the profile's device, and by what. A profile fits by name what it names for any of the systems: a
/// project moves from one to another.
pub fn fits(profile: &Profile, name: &str, usb: Option<UsbId>) -> Option<PortFit> {
    let usb = usb.is_some_and(|usb| profile.identity.usb.contains(&usb));
    let name = if name.len() > MAX_PORT_NAME { String::new() } else { name.to_lowercase() };
    let by_name = profile.identity.ports.all().filter(|pattern| like(&pattern.to_lowercase(), &name));
    match (usb, by_name.map(|pattern| pattern.chars().filter(|c| *c != '*').count()).max()) {
        (true, Some(length)) => Some(PortFit::UsbAndName(length)),
        (true, None) => Some(PortFit::Usb),
        (false, Some(length)) => Some(PortFit::Name(length)),
        (false, None) => None,
    }
}

/// Whether a text is like a pattern, in which `*` stands for any text.
pub(crate) fn like(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(first) else { return false };
    let (between, last) = rest.rsplit_once('*').unwrap_or(("", rest));
    for part in between.split('*').filter(|part| !part.is_empty()) {
        let Some(found) = text.find(part) else { return false };
        text = &text[found + part.len()..];
    }
    text.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, text, is) in [
            ("apc mini", "apc mini", true),
            ("apc mini", "apc mini mk2", false),
            ("apc mini*", "apc mini mk2", true),
            ("*launchpad*midi*", "2- launchpad x midi 1", true),
            ("*launchpad*midi*", "launchpad daw", false),
            ("a*b*a", "aba", true),
            ("a*a", "a", false),
            ("*", "", true),
        ] {
            assert_eq!(like(pattern, text), is, "{pattern} {text}");
        }
    }
}
