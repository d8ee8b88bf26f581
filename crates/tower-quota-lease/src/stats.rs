/// Counters of a [`Leased`](crate::Leased) store and all clones, and the present state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeaseStats {
    /// The number of requests that leases have decided alone.
    pub by_lease: u64,
    /// The number of requests that the store has decided, or failed to decide.
    pub by_store: u64,
    /// The number of requests refused without a call of the store.
    pub refused_here: u64,
    /// The number of calls for leases, including refused and failed calls.
    pub renewals: u64,
    /// The units that were charged in advance.
    pub units_leased: u64,
    /// The unspent units that were refunded.
    pub units_returned: u64,
    /// The unspent units that may remain charged until they refill, because a call failed.
    pub units_lost: u64,
    /// The unspent units at present.
    pub units_held: u64,
    /// The number of keys whose demand this instance observes at present.
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
