/// Counters of a [`Leased`](crate::Leased) store and all clones, and the present state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeaseStats {
    /// Requests that leases have decided alone.
    pub by_lease: u64,
    /// Requests that the store has decided, or failed to decide.
    pub by_store: u64,
    /// Requests refused without a call to the store.
    pub refused_here: u64,
    /// Calls for leases, including refused and failed calls.
    pub renewals: u64,
    /// Units that were charged in advance.
    pub units_leased: u64,
    /// Unspent units that were refunded.
    pub units_returned: u64,
    /// Unspent units that may remain charged until they refill, because a call failed.
    pub units_lost: u64,
    /// Unspent units at present.
    pub units_held: u64,
    /// Keys whose demand this instance observes at present.
    pub keys: usize,
}

impl LeaseStats {
    pub(crate) fn add(&mut self, shard: &Self) {
        self.by_lease += shard.by_lease;
        self.by_store += shard.by_store;
        self.refused_here += shard.refused_here;
        self.renewals += shard.renewals;
        self.units_leased += shard.units_leased;
        self.units_returned += shard.units_returned;
        self.units_lost += shard.units_lost;
    }
}
