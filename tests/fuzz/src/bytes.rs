//! Decisions, read from bytes: so that a fuzzer that changes a byte changes a decision.

/// Bytes that are read one by one; when they are used up, zeros.
pub struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    pub fn word(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    /// A number below `end`, which is at least 1.
    pub fn below(&mut self, end: u8) -> u8 {
        self.byte() % end
    }

    /// True once in so many times.
    pub fn one_in(&mut self, times: u8) -> bool {
        self.below(times) == times - 1
    }

    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[usize::from(self.byte()) % of.len()]
    }

    /// The next so many bytes, or as many as there are.
    pub fn take(&mut self, most: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(most.min(self.0.len()));
        self.0 = rest;
        taken
    }
}
