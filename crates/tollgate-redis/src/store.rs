//! The store in Redis.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::time::Duration;
use std::sync::Arc;

use deadpool_redis::Pool;
use redis::Client;
use smallvec::SmallVec;
use tollgate_core::{Charge, Clock, Decision, Key, Operation, Store};

use crate::error::RedisStoreError;
use crate::keys::KeyNames;
use crate::link::{Link, Trouble};
use crate::options::RedisOptions;
use crate::reply::Asked;
use crate::request::Request;

/// Counters in Redis, shared by every instance that uses the same server and prefix.
///
/// All charges of a request are decided in one call of one script: one round trip, one reading of the server's clock,
/// all or nothing, also when they count different keys. Clones share the connection.
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
    link: Link,
    keys: KeyNames,
    deadline: Duration,
    clock: Option<Arc<dyn Clock>>,
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

    pub(crate) fn new(
        link: Link,
        keys: KeyNames,
        deadline: Duration,
        clock: Option<Arc<dyn Clock>>,
        server: String,
    ) -> Self {
        Self { inner: Arc::new(Inner { link, keys, deadline, clock, server: server.into() }) }
    }

    /// Waits for a connection, up to the deadline.
    pub(crate) async fn connected(&self) -> Result<(), RedisStoreError> {
        self.inner.within_deadline(self.inner.link.connect()).await
    }
}

impl Store for RedisStore {
    type Error = RedisStoreError;
    type Future = Pin<Box<dyn Future<Output = Result<Decision, RedisStoreError>> + Send>>;

    fn apply(&self, operation: Operation, charges: &[Charge<'_>]) -> Self::Future {
        let inner = Arc::clone(&self.inner);
        let (names, key_of) = inner.named(charges);
        let mut request = Request::new(inner.clock.as_ref().map(|clock| clock.now()));
        request.decide(operation, charges, |charge| key_of[charge]);
        let asked = Asked::about(operation, charges);
        Box::pin(async move {
            let reply = inner.within_deadline(inner.link.run(&names, request.as_bytes())).await?;
            asked
                .read(&reply)
                .ok_or_else(|| RedisStoreError::Garbled { server: Arc::clone(&inner.server), source: None })
        })
    }
}

impl Inner {
    /// The names of the distinct keys, and for each charge the position of its own among them.
    fn named(&self, charges: &[Charge<'_>]) -> (SmallVec<[String; 2]>, SmallVec<[usize; 4]>) {
        let mut distinct: SmallVec<[&Key<'_>; 2]> = SmallVec::new();
        let positions = charges
            .iter()
            .map(|charge| {
                distinct.iter().position(|key| *key == charge.key()).unwrap_or_else(|| {
                    distinct.push(charge.key());
                    distinct.len() - 1
                })
            })
            .collect();
        (distinct.into_iter().map(|key| self.keys.name(key)).collect(), positions)
    }

    async fn within_deadline<T>(&self, call: impl Future<Output = Result<T, Trouble>>) -> Result<T, RedisStoreError> {
        let server = Arc::clone(&self.server);
        match tokio::time::timeout(self.deadline, call).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(Trouble::Connect(source))) => Err(RedisStoreError::Connect { server, source }),
            Ok(Err(Trouble::Call(error))) => Err(RedisStoreError::of_call(&server, error)),
            Err(_) => Err(RedisStoreError::Deadline { server, after: self.deadline }),
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
