//! What holds for every expression: it has a finite value, that of the same expression calculated another way, and a
//! text that is none has its mistake at a place in it.

#![allow(clippy::unwrap_used, reason = "in a test a panic is a result")]

use conductor_expression::{Expression, Inputs, Names, Template};
use proptest::prelude::*;

/// An expression as a tree, to be written down and calculated apart.
#[derive(Debug, Clone)]
enum Tree {
    Number(f64),
    Name(&'static str),
    Minus(Box<Tree>),
    Two(&'static str, Box<Tree>, Box<Tree>),
    If(Box<Tree>, Box<Tree>, Box<Tree>),
    Scaled(Box<Tree>, [i16; 4]),
}

fn tree() -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![
        (0_u32..4000).prop_map(|number| Tree::Number(f64::from(number) / 8.0)),
        prop::sample::select(vec!["value", "unit", "n", "note", "channel"]).prop_map(Tree::Name),
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        let boxed = || inner.clone().prop_map(Box::new);
        let operator = prop::sample::select(vec!["+", "-", "*", "/", "%", "<", ">=", "==", "and", "or"]);
        prop_oneof![
            boxed().prop_map(Tree::Minus),
            (operator, boxed(), boxed()).prop_map(|(operator, x, y)| Tree::Two(operator, x, y)),
            (boxed(), boxed(), boxed()).prop_map(|(x, y, z)| Tree::If(x, y, z)),
            (boxed(), any::<[i16; 4]>()).prop_map(|(x, ends)| Tree::Scaled(x, ends)),
        ]
    })
}

fn written(tree: &Tree) -> String {
    match tree {
        Tree::Number(number) => number.to_string(),
        Tree::Name(name) => (*name).to_owned(),
        Tree::Minus(x) => format!("-{}", written(x)),
        Tree::Two(operator, x, y) => format!("({} {operator} {})", written(x), written(y)),
        Tree::If(x, y, z) => format!("if({}, {}, {})", written(x), written(y), written(z)),
        Tree::Scaled(x, [a, b, c, d]) => format!("({} from {a}..{b} -> {c}..{d})", written(x)),
    }
}

fn calculated(tree: &Tree, inputs: &Inputs) -> f64 {
    let number = match tree {
        Tree::Number(number) => *number,
        Tree::Name("value") => inputs.value,
        Tree::Name("unit") => inputs.unit,
        Tree::Name("n") => inputs.position,
        Tree::Name("note") => inputs.number,
        Tree::Name(_) => inputs.channel,
        Tree::Minus(x) => -calculated(x, inputs),
        Tree::If(x, y, z) => calculated(if calculated(x, inputs) == 0.0 { z } else { y }, inputs),
        Tree::Two(operator, x, y) => {
            let (x, y) = (calculated(x, inputs), calculated(y, inputs));
            match *operator {
                "+" => x + y,
                "-" => x - y,
                "*" => x * y,
                "/" | "%" if y == 0.0 => 0.0,
                "/" => x / y,
                "%" => x.rem_euclid(y),
                "<" => f64::from(x < y),
                ">=" => f64::from(x >= y),
                "==" => f64::from(x == y),
                "and" => f64::from(x != 0.0 && y != 0.0),
                _ => f64::from(x != 0.0 || y != 0.0),
            }
        }
        Tree::Scaled(x, ends) => {
            let [a, b, c, d] = ends.map(f64::from);
            let part = if a == b { 0.0 } else { (calculated(x, inputs) - a) / (b - a) };
            let part = part.clamp(0.0, 1.0);
            (c * (1.0 - part) + d * part).clamp(c.min(d), c.max(d))
        }
    };
    if number.is_nan() { 0.0 } else { number.clamp(f64::MIN, f64::MAX) }
}

fn inputs() -> impl Strategy<Value = Inputs> {
    any::<[f64; 5]>().prop_map(|[value, unit, position, number, channel]| Inputs {
        value,
        unit,
        position,
        number,
        channel,
    })
}

/// Texts that look a little like expressions.
fn text() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec![
        "value", "n", "from", "->", "..", "0", "127", "-", "+", "*", "(", ")", "{", "}", ",", "if", "min", "step",
        "dead", "%", "round", "dB", "C#4", "C-1", "and", "not", "<", "==", " ", "é", "1.5", ".",
    ]);
    prop::collection::vec(word, 0..24).prop_map(|words| words.concat())
}

proptest! {
    #[test]
    fn an_expression_comes_to_what_its_tree_comes_to(tree in tree(), inputs in inputs()) {
        let text = written(&tree);
        if let Ok(parsed) = Expression::parse(&text, Names::Event) {
            prop_assert_eq!(parsed.eval(&inputs), calculated(&tree, &inputs), "{}", text);
            prop_assert_eq!(Expression::parse(parsed.as_str(), Names::Event), Ok(parsed));
        }
    }

    #[test]
    fn any_text_is_an_expression_with_a_finite_value_or_has_its_mistake_in_it(
        text in prop_oneof![text(), any::<String>()], inputs in inputs(), variables: bool,
    ) {
        let names = if variables { Names::EventAndVariables } else { Names::Event };
        match Expression::parse(&text, names) {
            Ok(parsed) => {
                prop_assert!(parsed.eval(&inputs).is_finite());
                let counted = Inputs { position: 3.0, number: 60.0, channel: 9.0, ..inputs };
                prop_assert!(!parsed.is_whole(false) || parsed.eval(&counted).fract() == 0.0, "{}", parsed);
            }
            Err(wrong) => {
                prop_assert!(text.get(wrong.place.clone()).is_some(), "{wrong:?}");
                prop_assert!(wrong.column <= text.chars().count() + 1);
            }
        }
        if let Err(wrong) = Template::parse(&text, names, |name| name == "name") {
            prop_assert!(text.get(wrong.place.clone()).is_some(), "{wrong:?}");
        }
    }

    #[test]
    fn what_is_scaled_stays_in_its_range(
        inputs in inputs(), from in any::<[i16; 2]>(), to in any::<[i16; 2]>(),
        curve in prop::sample::select(vec!["linear", "logarithmic", "exponential", "s"]),
        option in prop::sample::select(vec!["invert", "round", "step 7", "steps 5", "dead 10%", "middle 20%"]),
    ) {
        let text = format!("value from {}..{} -> {}..{}, {curve}, {option}", from[0], from[1], to[0], to[1]);
        let scaled = Expression::parse(&text, Names::Event).unwrap().eval(&inputs);
        let [low, high] = [to[0].min(to[1]), to[0].max(to[1])].map(f64::from);
        prop_assert!((low..=high).contains(&scaled), "{text}: {scaled}");
    }
}
