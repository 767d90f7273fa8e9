//! Structural checks of an OSC packet, before it is decoded.
//!
//! Decoding recurses with every bundle and every array within another, and nesting costs a sender
//! next to nothing: a packet of 20 KB could use up any stack. So nesting is bounded first, without
//! recursion that a sender can drive deeper than the bounds.

/// Bundles within bundles.
const MAX_BUNDLE_DEPTH: usize = 16;
/// Arrays within arrays of one message's arguments.
const MAX_ARRAY_DEPTH: usize = 8;

/// Hands over the messages of a packet, those of bundles one by one, as far as it is whole. Returns whether it
/// is to its end, and nesting stays within bounds.
pub(super) fn messages(packet: &[u8], each: &mut dyn FnMut(&[u8])) -> bool {
    messages_at(packet, 0, each)
}

fn messages_at(packet: &[u8], depth: usize, each: &mut dyn FnMut(&[u8])) -> bool {
    let Some(content) = packet.strip_prefix(b"#bundle\0") else {
        each(packet);
        return true;
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
        if !messages_at(element, depth + 1, each) {
            return false;
        }
        rest = after;
    }
    true
}

/// The address of a message, and the bytes behind it. `None` if it does not begin with a `/`, or is not terminated.
pub(super) fn address(message: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = message.iter().position(|byte| *byte == 0).filter(|_| message.first() == Some(&b'/'))?;
    // Strings end with a zero and are filled up to a multiple of four.
    Some((&message[..end], message.get((end / 4 + 1) * 4..)?))
}

/// Whether every array in a type tag string ends, and none is too deep. It reaches to the first zero.
pub(super) fn are_balanced(tags: &[u8]) -> bool {
    let mut depth = 0_usize;
    for tag in tags.iter().take_while(|tag| **tag != 0) {
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

    fn is_whole(packet: &[u8]) -> bool {
        messages(packet, &mut |_| ())
    }

    #[test]
    fn arrays_are_balanced_and_not_too_deep() {
        for good in [",", ",i", ",[i[f]]i", ",[[[[[[[[i]]]]]]]]", ",i\0\0[["] {
            assert!(are_balanced(good.as_bytes()), "{good}");
        }
        for bad in [",[", ",]", ",i[i", ",][", ",[[[[[[[[[i]]]]]]]]]"] {
            assert!(!are_balanced(bad.as_bytes()), "{bad}");
        }
        assert!(!are_balanced(format!(",{}{}", "[".repeat(10_000), "]".repeat(10_000)).as_bytes()));
    }

    #[test]
    fn bundles_are_whole_and_not_too_deep() {
        let nested = |depth| (0..depth).fold(message(",i"), |inner, _| bundle(&inner));
        assert!(is_whole(&nested(MAX_BUNDLE_DEPTH)));
        assert!(!is_whole(&nested(MAX_BUNDLE_DEPTH + 1)) && !is_whole(&nested(3000)));
        let whole = nested(2);
        assert!((9..whole.len()).filter(|end| *end != 16).all(|end| !is_whole(&whole[..end])), "cut anywhere");
    }

    #[test]
    fn an_address_begins_with_a_slash_and_is_filled_up() {
        assert_eq!(address(b"/a\0\0,\0\0\0"), Some((&b"/a"[..], &b",\0\0\0"[..])));
        assert_eq!(address(b"/abc\0\0\0\0"), Some((&b"/abc"[..], &b""[..])));
        for broken in [&b"/abc"[..], b"/abc\0\0", b"a\0\0\0", b""] {
            assert_eq!(address(broken), None, "{broken:?}");
        }
    }
}
