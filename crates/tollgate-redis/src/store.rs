//! The store in Redis.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::time::Duration;
use std::sync::Arc;

use deadpool_redis::Pool;
use redis::Client;
use tollgate_core::{Charge, Decision, Operation, Store};

use crate::batch::Batcher;
use crate::error::RedisStoreError;
use crate::keys::KeyNames;
use crate::options::RedisOptions;
use crate::question::Question;

/// The most charges of one request. More would hold up the server, and everybody else with it.
const MOST_CHARGES: usize = 256;

/// Counters in Redis, shared by every instance that uses the same server and prefix.
///
/// All charges of a request are decided in one call of one script: one round trip, one reading of the server's clock,
/// all or nothing, also when they count different keys. Decisions that wait for the server travel together, many to a
/// call. Clones share the connections.
///
/// ```no_run
/// use std::time::Duration;
/// use tollgate_redis::{RedisStore, RedisStoreError};
///
/// # async fn example() -> Result<(), RedisStoreError> {
/// let store = RedisStore::connect("redis://127.0.0.1:6379/").await?;
///
/// let store = RedisStore::options()
///     .prefix("shop")
///     .deadline(Duration::from_millis(20))
///     .secret(std::env::var("TOLLGATE_SECRET").unwrap_or_default())
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
    batcher: Batcher,
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

    /// Takes connections from a pool, with the default options.
    ///
    /// # Errors
    /// As [`RedisOptions::pool`].
    pub fn from_pool(pool: Pool) -> Result<Self, RedisStoreError> {
        Self::options().pool(pool)
    }

    /// The default options: prefix `tollgate`, a deadline of 50 ms, hashed keys without a secret, the server's clock.
    #[must_use]
    pub fn options() -> RedisOptions {
        RedisOptions::new()
    }

    pub(crate) fn new(batcher: Batcher, keys: KeyNames, deadline: Duration, server: Arc<str>) -> Self {
        Self { inner: Arc::new(Inner { batcher, keys, deadline, server }) }
    }

    /// Waits for a connection, up to the deadline.
    pub(crate) async fn connected(&self) -> Result<(), RedisStoreError> {
        self.inner.batcher.connected().await
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
        let question = Question::new(operation, charges, &inner.keys);
        Box::pin(async move { inner.batcher.decide(question).await })
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
