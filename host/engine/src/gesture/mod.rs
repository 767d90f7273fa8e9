//! Gesture recognition: long press, double tap, chord, and others that take more than one event.
//!
//! The rules that are there drive it: an event that begins what some rule waits for makes an *attempt* of
//! that rule on that device, and without such a rule nothing is remembered. Attempts have deadlines; time
//! comes from outside, with the events and with [`Engine::advance`](crate::Engine::advance).
//!
//! | gesture | is begun by | is found | fails |
//! |---|---|---|---|
//! | long press | a press | when the key has been down for as long as the rule says | when the key comes up before |
//! | double tap | a press | with the last of so many presses of the same key, each sooner after the one before than the rule says | when the next does not come in time |
//! | sequence | the press of its first key | with the press of its last key, each sooner after the one before than the rule says | when the next does not come in time, and with the press of any other key of the device |
//! | chord | the press of any of its keys | with the press of the last, all of them down, the first less than the rule's time ago | then, and when a key of it comes up |
//! | turn, fine control, parameter | | with the message, or when the fine part is overdue | |
//! | push of a stick or trigger | | when it comes from outside, once until it is back by a little more (hysteresis) | |
//! | rest of a stick or trigger that a rule follows | a reading that the rule fires for | with the first reading that is no longer one for it, as a reading of 0 | |
//!
//! A time is up at its very nanosecond: a key that comes up exactly then was held long enough, a second
//! press exactly then is too late. What happens because a time is up happens before the event that comes
//! at the same time, and as of that time, however late [`advance`](crate::Engine::advance) is called.
//!
//! # Waiting
//!
//! A rule fires as soon as it can. One that *defers* waits while an attempt on one of its presses is still
//! under way: a press, until it can no longer become a double tap, a long press or a chord of another rule.
//! If one of them is found the press has been used up and the rule does not fire; if all fail, it fires
//! then. Long presses, double taps and chords can defer to each other the same way; of two that do, the
//! one that was found first fires, when both are decided. Everything that is waited for has a deadline, so
//! nothing waits for ever.
//!
//! # What is certain in the odd cases
//!
//! - *The mode changes* while a gesture is under way: it belongs to the mode of its presses, and is found
//!   or fails as if nothing had happened. A chord or double tap needs all its presses in that mode.
//! - *The rules are replaced*: what is under way goes on under the rules that it began with. When four
//!   replaced sets are waited for and yet another comes, what the oldest had under way ends; presses that
//!   waited fire then.
//! - *A key goes down that is down*: its end was lost. It came up just before.
//! - *Time goes backwards*: it stands still until it has caught up.
//! - *Two devices with the same keys* are independent of each other, and so are the gestures on them.
//! - *A device goes away*: what was under way on it ends, and what waited does not fire. Sticks and triggers
//!   come to rest.
//! - *A stick is out and the mode changes*: the rule that followed it gets the event of its return to rest in
//!   any mode. If the rules are replaced, the new rules get it and the old ones do not.
//! - *All notes off, all sound off, reset* lets the keys come up.
//! - *A press is consumed* by a rule: no gesture begins with it but those of rules with a higher priority.
//! - *A gesture is consumed*: gestures after it in the order of rules lose the presses that it was made of.
//! - *More is under way than there is room for* on one device: no more begins there, and it is counted; a
//!   rule that would have to wait fires at once.

mod attempts;
mod work;

pub(crate) use attempts::{Attempts, Goal, MAX_RULE_SETS};
pub(crate) use work::{Deferred, Here, MAX_DEFERRED, Work};
