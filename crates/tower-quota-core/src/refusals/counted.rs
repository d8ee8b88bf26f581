//! Refusals that the store has to count.

use crate::charge::{Charge, ChargeMode};

/// Returns whether the store has to count a refusal of this charge.
pub(super) fn is_counted(charge: &Charge<'_>) -> bool {
    charge.units() > 0
        && (charge.counts_refusals()
            || charge.penalised_by().is_some()
            || charge.mode() == ChargeMode::Forced)
}
