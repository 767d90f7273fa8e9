//! Where rules have the axes and triggers of the virtual gamepad: the last one that moved an axis decides, and an axis that
//! no rule has out is at rest.

use crate::ledger::Owner;

/// An axis, who has it out, and where to.
type Out = (u8, Owner, i16);

/// The axes that are out, the last one that was moved at the end.
#[derive(Debug, Default)]
pub(super) struct Axes(Vec<Out>);

impl Axes {
    /// The owner has an axis at this place from now on, or lets go of it at 0. Returns where the axis stands then.
    pub(super) fn set(&mut self, axis: u8, owner: Owner, place: i16) -> i16 {
        self.0.retain(|(other, by, _)| *other != axis || *by != owner);
        if place != 0 {
            self.0.push((axis, owner, place));
        }
        self.place(axis)
    }

    /// Lets go of what these owners have out. Returns those axes, each with where it stands then.
    pub(super) fn release(&mut self, goes: impl Fn(&Owner) -> bool) -> Vec<(u8, i16)> {
        let mut gone: Vec<u8> = self.0.extract_if(.., |(_, owner, _)| goes(owner)).map(|(axis, ..)| axis).collect();
        gone.sort_unstable();
        gone.dedup();
        gone.into_iter().map(|axis| (axis, self.place(axis))).collect()
    }

    fn place(&self, axis: u8) -> i16 {
        self.0.iter().rfind(|(other, ..)| *other == axis).map_or(0, |(.., place)| *place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_that_moved_an_axis_decides_and_what_it_lets_go_of_goes_back_to_the_one_before() {
        let (stick, pad) = (Owner::of("stick", 0, None), Owner::of("pad", 0, Some(1)));
        let mut axes = Axes::default();
        assert_eq!(axes.set(128, stick.clone(), 500), 500);
        assert_eq!(axes.set(128, pad.clone(), -32_767), -32_767);
        assert_eq!(axes.set(129, pad.clone(), 7), 7);
        assert_eq!(axes.release(|owner| *owner == pad), [(128, 500), (129, 0)]);
        assert_eq!(axes.set(128, pad, 0), 500, "it had let go already");
        assert_eq!(axes.set(128, stick, 0), 0);
        assert!(axes.release(|_| true).is_empty());
    }
}
