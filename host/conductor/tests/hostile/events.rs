//! Hooks on events: one that is slow, traps or asks for too much costs itself alone.

use std::time::Duration;

use conductor_dispatch::event_hook::EventHook;
use conductor_event::{Cause, DeviceId, Fired, MidiMessage, ModeIx, Record};
use conductor_observer::sink_message::SinkQueue;
use conductor_observer::{self as observer, Observation, Observed, Observer};
use conductor_sandbox::bindings::Event;

use crate::lab::{Lab, renamed, until};

fn observed() -> (Observer, Observed) {
    let (_, silence) = SinkQueue::new();
    let (observer, observed, _) = observer::start(silence, None).unwrap();
    (observer, observed)
}

/// An event of this number.
fn seen(number: u8) -> Observation {
    let event = MidiMessage::NoteOn { channel: 0, note: number, velocity: 100 }.into();
    Observation::Event(Record {
        at: 0,
        device: DeviceId::new("pads"),
        event,
        cause: Cause::Input,
        mode: ModeIx(0),
        generation: 0,
        fired: Fired::new(),
    })
}

#[test]
fn a_slow_hook_misses_events_and_nobody_else_does() {
    const EVENTS: u64 = 40_000;
    let lab = Lab::new();
    let (observer, observed) = observed();
    let slow = EventHook::start(lab.prepare("tests/hostile-hooks"), &observed).unwrap();
    let package = renamed("tests/hostile-hooks", "project:watch", &[("KEY:before", "KEY:watch")]);
    let twin = EventHook::start(lab.sandbox.prepare(&package, lab.grants()).unwrap(), &observed).unwrap();
    let (other, missed) = observed.subscribe_to(|observation| matches!(observation, Observation::Event(_)));
    let mut came = 0;
    for put in 1..=EVENTS {
        observer.put(seen(6));
        // As fast as the observer itself can keep up with.
        if put % 1000 == 0 {
            until("the twin does not see them", || {
                came += other.try_iter().count() as u64;
                twin.counts().0 == put && came == put
            });
        }
    }
    assert_eq!((twin.counts(), came), ((EVENTS, 0), EVENTS));
    assert_eq!((missed.load(std::sync::atomic::Ordering::Relaxed), observer.missed()), (0, 0));
    until("the slow one loses none", || {
        let (seen, missed) = slow.counts();
        seen + missed == EVENTS && missed > 0
    });
}

/// What a hook was not shown while it was quarantined counts as missed, for the person and for the hook.
#[test]
fn a_hook_is_told_how_many_events_it_missed() {
    let lab = Lab::new();
    let (observer, observed) = observed();
    let feature = lab.prepare("tests/hostile-hooks");
    let hook = EventHook::start(feature.clone(), &observed).unwrap();
    observer.put(seen(0));
    until("it sees nothing", || hook.counts().0 == 1);
    let quarantine = &feature.facts().quarantine;
    while !quarantine.record_trap(std::time::Instant::now()) {}
    for missed in 1..=3 {
        observer.put(seen(0));
        until("it was not quarantined", || hook.counts().1 == missed);
    }
    quarantine.lift();
    observer.put(seen(5));
    let said = lab.said.recv_timeout(Duration::from_secs(60)).unwrap();
    assert_eq!((said.text.as_str(), hook.counts().1), ("missed 3", 3));
}

#[test]
fn traps_in_a_hook_on_events_count() {
    let lab = Lab::new();
    let (observer, observed) = observed();
    let feature = lab.prepare("tests/hostile-hooks");
    let hook = EventHook::start(feature.clone(), &observed).unwrap();
    for put in 1..=6 {
        observer.put(seen(2));
        until("it was not missed", || hook.counts().1 == put);
    }
    assert!(feature.facts().quarantine.left(std::time::Instant::now()).is_some());
}

/// Looking at the host takes its time, which there is none of beside the event path.
#[test]
fn the_host_is_not_looked_at_in_the_real_time_lane() {
    let lab = Lab::new();
    let mut hook = lab.prepare("tests/hostile-hooks").instantiate().unwrap();
    let event = Event { at: 0, device: 0, kind: 2, channel: 0, number: 4, position: 0, value: 0.0, unit: 0.0 };
    hook.events(&[event], 0).unwrap();
    let said: Vec<String> = lab.said.try_iter().map(|said| said.text).collect();
    assert_eq!(said.len(), 2, "{said:?}");
    for (said, word) in said.iter().zip(["checked", "proposed"]) {
        assert!(said.starts_with(word) && said.contains("nothing may wait in the real-time lane"), "{said}");
    }
    assert_eq!(lab.view.toiled.load(std::sync::atomic::Ordering::Relaxed), 0);
    assert!(lab.view.plans.waiting().unwrap().is_empty());
}
