//! Options of a Redis store.

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

/// Choices for a [`RedisStore`], made before it is connected. [`RedisStore::options`] has the defaults.
///
/// All instances that should share their counters must agree on the prefix, the secret and whether keys are readable.
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

    /// Sets what every key in Redis begins with; `quota` by default. 1 to 64 letters, digits or characters of `-_.:/`.
    /// Stores with different prefixes share nothing. A colon follows it, unless it ends in one: `rl:` and `rl` are the same.
    #[must_use]
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Sets the longest that a decision may take; 50 ms by default.
    ///
    /// The deadline covers the wait for a connection, the time in the queue and the call. Give at least twice the round
    /// trip time to your server. A decision that is not sent before its deadline fails uncharged, with
    /// [`Overloaded`](crate::RedisStoreError::Overloaded).
    #[must_use]
    pub const fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Sets the longest that an attempt to connect may take; 5 s by default.
    ///
    /// It bounds how long the constructors wait, all their connections together, and attempts in the background:
    /// decisions wait for those no longer than their deadline. A handshake under TLS may well take longer than a deadline, the more so when many instances
    /// connect at once. Half of it is for asking sentinels, the other half for connecting to the primary they name;
    /// each node of a cluster has a quarter. Attempts in the background take up to the deadline if that is longer.
    #[must_use]
    pub const fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Sets the secret under which keys are hashed before they are stored: at least 16 random bytes, the same on all
    /// instances. Without it, no reader of Redis can tell whether a given client is among those counted.
    ///
    /// By default the hash depends on the prefix alone. That is no secret: a reader of the keys can find out which of
    /// a list of addresses they stand for. And a client who may choose their own key can look for one that shares
    /// another's counter: keys are hashed to 96 bits, so any two that collide take about 2^48 hashes to find, which is
    /// within reach, and one that collides with a given key about 2^96, which is not. With a secret neither can be
    /// computed.
    #[must_use]
    pub fn secret(mut self, secret: impl AsRef<[u8]>) -> Self {
        self.secret = Some(secret.as_ref().to_vec());
        self
    }

    /// Stores keys under readable names instead of hashes, for debugging: addresses and user names can then be read in
    /// Redis. Keys of more than 128 characters are hashed all the same.
    #[must_use]
    pub const fn readable_keys(mut self, readable: bool) -> Self {
        self.readable_keys = readable;
        self
    }

    /// Sets a clock to decide by, instead of the server's. For tests that move time by hand: instances with clocks of
    /// their own disagree about what is left. Keys written under such a clock live for at least a minute of the
    /// server's.
    #[must_use]
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Some(Arc::new(clock));
        self
    }

    /// Lets the constructors return without waiting for the server: the connection is made in the background, and a
    /// service can start while the server is away. Wrong URLs and options are errors all the same. Requests that arrive
    /// before there is a connection wait for one up to the deadline, and then fail as when a server goes away later. A
    /// wrong password or an unknown database is an error of each request too.
    #[must_use]
    pub const fn connect_lazily(mut self) -> Self {
        self.lazy = true;
        self
    }

    /// Sets how many connections calls are made on; 1 by default.
    ///
    /// One connection carries more decisions than a Redis server can make, at any distance. Use several if your network
    /// limits each stream, or if your server reads with more than one thread. Batches are smaller then.
    #[must_use]
    pub const fn connections(mut self, connections: NonZeroUsize) -> Self {
        self.connections = connections;
        self
    }

    /// Sets into how many parts the keys are divided, each of which one node of a cluster holds: 12 in a cluster by
    /// default, and 1 elsewhere. A cluster of more than six primaries is used evenly with several for each. All
    /// instances must agree, and a change of it starts nearly all counts afresh.
    ///
    /// Keys in one partition are decided on in one step. A policy that counts keys in several, such as a client and
    /// everyone, is decided on part by part, global limits last, and what was taken is refunded when a later part
    /// refuses: it never admits too many, and may for a moment admit too few. With 1 partition each policy is one
    /// step, and one node of the cluster does all the work.
    #[must_use]
    pub const fn partitions(mut self, partitions: NonZeroUsize) -> Self {
        self.partitions = Some(partitions);
        self
    }

    /// Sets how many failures in a row open the breaker; 5 by default.
    ///
    /// Calls that fail together count once, however many connections there are: a call counts if it began after the
    /// last one that counted had ended. So the breaker opens after this many deadlines of silence, a quarter
    /// of a second by default, and a pause of 70 ms never opens it. Decisions then fail at once, with
    /// [`BreakerOpen`](crate::RedisStoreError::BreakerOpen). After a pause of 50 to 100 ms, which doubles up to 400
    /// ms, one decision is sent; its answer closes the breaker. In a cluster each partition has a breaker of its own.
    #[must_use]
    pub const fn breaker(mut self, failures: NonZeroU32) -> Self {
        self.failures = failures;
        self
    }

    /// Sets the runtime that connections live on and calls are made on. By default connections live on the runtime of
    /// the first decision, or of the constructor, and end with it: the next decision makes another. A program that has
    /// a runtime for each of its threads names one that lasts and is never blocked, or makes a store for each. When a named
    /// runtime has ended, decisions fail at once.
    #[must_use]
    pub fn runtime(mut self, runtime: Handle) -> Self {
        self.runtime = Some(runtime);
        self
    }

    /// Trusts servers with these certificates, in PEM, instead of those that the system trusts. For `rediss://` URLs.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn root_certificates(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.certificates.roots = Some(pem.into());
        self
    }

    /// Identifies this client by a certificate and its key, in PEM. For `rediss://` URLs of servers that require one.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn client_certificate(mut self, pem: impl Into<Vec<u8>>, key: impl Into<Vec<u8>>) -> Self {
        self.certificates.client = Some((pem.into(), key.into()));
        self
    }

    /// Takes user and password from a provider, instead of the URL. Use it for tokens that end, such as those of cloud IAM.
    ///
    /// Each connection asks the provider when it is made, and again after three quarters of the lifetime. If the provider
    /// fails, a connection keeps its credentials and asks again after a second. Sentinels have the credentials of their
    /// URLs.
    ///
    /// ```no_run
    /// use std::time::Duration;
    /// use tower_quota_redis::{Credentials, RedisStore};
    ///
    /// # async fn token_of_cloud() -> Result<String, std::io::Error> { Ok(String::new()) }
    /// # async fn example() -> Result<(), tower_quota_redis::RedisStoreError> {
    /// let store = RedisStore::options()
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

    /// Sets the server's name in errors, instead of its host and port. A pool hides its server's address, so errors of a
    /// store on a pool say `the pool` by default.
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
            .field("secret", &self.secret.as_ref().map(|_| "..."))
            .field("readable_keys", &self.readable_keys)
            .field("clock", &self.clock)
            .field("server_name", &self.server_name)
            .field("lazy", &self.lazy)
            .field("connections", &self.connections)
            .field("partitions", &self.partitions)
            .field("breaker", &self.failures)
            .finish()
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
