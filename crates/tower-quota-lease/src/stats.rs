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
    /// Estimate of the units that exact round trips would have admitted in addition.
    ///
    /// It counts these units of each limit:
    ///
    /// 1. Those of requests that were refused here, which the store had after all. While little is left, none counts:
    ///    what gathers in the store is admitted a moment later. When the store has enough again, or the client stops
    ///    asking, this many count: what was refused here, at most what the store had at its last answer and what was
    ///    refused since. What is refused just after a fixed window has begun counts even if the window is used up later.
    /// 2. Those in [`units_returned`](Self::units_returned) that others may have missed: little was left beside them.
    /// 3. All in [`units_lost`](Self::units_lost).
    ///
    /// The sum over all instances is a bound neither from above nor from below: no instance knows what others hold, and
    /// the same units may be counted twice, by two instances or as refused and as returned. In tests with one bucket, up
    /// to eight instances and up to four times the quota, it is within two times what is refilled in a lease. What the
    /// stored quota gives up, such as a twentieth of a burst, is not in it.
    pub units_under_admitted: u64,
    /// Units that are held now.
    pub units_held: u64,
    /// Keys whose demand is observed now.
    pub keys: usize,
}

impl LeaseStats {
    /// Adds the counts of a shard, which has no present state in them.
    pub(crate) fn add(&mut self, counts: &Self) {
        self.by_lease += counts.by_lease;
        self.by_store += counts.by_store;
        self.refused_here += counts.refused_here;
        self.renewals += counts.renewals;
        self.units_leased += counts.units_leased;
        self.units_returned += counts.units_returned;
        self.units_lost += counts.units_lost;
        self.units_under_admitted += counts.units_under_admitted;
    }
}
