//! Choices: conditions that decide what an action does, asked at the moment when its rule fires.
//!
//! A rule's [`Condition`] says whether it fires at all; its [`Choices`] are handed to the worker that does the
//! action, as [`Answers`], one bit each. What a press began, its release must end: so if a rule also matches
//! the release, the release is decided as its press was, even if the conditions have changed since.

use conductor_event::Answers;

use crate::condition::{Condition, EvalContext};

/// What an action decides by.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Choices {
    /// The conditions, by the numbers that [`Answers::holds`] takes; at most [`MAX_CHOICES`](Self::MAX_CHOICES).
    pub conditions: Vec<Condition>,
    /// Whether the action holds something down for as long as a control of any kind is pressed.
    /// Then something continuous, such as a fader or an OSC message, is decided when it comes into the upper
    /// half of its way, and stays so until it leaves it. Of what is forwarded, each message is decided anew.
    pub holds: bool,
}

impl Choices {
    /// As many as an action may have.
    pub const MAX_CHOICES: usize = Answers::MAX;

    /// What the conditions say now. Takes no lock and allocates nothing.
    pub fn answers(&self, context: &EvalContext<'_>) -> Answers {
        self.conditions.iter().map(|asked| asked.holds(context)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::condition::Environment;
    use crate::input_state::InputState;

    #[test]
    fn there_are_as_many_answers_as_choices() {
        let conditions =
            (0..Choices::MAX_CHOICES).map(|n| if n % 3 == 0 { Condition::Always } else { Condition::Never });
        let choices = Choices { conditions: conditions.collect(), holds: false };
        let (environment, held) = (Environment::unknown(), InputState::new());
        let answers = choices.answers(&EvalContext { at: 0, mode: None, environment: &environment, held: &held });
        assert_eq!(answers, (0..Choices::MAX_CHOICES).map(|n| n % 3 == 0).collect());
        assert!(!answers.holds(Choices::MAX_CHOICES) && !answers.holds(usize::MAX));
    }
}
