//! Ways to connect a store with the options chosen.

use core::num::NonZeroUsize;
use core::time::Duration;
use std::sync::Arc;

use deadpool_redis::Pool;
use redis::{Client, ConnectionInfo, RedisError};

use super::RedisOptions;
use crate::batch::{Batcher, Caller};
use crate::error::{RedisConfigError, RedisStoreError};
use crate::health::Health;
use crate::keys::KeyNames;
use crate::link::{self, Link};
use crate::store::RedisStore;

/// How long a connection may take to come about in the background. A deadline is often shorter than a handshake; and as
/// long as one attempt takes, no other is made, so this also delays recovery from a network that swallows packets.
const CONNECT_PATIENCE: Duration = Duration::from_millis(500);
/// The same for each node of a cluster. All are waited for, also those that have fallen silent and still count as nodes.
const CLUSTER_PATIENCE: Duration = Duration::from_millis(200);
/// Enough to spread evenly over any number of nodes that a limiter needs, few enough that batches fill.
const CLUSTER_PARTITIONS: NonZeroUsize = NonZeroUsize::new(64).unwrap();

impl RedisOptions {
    /// Connects to the server at a URL such as `redis://user:password@host:6379/0`.
    ///
    /// # Errors
    /// [`RedisStoreError::Config`] for a wrong URL or option; [`RedisStoreError::Connect`] when the server is away,
    /// knows no such database or does not accept the password; [`RedisStoreError::Deadline`] when it does not answer.
    pub async fn connect(self, url: &str) -> Result<RedisStore, RedisStoreError> {
        let client = Client::open(self.address(url)?).map_err(|error| wrong(url, error))?;
        self.client(client).await
    }

    /// Connects with a client, which may know things that a URL cannot say. Of its settings only `TCP_NODELAY` is
    /// changed: it is switched on.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub async fn client(self, client: Client) -> Result<RedisStore, RedisStoreError> {
        let server = client.get_connection_info().addr().to_string();
        let patience = self.patience(CONNECT_PATIENCE);
        let links = self.links(|| Link::to(&client, patience)).map_err(|error| wrong(&server, error))?;
        self.connected(links, server, NonZeroUsize::MIN).await
    }

    /// Connects to the primary that sentinels know by a name. The URLs are those of the sentinels, with their own user
    /// and password. `primary` is the name alone, or a URL with the name in the place of the host, for user, password,
    /// database, TLS or protocol: `redis://limiter:password@mymaster/2`.
    ///
    /// The sentinels are asked again whenever the connection is lost or in doubt, or leads to a server that has become a
    /// replica.
    ///
    /// # Errors
    /// As [`connect`](Self::connect); [`RedisStoreError::Connect`] also when no sentinel answers or knows the name.
    pub async fn sentinel(
        self,
        sentinels: impl IntoIterator<Item = impl AsRef<str>>,
        primary: &str,
    ) -> Result<RedisStore, RedisStoreError> {
        let primary = if primary.contains("://") { primary.to_owned() } else { format!("redis://{primary}/") };
        let server = without_credentials(&primary);
        let (sentinels, primary) = (self.addresses(sentinels)?, self.address(&primary)?);
        let patience = self.patience(CONNECT_PATIENCE);
        let links = self
            .links(|| Link::through(sentinels.clone(), primary.clone(), patience))
            .map_err(|error| wrong(&server, error))?;
        self.connected(links, server, NonZeroUsize::MIN).await
    }

    /// Connects to the cluster that the nodes at these URLs belong to. Give several: those that are away are passed over.
    /// User, password, TLS and protocol must be the same in all.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub async fn cluster(
        self,
        nodes: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Result<RedisStore, RedisStoreError> {
        let nodes = self.addresses(nodes)?;
        let names: Vec<String> = nodes.iter().map(|node| node.addr().to_string()).collect();
        let server = format!("the cluster of {}", names.join(", "));
        let patience = self.patience(CLUSTER_PATIENCE);
        let links = self
            .links(|| Link::cluster(nodes.clone(), self.trust.clone(), patience))
            .map_err(|error| wrong(&server, error))?;
        self.connected(links, server, CLUSTER_PARTITIONS).await
    }

    /// Takes connections from a pool. None is made before the first request.
    ///
    /// A connection is checked out once, kept while it works, and replaced by another from the pool when it fails. So the
    /// `PING` with which a pool hands one out is not paid for by each decision; and the pool must have one connection to
    /// spare, or as many as [`connections`](Self::connections) says. One that is handed out is waited for in the
    /// background, for half a second or the deadline if that is longer, as is one that the other ways connect. Whether they use `TCP_NODELAY` is up to the pool's
    /// configuration; they should.
    ///
    /// # Errors
    /// [`RedisStoreError::Config`] for a wrong option.
    pub fn pool(self, pool: Pool) -> Result<RedisStore, RedisStoreError> {
        let patience = self.patience(CONNECT_PATIENCE);
        let links = (0..self.connections.get()).map(|_| Link::pool(pool.clone(), patience)).collect();
        self.store(links, "the pool".to_owned(), NonZeroUsize::MIN)
    }

    fn addresses(
        &self,
        urls: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Result<Vec<ConnectionInfo>, RedisConfigError> {
        urls.into_iter().map(|url| self.address(url.as_ref())).collect()
    }

    fn address(&self, url: &str) -> Result<ConnectionInfo, RedisConfigError> {
        link::address(url, self.trust.as_deref()).map_err(|error| wrong(url, error))
    }

    fn patience(&self, least: Duration) -> Duration {
        least.max(self.deadline)
    }

    fn links(&self, link: impl Fn() -> Result<Link, RedisError>) -> Result<Vec<Link>, RedisError> {
        (0..self.connections.get()).map(|_| link()).collect()
    }

    async fn connected(
        self,
        links: Vec<Link>,
        server: String,
        partitions: NonZeroUsize,
    ) -> Result<RedisStore, RedisStoreError> {
        let is_lazy = self.lazy;
        let store = self.store(links.clone(), server, partitions)?;
        if is_lazy {
            // Begins to connect, so that the first request finds a connection if there is one to be had.
            links.iter().for_each(Link::renew);
        } else {
            store.connected().await?;
        }
        Ok(store)
    }

    fn store(self, links: Vec<Link>, server: String, partitions: NonZeroUsize) -> Result<RedisStore, RedisStoreError> {
        if self.deadline.is_zero() {
            return Err(RedisConfigError::ZeroDeadline.into());
        }
        let partitions = self.partitions.unwrap_or(partitions);
        let keys = KeyNames::new(&self.prefix, self.secret.as_deref(), self.readable_keys, partitions)?;
        let server: Arc<str> = self.server_name.unwrap_or(server).into();
        let batchers = (0..keys.partitions())
            .map(|partition| {
                let key = keys.partition_key(partition);
                Batcher::new(Caller {
                    links: links.clone(),
                    health: Health::new(self.failures, links.clone(), key.to_owned(), self.deadline),
                    partition_key: key.to_owned(),
                    deadline: self.deadline,
                    clock: self.clock.clone(),
                    server: Arc::clone(&server),
                })
            })
            .collect();
        Ok(RedisStore::new(batchers, keys, self.deadline, server))
    }
}

fn wrong(url: &str, error: RedisError) -> RedisConfigError {
    RedisConfigError::Url { url: without_credentials(url), source: Arc::new(error) }
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
}
