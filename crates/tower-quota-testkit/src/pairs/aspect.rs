//! Lists what a charge can be.

/// What a charge can be, or what can happen to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Aspect {
    /// A plain charge.
    Checked,
    /// A charge in the mode [`Reported`](tower_quota_core::ChargeMode::Reported).
    Reported,
    /// A charge in the mode [`Forced`](tower_quota_core::ChargeMode::Forced).
    Forced,
    /// A [shadow](tower_quota_core::Charge::shadow).
    Shadow,
    /// A charge that accepts [fewer units](tower_quota_core::Charge::at_most).
    AtMost,
    /// A charge of a leaky bucket that may wait.
    Wait,
    /// A charge of a [concurrency limit](tower_quota_core::Quota::concurrent), with releases and renewals.
    Hold,
    /// A charge with a [penalty](tower_quota_core::Charge::penalty).
    Penalty,
    /// A charge that [counts refusals](tower_quota_core::Charge::count_refusals).
    CountedRefusals,
    /// A charge of a calendar window.
    Calendar,
    /// The quota of the charge changes to a larger capacity and back.
    ChangedQuota,
    /// A settlement by [`Operation::Surcharge`](tower_quota_core::Operation::Surcharge) follows the charge.
    Settled,
    /// A refund follows the charge.
    Refunded,
    /// A reset follows the charge.
    Reset,
    /// A peek follows the charge.
    Peeked,
}

impl Aspect {
    /// All aspects.
    pub const ALL: [Self; 15] = [
        Self::Checked,
        Self::Reported,
        Self::Forced,
        Self::Shadow,
        Self::AtMost,
        Self::Wait,
        Self::Hold,
        Self::Penalty,
        Self::CountedRefusals,
        Self::Calendar,
        Self::ChangedQuota,
        Self::Settled,
        Self::Refunded,
        Self::Reset,
        Self::Peeked,
    ];

    /// Returns whether the aspect is a step after the charge, rather than an option of the charge.
    pub(super) const fn is_step(self) -> bool {
        matches!(
            self,
            Self::ChangedQuota | Self::Settled | Self::Refunded | Self::Reset | Self::Peeked
        )
    }

    /// Returns whether the aspect decides the quota of the charge.
    pub(super) const fn has_own_quota(self) -> bool {
        matches!(self, Self::Wait | Self::Hold | Self::Calendar)
    }
}
