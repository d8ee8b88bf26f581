//! Refusals that were answered from memory and that the store has yet to count.

use super::view::ChargeView;
use crate::charge::Charge;

/// Refusals of one limit of one key that the store has yet to count.
#[derive(Clone, Copy, Default)]
pub(super) struct Uncounted {
    /// The refusals that give a strike.
    strikes: u64,
    /// The least cost of them.
    least: u64,
    /// The sum of the costs that are charged.
    units: u64,
}

impl Uncounted {
    pub(super) const fn words(self) -> [u64; 3] {
        [self.strikes, self.least, self.units]
    }

    pub(super) const fn of_words([strikes, least, units]: [u64; 3]) -> Self {
        Self {
            strikes,
            least,
            units,
        }
    }

    const fn is_empty(self) -> bool {
        self.strikes == 0 && self.units == 0
    }

    /// Adds a refused request. `is_refusing` says whether this limit refuses it.
    pub(super) fn add(&mut self, view: &ChargeView, is_refusing: bool) {
        if view.gives_strikes && is_refusing {
            self.least = if self.strikes == 0 {
                view.units
            } else {
                self.least.min(view.units)
            };
            self.strikes = self.strikes.saturating_add(1);
        }
        if view.counts_refusals {
            self.units = self.units.saturating_add(view.units);
        }
    }

    /// Returns at most `most` charges that make the store count them: one for each strike, and one of all other units.
    ///
    /// A strike costs no more than a request did: a larger cost may be refused where each request fits.
    fn charges<'a>(
        self,
        charge: &Charge<'a>,
        most: usize,
    ) -> impl Iterator<Item = Charge<'a>> + use<'a> {
        let (charge, least, most) = (*charge, self.least, most as u64);
        let others = |strikes: u64| self.units.saturating_sub(least.saturating_mul(strikes));
        let mut strikes = self.strikes.min(most);
        if others(strikes) > 0 {
            strikes = strikes.min(most.saturating_sub(1));
        }
        let others = Some(others(strikes)).filter(|units| *units > 0 && most > 0);
        let others = others.map(|units| charge.without_penalty().cost(units));
        others
            .into_iter()
            .chain((0..strikes).map(move |_| charge.cost(least)))
    }
}

/// Returns the charges that make the store count these refusals, beside the request's own.
pub(super) fn carried<'a>(uncounted: &[Uncounted], charges: &[Charge<'a>]) -> Vec<Charge<'a>> {
    let counting = uncounted
        .iter()
        .filter(|uncounted| !uncounted.is_empty())
        .count();
    let most = Charge::MOST
        .saturating_sub(charges.len())
        .checked_div(counting)
        .unwrap_or(0);
    uncounted
        .iter()
        .zip(charges)
        .flat_map(|(uncounted, charge)| uncounted.charges(charge, most))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Key;
    use crate::key_hasher::KeyHasher;
    use crate::penalty::Penalty;
    use crate::quota::Quota;
    use crate::refusals::view::views;

    #[test]
    fn strike_costs_one_request() {
        let (quota, key, penalty) = (Quota::per_minute(100), Key::EVERYONE, Penalty::after(10));
        let plain = Charge::new("minute", &quota, &key);
        let (counted, penalised) = (plain.count_refusals(), plain.penalty(&penalty));
        let both = penalised.count_refusals();
        // Of each request: its cost, and whether this limit refuses it.
        let requests = [(2, true), (3, true), (40, false)];
        let carried = |charge: Charge<'_>, most| -> Vec<(u64, bool)> {
            let mut uncounted = Uncounted::default();
            for (cost, is_refusing) in requests {
                uncounted.add(
                    &views(&[charge.cost(cost)], &KeyHasher::random())[0],
                    is_refusing,
                );
            }
            uncounted
                .charges(&charge, most)
                .map(|charge| (charge.units(), charge.penalised_by().is_some()))
                .collect()
        };
        assert_eq!(carried(plain, 9), []);
        assert_eq!(carried(counted, 9), [(45, false)]);
        assert_eq!(carried(penalised, 9), [(2, true), (2, true)]);
        assert_eq!(carried(penalised, 1), [(2, true)]);
        assert_eq!(carried(both, 9), [(41, false), (2, true), (2, true)]);
        assert_eq!(carried(both, 2), [(43, false), (2, true)]);
        assert_eq!(carried(both, 0), []);
    }
}
