//! Evaluating allocates nothing: a counting allocator watches.

#![allow(clippy::unwrap_used, reason = "in a test a panic is a result")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;

use conductor_expression::{Expression, Inputs, Names};

thread_local! {
    /// How often this thread has asked for memory. Constant and without destructor, so that reading it
    /// needs no memory itself.
    static ASKED: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

fn count() {
    ASKED.with(|asked| asked.set(asked.get() + 1));
}

// SAFETY: every call goes to the system's allocator unchanged; counting touches no heap memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller keeps the contract of `alloc`, which is also that of the callee.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above; the pointer came from `System`, since all of ours do.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations(work: impl FnOnce()) -> u64 {
    let before = ASKED.get();
    work();
    ASKED.get() - before
}

#[test]
fn evaluating_allocates_nothing() {
    let texts = [
        "{n}+36",
        "value -> -60..10 dB, exponential, step 0.5, invert, dead 10%",
        "if(value > 64 and not (n == 3), layers(value, 10, 20, 30), clamp(note * 2 / n, 0, 127)) % 12 + pow(unit, 2)",
    ];
    let parsed: Vec<Expression> = texts.iter().map(|text| Expression::parse(text, Names::Event).unwrap()).collect();
    let mut inputs = Inputs { value: 1.0, unit: 0.1, position: 2.0, number: 60.0, channel: 0.0 };
    let asked = allocations(|| {
        for _ in 0..1000 {
            inputs.value += 1.0;
            inputs.unit = inputs.value / 1001.0;
            for expression in &parsed {
                black_box(expression.eval(black_box(&inputs)));
            }
        }
    });
    assert_eq!(asked, 0);
}
