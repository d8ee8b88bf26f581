//! Grants: units that were charged in advance, until they are spent or their lease ends.

use smallvec::SmallVec;
use tower_quota_core::Timestamp;

/// The most grants of a pool: one that is being spent, the next one, and one that ends.
const MOST: usize = 3;

/// Units of one lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grant {
    /// The units that are not spent.
    pub(crate) units: u64,
    /// The units that were charged.
    pub(crate) charged: u64,
    /// The instant by the store at which the units were charged.
    pub(crate) charged_at: Timestamp,
    /// The instant by this instance at which the lease ends, in microseconds.
    pub(crate) ends_at: u64,
}

impl Grant {
    const fn is_live(&self, now: u64) -> bool {
        self.units > 0 && now < self.ends_at
    }
}

/// The grants of a pool, those that end first at the front.
#[derive(Debug, Default)]
pub(crate) struct Grants(SmallVec<[Grant; MOST]>);

impl Grants {
    /// Returns the units that may be spent at `now`.
    pub(crate) fn units(&self, now: u64) -> u64 {
        self.0
            .iter()
            .filter(|grant| now < grant.ends_at)
            .map(|grant| grant.units)
            .sum()
    }

    /// Takes units, if there are enough. Returns the instant at which the first of them were charged.
    pub(crate) fn take(&mut self, now: u64, units: u64) -> Option<Timestamp> {
        let mut missing = units;
        let mut charged_at: Option<Timestamp> = None;
        if self.units(now) < units {
            return None;
        }
        for grant in self
            .0
            .iter_mut()
            .filter(|grant| now < grant.ends_at && grant.units > 0)
        {
            let taken = grant.units.min(missing);
            grant.units -= taken;
            missing -= taken;
            charged_at =
                Some(charged_at.map_or(grant.charged_at, |first| first.min(grant.charged_at)));
            if missing == 0 {
                break;
            }
        }
        charged_at
    }

    /// Puts units back into the leases that they were charged with, of which this is the first. Returns whether it goes on.
    pub(crate) fn put_back(&mut self, now: u64, mut units: u64, charged_at: Timestamp) -> bool {
        let is_live = |grant: &Grant| now < grant.ends_at;
        if !self
            .0
            .iter()
            .any(|grant| grant.charged_at == charged_at && is_live(grant))
        {
            return false;
        }
        for grant in self
            .0
            .iter_mut()
            .filter(|grant| grant.charged_at >= charged_at && is_live(grant))
        {
            // A refund of more than was taken mints nothing.
            let back = units.min(grant.charged - grant.units);
            grant.units += back;
            units -= back;
        }
        true
    }

    /// Returns whether another grant has room. A spent grant makes room, and one that has ended.
    pub(crate) fn have_room(&self, now: u64) -> bool {
        self.0.iter().filter(|grant| grant.is_live(now)).count() < MOST
    }

    /// Adds a grant. A spent one stays until it ends: a request that is refused elsewhere may put its units back.
    pub(crate) fn add(&mut self, now: u64, grant: Grant) {
        self.0
            .retain(|grant| grant.units > 0 || now < grant.ends_at);
        self.0.push(grant);
    }

    /// Removes a grant, and returns the units that were not spent.
    pub(crate) fn remove(&mut self, charged_at: Timestamp, ends_at: u64) -> u64 {
        let position = self
            .0
            .iter()
            .position(|grant| grant.charged_at == charged_at && grant.ends_at == ends_at);
        position.map_or(0, |position| self.0.remove(position).units)
    }

    /// Returns the instant at which the first grant with units ends.
    pub(crate) fn first_end(&self, now: u64) -> u64 {
        self.0
            .iter()
            .filter(|grant| grant.is_live(now))
            .map(|grant| grant.ends_at)
            .min()
            .unwrap_or(u64::MAX)
    }

    /// Returns whether a grant has units that are to be spent or refunded.
    pub(crate) fn have_units(&self) -> bool {
        self.0.iter().any(|grant| grant.units > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn grant(units: u64, charged_at: u64, ends_at: u64) -> Grant {
        Grant {
            units,
            charged: units,
            charged_at: Timestamp::from_micros(charged_at),
            ends_at,
        }
    }

    #[test]
    fn older_grant_is_spent_first() {
        let mut grants = Grants::default();
        grants.add(20, grant(2, 10, 110));
        grants.add(70, grant(5, 60, 160));
        assert_eq!(grants.take(70, 3), Some(Timestamp::from_micros(10)));
        assert_eq!(grants.take(70, 3), Some(Timestamp::from_micros(60)));
        assert_eq!((grants.take(70, 2), grants.units(70)), (None, 1));
    }

    #[test]
    fn ended_grant_is_not_spent() {
        let mut grants = Grants::default();
        grants.add(20, grant(4, 10, 110));
        assert_eq!(
            (grants.units(109), grants.units(110), grants.have_units()),
            (4, 0, true)
        );
        assert_eq!(grants.take(110, 1), None);
        assert!(!grants.put_back(110, 1, Timestamp::from_micros(10)));
        assert_eq!(grants.remove(Timestamp::from_micros(10), 110), 4);
        assert!(!grants.have_units());
    }

    #[test]
    fn spent_grant_takes_units_back() {
        let mut grants = Grants::default();
        grants.add(20, grant(2, 10, 110));
        let charged_at = grants.take(50, 2).unwrap();
        grants.add(70, grant(5, 60, 160));
        assert!(grants.put_back(80, 2, charged_at));
        assert_eq!(grants.remove(charged_at, 110), 2);
        assert_eq!(grants.take(90, 5), Some(Timestamp::from_micros(60)));
        // Nothing waits for the end of a grant whose runtime has ended.
        grants.add(160, grant(1, 150, 250));
        assert_eq!(grants.0.len(), 1);
    }

    #[test]
    fn units_of_two_leases_return_to_both() {
        let mut grants = Grants::default();
        grants.add(20, grant(2, 10, 110));
        grants.add(70, grant(5, 60, 160));
        assert!(grants.take(70, 1).is_some());
        let charged_at = grants.take(70, 3).unwrap();
        assert_eq!(grants.units(70), 3);
        assert!(grants.put_back(80, 3, charged_at));
        assert_eq!(grants.units(80), 6);
    }

    #[test]
    fn units_return_to_their_own_lease() {
        let mut grants = Grants::default();
        grants.add(20, grant(1, 10, 110));
        let charged_at = grants.take(50, 1).unwrap();
        assert!(grants.put_back(60, 1, charged_at));
        assert!(!grants.put_back(60, 1, Timestamp::from_micros(11)));
        assert!(grants.put_back(60, 9, charged_at));
        assert_eq!(grants.units(60), 1);
    }
}
