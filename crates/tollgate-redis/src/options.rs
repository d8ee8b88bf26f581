//! What can be chosen about a Redis store.

use core::fmt;
use core::num::NonZeroUsize;
use core::time::Duration;
use std::sync::Arc;

use deadpool_redis::Pool;
use redis::{Client, RedisError};
use tollgate_core::Clock;

use crate::batch::{Batcher, Caller};
use crate::error::{RedisConfigError, RedisStoreError};
use crate::keys::KeyNames;
use crate::link::Link;
use crate::store::RedisStore;

/// How long a connection may take to come about in the background. A deadline is often shorter than a handshake.
const CONNECT_PATIENCE: Duration = Duration::from_secs(1);

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
    connections: NonZeroUsize,
}

impl RedisOptions {
    pub(crate) fn new() -> Self {
        Self {
            prefix: "tollgate".to_owned(),
            deadline: RedisStore::DEFAULT_DEADLINE,
            secret: None,
            readable_keys: false,
            clock: None,
            server_name: None,
            connections: NonZeroUsize::MIN,
        }
    }

    /// What every key in Redis begins with; `tollgate` unless told otherwise. 1 to 64 letters, digits or characters of
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

    /// How many connections decisions travel on; 1 unless told otherwise. One carries more decisions than a Redis server
    /// takes; several help where a network limits each stream, or where the server reads with more than one thread.
    #[must_use]
    pub const fn connections(mut self, connections: NonZeroUsize) -> Self {
        self.connections = connections;
        self
    }

    /// What errors call the server, instead of its host and port. A pool does not tell whom it connects to, so errors
    /// of a store on a pool say `the pool` unless this is given.
    #[must_use]
    pub fn server_name(mut self, name: impl Into<String>) -> Self {
        self.server_name = Some(name.into());
        self
    }

    /// Connects to the server at a URL such as `redis://user:password@host:6379/0`.
    ///
    /// # Errors
    /// [`RedisStoreError::Config`] for a wrong URL or option; [`RedisStoreError::Connect`] when the server is away,
    /// knows no such database or does not accept the password; [`RedisStoreError::Deadline`] when it does not answer.
    pub async fn connect(self, url: &str) -> Result<RedisStore, RedisStoreError> {
        let client = Client::open(url)
            .map_err(|error| RedisConfigError::Url { url: without_credentials(url), source: Arc::new(error) })?;
        self.client(client).await
    }

    /// Connects with a client, which may know things that a URL cannot say. Of its settings only `TCP_NODELAY` is
    /// changed: it is switched on.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub async fn client(self, client: Client) -> Result<RedisStore, RedisStoreError> {
        let server = client.get_connection_info().addr().to_string();
        let patience = CONNECT_PATIENCE.max(self.deadline);
        let links: Result<Vec<Link>, RedisError> =
            (0..self.connections.get()).map(|_| Link::to(&client, patience)).collect();
        let links = links.map_err(|error| RedisConfigError::Url { url: server.clone(), source: Arc::new(error) })?;
        let store = self.store(links, server)?;
        store.connected().await?;
        Ok(store)
    }

    /// Takes connections from a pool. None is made before the first request.
    ///
    /// A connection is checked out once, kept while it works, and replaced by another from the pool when it fails. So the
    /// `PING` with which a pool hands one out is not paid for by each decision; and the pool must have one connection to
    /// spare, or as many as [`connections`](Self::connections) says. Whether they use `TCP_NODELAY` is up to the pool's
    /// configuration; they should.
    ///
    /// # Errors
    /// [`RedisStoreError::Config`] for a wrong option.
    pub fn pool(self, pool: Pool) -> Result<RedisStore, RedisStoreError> {
        let links = (0..self.connections.get()).map(|_| Link::pool(pool.clone())).collect();
        self.store(links, "the pool".to_owned())
    }

    fn store(self, links: Vec<Link>, server: String) -> Result<RedisStore, RedisStoreError> {
        if self.deadline.is_zero() {
            return Err(RedisConfigError::ZeroDeadline.into());
        }
        let keys = KeyNames::new(&self.prefix, self.secret.as_deref(), self.readable_keys)?;
        let server: Arc<str> = self.server_name.unwrap_or(server).into();
        let batcher = Batcher::new(Caller {
            links,
            quotas_key: keys.quotas(0).to_owned(),
            id_width: keys.id_width(),
            deadline: self.deadline,
            clock: self.clock,
            server: Arc::clone(&server),
        });
        Ok(RedisStore::new(batcher, keys, self.deadline, server))
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
            .field("connections", &self.connections)
            .finish()
    }
}

/// A URL as it may be shown: what stands before the last `@`, up to the scheme, may be a password.
fn without_credentials(url: &str) -> String {
    match url.rsplit_once('@') {
        None => url.to_owned(),
        Some((before, rest)) => match before.split_once("://") {
            Some((scheme, _)) => format!("{scheme}://...@{rest}"),
            None => format!("...@{rest}"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_shown_without_credentials() {
        assert_eq!(without_credentials("redis://host:1/0"), "redis://host:1/0");
        assert_eq!(without_credentials("redis://:pa@ss@host"), "redis://...@host");
        assert_eq!(without_credentials("user:pass@host"), "...@host");
    }

    #[test]
    fn options_are_shown_without_the_secret() {
        let shown = format!("{:?}", RedisStore::options().secret("0123456789abcdef"));
        assert!(shown.contains("tollgate") && !shown.contains("0123") && !shown.contains("48, 49"), "{shown}");
    }
}
