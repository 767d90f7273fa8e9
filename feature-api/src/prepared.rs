//! The prepared actions of a feature, each under the number by which the host calls it.

use crate::Error;

/// Prepared uses of actions, by number. A number that was given back is given out again.
#[derive(Debug)]
pub struct Prepared<T> {
    slots: Vec<Option<T>>,
}

impl<T> Default for Prepared<T> {
    fn default() -> Self {
        Self { slots: Vec::new() }
    }
}

impl<T> Prepared<T> {
    /// Keeps one, under the number that `prepare` gives to the host.
    ///
    /// # Errors
    /// `exhausted` where there is no number left.
    pub fn keep(&mut self, use_of: T) -> Result<u32, Error> {
        let slot = self.slots.iter().position(Option::is_none).unwrap_or(self.slots.len());
        let number = u32::try_from(slot).map_err(|_| Error::Exhausted("too many prepared actions".into()))?;
        match self.slots.get_mut(slot) {
            Some(free) => *free = Some(use_of),
            None => self.slots.push(Some(use_of)),
        }
        Ok(number)
    }

    /// The one with this number.
    ///
    /// # Errors
    /// `invalid` where nothing is prepared under it.
    pub fn get(&mut self, action: u32) -> Result<&mut T, Error> {
        self.slots
            .get_mut(action as usize)
            .and_then(Option::as_mut)
            .ok_or_else(|| Error::Invalid(format!("action {action} is not prepared")))
    }

    /// Drops the one with this number.
    pub fn release(&mut self, action: u32) {
        if let Some(slot) = self.slots.get_mut(action as usize) {
            *slot = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_was_given_back_is_given_out_again() -> Result<(), Error> {
        let mut prepared = Prepared::default();
        assert_eq!((prepared.keep("a")?, prepared.keep("b")?, prepared.keep("c")?), (0, 1, 2));
        prepared.release(1);
        prepared.release(9);
        assert!(prepared.get(1).is_err() && prepared.get(9).is_err());
        assert_eq!(prepared.keep("d")?, 1);
        assert_eq!([*prepared.get(0)?, *prepared.get(1)?, *prepared.get(2)?], ["a", "d", "c"]);
        Ok(())
    }
}
