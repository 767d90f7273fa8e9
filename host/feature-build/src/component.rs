//! From a core module to a component, and the descriptor that a component carries.

use std::{fs, path::Path};

use anyhow::{Context, Result};
use wit_component::{ComponentEncoder, StringEncoding};
use wit_parser::Resolve;

/// The custom section that holds a feature's descriptor.
pub const SECTION: &str = "conductor:feature";

/// A core module, with the description of its interfaces inside, as a component.
///
/// # Errors
/// When the file can't be read, or holds no module that a component can be made of.
pub fn encode(module: &Path) -> Result<Vec<u8>> {
    let core = fs::read(module).with_context(|| format!("cannot read {}", module.display()))?;
    ComponentEncoder::default().module(&core)?.validate(true).encode()
}

/// What a build of another language left: a component stays as it is. A core module, whose imports and
/// exports are named as in `world` of the WIT in the folder `contract`, becomes one.
///
/// # Errors
/// When there is no such world, or the module does not fit it.
pub fn complete(mut made: Vec<u8>, contract: &Path, world: &str) -> Result<Vec<u8>> {
    // The version and layer that stand behind the magic number of a core module.
    if made.get(4..8) != Some(&[1, 0, 0, 0]) {
        return Ok(made);
    }
    let mut wit = Resolve::default();
    let (package, _) = wit.push_dir(contract)?;
    let world = wit.select_world(&[package], Some(world))?;
    wit_component::embed_component_metadata(&mut made, &wit, world, StringEncoding::UTF8)?;
    ComponentEncoder::default().module(&made)?.validate(true).encode()
}

/// A component with `descriptor`, the text of a `feature.toml`, in a custom section at its end. What is
/// there already stays as it is.
pub fn embed(mut component: Vec<u8>, descriptor: &[u8]) -> Vec<u8> {
    let mut content = Vec::with_capacity(descriptor.len() + SECTION.len() + 1);
    leb128(&mut content, SECTION.len());
    content.extend_from_slice(SECTION.as_bytes());
    content.extend_from_slice(descriptor);
    // The id of custom sections, as the binary format has it.
    component.push(0);
    leb128(&mut component, content.len());
    component.append(&mut content);
    component
}

/// A component without the export named `exports` that componentize-py leaves behind: it initialised the
/// interpreter while the component was made, and is of no more use. Anything else stays as it is.
pub fn without_initialiser(component: Vec<u8>) -> Vec<u8> {
    // Section 11: one export, an instance (5) of some index, without a type of its own.
    const EXPORT: &[u8] = b"\x01\x00\x07exports\x05";
    // An export makes an instance, and what follows counts on its index: an empty one takes its place.
    const EMPTY_INSTANCE: [u8; 5] = [5, 3, 1, 1, 0];
    let mut at = 8;
    while let Some((&id, rest)) = component.get(at..).and_then(<[u8]>::split_first) {
        let Some((length, taken)) = number(rest) else { break };
        let Some(content) = rest.get(taken..taken + length) else { break };
        let end = at + 1 + taken + length;
        if id == 11 && content.starts_with(EXPORT) && content.ends_with(&[0]) {
            return [&component[..at], &EMPTY_INSTANCE, &component[end..]].concat();
        }
        at = end;
    }
    component
}

/// An unsigned LEB128 number, and how many bytes it takes.
fn number(bytes: &[u8]) -> Option<(usize, usize)> {
    let mut number = 0;
    for (index, byte) in bytes.iter().take(5).enumerate() {
        number |= usize::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Some((number, index + 1));
        }
    }
    None
}

/// Unsigned LEB128, the binary format's way to write a length.
fn leb128(to: &mut Vec<u8>, mut number: usize) {
    loop {
        let low = (number & 0x7f) as u8;
        number >>= 7;
        if number == 0 {
            return to.push(low);
        }
        to.push(low | 0x80);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_initialiser_is_taken_out() {
        let header = *b"\0asm\x0d\0\x01\0";
        let other = b"\x0b\x0a\x01\x00\x04more\x05\x01\x00";
        let export = b"\x0b\x0d\x01\x00\x07exports\x05\x09\x00";
        let whole = [&header[..], other, export, other].concat();
        let without = [&header[..], other, &[5, 3, 1, 1, 0], other].concat();
        assert_eq!(without_initialiser(whole), without);
        assert_eq!(without_initialiser(without.clone()), without);
        assert_eq!(without_initialiser(b"short".to_vec()), b"short");
    }

    #[test]
    fn a_descriptor_is_a_section_of_its_own() {
        let descriptor = [b'x'; 200];
        let whole = embed(b"\0asm".to_vec(), &descriptor);
        // The section's id, 218 in two bytes, 17, the name, the text.
        assert_eq!(whole[..8], [0, b'a', b's', b'm', 0, 0xda, 0x01, 17]);
        assert!(whole.ends_with(&descriptor) && whole.len() == 4 + 3 + 218);
    }
}
