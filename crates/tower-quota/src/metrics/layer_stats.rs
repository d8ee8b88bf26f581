#[cfg(feature = "top")]
use core::time::Duration;

use ::metrics::{counter, gauge};
use tower_quota_core::RefusalStats;

use super::stats::{StoreStats, float};
use super::table;

/// Figures of a layer and its services. Call [`stats`](crate::RateLimitHandle::stats) to get the figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LayerStats {
    /// The requests that wait for their turn.
    pub waiting: usize,
    /// The figures of the refusal cache.
    pub refusal_cache: RefusalStats,
    /// The requests a second of the busiest client in the last minute, at least.
    #[cfg(feature = "top")]
    pub busiest: u64,
    /// The clients refused in the last minute, at most 256.
    #[cfg(feature = "top")]
    pub refused_clients: usize,
    /// The longest remaining wait of these clients.
    #[cfg(feature = "top")]
    pub longest_wait: Duration,
    /// The longest time since the last admission of a client that is refused at least once a minute.
    #[cfg(feature = "top")]
    pub longest_at_limit: Duration,
}

impl StoreStats for LayerStats {
    fn publish(&self, layer: &'static str) {
        gauge!(table::WAITING, "layer" => layer).set(float(self.waiting as u64));
        let cache = self.refusal_cache;
        counter!(table::CACHE_ANSWERED, "layer" => layer).absolute(cache.answered);
        counter!(table::CACHE_REMEMBERED, "layer" => layer).absolute(cache.remembered);
        counter!(table::CACHE_EVICTED, "layer" => layer).absolute(cache.evicted);
        #[cfg(feature = "top")]
        {
            gauge!(table::BUSIEST, "layer" => layer).set(float(self.busiest));
            let refused = self.refused_clients as u64;
            gauge!(table::REFUSED_CLIENTS, "layer" => layer).set(float(refused));
            gauge!(table::LONGEST_WAIT, "layer" => layer).set(self.longest_wait);
            gauge!(table::LONGEST_AT_LIMIT, "layer" => layer).set(self.longest_at_limit);
        }
    }
}
