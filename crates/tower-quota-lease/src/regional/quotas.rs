use core::time::Duration;

use tower_quota_core::{Charge, Quota, Timestamp};

use super::shares::RegionShares;

/// The time in which all instances learn of a higher share.
const SHORTEST_DELAY: Duration = Duration::from_secs(60);

/// The maximum number of former shares. With windows of a year, you may still change the shares
/// every three weeks.
const MOST_FORMER: usize = 16;

#[derive(Debug)]
pub(super) struct Quotas {
    shares: RegionShares,
    former: Vec<(RegionShares, Timestamp)>,
}

pub(super) struct Split {
    /// The quota of the floor, or `None` if the home store counts the whole quota.
    pub(super) floor: Option<Quota>,
    pub(super) home: Quota,
}

impl Quotas {
    pub(super) const fn new(shares: RegionShares) -> Self {
        Self {
            shares,
            former: Vec::new(),
        }
    }

    pub(super) fn changed(&self, shares: RegionShares, now: Timestamp) -> Self {
        let mut former = self.former.clone();
        if former.len() == MOST_FORMER {
            former.remove(0);
        }
        former.push((self.shares.clone(), now));
        Self { shares, former }
    }

    pub(super) fn of(&self, charge: &Charge<'_>, region: &str, now: Timestamp) -> Split {
        let quota = charge.quota();
        // Count such limits at home, because a refusal by the floor is not final and must not
        // count.
        if charge.counts_refusals() || charge.penalised_by().is_some() {
            return Split {
                floor: None,
                home: *quota,
            };
        }
        let delay = SHORTEST_DELAY.max(2 * quota.window());
        let former = self.former.iter();
        let former = former.filter(|(_, ended_at)| now.since(*ended_at) < delay);
        let (mut floor, mut home) = percents(quota, &self.shares, region);
        for (shares, _) in former {
            let (former_floor, former_home) = percents(quota, shares, region);
            floor = floor.min(former_floor);
            home = home.min(former_home);
        }
        Split {
            floor: quota.percent(floor),
            home: quota.percent(home).unwrap_or(*quota),
        }
    }
}

/// Returns the percentages of floor and pool, 0 and 100 without a floor.
fn percents(quota: &Quota, shares: &RegionShares, region: &str) -> (u32, u32) {
    // Look at the shares of all regions, which must agree on the pool.
    let has_units = |percent| quota.percent(percent).is_some();
    if shares.percents().all(has_units) && has_units(shares.pool()) {
        (shares.of(region).unwrap_or(0), shares.pool())
    } else {
        (0, 100)
    }
}
