//! The store in Redis.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::time::Duration;
use std::sync::Arc;

use deadpool_redis::Pool;
use redis::Client;
use tokio::sync::oneshot;
use tower_quota_core::{Charge, Decision, Key, Operation, Store};

use crate::batch::Batcher;
use crate::error::RedisStoreError;
use crate::keys::KeyNames;
use crate::options::RedisOptions;
use crate::question::Question;
use crate::spread::Spread;

/// The most charges of one request. More would hold up the server, and everybody else with it. This many take it 0.2 ms
/// where they are plain, 0.5 ms otherwise, and twice to three times that where each has a penalty or takes what is left;
/// a sliding log takes up to 1 ms by itself when it holds its 10,000 stamps. (Redis 7.0.15, two busy cores.)
const MOST_CHARGES: usize = 32;

/// Counters in Redis, shared by every instance that uses the same server and prefix.
///
/// All charges of a request are decided in one call of one script: one round trip, one reading of the server's clock,
/// all or nothing, also when they count different keys. Decisions that wait for the server travel together, many to a
/// call. Clones share the connections.
///
/// ```no_run
/// use std::time::Duration;
/// use tower_quota_redis::{RedisStore, RedisStoreError};
///
/// # async fn example() -> Result<(), RedisStoreError> {
/// let store = RedisStore::connect("redis://127.0.0.1:6379/").await?;
///
/// let store = RedisStore::options()
///     .prefix("shop")
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
    inner: Arc<Inner>,
}

struct Inner {
    /// One for each partition.
    batchers: Arc<[Batcher]>,
    keys: KeyNames,
    deadline: Duration,
    server: Arc<str>,
}

impl RedisStore {
    /// The longest a call may take unless told otherwise.
    pub const DEFAULT_DEADLINE: Duration = Duration::from_millis(50);

    /// Connects to the server at a URL such as `redis://user:password@host:6379/0`, with the default options.
    ///
    /// # Errors
    /// As [`RedisOptions::connect`].
    pub async fn connect(url: &str) -> Result<Self, RedisStoreError> {
        Self::options().connect(url).await
    }

    /// Connects with a client, with the default options.
    ///
    /// # Errors
    /// As [`RedisOptions::client`].
    pub async fn from_client(client: Client) -> Result<Self, RedisStoreError> {
        Self::options().client(client).await
    }

    /// Connects to the primary that sentinels know by a name, with the default options.
    ///
    /// # Errors
    /// As [`RedisOptions::sentinel`].
    pub async fn sentinel(
        sentinels: impl IntoIterator<Item = impl AsRef<str>>,
        primary: &str,
    ) -> Result<Self, RedisStoreError> {
        Self::options().sentinel(sentinels, primary).await
    }

    /// Connects to the cluster that some nodes belong to, with the default options.
    ///
    /// # Errors
    /// As [`RedisOptions::cluster`].
    pub async fn cluster(nodes: impl IntoIterator<Item = impl AsRef<str>>) -> Result<Self, RedisStoreError> {
        Self::options().cluster(nodes).await
    }

    /// Takes connections from a pool, with the default options.
    ///
    /// # Errors
    /// As [`RedisOptions::pool`].
    pub fn from_pool(pool: Pool) -> Result<Self, RedisStoreError> {
        Self::options().pool(pool)
    }

    /// The default options: prefix `quota`, a deadline of 50 ms, hashed keys without a secret, the server's clock.
    #[must_use]
    pub fn options() -> RedisOptions {
        RedisOptions::new()
    }

    /// Returns the name of the key in Redis under which a client's counters are stored.
    ///
    /// ```text
    /// redis-cli PTTL KEY    milliseconds until nothing is used of any limit; -2 if that is so now
    /// redis-cli GET KEY     the stored form, as documented at tower_quota_core::Entry::encode
    /// redis-cli DEL KEY     forgets all that was counted for the client
    /// ```
    #[must_use]
    pub fn key_of(&self, key: &Key<'_>) -> String {
        self.inner.keys.key_of(key)
    }

    pub(crate) fn new(batchers: Arc<[Batcher]>, keys: KeyNames, deadline: Duration, server: Arc<str>) -> Self {
        Self { inner: Arc::new(Inner { batchers, keys, deadline, server }) }
    }

    /// Waits for a connection, up to the deadline.
    pub(crate) async fn connected(&self) -> Result<(), RedisStoreError> {
        // All partitions share the connections.
        match self.inner.batchers.first() {
            Some(batcher) => batcher.connected().await,
            None => Ok(()),
        }
    }
}

impl Store for RedisStore {
    type Error = RedisStoreError;
    type Future = Pin<Box<dyn Future<Output = Result<Decision, RedisStoreError>> + Send>>;

    fn apply(&self, operation: Operation, charges: &[Charge<'_>]) -> Self::Future {
        if charges.len() > MOST_CHARGES {
            let error = RedisStoreError::TooManyCharges { charges: charges.len(), most: MOST_CHARGES };
            return Box::pin(async { Err(error) });
        }
        let inner = Arc::clone(&self.inner);
        if let Some(spread) = Spread::over_partitions(operation, charges, &inner.keys) {
            return Box::pin(async move { inner.decide_in_parts(spread).await });
        }
        let question = Question::new(operation, charges, &inner.keys);
        Box::pin(async move { inner.batchers[question.partition].decide(question).await })
    }
}

impl Inner {
    /// Decides in parts within one deadline. The parts go on by themselves, so that what they take is given back when
    /// nobody waits for the answer any more.
    async fn decide_in_parts(&self, spread: Spread) -> Result<Decision, RedisStoreError> {
        let (answer, answered) = oneshot::channel();
        tokio::spawn(spread.decide(Arc::clone(&self.batchers), answer));
        match tokio::time::timeout(self.deadline, answered).await {
            Ok(Ok(outcome)) => outcome,
            // Late, or stopped with the runtime.
            _ => Err(RedisStoreError::Deadline { server: Arc::clone(&self.server), after: self.deadline }),
        }
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
