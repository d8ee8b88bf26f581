//! The options of a charge.

use core::fmt;

/// The options of a charge in one byte, because a service writes a charge for each limit of a request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct ChargeOptions(u8);

impl ChargeOptions {
    pub(super) const PLAIN: Self = Self(0);
    /// The store decides each request. The charge may still be plain.
    pub(super) const EXACT: Self = Self(1);
    pub(super) const COUNTS_REFUSALS: Self = Self(1 << 1);
    pub(super) const SHADOW: Self = Self(1 << 2);
    pub(super) const AT_MOST: Self = Self(1 << 3);
    pub(super) const REFUNDABLE: Self = Self(1 << 4);
    /// The algorithm, the longest wait, the penalty or the mode is special.
    pub(super) const SPECIAL: Self = Self(1 << 5);

    const NAMES: [(Self, &'static str); 6] = [
        (Self::EXACT, "exact"),
        (Self::COUNTS_REFUSALS, "counts refusals"),
        (Self::SHADOW, "shadow"),
        (Self::AT_MOST, "at most"),
        (Self::REFUNDABLE, "refundable"),
        (Self::SPECIAL, "special"),
    ];

    pub(super) const fn with(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    pub(super) const fn without(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }

    pub(super) const fn has(self, option: Self) -> bool {
        self.0 & option.0 != 0
    }

    /// Returns whether the charge is plain without `others`.
    pub(super) const fn are_plain_without(self, others: Self) -> bool {
        self.0 & !others.with(Self::EXACT).0 == 0
    }
}

impl fmt::Debug for ChargeOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Self::NAMES
            .into_iter()
            .filter(|(option, _)| self.has(*option));
        f.debug_set().entries(names.map(|(_, name)| name)).finish()
    }
}
