//! Expressions and templates: any text is one, with a finite value for every event, or has its mistake at a place in it.

use conductor_expression::{Bound, Expression, Inputs, Names, Slots, Template};
use conductor_number::Range;

/// Variables hold this; the rest is the event's.
struct WithVariable(Inputs, f64);

impl Slots for WithVariable {
    fn slot(&self, slot: u16) -> f64 {
        if slot >= Expression::FIRST_VARIABLE { self.1 } else { self.0.slot(slot) }
    }
}

/// The first 16 bytes are the numbers of the event, the rest is the text.
pub fn run(data: &[u8]) {
    let Some((numbers, text)) = data.split_first_chunk::<16>() else { return };
    let [value, variable] =
        [&numbers[..8], &numbers[8..]].map(|bytes| bytes.iter().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte)));
    let (value, variable) = (f64::from_bits(value), f64::from_bits(variable));
    let inputs = Inputs { value, unit: variable, position: value, number: 60.0, channel: 9.0 };
    let text = String::from_utf8_lossy(text);
    for names in [Names::Event, Names::EventAndVariables] {
        match Expression::parse(&text, names) {
            Ok(parsed) => means_something(parsed, names, &inputs, variable),
            Err(wrong) => {
                assert!(text.get(wrong.place.clone()).is_some() && !wrong.message.is_empty(), "{wrong:?}");
                assert!(wrong.column >= 1 && wrong.column <= text.chars().count() + 1, "{wrong:?}");
            }
        }
        match Template::parse(&text, names, |name| name == "name") {
            Ok(template) => {
                let mut filled = String::new();
                template.fill(&inputs, &mut filled, |name, out| out.push_str(name));
                assert!(template.as_text().is_none_or(|fixed| fixed == filled), "what is fixed stays as it is");
            }
            Err(wrong) => assert!(text.get(wrong.place.clone()).is_some(), "{wrong:?}"),
        }
    }
}

fn means_something(mut parsed: Expression, names: Names, inputs: &Inputs, variable: f64) {
    assert_eq!(Expression::parse(parsed.as_str(), names).as_ref().map(Expression::as_str), Ok(parsed.as_str()));
    assert!(parsed.eval(inputs).is_finite());
    let limits = Some(Range { from: -1.0, to: variable });
    if parsed.bind(|name| (name != "unknown").then_some(Bound { slot: Expression::FIRST_VARIABLE, limits })).is_ok() {
        let number = parsed.eval(&WithVariable(*inputs, variable));
        assert!(number.is_finite());
        assert_eq!(
            parsed.eval(&WithVariable(*inputs, variable)).to_bits(),
            number.to_bits(),
            "it depends on nothing else"
        );
    }
}
