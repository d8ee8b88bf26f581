//! Refusals that were answered from memory and that the store has yet to count.

use super::view::ChargeView;
use crate::charge::Charge;

/// Refusals of one limit of one key that the store has yet to count.
#[derive(Clone, Copy, Default)]
pub(super) struct Uncounted {
    refusals: u64,
    /// The sum of their costs.
    units: u64,
    /// The least cost of them.
    least: u64,
}

impl Uncounted {
    pub(super) const fn words(self) -> [u64; 3] {
        [self.refusals, self.units, self.least]
    }

    pub(super) const fn of_words([refusals, units, least]: [u64; 3]) -> Self {
        Self { refusals, units, least }
    }

    /// Adds a refusal.
    pub(super) fn add(&mut self, view: &ChargeView) {
        self.least = if self.refusals == 0 { view.units } else { self.least.min(view.units) };
        self.refusals = self.refusals.saturating_add(1);
        self.units = self.units.saturating_add(view.units);
    }

    /// Returns the charges that make the store count them: one for each strike, otherwise one of all units.
    fn charges<'a>(self, charge: &Charge<'a>, most: usize) -> impl Iterator<Item = Charge<'a>> + use<'a> {
        let strikes = if charge.penalised_by().is_some() { self.refusals } else { self.refusals.min(1) };
        let strikes = most.min(usize::try_from(strikes).unwrap_or(most));
        let least = self.least;
        // The first takes what the others leave.
        let others = least.saturating_mul(strikes.saturating_sub(1) as u64);
        let first = self.units.saturating_sub(others);
        let charge = *charge;
        (0..strikes).map(move |position| charge.cost(if position == 0 { first } else { least }))
    }
}

/// Returns the charges that make the store count these refusals, beside the request's own.
pub(super) fn carried<'a>(uncounted: &[Uncounted], charges: &[Charge<'a>]) -> Vec<Charge<'a>> {
    let counting = uncounted.iter().filter(|uncounted| uncounted.refusals > 0).count();
    let most = Charge::MOST.saturating_sub(charges.len()).checked_div(counting).unwrap_or(0);
    uncounted.iter().zip(charges).flat_map(|(uncounted, charge)| uncounted.charges(charge, most)).collect()
}
