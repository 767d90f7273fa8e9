//! What expressions mean, and what is said of those that mean nothing.

use conductor_expression::{Bound, EVENT_NAMES, Expression, Inputs, Names, OscNumber, Slots, Template, is_event_name};
use conductor_number::Range;

const INPUTS: Inputs = Inputs { value: 64.0, unit: 0.5, position: 3.0, number: 60.0, channel: 9.0 };

fn value(text: &str) -> f64 {
    Expression::parse(text, Names::Event).unwrap_or_else(|wrong| panic!("{text}: {wrong}")).eval(&INPUTS)
}

fn wrong(text: &str) -> String {
    Expression::parse(text, Names::Event).expect_err(text).to_string()
}

#[test]
fn numbers_names_and_operators_are_what_they_are_elsewhere() {
    for (text, expected) in [
        ("{n}+36", 39.0),
        ("{value} - 101", -37.0),
        ("2 + 3 * 4 - -1", 15.0),
        ("(2 + 3) * 4", 20.0),
        ("10 - 4 - 3", 3.0),
        ("note + C4 - F#2", 78.0),
        ("ch", 10.0),
        ("-7 % 12", 5.0),
        ("value > 10 and not (value >= 100)", 1.0),
        ("1 < 2 or 1 / 0", 1.0),
        ("if(value < 64, 1, 2)", 2.0),
        ("layers(value, 40, 64, 110)", 2.0),
        ("clamp(200, 0, 127) + min(3, 1, 2) + max(1, 2)", 130.0),
        ("round(2.5) + floor(-0.5) + ceil(0.2) + abs(-1) + sign(-9)", 3.0),
        ("pow(2, 10) + sqrt(16) + db(10) + gain(20)", 1058.0),
        ("true + false", 1.0),
    ] {
        assert_eq!(value(text), expected, "{text}");
    }
}

#[test]
fn every_operation_has_a_value() {
    for (text, expected) in [
        ("1 / 0", 0.0),
        ("7 % 0", 0.0),
        ("sqrt(-1)", 0.0),
        ("log(-1)", 0.0),
        ("log(0)", f64::MIN),
        ("exp(10000)", f64::MAX),
        ("pow(10, 400) - pow(10, 400)", 0.0),
        ("pow(-8, 0.5)", 0.0),
        ("value from 5..5 -> 1..2", 1.0),
    ] {
        assert_eq!(value(text), expected, "{text}");
    }
    let nan = Inputs { value: f64::NAN, unit: f64::INFINITY, ..INPUTS };
    let eval = |text| Expression::parse(text, Names::Event).map(|parsed| parsed.eval(&nan));
    assert_eq!((eval("value + 1"), eval("value -> 0..10"), eval("unit")), (Ok(1.0), Ok(10.0), Ok(f64::MAX)));
}

#[test]
fn a_number_is_scaled_to_a_range() {
    for (text, expected) in [
        ("value -> -60..10 dB", -25.0),
        ("{value -> -60..10 dB}", -25.0),
        ("value -> 10..-60", -25.0),
        ("value -> 0..100 %, invert, step 20", 60.0),
        ("value -> 0..1, exponential", 0.377_540_668_798_145_4),
        ("unit -> 0..1, s", 0.5),
        ("value -> 0..10, steps 4", 6.666_666_666_666_667),
        ("value -> 0..7, round", 4.0),
        ("value -> 0..100, dead 50%", 0.0),
        ("value -> 0..100, dead 0.25", 33.333_333_333_333_33),
        ("value -> -1..1, middle 10%", 0.0),
        ("n from 0..6 -> 0..100", 50.0),
        ("note from C2..C6 -> 0..1", 0.5),
        ("(value * 2) from 0..256 -> 0..1", 0.5),
        ("max((value -> 0..10), 7)", 7.0),
        ("n from 5..9 -> 1..2", 1.0),
    ] {
        assert!((value(text) - expected).abs() < 1e-12, "{text}: {}", value(text));
    }
    let unit = |text| Expression::parse(text, Names::Event).map(|parsed| parsed.unit().map(str::to_owned));
    assert_eq!(unit("{value -> -60..10 dB}"), Ok(Some("dB".into())));
    assert_eq!(unit("value -> 0..100%, round"), Ok(Some("%".into())));
    assert_eq!(unit("1 + (value -> 0..100 Hz)"), Ok(None));
}

#[test]
fn a_mistake_is_told_at_its_column() {
    for (text, expected) in [
        ("", "column 1: the text is over; expected a number or a name"),
        ("valu * 2", "column 1: there is no `valu`; did you mean `value`?"),
        ("{m}", "column 2: there is no `m`; there are value, unit, n, note, cc, number, channel, ch, arg0, match1"),
        ("1 + ", "column 5: the text is over; expected a number or a name"),
        ("1 + * 2", "column 5: `*` cannot stand here; expected a number or a name"),
        ("(1", "column 3: the text is over; expected `)`"),
        ("1 2", "column 3: `2` cannot stand here; expected an operator such as +, or the end"),
        ("n -> 0..1", "column 1: say what `n` comes from: `n from 0..127 -> ...`"),
        ("value * 2 -> 0..1", "column 1: say what `value * 2` comes from: `value * 2 from 0..127 -> ...`"),
        ("value -> 0", "column 11: the text is over; expected `..`"),
        ("value -> 0..1, invrt", "column 16: there is no option `invrt`; did you mean `invert`?"),
        ("value -> 0..1, steps 1", "column 22: `1` cannot stand here; expected steps 5, a whole number from 2 to 1000"),
        ("value -> 0..1, dead 100%", "column 21: `100` cannot stand here; expected dead 10%, less than 100%"),
        ("value = 3", "column 7: `=` is not compared with: write `==`; expected an operator such as +, or the end"),
        ("value && 3", "column 7: write `and`, `or`"),
        ("abs(1, 2)", "column 1: `abs` is written abs(x)"),
        (
            "while(1)",
            "column 1: there is no function `while`; there are abs(x), sign(x), round(x), floor(x), ceil(x), sqrt(x), exp(x), log(x), db(gain), gain(db), pow(x, y), min(x, y, ...), max(x, y, ...), clamp(x, low, high), if(condition, then, else), layers(x, threshold, ...)",
        ),
        ("é * §", "column 5: `§` has no meaning here"),
        (".5", "column 1: a number begins with a digit: write 0.5"),
    ] {
        assert_eq!(wrong(text), expected, "{text}");
    }
    assert!(wrong(&"-".repeat(40)).contains("nested"));
    assert!(wrong(&vec!["1"; 40].join("+")).contains("more than 64 parts"));
    assert!(wrong(&" ".repeat(600)).contains("longer than 512"));
    assert!(wrong(&format!("{}1{}", "(1+".repeat(20), ")".repeat(20))).contains("nested too deep"));
}

#[test]
fn it_is_known_what_is_always_whole() {
    let whole =
        |text| Expression::parse(text, Names::Event).map(|parsed| (parsed.is_whole(true), parsed.is_whole(false)));
    for text in ["n + 1", "note * 2 - C4", "round(value / 2)", "value > 0.5", "value -> 0..7, round", "if(unit, 1, 2)"]
    {
        assert_eq!(whole(text), Ok((true, true)), "{text}");
    }
    for text in ["unit", "n / 2", "value -> 0..1", "n + 0.5", "value -> 0.5..7, round", "if(n, 1, 0.5)", "sqrt(4)"] {
        assert_eq!(whole(text), Ok((false, false)), "{text}");
    }
    assert_eq!(whole("value * 2 + n"), Ok((true, false)));
}

/// The event, and one variable.
struct WithGain(f64);

impl Slots for WithGain {
    fn slot(&self, slot: u16) -> f64 {
        if slot == Expression::FIRST_VARIABLE + 7 { self.0 } else { INPUTS.slot(slot) }
    }
}

#[test]
fn variables_are_found_by_name_once() {
    let parsed = |text| Expression::parse(text, Names::EventAndVariables).expect(text);
    let bound =
        |limits| move |name: &str| (name == "gain").then_some(Bound { slot: Expression::FIRST_VARIABLE + 7, limits });
    let mut sum = parsed("value + gain * 2 + gain");
    assert_eq!(sum.variables().collect::<Vec<_>>(), [("gain", 8..12), ("gain", 19..23)]);
    assert_eq!(sum.bind(bound(None)), Ok(()));
    assert_eq!(sum.eval(&WithGain(5.0)), 79.0);

    let told = |text, limits| parsed(text).bind(bound(limits)).map_err(|wrong| wrong.to_string());
    assert_eq!(told("1 + gin", None), Err("column 5: there is no variable `gin`".into()));
    let wrong = told("gain -> 0..1", None).expect_err("it has no limits");
    assert!(wrong.starts_with("column 1: the variable `gain` has no `min` and `max`"), "{wrong}");
    let mut scaled = parsed("gain -> 0..1");
    assert_eq!(scaled.bind(bound(Some(Range { from: -10.0, to: 10.0 }))), Ok(()));
    assert_eq!(scaled.eval(&WithGain(5.0)), 0.75);
}

#[test]
fn arguments_and_wildcards_have_names() {
    let numbers = |text| Expression::parse(text, Names::Event).map(|it| it.osc_numbers().collect::<Vec<_>>());
    use OscNumber::{Arg, Match};
    assert_eq!(numbers("arg0 + arg15 * match1 - match8"), Ok(vec![Arg(0), Arg(15), Match(0), Match(7)]));
    assert_eq!(numbers("value + n"), Ok(vec![]));
    for wrong in ["arg16", "match0", "match9", "arg00", "arg", "arg99999"] {
        let told = numbers(wrong).expect_err(wrong).to_string();
        let why =
            format!("column 1: there is no `{wrong}`; arguments are `arg0` to `arg15`, wildcards `match1` to `match8`");
        assert_eq!(told, why);
    }
    let told = numbers("arg0 -> 0..1").expect_err("no range").to_string();
    assert_eq!(told, "column 1: say what `arg0` comes from: `arg0 from 0..127 -> ...`");
    assert!(is_event_name("arg3") && is_event_name("match2") && !is_event_name("arg16"));
}

#[test]
fn a_template_is_filled_in() {
    let filled = |text| {
        let template = Template::parse(text, Names::Event, |name| name == "name").expect(text);
        let mut out = String::new();
        template.fill(&INPUTS, &mut out, |name, out| out.push_str(&name.to_uppercase()));
        out
    };
    assert_eq!(filled("/x/{cc}/{channel}/{n}/{value}/{unit}/{name}"), "/x/60/9/3/64/0.5/NAME");
    assert_eq!(filled("{value -> -60..10 dB} {{{n * 2}}}"), "-25 dB {6}");
    let wrong = |text| Template::parse(text, Names::Event, |_| false).expect_err(text).to_string();
    assert_eq!(wrong("/a/{note"), "column 4: the brace is not closed");
    assert_eq!(wrong("a}"), "column 2: a brace stands alone; write `}}` for one");
    assert!(wrong("é {n} {velocity}").starts_with("column 8: there is no `velocity`"));
    assert!(EVENT_NAMES.iter().all(|name| Expression::of_name(name).is_some_and(|parsed| parsed.is_just(name))));
}
