//! Figures of leases.

/// The counts of a [`Leased`](crate::Leased) store since it was made, and its present state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeaseStats {
    /// Requests decided from leases alone.
    pub by_lease: u64,
    /// Requests for which the store was asked about at least one limit.
    pub by_store: u64,
    /// Requests refused after a short or refused lease, without asking the store.
    pub refused_here: u64,
    /// Calls for leases: granted, refused and failed ones.
    pub renewals: u64,
    /// Units charged in advance.
    pub units_leased: u64,
    /// Units that were not spent and were refunded.
    pub units_returned: u64,
    /// Units that may have been charged and are not spent: the call for a lease or the refund failed. Time refills them.
    pub units_lost: u64,
    /// Units that are held now.
    pub units_held: u64,
    /// Keys whose demand is observed now.
    pub keys: usize,
}

/// The counts of a shard.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) by_lease: u64,
    pub(crate) by_store: u64,
    pub(crate) refused_here: u64,
    pub(crate) renewals: u64,
    pub(crate) units_leased: u64,
    pub(crate) units_returned: u64,
    pub(crate) units_lost: u64,
}

impl LeaseStats {
    pub(crate) fn add(&mut self, counts: &Counts) {
        self.by_lease += counts.by_lease;
        self.by_store += counts.by_store;
        self.refused_here += counts.refused_here;
        self.renewals += counts.renewals;
        self.units_leased += counts.units_leased;
        self.units_returned += counts.units_returned;
        self.units_lost += counts.units_lost;
    }
}
