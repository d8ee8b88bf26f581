use core::time::Duration;

use tower_quota_core::{Charge, Quota, Timestamp};

use super::shares::RegionShares;

/// The time in which all instances learn of new shares.
const LEARN: Duration = Duration::from_secs(60);

/// The parts of every quota in this region, now and before.
#[derive(Debug)]
pub(super) struct Quotas {
    shares: RegionShares,
    present: Parts,
    /// The former parts with their last ends. Equal parts are one entry, which bounds the number.
    former: Vec<(Parts, Timestamp)>,
}

pub(super) struct Split {
    /// The quota of the floor, or `None` if the home store counts the whole quota.
    pub(super) floor: Option<Quota>,
    pub(super) home: Quota,
}

/// The percentages that shares give to one region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Parts {
    floor: u32,
    pool: u32,
    /// The smallest share of all regions and the pool, which all must have a unit.
    smallest: u32,
}

impl Quotas {
    pub(super) fn new(shares: RegionShares, region: &str, now: Timestamp) -> Self {
        let mut quotas = Self {
            present: Parts::of(&shares, region),
            former: Vec::new(),
            shares,
        };
        quotas.remember_replaced(region, now);
        quotas
    }

    pub(super) fn change(&mut self, shares: RegionShares, region: &str, now: Timestamp) {
        // Equal shares must not begin the delay of the replaced shares again.
        if shares == self.shares {
            return;
        }
        let former = self.present;
        self.present = Parts::of(&shares, region);
        self.shares = shares;
        self.remember(former, now);
        self.remember_replaced(region, now);
    }

    fn remember_replaced(&mut self, region: &str, now: Timestamp) {
        for number in 0..self.shares.replaced().len() {
            let parts = Parts::of(&self.shares.replaced()[number], region);
            self.remember(parts, now);
        }
    }

    fn remember(&mut self, parts: Parts, ended_at: Timestamp) {
        if parts != self.present {
            self.former.retain(|(known, _)| *known != parts);
            self.former.push((parts, ended_at));
        }
    }

    pub(super) fn of(&self, charge: &Charge<'_>, now: Timestamp) -> Split {
        let quota = charge.quota();
        // Count such limits at home, because a refusal by the floor is not final and must not
        // count.
        if charge.counts_refusals() || charge.penalised_by().is_some() {
            return Split {
                floor: None,
                home: *quota,
            };
        }
        let window = quota.window();
        let delay = (LEARN + window).max(2 * window);
        let (mut floor, mut home) = self.present.percents(quota);
        for (parts, ended_at) in &self.former {
            if now.since(*ended_at) < delay {
                let (former_floor, former_home) = parts.percents(quota);
                floor = floor.min(former_floor);
                home = home.min(former_home);
            }
        }
        Split {
            floor: quota.percent(floor),
            home: quota.percent(home).unwrap_or(*quota),
        }
    }
}

impl Parts {
    fn of(shares: &RegionShares, region: &str) -> Self {
        let pool = shares.pool();
        Self {
            // The shares that a new region replaces give the region no floor.
            floor: shares.of(region).unwrap_or(0),
            pool,
            smallest: shares.percents().fold(pool, u32::min),
        }
    }

    /// Returns the percentages of floor and home store.
    fn percents(self, quota: &Quota) -> (u32, u32) {
        // Look at the shares of all regions, which must agree on the pool.
        match quota.percent(self.smallest) {
            Some(_) => (self.floor, self.pool),
            None => (0, 100),
        }
    }
}
