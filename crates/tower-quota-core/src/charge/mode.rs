//! The mode of a charge: whether it may refuse, and whether it takes its units.

/// The effect of a charge on its request, and of the outcome on the charge.
///
/// One request may mix charges of all modes. The list is exhaustive on purpose: a store has to know every mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChargeMode {
    /// Refuses the request if the cost does not fit. Takes the cost if all charges of the request fit.
    #[default]
    Checked,
    /// Takes nothing. Refuses the request if less than one unit is left.
    ///
    /// The cost is ignored. A report makes no request wait and gives no strikes, but a
    /// [penalty](crate::Charge::penalty) may block it.
    Reported,
    /// Takes nothing. Refuses the request only while the limit owes units.
    ///
    /// See [`LimitStatus::debt`](crate::LimitStatus::debt). In all else it is like [`Reported`](Self::Reported).
    ReportedUntilDebt,
    /// Never refuses the request. Takes the cost whatever the outcome, into debt if it does not fit.
    ///
    /// Use it for work that is done anyway, such as a request that has to be counted although it is refused. The
    /// decision on a refused request cannot be refunded, so a forced hold of such a request ends by its expiry.
    Forced,
}

impl ChargeMode {
    /// Returns whether the charge takes nothing.
    #[must_use]
    pub const fn is_report(self) -> bool {
        matches!(self, Self::Reported | Self::ReportedUntilDebt)
    }
}
