//! What variables hold after what was done to them; the same as a simple model of them, from however many threads.

#![allow(clippy::unwrap_used, reason = "in a test a panic is a result")]

use std::collections::HashMap;
use std::sync::Arc;
use std::thread;

use conductor_expression::{Expression, Inputs, Names};
use conductor_number::Range;
use conductor_variables::{Change, Declaration, Key, Kind, MAX_OWNERS, Scope, Step, Variable, Variables};
use proptest::prelude::*;

fn declaration(name: &str, kind: Kind, scope: Scope, initial: f64) -> Declaration {
    Declaration { name: name.into(), kind, scope, initial, keep: false }
}

fn number(from: f64, to: f64) -> Kind {
    Kind::Number { limits: Some(Range { from, to }) }
}

fn words() -> Kind {
    Kind::Word(["intro", "verse", "coda"].map(str::to_owned).into())
}

fn one(kind: Kind, initial: f64) -> Variable {
    let all = Variables::declare([declaration("x", kind, Scope::Global, initial)], &Variables::default());
    all.find("x").cloned().expect("it is declared")
}

fn after(variable: &Variable, changes: &[(Change, f64)]) -> Vec<f64> {
    let mut held = Vec::new();
    for (at, (change, amount)) in (1_u64..).zip(changes) {
        // Far apart, so that nothing accelerates.
        variable.change(Key::EVERYONE, change, *amount, at * 1_000_000_000);
        held.push(variable.get(Key::EVERYONE));
    }
    held
}

#[test]
fn a_switch_is_toggled_and_set() {
    let mute = one(Kind::Switch, 0.0);
    assert_eq!(
        after(&mute, &[(Change::Toggle, 1.0), (Change::Toggle, 1.0), (Change::Set, 64.0), (Change::Cycle, 1.0)]),
        [1.0, 0.0, 1.0, 0.0]
    );
    assert_eq!(mute.change(Key::EVERYONE, &Change::Set, 0.0, 9), None, "nothing has changed");
}

#[test]
fn a_word_goes_on_to_the_next_and_from_the_last_to_the_first() {
    let part = one(words(), 0.0);
    after(&part, &[(Change::Cycle, 1.0), (Change::Toggle, 1.0)]);
    assert_eq!(part.word(Key::EVERYONE), Some("coda"));
    after(&part, &[(Change::Cycle, 1.0)]);
    assert_eq!(part.word(Key::EVERYONE), Some("intro"));
    after(&part, &[(Change::Cycle, -1.0)]);
    assert_eq!(part.word(Key::EVERYONE), Some("coda"));
}

#[test]
fn a_counter_keeps_its_limits_or_wraps() {
    let counter = one(number(0.0, 10.0), 8.0);
    let add = |by, wraps| (Change::Add(Step { wraps, ..Step::PLAIN }), by);
    assert_eq!(after(&counter, &[add(1.5, false), add(5.0, false), add(-100.0, false)]), [9.5, 10.0, 0.0]);
    assert_eq!(after(&counter, &[add(7.0, true), add(7.0, true), add(-5.0, true)]), [7.0, 4.0, 9.0]);
    assert_eq!(after(&counter, &[(Change::Toggle, 1.0), (Change::Toggle, 1.0)]), [0.0, 10.0]);
    let free = one(Kind::Number { limits: None }, 0.0);
    assert_eq!(after(&free, &[add(1e308, false), add(1e308, false), (Change::Set, f64::NAN)]), [1e308, f64::MAX, 0.0]);
}

#[test]
fn a_knob_clicks_in_and_is_faster_when_it_is_turned_fast() {
    let pan = one(number(-1.0, 1.0), -0.3);
    let turn = (Change::Add(Step { detents: vec![0.0, 0.5], ..Step::PLAIN }), 0.4);
    assert_eq!(after(&pan, &[turn.clone(), turn.clone()]), [0.0, 0.4]);
    let level = one(number(0.0, 100.0), 0.0);
    let turn = Change::Add(Step { acceleration: 5.0, ..Step::PLAIN });
    let at = |at: u64| level.change(Key::EVERYONE, &turn, 1.0, at * 1_000_000).map(|changed| changed.to - changed.from);
    assert_eq!((at(1000), at(2000), at(2000), at(2030)), (Some(1.0), Some(1.0), Some(5.0), Some(3.0)));
}

#[test]
fn each_device_has_its_own_value_until_there_is_no_room() {
    let all = Variables::declare([declaration("bank", number(0.0, 9.0), Scope::Device, 3.0)], &Variables::default());
    let bank = all.find("bank").expect("it is declared");
    let names: Vec<String> = (0..MAX_OWNERS + 2).map(|device| format!("pads {device}")).collect();
    for (name, value) in names.iter().take(MAX_OWNERS).zip((0..8).cycle()) {
        assert_eq!(bank.get(Key::of(name)), 3.0, "{name} begins");
        bank.change(Key::of(name), &Change::Set, f64::from(value), 1);
    }
    assert_eq!((bank.get(Key::of("pads 1")), bank.get(Key::of("pads 5"))), (1.0, 5.0));
    let [one, other] = [MAX_OWNERS, MAX_OWNERS + 1].map(|device| Key::of(&names[device]));
    bank.change(one, &Change::Set, 9.0, 2);
    assert_eq!(bank.get(other), 9.0, "these share one");
}

#[test]
fn what_is_declared_again_keeps_its_value() {
    let of = |limit, before: &Variables| {
        Variables::declare(
            [
                declaration("other", Kind::Switch, Scope::Global, 0.0),
                declaration("level", number(0.0, limit), Scope::Global, 1.0),
            ],
            before,
        )
    };
    let get = |all: &Variables| all.find("level").map(|level| level.get(Key::EVERYONE));
    let first = of(10.0, &Variables::default());
    first.find("level").unwrap().change(Key::EVERYONE, &Change::Set, 7.0, 1);
    let same = of(10.0, &first);
    assert_eq!(get(&same), Some(7.0));
    same.find("level").unwrap().change(Key::EVERYONE, &Change::Set, 5.0, 2);
    assert_eq!(get(&first), Some(5.0), "they are the same");
    assert_eq!(get(&of(4.0, &same)), Some(1.0), "it is declared otherwise");
}

#[test]
fn expressions_read_variables() {
    let declared = [
        declaration("gain", number(-60.0, 10.0), Scope::Global, -25.0),
        declaration("bank", number(0.0, 9.0), Scope::Device, 2.0),
        declaration("page", number(0.0, 9.0), Scope::Mode, 4.0),
    ];
    let all = Variables::declare(declared, &Variables::default());
    all.find("bank").unwrap().change(Key::of("pads"), &Change::Set, 5.0, 1);
    let mut expression =
        Expression::parse("(gain -> 0..100) + bank * 10 + page + n", Names::EventAndVariables).unwrap();
    expression.bind(|name| all.bound(name)).unwrap();
    let inputs = Inputs { position: 0.5, ..Inputs::default() };
    let eval = |device| expression.eval(&all.with(&inputs, Key::of(device), Key::of("Play")));
    assert_eq!((eval("pads"), eval("keys")), (104.5, 74.5));
}

#[test]
fn no_change_is_lost_between_threads() {
    let counter = Arc::new(one(Kind::Number { limits: None }, 0.0));
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let counter = Arc::clone(&counter);
            thread::spawn(move || {
                for at in 0..5000 {
                    counter.change(Key::EVERYONE, &Change::Add(Step::PLAIN), 1.0, at);
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(counter.get(Key::EVERYONE), 20_000.0);
}

fn kinds() -> impl Strategy<Value = Kind> {
    prop_oneof![
        Just(Kind::Switch),
        Just(words()),
        Just(Kind::Number { limits: None }),
        (-100_i32..100, 0_i32..100).prop_map(|(from, way)| number(from.into(), (from + way).into())),
    ]
}

fn changes() -> impl Strategy<Value = Change> {
    let detents = prop::collection::vec(-50.0..50.0, 0..3);
    prop_oneof![
        Just(Change::Set),
        Just(Change::Toggle),
        Just(Change::Cycle),
        (any::<bool>(), 0.0..9.0, detents).prop_map(|(wraps, acceleration, detents)| Change::Add(Step {
            wraps,
            acceleration,
            detents
        })),
    ]
}

proptest! {
    /// Whatever is done, a variable holds what it may hold, and says what has changed.
    #[test]
    fn a_variable_stays_what_it_is(kind in kinds(), initial: f64, done in prop::collection::vec((changes(), any::<f64>(), 0_u64..100_000_000), 0..30)) {
        let variable = one(kind.clone(), initial);
        let mut at = 0;
        for (change, amount, pause) in done {
            at += pause;
            let before = variable.get(Key::EVERYONE);
            let changed = variable.change(Key::EVERYONE, &change, amount, at);
            let now = variable.get(Key::EVERYONE);
            prop_assert!(now.is_finite());
            prop_assert_eq!(kind.fitted(now), now, "{:?} {:?}", kind, change);
            match changed {
                None => prop_assert_eq!(before, now),
                Some(changed) => {
                    prop_assert_eq!((changed.from, changed.to), (before, now));
                    prop_assert!((0.0..=1.0).contains(&changed.unit));
                }
            }
        }
    }

    /// Each owner's value is its own, as in a map.
    #[test]
    fn owners_do_not_disturb_each_other(done in prop::collection::vec((0_usize..40, -100_i32..100), 0..200)) {
        let declared = [declaration("x", Kind::Number { limits: None }, Scope::Device, 0.0)];
        let all = Variables::declare(declared, &Variables::default());
        let x = all.find("x").unwrap();
        let mut model: HashMap<usize, f64> = HashMap::new();
        for (owner, by) in done {
            let key = Key::of(&format!("device {owner}"));
            x.change(key, &Change::Add(Step::PLAIN), by.into(), 1);
            *model.entry(owner).or_default() += f64::from(by);
            for (owner, value) in &model {
                prop_assert_eq!(x.get(Key::of(&format!("device {owner}"))), *value);
            }
        }
    }
}
