//! Packages that are no honest component: refused before anything in them runs, and soon.

use std::path::Path;
use std::time::{Duration, Instant};

use conductor_package::{Grants, Package, PackageError};

use crate::lab::{Lab, bytes_with, path};

pub const PLAIN: &str = "id = 'project:x'\nname = 'X'\nversion = '1'\ncontract = '0.1'\n";

/// What the sandbox says of a component, of which nothing may come.
fn refused(wat: &str, descriptor: &[u8]) -> String {
    let began = Instant::now();
    let mut bytes = wat::parse_str(wat).unwrap();
    add_section(&mut bytes, descriptor);
    let error = match Package::from_bytes(Path::new("x.wasm"), bytes) {
        Err(error) => error.to_string(),
        Ok(package) => {
            let lab = Lab::new();
            match lab.sandbox.prepare(&package, Grants::default()) {
                Err(error) => error.to_string(),
                Ok(feature) => {
                    let made = feature.runtime().block_on(feature.instantiate_control());
                    made.map(drop).unwrap_err().to_string()
                }
            }
        }
    };
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    assert!(error.len() < 16 * 1024, "{} bytes of error", error.len());
    error
}

pub fn add_section(bytes: &mut Vec<u8>, descriptor: &[u8]) {
    let name = b"conductor:feature";
    let mut content = vec![u8::try_from(name.len()).unwrap()];
    content.extend(name);
    content.extend(descriptor);
    bytes.push(0);
    bytes.extend(leb128(content.len()));
    bytes.extend(content);
}

pub fn leb128(mut value: usize) -> Vec<u8> {
    let mut out = Vec::new();
    while value >= 0x80 {
        out.push(u8::try_from(value & 0x7f).unwrap() | 0x80);
        value >>= 7;
    }
    out.push(u8::try_from(value).unwrap());
    out
}

/// A whole feature, in order but for another core module with this inside.
pub fn feature(module: &str) -> String {
    format!(
        r#"(component
            (import "conductor:feature/types@0.1.0" (instance $types
                (type $e (variant (case "denied" string) (case "unavailable" string) (case "invalid" string)
                    (case "exhausted" string) (case "failed" string)))
                (export "error" (type (eq $e)))))
            (import "conductor:feature/install@0.1.0" (instance $install (export "context" (type (sub resource)))))
            (alias export $types "error" (type $error))
            (alias export $install "context" (type $context))
            (core module $hostile {module})
            (core instance (instantiate $hostile))
            (core module $lifecycle
                (import "host" "drop" (func $drop (param i32)))
                (memory (export "memory") 1)
                (func (export "install") (param i32) (result i32) (call $drop (local.get 0)) (i32.const 64)))
            (core func $drop (canon resource.drop $context))
            (core instance $host (export "drop" (func $drop)))
            (core instance $i (instantiate $lifecycle (with "host" (instance $host))))
            (func $f (param "ctx" (borrow $context)) (result (result (error $error)))
                (canon lift (core func $i "install") (memory (core memory $i "memory"))))
            (instance $l (export "install" (func $f)))
            (export "conductor:feature/lifecycle@0.1.0" (instance $l)))"#
    )
}

/// What the cases below begin with is in order.
#[test]
fn a_feature_with_nothing_hostile_in_it() {
    let mut bytes = wat::parse_str(feature("")).unwrap();
    add_section(&mut bytes, PLAIN.as_bytes());
    let package = Package::from_bytes(Path::new("x.wasm"), bytes).unwrap();
    let lab = Lab::new();
    let feature = lab.sandbox.prepare(&package, Grants::default()).unwrap();
    feature.runtime().block_on(feature.instantiate_control()).unwrap();
}

#[test]
fn ten_thousand_imports() {
    let imports: String = (0..10_000).map(|n| format!("(import \"import-{n}\" (func))")).collect();
    let error = refused(&format!("(component {imports})"), PLAIN.as_bytes());
    assert!(error.contains("which this host does not offer") && error.contains("more"), "{error}");
}

#[test]
fn a_memory_of_a_gigabyte() {
    let error = refused(&feature("(memory 16384)"), PLAIN.as_bytes());
    assert!(error.contains("1073741824 which exceeds the limit"), "{error}");
}

#[test]
fn data_for_a_place_beyond_the_memory() {
    let error = refused(&feature("(memory 1) (data (i32.const 1073741824) \"x\")"), PLAIN.as_bytes());
    assert!(error.contains("out of bounds memory access"), "{error}");
}

#[test]
fn more_memories_and_tables_than_allowed() {
    let error = refused(&feature(&"(memory 1)".repeat(100)), PLAIN.as_bytes());
    assert!(error.contains("memories count of 100"), "{error}");
    let error = refused(&feature(&"(table 1 funcref)".repeat(100)), PLAIN.as_bytes());
    assert!(error.contains("tables count of 100"), "{error}");
    let error = refused(&feature("(table 1000000 funcref)"), PLAIN.as_bytes());
    assert!(error.contains("minimum element size of 1000000"), "{error}");
}

/// What is grown while a module starts counts as any other; each of these traps when it gets nothing.
#[test]
fn memory_and_tables_that_grow_at_the_start() {
    let grows = |what: &str, grow: &str| {
        format!("{what} (func $s (br_if 0 (i32.ne ({grow}) (i32.const -1))) unreachable) (start $s)")
    };
    for (module, why) in [
        (grows("(memory 1)", "memory.grow (i32.const 2000)"), "unreachable"),
        (grows("(table 1 funcref)", "table.grow (ref.null func) (i32.const 30000)"), "unreachable"),
        ("(func $s (loop (br 0))) (start $s)".to_owned(), "interrupt"),
    ] {
        let error = refused(&feature(&module), PLAIN.as_bytes());
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn more_core_instances_than_allowed() {
    let more = "(core instance (instantiate $e))".repeat(100);
    let wat = format!(
        r#"(component (core module $e) {more} (instance $nothing)
            (export "conductor:feature/lifecycle@0.1.0" (instance $nothing)))"#
    );
    let error = refused(&wat, PLAIN.as_bytes());
    assert!(error.contains("instances"), "{error}");
}

/// Thirty levels, each of which has the one below it twice: a thousand million instances.
#[test]
fn components_that_double_with_each_level() {
    let mut wat = "(component $c0 (core module $m) (core instance (instantiate $m)))".to_owned();
    for level in 1..30 {
        let below = level - 1;
        wat = format!(
            "(component $c{level} {wat} (instance (instantiate $c{below})) (instance (instantiate $c{below})))"
        );
    }
    let error = refused(&wat, PLAIN.as_bytes());
    assert!(error.contains("components that stand in each other"), "{error}");
}

#[test]
fn instances_without_number() {
    let more = "(instance (instantiate $c))".repeat(900);
    let wat = format!("(component (component $c) {more})");
    let error = refused(&wat, PLAIN.as_bytes());
    assert!(error.contains("instances; a package"), "{error}");
}

#[test]
fn components_nested_a_thousand_deep() {
    let header = wat::parse_str("(component)").unwrap();
    let mut bytes = header.clone();
    for _ in 0..1000 {
        let inner = std::mem::replace(&mut bytes, header.clone());
        bytes.push(4);
        bytes.extend(leb128(inner.len()));
        bytes.extend(inner);
    }
    add_section(&mut bytes, PLAIN.as_bytes());
    let error = Package::from_bytes(Path::new("x.wasm"), bytes).unwrap_err().to_string();
    assert!(error.contains("components that stand in each other"), "{error}");
}

/// Handles of types that the host does not know would not be counted.
#[test]
fn resource_types_of_its_own() {
    let wat = r#"(component (type $r (resource (rep i32))) (core func (canon resource.new $r)))"#;
    let error = refused(wat, PLAIN.as_bytes());
    assert!(error.contains("defines a resource type"), "{error}");
}

#[test]
fn built_in_functions_that_nobody_needs() {
    for built_in in ["(core func (canon backpressure.inc))", "(core func (canon waitable-set.new))"] {
        let error = refused(&format!("(component {built_in})"), PLAIN.as_bytes());
        assert!(error.contains("built-in") || error.contains("not a valid component"), "{error}");
    }
}

/// A thread that waits on shared memory would wait for ever.
#[test]
fn shared_memory() {
    let error = refused(
        &feature(
            "(memory 1 1 shared) (func $s (drop (memory.atomic.wait32 (i32.const 0) (i32.const 0) (i64.const -1)))) (start $s)",
        ),
        PLAIN.as_bytes(),
    );
    assert!(error.contains("threads must be enabled for shared memories"), "{error}");
}

#[test]
fn descriptors_that_are_none() {
    let empty = "(component)";
    assert!(refused(empty, &[0xff, 0xfe, 0x00]).contains("is not UTF-8 text"));
    assert!(refused(empty, &[b'#'; 70_000]).contains("at most 65536 are read"));
    let version = PLAIN.replace("0.1", "9.9");
    assert!(refused(empty, version.as_bytes()).contains("written for contract 9.9"));
    let control = PLAIN.replace("'X'", "\"X\\u001b[2J\"");
    assert!(refused(empty, control.as_bytes()).contains("can't be seen"));
    let reason = format!("{PLAIN}[[capabilities]]\nkind = 'alert'\nreason = \"\\u202eno harm\"\n");
    assert!(refused(empty, reason.as_bytes()).contains("can't be seen"));
    let deep = format!("{PLAIN}x = {}", "[".repeat(30_000));
    assert!(refused(empty, deep.as_bytes()).contains("the descriptor is wrong"));
}

#[test]
fn two_descriptors() {
    let mut bytes = bytes_with("tests/hostile-tools", &[]);
    add_section(&mut bytes, PLAIN.as_bytes());
    let error = Package::from_bytes(Path::new("x.wasm"), bytes).unwrap_err();
    assert!(matches!(error, PackageError::SeveralDescriptors { count: 2, .. }), "{error}");
}

#[test]
fn a_contract_of_another_version() {
    let bytes = bytes_with("tests/hostile-tools", &[("contract = \"0.1\"", "contract = \"0.2\"")]);
    let error = Package::from_bytes(Path::new("x.wasm"), bytes).unwrap_err().to_string();
    assert!(error.contains("written for contract 0.2"), "{error}");
}

/// With any bit flipped, there is a result and no panic.
#[test]
fn bytes_that_fell_over() {
    let whole = std::fs::read(path("tests/hostile-tasks")).unwrap();
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    for _ in 0..300 {
        let mut bytes = whole.clone();
        for _ in 0..3 {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            let at = usize::try_from(seed).unwrap_or(usize::MAX) % bytes.len();
            bytes[at] ^= 1 << (seed >> 61);
        }
        let _ = Package::from_bytes(Path::new("x.wasm"), bytes);
    }
}

/// Code in the cache that is not what the host wrote there is compiled anew, never run.
#[test]
fn a_cache_file_that_was_swapped() {
    let lab = Lab::new();
    let folder = crate::lab::Folder::new();
    let prepare = || {
        let sandbox =
            conductor_sandbox::Sandbox::new(Some(folder.path()), lab.services.clone(), crate::lab::compiler()).unwrap();
        let [tools, hooks] = ["tests/hostile-tools", "tests/hostile-hooks"]
            .map(|name| sandbox.prepare(&crate::lab::guest(name), lab.grants()).unwrap());
        (crate::lab::Tools::new(tools), hooks, sandbox)
    };
    drop(prepare());
    let code = folder.path().join("cache/code");
    let files: Vec<_> = std::fs::read_dir(&code).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(files.len() >= 2, "{files:?}");
    // Everything under another's name.
    for pair in files.chunks(2) {
        if let [one, other] = pair {
            let aside = folder.path().join("aside");
            std::fs::rename(one, &aside).unwrap();
            std::fs::rename(other, one).unwrap();
            std::fs::rename(&aside, other).unwrap();
        }
    }
    let (tools, _hooks, _sandbox) = prepare();
    tools.goes_on();
}

/// The compiler takes the square of such a function's size in time: minutes for a few megabytes.
#[test]
fn a_function_that_takes_ages_to_compile() {
    let step = "(local.set 0 (i32.add (local.get 1) (call $f))) (if (local.get 0) (then (local.set 1 (i32.const 1))))";
    let body = step.repeat(80_000);
    let module = format!("(func $f (result i32) (i32.const 1)) (func (local i32 i32) {body})");
    let error = refused(&feature(&module), PLAIN.as_bytes());
    assert!(error.contains("bytes in one function"), "{error}");
}
