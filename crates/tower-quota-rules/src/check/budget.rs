//! A bound on comparisons.

/// The number of comparisons of rules that are left for one document: time would grow with the square of its rules.
pub(super) struct Budget(u32);

impl Default for Budget {
    fn default() -> Self {
        Self(1_000_000)
    }
}

impl Budget {
    /// Takes one comparison; returns false if none is left.
    pub(super) fn take(&mut self) -> bool {
        let left = self.0 > 0;
        self.0 = self.0.saturating_sub(1);
        left
    }
}
