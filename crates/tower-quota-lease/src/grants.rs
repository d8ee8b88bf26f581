use tower_quota_core::Timestamp;

#[derive(Clone, Copy)]
pub(crate) struct Grant {
    pub(crate) units: u64,
    pub(crate) charged: u64,
    /// The instant of the charge on the store's clock.
    pub(crate) charged_at: Timestamp,
    /// The end on the clock of this instance.
    pub(crate) ends_at: u64,
}

/// The grants of a limit, in the order of their ends.
#[derive(Default)]
pub(crate) struct Grants(Vec<Grant>);

impl Grants {
    pub(crate) fn units(&self, now: u64) -> u64 {
        let live = self.0.iter().filter(|grant| now < grant.ends_at);
        live.map(|grant| grant.units).sum()
    }

    pub(crate) fn take(&mut self, now: u64, units: u64) -> Option<Timestamp> {
        if self.units(now) < units {
            return None;
        }
        let mut missing = units;
        let mut charged_at = None;
        for grant in &mut self.0 {
            let taken = grant.units.min(missing);
            if now < grant.ends_at && taken > 0 {
                grant.units -= taken;
                missing -= taken;
                charged_at =
                    Some(charged_at.map_or(grant.charged_at, |at| grant.charged_at.min(at)));
            }
        }
        charged_at
    }

    /// Puts units back into this lease and later leases. Returns whether the lease lasts and these leases have spent so
    /// many units.
    ///
    /// Otherwise the store takes the units back, for example those of a request that the store decided at the instant of
    /// the lease.
    pub(crate) fn put_back(&mut self, now: u64, mut units: u64, charged_at: Timestamp) -> bool {
        let live = |grant: &&mut Grant| now < grant.ends_at && grant.charged_at >= charged_at;
        let (mut spent, mut is_live) = (0, false);
        for grant in self.0.iter_mut().filter(live) {
            spent += grant.charged - grant.units;
            is_live |= grant.charged_at == charged_at;
        }
        if !is_live || spent < units {
            return false;
        }
        for grant in self.0.iter_mut().filter(live) {
            let back = units.min(grant.charged - grant.units);
            grant.units += back;
            units -= back;
        }
        true
    }

    /// Adds a grant. A spent grant stays until its end, because refused requests put their units
    /// back.
    pub(crate) fn add(&mut self, now: u64, grant: Grant) {
        self.0
            .retain(|grant| grant.units > 0 || now < grant.ends_at);
        self.0.push(grant);
    }

    pub(crate) fn remove(&mut self, wanted: &Grant) -> u64 {
        let is_wanted = |grant: &Grant| {
            grant.charged_at == wanted.charged_at && grant.ends_at == wanted.ends_at
        };
        let position = self.0.iter().position(is_wanted);
        position.map_or(0, |position| self.0.remove(position).units)
    }

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
        assert_eq!(grants.remove(&grant(4, 10, 110)), 4);
        assert!(!grants.have_units());
    }

    #[test]
    fn spent_grant_takes_units_back() {
        let mut grants = Grants::default();
        grants.add(20, grant(2, 10, 110));
        let charged_at = grants.take(50, 2).unwrap();
        grants.add(70, grant(5, 60, 160));
        assert!(grants.put_back(80, 2, charged_at));
        assert_eq!(grants.remove(&grant(2, 10, 110)), 2);
        assert_eq!(grants.take(90, 5), Some(Timestamp::from_micros(60)));
        // `add` removes ended grants too, because their runtime may have ended.
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
        assert!(grants.take(70, 1).is_some());
        assert!(
            !grants.put_back(80, 2, charged_at),
            "only one unit is spent"
        );
        assert_eq!(grants.units(80), 0);
    }
}
