//! What can be chosen about a Redis store.

mod connect;

use core::fmt;
use core::num::{NonZeroU32, NonZeroUsize};
use core::time::Duration;
use std::sync::Arc;

use tower_quota_core::Clock;

use crate::breaker;
use crate::store::RedisStore;

/// Choices for a [`RedisStore`], made before it is connected. [`RedisStore::options`] has the defaults.
///
/// All instances that should share their counters must agree on the prefix, the secret and whether keys are readable.
#[derive(Clone)]
pub struct RedisOptions {
    prefix: String,
    deadline: Duration,
    secret: Option<Vec<u8>>,
    readable_keys: bool,
    clock: Option<Arc<dyn Clock>>,
    server_name: Option<String>,
    lazy: bool,
    connections: NonZeroUsize,
    partitions: Option<NonZeroUsize>,
    failures: NonZeroU32,
    trust: Option<Vec<u8>>,
}

impl RedisOptions {
    pub(crate) fn new() -> Self {
        Self {
            prefix: "quota".to_owned(),
            deadline: RedisStore::DEFAULT_DEADLINE,
            secret: None,
            readable_keys: false,
            clock: None,
            server_name: None,
            lazy: false,
            connections: NonZeroUsize::MIN,
            partitions: None,
            failures: breaker::FAILURES,
            trust: None,
        }
    }

    /// What every key in Redis begins with; `tower-quota` unless told otherwise. 1 to 64 letters, digits or characters of
    /// `-_.:/`. Stores with different prefixes share nothing.
    #[must_use]
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// The longest a call may take, waiting for a connection included; 50 ms unless told otherwise. It also bounds how
    /// long the constructors wait for the first connection.
    #[must_use]
    pub const fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// The secret under which keys are hashed before they are stored: at least 16 random bytes, the same on all
    /// instances. Whoever can read Redis cannot tell, without it, whether a given client is among those counted.
    ///
    /// Left out, the hash depends on the prefix alone. That is no secret: somebody who reads the keys can find out which
    /// of a list of addresses they stand for, and a client who may choose his own key can search for one that shares
    /// another's counter, at a cost of about 2^64 hashes for any two and 2^128 for a given one.
    #[must_use]
    pub fn secret(mut self, secret: impl AsRef<[u8]>) -> Self {
        self.secret = Some(secret.as_ref().to_vec());
        self
    }

    /// Stores keys under readable names instead of hashes, to debug with: addresses and user names can then be read in
    /// Redis. Keys of more than 128 characters are hashed all the same.
    #[must_use]
    pub const fn readable_keys(mut self, readable: bool) -> Self {
        self.readable_keys = readable;
        self
    }

    /// Decides at the instants of this clock instead of the server's. For tests that move time by hand: instances with
    /// clocks of their own disagree about what is left. Keys written under such a clock live for at least a minute of
    /// the server's.
    #[must_use]
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Some(Arc::new(clock));
        self
    }

    /// Has the constructors return without waiting for the server: it is connected to in the background, and a service
    /// can start while it is away. Wrong URLs and options are errors all the same. Requests that come before there is a
    /// connection wait for one up to the deadline, and then their limits say what becomes of them, as when a server
    /// goes away later. A wrong password or an unknown database is an error of each request too.
    #[must_use]
    pub const fn connect_lazily(mut self) -> Self {
        self.lazy = true;
        self
    }

    /// How many connections decisions travel on; 1 unless told otherwise. One carries more decisions than a Redis server
    /// takes; several help where a network limits each stream, or where the server reads with more than one thread.
    #[must_use]
    pub const fn connections(mut self, connections: NonZeroUsize) -> Self {
        self.connections = connections;
        self
    }

    /// How many parts the subjects are shared out into, each of which one node of a cluster holds: 64 in a cluster unless
    /// told otherwise, and 1 elsewhere. All instances must agree, and a change of it starts all counts afresh.
    ///
    /// Subjects in one partition are decided on in one step. A policy that counts subjects in several, such as a client
    /// and everyone, is decided on subject by subject, those that stand for everyone last, and what was taken is given
    /// back when a later one refuses: it never admits too many, and may for a moment admit too few. With 1 partition each
    /// policy is one step, and one node of the cluster does all the work.
    #[must_use]
    pub const fn partitions(mut self, partitions: NonZeroUsize) -> Self {
        self.partitions = Some(partitions);
        self
    }

    /// After how many calls in a row without an answer the server is not asked any more; 5 unless told otherwise. Calls
    /// then fail at once, with [`BreakerOpen`](crate::RedisStoreError::BreakerOpen), while about every 100 ms one `PING` looks
    /// whether it is well again. In a cluster each partition has a breaker of its own, so that one dead primary leaves
    /// the others alone.
    #[must_use]
    pub const fn breaker(mut self, failures: NonZeroU32) -> Self {
        self.failures = failures;
        self
    }

    /// Trusts servers with these certificates, in PEM, instead of those that the system trusts. For `rediss://` URLs.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn root_certificates(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.trust = Some(pem.into());
        self
    }

    /// What errors call the server, instead of its host and port. A pool does not tell whom it connects to, so errors
    /// of a store on a pool say `the pool` unless this is given.
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
    fn options_are_shown_without_the_secret() {
        let shown = format!("{:?}", RedisStore::options().secret("0123456789abcdef"));
        assert!(shown.contains("\"quota\"") && !shown.contains("0123") && !shown.contains("48, 49"), "{shown}");
    }
}
