use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use core::time::Duration;
use std::sync::{Arc, Mutex};

use tokio::sync::oneshot;
use tower_quota_core::{Charge, Decision, Key, Operation, Store, Undecidable};

use crate::batch::Batcher;
use crate::config_error::RedisConfigError;
use crate::error::RedisStoreError;
use crate::error_counts::RedisErrorCounts;
use crate::keys::KeyNames;
use crate::link::LinkSettings;
#[cfg(feature = "pool")]
use crate::link::Servers;
use crate::location::Location;
use crate::locator::RedisLocator;
use crate::lock::locked;
use crate::spread::Spread;
use crate::stats::RedisStats;
use crate::store_request::StoreRequest;

const CLOSE_POLL: Duration = Duration::from_millis(1);

/// Counters in Redis, shared by every instance that uses the same server and prefix.
///
/// A server decides all charges of a request in one atomic step and one round trip. A Redis Cluster
/// takes one step for each partition, and refunds the earlier steps when a later one refuses.
/// Clones share the connections. In a cluster, a request may have [concurrency
/// limits](tower_quota_core::Quota::concurrent) on one key only. Dry runs on another key only
/// report.
///
/// ```no_run
/// use std::time::Duration;
/// use tower_quota_redis::{RedisStore, RedisStoreError};
///
/// # async fn example() -> Result<(), RedisStoreError> {
/// let store = RedisStore::options()
///     .prefix("orders")
///     .deadline(Duration::from_millis(20))
///     .secret(std::env::var("TOWER_QUOTA_SECRET").unwrap_or_default())
///     .connect("redis://limiter:password@redis.internal:6380/2")
///     .await?;
/// # drop(store);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct RedisStore {
    inner: Arc<RedisInner>,
}

struct RedisInner {
    batchers: Arc<[Arc<Batcher>]>,
    keys: KeyNames,
    deadline: Duration,
    server: Arc<str>,
    location: Location,
    settings: LinkSettings,
    errors: Mutex<RedisErrorCounts>,
    is_closed: AtomicBool,
    detached: Arc<AtomicUsize>,
}

impl RedisStore {
    /// The default deadline of a decision.
    pub const DEFAULT_DEADLINE: Duration = Duration::from_millis(50);
    /// The default timeout of an attempt to connect.
    pub const DEFAULT_CONNECT_TIMEOUT: Duration = LinkSettings::CONNECT_TIMEOUT;

    /// Returns the Redis key of a client, for [your own commands](crate#stored-data).
    #[must_use]
    pub fn key_of(&self, key: &Key<'_>) -> String {
        self.inner.keys.key_of(key)
    }

    /// Returns the prefix of all keys, without a final colon.
    #[must_use]
    pub fn prefix(&self) -> &str {
        self.inner.keys.prefix()
    }

    /// Returns a seed for your own hashes of keys. It depends on the prefix and the secret only, so all instances of a
    /// service have the same seed.
    #[must_use]
    pub fn key_seed(&self) -> [u8; 16] {
        self.inner.keys.seed_elsewhere()
    }

    pub(crate) fn new(
        batchers: Arc<[Arc<Batcher>]>,
        keys: KeyNames,
        deadline: Duration,
        server: Arc<str>,
        location: Location,
        settings: LinkSettings,
    ) -> Self {
        let inner = RedisInner {
            batchers,
            keys,
            deadline,
            server,
            location,
            settings,
            errors: Mutex::default(),
            is_closed: AtomicBool::new(false),
            detached: Arc::default(),
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    pub(crate) async fn probe(&self) -> Result<(), RedisStoreError> {
        self.inner.batchers[0].probe().await
    }

    /// Returns a locator of the servers of this store, for your own connections.
    ///
    /// # Errors
    /// Returns [`RedisConfigError::PoolAddress`] for a store on a pool.
    pub fn locator(&self) -> Result<RedisLocator, RedisConfigError> {
        let inner = &self.inner;
        #[cfg(feature = "pool")]
        if matches!(inner.location.servers, Servers::Pool(_)) {
            return Err(RedisConfigError::PoolAddress);
        }
        RedisLocator::to(
            &inner.location,
            inner.settings.clone(),
            Arc::clone(&inner.server),
        )
    }

    /// Returns statistics of this store and its clones.
    ///
    /// ```no_run
    /// # fn example(store: &tower_quota_redis::RedisStore) {
    /// let stats = store.stats();
    /// println!("{} decisions in {} calls, {} refused early", stats.decisions, stats.calls, stats.errors.overloaded);
    /// # }
    /// ```
    #[must_use]
    pub fn stats(&self) -> RedisStats {
        let mut stats = RedisStats {
            errors: *locked(&self.inner.errors),
            ..RedisStats::default()
        };
        self.inner
            .batchers
            .iter()
            .for_each(|batcher| batcher.add_to(&mut stats));
        stats
    }
}

impl Store for RedisStore {
    type Error = RedisStoreError;
    type Future = Pin<Box<dyn Future<Output = Result<Decision, RedisStoreError>> + Send>>;

    /// Closes this store and its clones. Returns whether all work was done by the deadline.
    ///
    /// New decisions and refunds fail with [`RedisStoreError::Closed`], so first end the requests that may still
    /// settle. Unfinished work continues after the deadline, until the runtime ends.
    async fn close(&self, deadline: Duration) -> bool {
        self.inner.is_closed.store(true, Ordering::SeqCst);
        tokio::time::timeout(deadline, self.inner.until_idle())
            .await
            .is_ok()
    }

    fn identity(&self) -> Option<usize> {
        Some(Arc::as_ptr(&self.inner).addr())
    }

    fn apply(&self, operation: Operation, charges: &[Charge<'_>]) -> Self::Future {
        let inner = Arc::clone(&self.inner);
        let is_settlement = matches!(
            operation,
            Operation::Refund { .. } | Operation::Charge | Operation::Surcharge { .. }
        );
        // Count before the look at `is_closed`, so that `close` misses no settlement.
        let unsettled = is_settlement.then(|| Detached::new(&inner.detached));
        if inner.is_closed.load(Ordering::SeqCst) {
            return Box::pin(async move { inner.count_error(Err(RedisStoreError::Closed)) });
        }
        // Refuse more charges, which would occupy the server. 32 plain charges take 0.2 ms, and
        // others 0.5 to 1.5 ms.
        if charges.len() > Charge::MOST {
            let error = RedisStoreError::TooManyCharges {
                charges: charges.len(),
                most: Charge::MOST,
                source: Undecidable,
            };
            return Box::pin(async move { inner.count_error(Err(error)) });
        }
        if let Some(spread) = Spread::over_partitions(operation, charges, &inner.keys) {
            if let Some(limit) = spread.second_hold() {
                let error = RedisStoreError::HoldsOfSeveralKeys {
                    limit,
                    source: Undecidable,
                };
                return Box::pin(async move { inner.count_error(Err(error)) });
            }
            return Box::pin(async move {
                let outcome = inner.decide_in_parts(spread).await;
                drop(unsettled);
                inner.count_error(outcome)
            });
        }
        let request = StoreRequest::new(operation, charges, &inner.keys);
        Box::pin(async move {
            let outcome = inner.batchers[request.partition].decide(request).await;
            drop(unsettled);
            inner.count_error(outcome)
        })
    }
}

impl RedisInner {
    /// Decides in a task, which refunds the parts if the caller leaves.
    async fn decide_in_parts(&self, mut spread: Spread) -> Result<Decision, RedisStoreError> {
        spread.ask_breakers(&self.batchers)?;
        let (answer, answered) = oneshot::channel();
        let (batchers, detached) = (Arc::clone(&self.batchers), Detached::new(&self.detached));
        let deciding = async move {
            spread.decide(batchers, answer).await;
            drop(detached);
        };
        self.settings.spawn(deciding);
        match tokio::time::timeout(self.deadline, answered).await {
            Ok(Ok(outcome)) => outcome,
            // The task was late, or was stopped with the runtime.
            _ => Err(RedisStoreError::Deadline {
                server: Arc::clone(&self.server),
                after: self.deadline,
            }),
        }
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "a store that is being closed waits for what is under way"
    )]
    async fn until_idle(&self) {
        // Look at detached work first, because it enters a queue before it ends.
        while self.detached.load(Ordering::SeqCst) > 0
            || !self.batchers.iter().all(|batcher| batcher.is_idle())
        {
            tokio::time::sleep(CLOSE_POLL).await;
        }
    }

    fn count_error(
        &self,
        outcome: Result<Decision, RedisStoreError>,
    ) -> Result<Decision, RedisStoreError> {
        outcome.inspect_err(|error| locked(&self.errors).count(error))
    }
}

struct Detached(Arc<AtomicUsize>);

impl Detached {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(count))
    }
}

impl Drop for Detached {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore")
            .field("server", &self.inner.server)
            .field("deadline", &self.inner.deadline)
            .finish()
    }
}
