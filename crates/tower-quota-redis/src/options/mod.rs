mod connect;
mod defaults;

use core::fmt;
#[cfg(feature = "credentials")]
use core::future::Future;
use core::num::{NonZeroU32, NonZeroUsize};
use core::time::Duration;
#[cfg(feature = "credentials")]
use std::error::Error;
use std::sync::Arc;

use tokio::runtime::Handle;
use tower_quota_core::Clock;

use crate::breaker;
#[cfg(feature = "credentials")]
use crate::credentials::Credentials;
use crate::link::{Certificates, Provider};
use crate::store::RedisStore;

/// Options of a [`RedisStore`]. [`RedisStore::options`] returns the defaults.
///
/// All instances that share counters need the same prefix, secret, partitions and readable keys.
#[derive(Clone)]
pub struct RedisOptions {
    prefix: String,
    deadline: Duration,
    connect_timeout: Duration,
    secret: Option<Vec<u8>>,
    readable_keys: bool,
    clock: Option<Arc<dyn Clock>>,
    server_name: Option<String>,
    lazy: bool,
    connections: NonZeroUsize,
    partitions: Option<NonZeroUsize>,
    failures: NonZeroU32,
    certificates: Certificates,
    runtime: Option<Handle>,
    credentials: Option<Provider>,
}

impl RedisOptions {
    pub(crate) fn new() -> Self {
        Self {
            prefix: "quota".to_owned(),
            deadline: RedisStore::DEFAULT_DEADLINE,
            connect_timeout: RedisStore::DEFAULT_CONNECT_TIMEOUT,
            secret: None,
            readable_keys: false,
            clock: None,
            server_name: None,
            lazy: false,
            connections: NonZeroUsize::MIN,
            partitions: None,
            failures: breaker::DEFAULT_FAILURES,
            certificates: Certificates::default(),
            runtime: None,
            credentials: None,
        }
    }

    /// Sets the prefix of all keys in Redis. Defaults to `quota`.
    ///
    /// Use 1 to 64 letters, digits or characters of `-_.:/`. Services with one prefix on one Redis
    /// share counters, so use the name of your service.
    #[must_use]
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Sets the deadline of a decision. Defaults to 50 ms.
    ///
    /// The deadline includes connecting and the time in the queue, and is at most a day. Give at least twice the round
    /// trip time to your server.
    #[must_use]
    pub const fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Sets the timeout of an attempt to connect. Defaults to 5 s.
    ///
    /// Attempts continue in the background after the deadline of a decision. Sentinels have half of the timeout, and
    /// each node of a cluster has a quarter.
    #[must_use]
    pub const fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Sets the secret of the hash of keys, at least 16 random bytes. By default there is no
    /// secret.
    ///
    /// Without a secret, readers of Redis can test whether an address is a client, and a client who chooses keys can
    /// find two keys with the same counter in about 2^48 hashes.
    #[must_use]
    pub fn secret(mut self, secret: impl AsRef<[u8]>) -> Self {
        self.secret = Some(secret.as_ref().to_vec());
        self
    }

    /// Stores keys under readable names instead of hashes, for debugging.
    ///
    /// Redis then contains addresses and user names. Keys of more than 128 characters stay hashed.
    #[must_use]
    pub const fn readable_keys(mut self, readable: bool) -> Self {
        self.readable_keys = readable;
        self
    }

    /// Sets a clock to use instead of the clock of the server, for tests.
    ///
    /// Keys live for at least a minute by the clock of the server.
    #[must_use]
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Some(Arc::new(clock));
        self
    }

    /// Returns from the constructors at once, so that your service can start while the server is away.
    ///
    /// The store connects in the background, and requests wait up to their deadline. You still get an error for a wrong
    /// URL or option. With a wrong password, each request fails.
    #[must_use]
    pub const fn connect_lazily(mut self) -> Self {
        self.lazy = true;
        self
    }

    /// Sets the number of connections. Defaults to 1.
    ///
    /// One connection carries more decisions than a Redis server can make. Use several, with smaller batches, if your
    /// network limits each stream, or if your server reads with more than one thread.
    #[must_use]
    pub const fn connections(mut self, connections: NonZeroUsize) -> Self {
        self.connections = connections;
        self
    }

    /// Sets the number of partitions of the keys. Defaults to 12 in a cluster, and 1 elsewhere.
    ///
    /// Each partition is one hash slot, so give several to each primary of your cluster. If you change the number,
    /// nearly all counts start afresh. The crate docs describe [requests over several partitions](crate#clusters).
    ///
    /// With more partitions, a reshard stops fewer clients for less time, but calls carry fewer decisions. `docs/measurements/sizing.md`
    /// has figures for 12 to 96 partitions.
    #[must_use]
    pub const fn partitions(mut self, partitions: NonZeroUsize) -> Self {
        self.partitions = Some(partitions);
        self
    }

    /// Sets how many failures in a row open the breaker. Defaults to 5.
    ///
    /// The breaker opens after this many deadlines of silence. Decisions then fail at once with
    /// [`BreakerOpen`](crate::RedisStoreError::BreakerOpen). After a pause of 50 to 400 ms, the store sends one
    /// decision, and an answer closes the breaker.
    #[must_use]
    pub const fn breaker(mut self, failures: NonZeroU32) -> Self {
        self.failures = failures;
        self
    }

    /// Sets the runtime of connections and calls.
    ///
    /// By default, connections live and end with the runtime that first used the store. If each of your threads has a
    /// runtime, give one that lasts and is never blocked.
    #[must_use]
    pub fn runtime(mut self, runtime: Handle) -> Self {
        self.runtime = Some(runtime);
        self
    }

    /// Trusts these certificates, in PEM, instead of the certificates of the system.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn root_certificates(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.certificates.roots = Some(pem.into());
        self
    }

    /// Sends a client certificate with its key, in PEM.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn client_certificate(mut self, pem: impl Into<Vec<u8>>, key: impl Into<Vec<u8>>) -> Self {
        self.certificates.client = Some((pem.into(), key.into()));
        self
    }

    /// Takes user and password from your provider, such as tokens of cloud IAM.
    ///
    /// Each new connection calls the provider twice at once, to log in and to begin its renewals, and again after three
    /// quarters of the lifetime. Cache tokens that are expensive. If the provider fails, the connection keeps its
    /// credentials and tries again after a second. Sentinels use the credentials in their URLs.
    ///
    /// If the server refuses renewed credentials, the connection keeps the former credentials and ends its renewals. The
    /// connection serves until the server closes it. The store then connects with new credentials from your provider.
    ///
    /// ```no_run
    /// use std::time::Duration;
    /// use tower_quota_redis::{Credentials, RedisStore};
    ///
    /// # async fn token_of_cloud() -> Result<String, std::io::Error> { Ok(String::new()) }
    /// # async fn example() -> Result<(), tower_quota_redis::RedisStoreError> {
    /// let store = RedisStore::options()
    ///     .prefix("orders")
    ///     .credentials(|| async {
    ///         let token = token_of_cloud().await?;
    ///         Ok::<_, std::io::Error>(Credentials::new("limiter", token, Duration::from_secs(900)))
    ///     })
    ///     .connect("rediss+cluster://cache.internal:6379")
    ///     .await?;
    /// # drop(store);
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "credentials")]
    #[must_use]
    pub fn credentials<F, E>(mut self, provider: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Credentials, E>> + Send + 'static,
        E: Error,
    {
        self.credentials = Some(Provider::new(provider));
        self
    }

    /// Sets the name of the server in errors. Defaults to host and port.
    #[must_use]
    pub fn server_name(mut self, name: impl Into<String>) -> Self {
        self.server_name = Some(name.into());
        self
    }
}

impl fmt::Debug for RedisOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisOptions")
            .field("prefix", &self.prefix)
            .field("deadline", &self.deadline)
            .field("connect_timeout", &self.connect_timeout)
            .field("connections", &self.connections)
            .field("partitions", &self.partitions)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_hides_the_secret() {
        let shown = format!("{:?}", RedisStore::options().secret("0123456789abcdef"));
        assert!(
            shown.contains("\"quota\"") && !shown.contains("0123") && !shown.contains("48, 49"),
            "{shown}"
        );
    }
}
