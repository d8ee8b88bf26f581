//! The mode of a charge.

/// Whether a charge may refuse the request, and when the store takes the units.
///
/// A request may mix all modes. The enum is exhaustive, because a store has to implement every mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChargeMode {
    /// Refuses the request if the cost does not fit. Takes the cost if all charges fit.
    #[default]
    Checked,
    /// Takes no units. Refuses the request if less than one unit is left.
    ///
    /// The store ignores the cost. A report never delays a request and gives no strikes, but a [penalty](crate::Charge::penalty) may
    /// block the report.
    Reported,
    /// Like [`Reported`](Self::Reported), but refuses only while the limit is in debt.
    ///
    /// See [`LimitStatus::debt`](crate::LimitStatus::debt).
    ReportedUntilDebt,
    /// Takes the cost whatever the outcome, into debt if the cost does not fit. Never refuses.
    ///
    /// Use `Forced` for work that happens anyway. You cannot refund a refused request, so a forced hold of a refused request ends by
    /// expiry.
    Forced,
}

impl ChargeMode {
    /// Returns whether the charge takes no units.
    #[must_use]
    pub const fn is_report(self) -> bool {
        matches!(self, Self::Reported | Self::ReportedUntilDebt)
    }
}
