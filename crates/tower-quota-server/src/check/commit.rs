//! The end of a reservation.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::reservations::Held;
use crate::http::Problem;

/// The final costs, by default the estimates.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Commit {
    /// The cost for all limits that settle.
    cost: Option<u64>,
    /// The costs of single limits.
    #[serde(default)]
    costs: BTreeMap<String, u64>,
}

#[derive(Serialize)]
pub(super) struct Committed {
    costs: BTreeMap<String, u64>,
}

impl Commit {
    /// Returns a problem if the reservation lacks a limit of the commit.
    pub(super) fn check(&self, held: &Held) -> Result<(), Problem> {
        let is_unknown = |limit: &&String| {
            let mut known = held.estimates.iter();
            !known.any(|(name, _)| name.as_str() == *limit)
        };
        match self.costs.keys().find(is_unknown) {
            None => Ok(()),
            Some(limit) => Err(Problem::invalid(format_args!(
                "the reservation has no limit {limit:?} that settles: add `settle: handler` to the limit, or leave it out"
            ))),
        }
    }

    /// Settles a reservation. Returns the final cost of each limit.
    pub(super) fn settle(&self, held: &Held) -> Committed {
        match self.cost {
            Some(cost) => held.charges.settle_all(cost),
            None => held.charges.keep(),
        }
        let costs = held.estimates.iter().map(|(limit, estimate)| {
            let name = limit.as_str();
            let own = self.costs.get(name).copied();
            if let Some(cost) = own {
                // The limit is known, so the cost is set.
                let _ = held.charges.settle(name, cost);
            }
            (name.to_owned(), own.or(self.cost).unwrap_or(*estimate))
        });
        Committed {
            costs: costs.collect(),
        }
    }
}
