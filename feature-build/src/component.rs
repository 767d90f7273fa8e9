//! From a core module to a component, and the descriptor that a component carries.

use std::{fs, path::Path};

use anyhow::{Context, Result};
use wit_component::ComponentEncoder;

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
    fn a_descriptor_is_a_section_of_its_own() {
        let descriptor = [b'x'; 200];
        let whole = embed(b"\0asm".to_vec(), &descriptor);
        // The section's id, 218 in two bytes, 17, the name, the text.
        assert_eq!(whole[..8], [0, b'a', b's', b'm', 0, 0xda, 0x01, 17]);
        assert!(whole.ends_with(&descriptor) && whole.len() == 4 + 3 + 218);
    }
}
