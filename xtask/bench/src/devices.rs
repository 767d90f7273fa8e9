//! Devices: the library of controllers, read and searched, and the fingerprint of a window of events.

use std::hint::black_box;

use anyhow::{Result, ensure};
use conductor_device_profile::Library;
use conductor_feature::kind;
use source_kind::{Kind, Moment, Window};

use crate::measure::nanos_per_call;
use crate::report::{Section, Unit};

/// Events of a window: as many as the host hands over.
const EVENTS: u64 = 1000;

/// Measures the row.
pub fn measure(section: &mut Section<'_>) -> Result<()> {
    let library = Library::bundled();
    let profiles = library.profiles().len();
    ensure!(library.search("akai pads").len() > 1, "the library is searched");
    ensure!(library.of_port("APC MINI MIDI 1", None).is_some(), "a port has its profile");
    let window = faders();
    let found = window.classify();
    ensure!(found.sources.first().is_some_and(|source| source.kind == Kind::Faders), "faders are faders: {found:?}");
    let [read, search, port, fingerprint] = nanos_per_call([
        Box::new(|calls| {
            for _ in 0..calls {
                black_box(Library::bundled());
            }
        }),
        Box::new(|calls| {
            for _ in 0..calls {
                black_box(library.search(black_box("akai pads")));
            }
        }),
        Box::new(|calls| {
            for _ in 0..calls {
                black_box(library.of_port(black_box("APC MINI MIDI 1"), None));
            }
        }),
        Box::new(|calls| {
            for _ in 0..calls {
                black_box(window.classify());
            }
        }),
    ]);
    section.figure(format!("reading and checking the {profiles} profiles"), read, Unit::Nanoseconds);
    section.figure(format!("a search among {profiles} profiles"), search, Unit::Nanoseconds);
    section.figure("the profile that fits a port", port, Unit::Nanoseconds);
    section.figure(format!("the kind of source of {EVENTS} events"), fingerprint, Unit::Nanoseconds);
    Ok(())
}

/// Eight faders that are thrown from end to end, several at once.
fn faders() -> Window {
    let mut window = Window::default();
    for event in 0..EVENTS {
        let (step, number) = (event / 8 % 64 * 2, (event % 8) as u16);
        let value = if event / 512 % 2 == 0 { step } else { 127 - step };
        window.add(Moment {
            at: event * 1_000_000,
            kind: kind::CONTROL_CHANGE,
            channel: 0,
            number,
            value: value as f64,
            machine_control: false,
        });
    }
    window
}
