//! Descriptors: what is taken is what it says, and says the same when it is written again.

use conductor_package::Descriptor;

pub fn run(data: &[u8]) {
    let Ok(descriptor) = Descriptor::parse(data) else { return };
    let text = toml::to_string(&descriptor).expect("a descriptor can be written");
    let again = Descriptor::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(descriptor, again);
    assert!(descriptor.id.as_str().ends_with(descriptor.id.name()));
}
