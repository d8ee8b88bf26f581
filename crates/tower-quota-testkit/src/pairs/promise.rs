//! States what a store promises.

/// What a store promises about charges of an [`Aspect`](super::Aspect).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Promise {
    /// Every field of every decision equals the decision of the model.
    Exact,
    /// The store may refuse more than the model, and admits a bounded number of units.
    Bounded {
        /// The bound, in quotas.
        quotas: u64,
        /// Whether forced and settled units come on top of the bound.
        excludes_forced: bool,
        /// The reason, for your docs.
        by: &'static str,
    },
}

impl Promise {
    /// At most the quota, with forced and settled units included.
    #[must_use]
    pub const fn bounded(by: &'static str) -> Self {
        Self::Bounded {
            quotas: 1,
            excludes_forced: false,
            by,
        }
    }

    pub(super) fn weaker(self, other: Self) -> Self {
        match (self.bound(), other.bound()) {
            (None, _) => other,
            (_, None) => self,
            (Some((one, excludes_one)), Some((two, excludes_two))) => Self::Bounded {
                quotas: one.max(two),
                excludes_forced: excludes_one || excludes_two,
                by: "",
            },
        }
    }

    /// Returns the number of quotas, and whether forced units come on top.
    pub(super) const fn bound(self) -> Option<(u64, bool)> {
        match self {
            Self::Exact => None,
            Self::Bounded {
                quotas,
                excludes_forced,
                ..
            } => Some((quotas, excludes_forced)),
        }
    }
}
