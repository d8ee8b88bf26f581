//! The mode of a charge.

/// Whether a charge may refuse the request, and when the store takes the units.
///
/// You may mix modes. Your store has to implement all modes, so the enum is exhaustive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChargeMode {
    /// Refuses the request if the cost does not fit. Takes the cost if all charges fit.
    #[default]
    Checked,
    /// Takes no units. Refuses the request if less than one unit is left, whatever the cost.
    ///
    /// Never delays the request or gives strikes. A [penalty](crate::Charge::penalty) may block the request.
    Reported,
    /// Like `Reported`, but refuses only while the limit has a [debt](crate::LimitStatus::debt).
    ReportedUntilDebt,
    /// Never refuses the request. Takes the cost always, into debt if the cost does not fit.
    ///
    /// Use `Forced` to count work that happens anyway. [`max_wait`](crate::Charge::max_wait) bounds the debt, except of [holds](crate::Quota::concurrent). You cannot refund a refused request, so its holds end by expiry. The units stay taken if the answer of the store is late.
    Forced,
}

impl ChargeMode {
    /// Returns the units that must fit, for a charge of these units.
    pub(crate) const fn needed(self, units: u64) -> u64 {
        match self {
            Self::Reported => 1,
            Self::ReportedUntilDebt => 0,
            Self::Checked | Self::Forced => units,
        }
    }

    pub(crate) const fn is_report(self) -> bool {
        matches!(self, Self::Reported | Self::ReportedUntilDebt)
    }
}
