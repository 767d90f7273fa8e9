//! The shape of an OSC packet, looked at before it is decoded.
//!
//! Decoding recurses with every bundle and every array within another, and nesting costs a sender
//! next to nothing: a packet of 20 KB could use up any stack. So nesting is bounded first, without
//! recursion that a sender can drive deeper than the bounds.

/// Bundles within bundles.
const MAX_BUNDLE_DEPTH: usize = 16;
/// Arrays within arrays of one message's arguments.
const MAX_ARRAY_DEPTH: usize = 8;

/// Whether nesting stays within bounds, and every array that begins also ends (OSC 1.0 and 1.1).
pub(super) fn is_sound(packet: &[u8]) -> bool {
    is_sound_at(packet, 0)
}

fn is_sound_at(packet: &[u8], depth: usize) -> bool {
    let Some(content) = packet.strip_prefix(b"#bundle\0") else {
        return type_tags(packet).is_some_and(are_balanced);
    };
    if depth == MAX_BUNDLE_DEPTH {
        return false;
    }
    // Eight bytes of time tag, then elements: a length of four bytes each, and as many bytes.
    let Some(mut rest) = content.get(8..) else { return false };
    while !rest.is_empty() {
        let Some((length, after)) = rest.split_first_chunk::<4>() else { return false };
        let length = u32::from_be_bytes(*length) as usize;
        let (Some(element), Some(after)) = (after.get(..length), after.get(length..)) else { return false };
        if !is_sound_at(element, depth + 1) {
            return false;
        }
        rest = after;
    }
    true
}

/// The type tags of a message: what stands behind the address. Old senders leave them out.
fn type_tags(message: &[u8]) -> Option<&[u8]> {
    let address = message.iter().position(|byte| *byte == 0)?;
    // Strings end with a zero and are filled up to a multiple of four.
    let tags = message.get((address / 4 + 1) * 4..)?;
    Some(&tags[..tags.iter().position(|byte| *byte == 0).unwrap_or(tags.len())])
}

fn are_balanced(tags: &[u8]) -> bool {
    let mut depth = 0_usize;
    for tag in tags {
        match tag {
            b'[' if depth == MAX_ARRAY_DEPTH => return false,
            b'[' => depth += 1,
            b']' if depth == 0 => return false,
            b']' => depth -= 1,
            _ => {}
        }
    }
    depth == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(tags: &str) -> Vec<u8> {
        let mut bytes = b"/fader\0\0".to_vec();
        bytes.extend(tags.bytes());
        bytes.push(0);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn bundle(content: &[u8]) -> Vec<u8> {
        let mut bytes = b"#bundle\0\0\0\0\0\0\0\0\x01".to_vec();
        bytes.extend(u32::try_from(content.len()).unwrap().to_be_bytes());
        bytes.extend(content);
        bytes
    }

    #[test]
    fn arrays_are_balanced_and_not_too_deep() {
        for good in [",", ",i", ",[i[f]]i", ",[[[[[[[[i]]]]]]]]"] {
            assert!(is_sound(&message(good)), "{good}");
        }
        for bad in [",[", ",]", ",i[i", ",][", ",[[[[[[[[[i]]]]]]]]]"] {
            assert!(!is_sound(&message(bad)), "{bad}");
        }
        assert!(!is_sound(&message(&format!(",{}{}", "[".repeat(10_000), "]".repeat(10_000)))));
    }

    #[test]
    fn bundles_are_whole_and_not_too_deep() {
        let nested = |depth| (0..depth).fold(message(",i"), |inner, _| bundle(&inner));
        assert!(is_sound(&nested(MAX_BUNDLE_DEPTH)));
        assert!(!is_sound(&nested(MAX_BUNDLE_DEPTH + 1)) && !is_sound(&nested(3000)));
        assert!(!is_sound(&bundle(&message(",["))));
        let whole = nested(2);
        assert!((9..whole.len()).filter(|end| *end != 16).all(|end| !is_sound(&whole[..end])), "cut anywhere");
    }
}
