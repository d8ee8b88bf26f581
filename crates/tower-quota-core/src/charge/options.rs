//! The options of a charge, as bits.

#[derive(Clone, Copy, Debug)]
pub(super) struct ChargeOptions(u8);

impl ChargeOptions {
    pub(super) const PLAIN: Self = Self(0);
    /// The charge is exact, so the store itself decides. An exact charge may still be plain.
    pub(super) const EXACT: Self = Self(1);
    pub(super) const COUNTS_REFUSALS: Self = Self(1 << 1);
    pub(super) const SHADOW: Self = Self(1 << 2);
    pub(super) const AT_MOST: Self = Self(1 << 3);
    pub(super) const REFUNDABLE: Self = Self(1 << 4);
    /// The charge has an algorithm, a longest wait, a penalty or a mode that is not plain.
    pub(super) const SPECIAL: Self = Self(1 << 5);

    pub(super) const fn with(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    pub(super) const fn without(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }

    pub(super) const fn has(self, option: Self) -> bool {
        self.0 & option.0 != 0
    }

    pub(super) const fn are_plain_without(self, others: Self) -> bool {
        self.without(others).without(Self::EXACT).0 == 0
    }
}
