//! That triggers overlap is known wherever one event is what both wait for.

mod small_world;

use conductor_engine::*;
use conductor_trigger_overlap::{Overlap, shared_event};
use proptest::prelude::*;
use small_world::{event, trigger};

/// Whether the event's address is a pattern itself: then it is for as many addresses as its sender likes.
fn is_to_many(event: &Event) -> bool {
    matches!(event, Event::Osc(message) if message.is_pattern())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn what_one_event_is_for_overlaps(one in trigger(), other in trigger(), event in event()) {
        let sees_all = |trigger: &Trigger| matches!(trigger, Trigger::MidiAny { .. });
        let two_patterns = |one: &Trigger, other: &Trigger| {
            matches!((one, other), (Trigger::OscPattern { .. }, Trigger::OscPattern { .. })) && one != other
        };
        let two_tests = |one: &Trigger, other: &Trigger| {
            matches!((one, other), (Trigger::Osc { arg: Some(x), .. }, Trigger::Osc { arg: Some(y), .. }) if x != y)
        };
        let to_many = is_to_many(&event);
        prop_assert_eq!(one.overlaps(&other), other.overlaps(&one), "either way");
        let known = !to_many && !sees_all(&one) && !sees_all(&other) && !two_patterns(&one, &other) && !two_tests(&one, &other);
        if known && one.matches(&event).is_some() && other.matches(&event).is_some() {
            prop_assert!(one.overlaps(&other), "{event}: {one:?}, {other:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    /// What is said to take everything from another trigger matches every event that the other matches.
    #[test]
    fn what_covers_another_misses_nothing_of_it(one in trigger(), other in trigger(), event in event()) {
        if one.covers(&other) && other.matches(&event).is_some() && !is_to_many(&event) {
            prop_assert!(one.matches(&event).is_some(), "{:?} {:?} {}", one, other, event);
        }
        let any = matches!(one, Trigger::MidiAny { .. });
        prop_assert!(!one.covers(&other) || one.overlaps(&other) || any, "{:?} {:?}", one, other);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    /// Triggers that overlap have an event to show, which both match.
    #[test]
    fn an_event_that_both_wait_for_is_found(one in trigger(), other in trigger()) {
        let shared = shared_event(&one, &other);
        if let Some(event) = &shared {
            prop_assert!(one.matches(event).is_some() && other.matches(event).is_some(), "{event}: {one:?}, {other:?}");
        }
        // Whether one number passes two tests is not compared; and with velocity 0 there is no press.
        let is_odd = |trigger: &Trigger| match trigger {
            Trigger::Osc { arg, .. } | Trigger::OscPattern { arg, .. } => arg.is_some(),
            Trigger::Note { velocity, .. } => velocity.max == 0,
            _ => false,
        };
        if one.overlaps(&other) && !is_odd(&one) && !is_odd(&other) {
            prop_assert!(shared.is_some(), "{:?} {:?}", one, other);
        }
    }
}
