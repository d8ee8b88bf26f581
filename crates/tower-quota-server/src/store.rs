//! The counters of a server: in memory, in Redis, or leased from Redis.

use core::time::Duration;

use tower_quota_core::{BoxStore, MemoryStore, Store};
use tower_quota_lease::{LeaseOptions, LeaseStats, Leased};
use tower_quota_redis::{RedisConfigError, RedisOptions, RedisStore, RedisStoreError};

/// The shortest lease. A shorter one ends before it has saved a call.
const SHORTEST_LEASE: Duration = Duration::from_millis(5);

/// A store that cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A Redis server that cannot be used.
    #[error("{flag}: {0}", flag = flag(.0))]
    Redis(#[from] RedisStoreError),
    /// Leases without a Redis server.
    #[error(
        "--lease (TOWER_QUOTA_LEASE): only counters in Redis are leased: give --redis URL, or no lease"
    )]
    LeaseInMemory,
    /// A lease that would save no call.
    #[error(
        "--lease (TOWER_QUOTA_LEASE): {0:?} is too short: give {SHORTEST_LEASE:?} or more, or no lease"
    )]
    ShortLease(Duration),
}

/// Returns the flag that the error is about.
const fn flag(error: &RedisStoreError) -> &'static str {
    match error {
        RedisStoreError::Config(RedisConfigError::Prefix(_)) => "--prefix (CACHE_KEY_PREFIX)",
        _ => "--redis (REDIS_URL)",
    }
}

/// The store of a server. Clones share the counters.
///
/// ```
/// use tower_quota_redis::RedisStore;
/// use tower_quota_server::store::ServerStore;
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let store = ServerStore::open(None, RedisStore::options(), None).await?;
/// assert_eq!(store.place(), "memory");
/// # Ok::<(), tower_quota_server::store::StoreError>(())
/// # }).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct ServerStore {
    store: BoxStore,
    redis: Option<RedisStore>,
    leased: Option<Leased<RedisStore>>,
}

impl ServerStore {
    /// Opens the store in Redis at this URL, or in memory. Does not wait for Redis.
    ///
    /// With a lease, the server charges the limits of busy keys up to this long in advance. All servers that share a
    /// Redis need the same lease.
    ///
    /// # Errors
    /// Returns the setting that cannot be used.
    pub async fn open(
        redis: Option<&str>,
        options: RedisOptions,
        lease: Option<Duration>,
    ) -> Result<Self, StoreError> {
        if let Some(lease) = lease.filter(|lease| *lease < SHORTEST_LEASE) {
            return Err(StoreError::ShortLease(lease));
        }
        let Some(url) = redis else {
            return match lease {
                Some(_) => Err(StoreError::LeaseInMemory),
                None => Ok(Self::of(BoxStore::new(MemoryStore::new()), None, None)),
            };
        };
        let redis = options.connect_lazily().connect(url).await?;
        let leased = lease.map(|lease| {
            let options = LeaseOptions::default().longest(lease);
            Leased::with_options(redis.clone(), options)
        });
        let store = match &leased {
            Some(leased) => BoxStore::new(leased.clone()),
            None => BoxStore::new(redis.clone()),
        };
        Ok(Self::of(store, Some(redis), leased))
    }

    fn of(store: BoxStore, redis: Option<RedisStore>, leased: Option<Leased<RedisStore>>) -> Self {
        Self {
            store,
            redis,
            leased,
        }
    }

    /// Returns the store, for doors, which remember refusals themselves.
    #[must_use]
    pub const fn store(&self) -> &BoxStore {
        &self.store
    }

    /// Returns the store in Redis, with its statistics.
    #[must_use]
    pub const fn redis(&self) -> Option<&RedisStore> {
        self.redis.as_ref()
    }

    /// Returns statistics of the leases.
    #[must_use]
    pub fn leases(&self) -> Option<LeaseStats> {
        self.leased.as_ref().map(Leased::stats)
    }

    /// Returns where the counters are.
    #[must_use]
    pub const fn place(&self) -> &'static str {
        match (&self.redis, &self.leased) {
            (None, _) => "memory",
            (Some(_), None) => "Redis",
            (Some(_), Some(_)) => "Redis, with leases",
        }
    }

    /// Gives leased units back, and waits for refunds in flight. Returns whether all have arrived.
    ///
    /// Close the store after the last call has ended.
    pub async fn close(&self, deadline: Duration) -> bool {
        self.store.close(deadline).await
    }
}
