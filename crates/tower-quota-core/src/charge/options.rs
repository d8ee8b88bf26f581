//! The options of a charge.

use core::fmt;

/// The options of a charge that are on or off.
///
/// They are one byte: a service writes a charge for each limit of each request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct ChargeOptions(u8);

impl ChargeOptions {
    /// No option.
    pub(super) const PLAIN: Self = Self(0);
    /// The store itself decides. Such a charge may still be plain.
    pub(super) const EXACT: Self = Self(1);
    /// Refused requests are charged too.
    pub(super) const COUNTS_REFUSALS: Self = Self(1 << 1);
    /// A shadow, which is evaluated and not enforced.
    pub(super) const SHADOW: Self = Self(1 << 2);
    /// A check takes as many units as are left.
    pub(super) const AT_MOST: Self = Self(1 << 3);
    /// A bucket prepares for a refund.
    pub(super) const REFUNDABLE: Self = Self(1 << 4);
    /// Something else makes it other than plain: its algorithm, its longest wait, its penalty or its mode.
    pub(super) const SPECIAL: Self = Self(1 << 5);

    const NAMES: [(Self, &'static str); 6] = [
        (Self::EXACT, "exact"),
        (Self::COUNTS_REFUSALS, "counts refusals"),
        (Self::SHADOW, "shadow"),
        (Self::AT_MOST, "at most"),
        (Self::REFUNDABLE, "refundable"),
        (Self::SPECIAL, "special"),
    ];

    /// Adds other options.
    pub(super) const fn with(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// Removes other options.
    pub(super) const fn without(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }

    /// Returns whether an option is on.
    pub(super) const fn has(self, option: Self) -> bool {
        self.0 & option.0 != 0
    }

    /// Returns whether a charge may be plain if it is not for these options.
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
