//! Packages that must be refused before anything in them runs, each with its own message.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::path::Path;
use std::sync::Arc;

use conductor_observer::sink_message::SinkQueue;
use conductor_package::file::MAX_PACKAGE;
use conductor_package::{Grants, Package, PackageError};
use conductor_sandbox::datagrams::SystemDatagrams;
use conductor_sandbox::services::Services;
use conductor_sandbox::{Compiler, PrepareError, Sandbox};

const PLAIN: &str = "id = 'project:x'\nname = 'X'\nversion = '1'\ncontract = '0.1'\n";

/// A component with a descriptor behind it, as a custom section.
fn component(wat: &str, descriptor: &str) -> Vec<u8> {
    let mut bytes = wat::parse_str(wat).unwrap();
    add_section(&mut bytes, "conductor:feature", descriptor.as_bytes());
    bytes
}

fn add_section(bytes: &mut Vec<u8>, name: &str, data: &[u8]) {
    let mut content = leb128(name.len());
    content.extend(name.bytes());
    content.extend(data);
    bytes.push(0);
    bytes.extend(leb128(content.len()));
    bytes.extend(content);
}

fn leb128(mut value: usize) -> Vec<u8> {
    let mut out = Vec::new();
    loop {
        let byte = u8::try_from(value & 0x7F).unwrap();
        value >>= 7;
        if value == 0 {
            out.push(byte);
            return out;
        }
        out.push(byte | 0x80);
    }
}

fn read(bytes: Vec<u8>) -> Result<Package, PackageError> {
    Package::from_bytes(Path::new("x.wasm"), bytes)
}

fn refused(bytes: Vec<u8>) -> String {
    read(bytes).unwrap_err().to_string()
}

fn sandbox() -> Sandbox {
    let (sinks, _) = SinkQueue::new();
    Sandbox::new(
        None,
        Arc::new(Services::new(sinks, Box::new(SystemDatagrams))),
        Compiler::program(env!("CARGO_BIN_EXE_conductor")),
    )
    .unwrap()
}

/// What the sandbox says of a component that is well-formed but should not run.
fn not_prepared(wat: &str, descriptor: &str) -> String {
    let package = read(component(wat, descriptor)).unwrap();
    sandbox().prepare(&package, Grants::default()).unwrap_err().to_string()
}

/// FEA-8: what is no package is refused with a message of its own.
#[test]
fn what_is_no_package_is_said_to_be_none() {
    let whole = component("(component (component))", PLAIN);
    assert!(read(whole.clone()).is_ok());

    assert!(refused(b"hello".to_vec()).contains("is not WebAssembly"));
    assert!(refused(Vec::new()).contains("is not WebAssembly"));
    assert!(refused(wat::parse_str("(module)").unwrap()).contains("is a core WebAssembly module"));
    for end in 9..whole.len() {
        assert!(read(whole[..end].to_vec()).is_err(), "cut to {end} of {}", whole.len());
    }
    assert!(refused(whole[..whole.len() - 5].to_vec()).contains("is truncated"));
    assert!(refused(wat::parse_str("(component)").unwrap()).contains("carries no descriptor"));
    let mut twice = whole;
    add_section(&mut twice, "conductor:feature", PLAIN.as_bytes());
    assert!(refused(twice).contains("carries 2 descriptors"));
    assert!(refused(component("(component)", "id = 'x'")).contains("no feature id"));
    assert!(refused(vec![0; usize::try_from(MAX_PACKAGE).unwrap() + 1]).contains("a package may have at most"));
}

/// FEA-6: only hooks around tool calls name tools, and by what stands for a beginning.
#[test]
fn a_hook_that_names_tools_wrongly_is_refused() {
    let hook = |point: &str, tools: &str| {
        let hook = format!("{PLAIN}[[hooks]]\npoint = '{point}'\nsummary = ''\ntools = [{tools}]\n");
        read(component("(component)", &hook)).map_err(|error| error.to_string())
    };
    hook("pre-tool-call", "'a_*', 'b'").unwrap();
    let many = vec!["'x'"; 65].join(", ");
    for (point, tools, why) in [
        ("mode-change", "'a'", "only pre-tool-call and post-tool-call see calls of tools"),
        ("post-tool-call", "''", "names the tool \"\"; a name is allowed, and one that ends in `*`"),
        ("pre-tool-call", "'a*b'", "names the tool \"a*b\""),
        ("pre-tool-call", &many, "names 65 tools; at most 64 are allowed"),
    ] {
        let error = hook(point, tools).unwrap_err();
        assert!(error.contains(why), "{error}");
    }
}

/// FEA-9: a package of 200 MB is refused by its size, not read.
#[test]
fn a_huge_file_is_refused_by_its_size() {
    let path = std::env::temp_dir().join(format!("conductor-huge-{}.wasm", std::process::id()));
    std::fs::File::create(&path).unwrap().set_len(200_000_000).unwrap();
    let error = Package::read(&path).unwrap_err();
    std::fs::remove_file(&path).unwrap();
    assert!(matches!(error, PackageError::TooLarge { size: 200_000_000, .. }), "{error}");
}

/// FEA-1: a component's type must be what its descriptor declares.
#[test]
fn a_type_that_does_not_fit_the_descriptor_is_refused() {
    let udp = r#"(component (import "conductor:feature/udp@0.1.0" (instance)))"#;
    assert!(not_prepared(udp, PLAIN).contains("does not request the capability \"network\""));

    let wasi = r#"(component (import "wasi:http/types@0.2.0" (instance)))"#;
    assert!(not_prepared(wasi, PLAIN).contains("which this host does not offer"));
    let waits = r#"(component (import "wasi:io/poll@0.2.0" (instance)))"#;
    let action = format!("{PLAIN}[[actions]]\nname = 'Do'\nsummary = ''\n");
    assert!(not_prepared(waits, &action).contains("the path of events, where nothing waits"));
    let bare = r#"(component (import "anything" (func)))"#;
    assert!(not_prepared(bare, PLAIN).contains("imports anything, which this host does not offer"));
    let other_version = r#"(component (import "conductor:feature/devices@0.2.0" (instance)))"#;
    assert!(not_prepared(other_version, PLAIN).contains("which this host does not offer"));

    let registrar = r#"(component (import "conductor:feature/action-registrar@0.1.0" (instance)))"#;
    assert!(not_prepared(registrar, PLAIN).contains("declares no contribution for it"));

    assert!(not_prepared("(component)", PLAIN).contains("does not export conductor:feature/lifecycle@0.1.0"));
    assert!(not_prepared("(component)", &action).contains("declares the action Do, but does not export"));

    let exports_more = r#"(component
        (instance $nothing)
        (export "conductor:feature/lifecycle@0.1.0" (instance $nothing))
        (export "conductor:feature/actions@0.1.0" (instance $nothing)))"#;
    assert!(
        not_prepared(exports_more, PLAIN)
            .contains("exports conductor:feature/actions@0.1.0, which its descriptor does not declare")
    );
}

/// FEA-1: all that does not fit is said at once.
#[test]
fn every_misfit_is_reported() {
    let wat = r#"(component
        (import "conductor:feature/udp@0.1.0" (instance))
        (import "conductor:feature/alerts@0.1.0" (instance)))"#;
    let package = read(component(wat, PLAIN)).unwrap();
    match sandbox().prepare(&package, Grants::default()) {
        Err(PrepareError::Check(errors)) => assert_eq!(errors.len(), 3, "two imports and the missing lifecycle"),
        other => panic!("{other:?}"),
    }
}

/// FEA-1: an interface of the right name and another type does not link.
#[test]
fn an_import_of_another_type_does_not_link() {
    let wat = r#"(component
        (import "conductor:feature/devices@0.1.0" (instance (export "name" (func (param "who" string)))))
        (instance $nothing)
        (export "conductor:feature/lifecycle@0.1.0" (instance $nothing)))"#;
    assert!(not_prepared(wat, PLAIN).contains("can't be linked"));
}

/// FEA-4: what a feature can't do without must be granted.
#[test]
fn a_required_capability_without_a_grant_is_refused() {
    let descriptor = format!("{PLAIN}[[capabilities]]\nkind = 'alert'\nrequired = true\nreason = 'Shout.'\n");
    let wat = r#"(component (instance $nothing) (export "conductor:feature/lifecycle@0.1.0" (instance $nothing)))"#;
    let message = not_prepared(wat, &descriptor);
    assert!(
        message.contains("needs the capability \"alert\" (Shout.); write `alert = true` under [features.x.grants]"),
        "{message}"
    );
}
