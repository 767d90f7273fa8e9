//! The numbers of an event, as expressions read them: those of its record, and of an OSC message its arguments and what
//! the wildcards of the rule's pattern have matched.

use conductor_event::{Event, OscArg, OscMessage};
use conductor_expression::{Inputs, OscNumber, Slots};
use conductor_message_pattern::OscPattern;

/// The numbers of an event. Made without allocating, and an argument or a match is looked up when it is asked for.
#[derive(Debug, Clone, Copy)]
pub struct EventNumbers<'e> {
    /// Those that every event has.
    pub record: Inputs,
    message: Option<&'e OscMessage>,
    pattern: Option<&'e OscPattern>,
}

impl<'e> EventNumbers<'e> {
    /// Those of `event`, at this position in the trigger's range. `pattern` is the address pattern of the rule.
    pub fn new(event: &'e Event, position: u16, pattern: Option<&'e OscPattern>) -> Self {
        let record = Inputs {
            position: position.into(),
            value: event.value(),
            unit: event.unit().into(),
            number: event.number().into(),
            channel: event.channel().map_or(0.0, f64::from),
        };
        let message = match event {
            Event::Osc(message) => Some(&**message),
            _ => None,
        };
        Self { record, message, pattern }
    }

    fn osc(&self, number: OscNumber) -> Option<f64> {
        let message = self.message?;
        match number {
            OscNumber::Arg(at) => message.args().get(at).and_then(OscArg::as_f64),
            // Digits with a sign and a point, as the path of an address has them.
            OscNumber::Match(at) => self.pattern?.matched(message.address(), at)?.parse().ok(),
        }
    }
}

impl Slots for EventNumbers<'_> {
    fn slot(&self, slot: u16) -> f64 {
        match OscNumber::in_slot(slot) {
            Some(number) => self.osc(number).filter(|number| number.is_finite()).unwrap_or(0.0),
            None => self.record.slot(slot),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use conductor_expression::{Expression, Names};

    use super::*;

    #[test]
    fn arguments_and_matches_are_numbers_where_they_are_any() {
        let args = vec![OscArg::Int(3), OscArg::String("x".into()), OscArg::Bool(true), OscArg::Double(f64::MAX)];
        let event = OscMessage::new("/ch/12/gain", args).into();
        let pattern = OscPattern::parse("/ch/*/{gain,mute}").unwrap();
        let numbers = EventNumbers::new(&event, 0, Some(&pattern));
        let eval = |text: &str, numbers| Expression::parse(text, Names::Event).unwrap().eval(&numbers);
        for (text, value) in [
            ("arg0", 3.0),
            ("arg1", 0.0),
            ("arg2", 1.0),
            ("arg3 * 10", f64::MAX),
            ("arg15", 0.0),
            ("match1 + 1", 13.0),
            ("match2", 0.0),
            ("match3", 0.0),
            ("value", 3.0),
        ] {
            assert_eq!(eval(text, numbers), value, "{text}");
        }
        assert_eq!(eval("match1", EventNumbers::new(&event, 0, None)), 0.0, "there is no pattern");
        let infinite = OscMessage::new("/ch/inf/gain", Vec::new()).into();
        assert_eq!(eval("match1", EventNumbers::new(&infinite, 0, Some(&pattern))), 0.0);
    }
}
