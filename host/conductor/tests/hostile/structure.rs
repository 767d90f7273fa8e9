//! Components that are made to be expensive: rejected when they are read, each for its own bound.

use std::path::Path;

use conductor_package::structure::{self, Bound, StructureError};
use conductor_package::{Package, PackageError};

use crate::packages::leb128;

/// A component that has `count` of what a bound counts, and is within the other bounds.
fn component(bound: Bound, count: u64) -> String {
    let count = usize::try_from(count).unwrap();
    let times = |text: &str, count: usize| text.repeat(count);
    let named = |make: &dyn Fn(usize) -> String| (0..count).map(make).collect::<String>();
    let module = |inner: String| format!("(component (core module {inner}))");
    match bound {
        Bound::ComponentDepth => format!("{}{}", times("(component ", count), times(")", count)),
        Bound::Components => format!("(component {})", times("(component)", count - 1)),
        Bound::Modules => format!("(component {})", times("(core module)", count)),
        Bound::Instances => format!("(component (component $c) {})", times("(instance (instantiate $c))", count)),
        Bound::ComponentTypes => format!("(component {})", times("(type (list u8))", count)),
        Bound::Fields => format!("(component (type (enum {})))", named(&|n| format!("\"a{n}\" "))),
        Bound::NestedTypes => unreachable!("text is not nested so deep"),
        Bound::Aliases => format!(
            r#"(component (import "i" (instance $i (export "r" (type (sub resource))))) {})"#,
            times(r#"(alias export $i "r" (type))"#, count)
        ),
        Bound::CanonicalFunctions => {
            format!(r#"(component (import "f" (func $f)) {})"#, times("(core func (canon lower (func $f)))", count))
        }
        Bound::Imports => {
            format!("(component (type $t (func)) {})", named(&|n| format!("(import \"a{n}\" (func (type $t)))")))
        }
        Bound::Exports => module(format!("(func $f) {}", named(&|n| format!("(export \"a{n}\" (func $f))")))),
        Bound::CustomSections => module(times("(@custom \"x\" \"\")", count)),
        Bound::NameBytes => module(format!("(func $f) (export \"{}\" (func $f))", times("a", count))),
        Bound::CoreTypes => module(times("(type (func))", count)),
        Bound::Parameters => module(format!("(type (func (param {})))", times("i32 ", count))),
        Bound::Results => module(format!("(type (func (result {})))", times("i32 ", count))),
        Bound::Functions => module(times("(func)", count)),
        // Two bytes are not the body's instructions: how many locals it has, and its end.
        Bound::FunctionBytes => module(format!("(func {})", times("nop ", count - 2))),
        Bound::FunctionSquares => {
            let each = count.div_ceil(4).isqrt() + 1;
            module(times(&format!("(func {})", times("nop ", each)), if count as u64 > bound.limit() { 4 } else { 3 }))
        }
        Bound::Locals => module(format!("(func (local {}))", times("i32 ", count))),
        Bound::AllLocals => {
            let whole = times(&format!("(func (local {}))", times("i32 ", 1000)), count / 1000);
            module(format!("{whole} (func (local {}))", times("i32 ", count % 1000)))
        }
        Bound::BlockDepth => module(format!("(func {} {})", times("block ", count), times("end ", count))),
        Bound::BranchTargets => module(format!("(func (br_table {} 0 (i32.const 0)))", times("0 ", count))),
        // A call of 64 parameters and 16 results.
        Bound::EdgeValues | Bound::AllEdgeValues => {
            let calls = |count: usize| format!("(func {})", times("call $f ", count));
            let (all, each) = (count.div_ceil(80), if bound == Bound::EdgeValues { count } else { 10_000 });
            let ty = format!("(type (func (param {}) (result {})))", times("i32 ", 64), times("i32 ", 16));
            module(format!("{ty} (func $f (type 0)) {} {}", times(&calls(each), all / each), calls(all % each)))
        }
        Bound::Globals => module(times("(global i32 (i32.const 0))", count)),
        Bound::Tables => module(times("(table 0 funcref)", count)),
        Bound::Memories => module(times("(memory 0)", count)),
        Bound::Tags => module(times("(tag)", count)),
        Bound::ElementSegments => module(times("(elem func)", count)),
        Bound::Elements => module(format!("(func $f) (elem func {})", times("$f ", count))),
        Bound::DataSegments => module(times("(data \"\")", count)),
    }
}

/// The same, encoded.
fn bytes(bound: Bound, count: u64) -> Vec<u8> {
    match bound {
        // Deeper than text may be nested.
        Bound::NestedTypes => nested_types(usize::try_from(count).unwrap()),
        _ => encoded(&component(bound, count)),
    }
}

/// A component with so many types in each other, three bytes each.
fn nested_types(count: usize) -> Vec<u8> {
    let mut section = vec![1];
    section.extend([0x42, 1, 1].repeat(count));
    section.extend([0x40, 0, 1, 0]);
    let mut bytes = encoded("(component)");
    bytes.push(7);
    bytes.extend(leb128(section.len()));
    bytes.extend(section);
    bytes
}

fn encoded(text: &str) -> Vec<u8> {
    wat::parse_str(text).unwrap()
}

#[test]
fn one_more_than_a_bound_allows_is_rejected_when_it_is_read() {
    for bound in Bound::ALL {
        let bytes = bytes(bound, bound.limit() + 1);
        match structure::read(&bytes) {
            Err(StructureError::Over { bound: over, found }) if over == bound => assert!(found > bound.limit()),
            other => panic!("{bound:?}: {other:?}"),
        }
        // Before anything else looks at it.
        let error = Package::from_bytes(Path::new("x.wasm"), bytes).unwrap_err();
        assert!(matches!(error, PackageError::Structure { .. }), "{bound:?}: {error}");
        assert!(error.to_string().contains(bound.what()), "{error}");
    }
}

#[test]
fn as_many_as_a_bound_allows_are_read() {
    for bound in Bound::ALL {
        let bytes = bytes(bound, bound.limit());
        if let Err(error) = structure::read(&bytes) {
            panic!("{bound:?}: {error}");
        }
    }
}

fn rejected(module: &str) -> String {
    let bytes = encoded(&format!("(component (core module {module}))"));
    Package::from_bytes(Path::new("x.wasm"), bytes).unwrap_err().to_string()
}

/// Two bytes each, and a thousand values: gigabytes in the compiler.
#[test]
fn loops_that_carry_a_thousand_values() {
    let values = "i32 ".repeat(1000);
    let ty = format!("(type $t (func (param {values}) (result {values})))");
    let loops = "(loop (type $t)) ".repeat(500);
    let error = rejected(&format!("{ty} (func (type $t) {} {loops})", "local.get 0 ".repeat(1000)));
    assert!(error.contains("1000 parameters"), "{error}");
    // Just as many, in more loops with fewer.
    let values = "i32 ".repeat(16);
    let ty = format!("(type $t (func (param {values}) (result {values})))");
    let error = rejected(&format!("{ty} (func (type $t) {})", "(loop (type $t)) ".repeat(40_000)));
    assert!(error.contains("values that cross"), "{error}");
}

#[test]
fn calls_with_a_thousand_results() {
    let values = "i32 ".repeat(1000);
    let module = format!(
        "(func $f (param {values}) (result {values}) unreachable) (func unreachable {})",
        "call $f ".repeat(3000)
    );
    assert!(rejected(&module).contains("1000 parameters"));
    let module = format!("(func $f (result {values}) unreachable) (func unreachable {})", "call $f ".repeat(3000));
    assert!(rejected(&module).contains("1000 results"));
}

/// A jump table takes its values along to each of its targets.
#[test]
fn branch_tables_to_blocks_with_many_results() {
    let results = "i32 ".repeat(16);
    let table = format!("br_table {} 0", "0 ".repeat(10_000));
    let module =
        format!("(func (result {results}) (block (result {results}) {}))", format!("unreachable {table} ").repeat(10));
    assert!(rejected(&module).contains("values that cross"));
}

/// Types that are declared in a component, and nowhere used, are types as well.
#[test]
fn core_types_that_are_only_declared() {
    let values = "i32 ".repeat(1000);
    for text in [
        format!("(component (core type (func (param {values}))))"),
        format!("(component (core type (module (type (func (param {values}))))))"),
        format!("(component (type (component (core type (module (type (func (param {values}))))))))"),
    ] {
        let error = Package::from_bytes(Path::new("x.wasm"), encoded(&text)).unwrap_err().to_string();
        assert!(error.contains("1000 parameters"), "{error}");
    }
}

/// Three bytes a level. Parsers recurse, and have a stack of a few megabytes.
#[test]
fn a_million_types_in_each_other() {
    let bytes = nested_types(1_000_000);
    let error = Package::from_bytes(Path::new("x.wasm"), bytes).unwrap_err().to_string();
    assert!(error.contains("types that stand in each other"), "{error}");
}

/// Counts in a section's head that nothing follows.
#[test]
fn counts_that_promise_more_than_there_is() {
    for section in [3_u8, 4, 5, 6, 11, 12] {
        let mut module = b"\0asm\x01\0\0\0".to_vec();
        module.extend([section, 5, 0xff, 0xff, 0xff, 0xff, 0x0f]);
        let mut bytes = encoded("(component)");
        bytes.extend([1, u8::try_from(module.len()).unwrap()]);
        bytes.extend(module);
        let error = Package::from_bytes(Path::new("x.wasm"), bytes).unwrap_err();
        let known = matches!(
            error,
            PackageError::Structure { .. } | PackageError::Truncated { .. } | PackageError::Malformed { .. }
        );
        assert!(known, "{section}: {error}");
    }
}
