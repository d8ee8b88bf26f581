use core::num::NonZeroUsize;
use core::time::Duration;
use std::sync::{Arc, Mutex};

#[cfg(feature = "pool")]
use deadpool_redis::Pool;
use redis::{Client, ErrorKind, RedisResult};
use tokio::sync::Semaphore;

use super::RedisOptions;
use crate::batch::{Batcher, Caller};
use crate::breaker::Breaker;
use crate::config_error::RedisConfigError;
use crate::error::RedisStoreError;
use crate::keys::KeyNames;
use crate::link::{Link, LinkSettings, Servers};
use crate::location::Location;
use crate::store::RedisStore;

/// The number of senders. Two keep the server busy while the store reads a reply. Several
/// partitions need one each.
const SENDERS: usize = 2;
const SENDERS_OF_SEVERAL_PARTITIONS: usize = 1;
/// Two calls in flight to each of three nodes. With more slots, calls carry fewer decisions.
const SHARED_SLOTS: usize = 6;
/// The default in a cluster divides evenly among two, three, four and six nodes. With more
/// partitions, calls carry fewer decisions.
const CLUSTER_PARTITIONS: NonZeroUsize = NonZeroUsize::new(12).unwrap();

/// The longest deadline, which keeps sums with instants in range.
const LONGEST_DEADLINE: Duration = Duration::from_secs(24 * 60 * 60);

impl RedisOptions {
    /// Connects to the server, the primary of sentinels, or the cluster at a URL.
    ///
    /// ```text
    /// redis://user:password@host:6379/0
    /// redis+sentinel://user:password@host:26379,host:26379/user:password@mymaster/0
    /// redis+cluster://user:password@host:6379,host:6379
    /// ```
    ///
    /// In the second form, the first user and password belong to the sentinels. Write `rediss` for TLS.
    ///
    /// `connect` runs the script, and writes and deletes keys that live for a millisecond, so you learn of missing rights at
    /// start-up. These checks share the connect timeout. Transient errors, such as a full server, are ignored.
    ///
    /// # Errors
    /// * [`RedisStoreError::Config`] for a wrong URL or option, or for a node of a cluster or a replica in place of a
    ///   single server
    /// * [`RedisStoreError::Connect`] if the server is away, or refuses the password or database
    /// * [`RedisStoreError::Refused`] if the user may not run scripts or write
    pub async fn connect(self, url: &str) -> Result<RedisStore, RedisStoreError> {
        let location = Location::parse(url, &self.certificates)?;
        self.connected(location).await
    }

    /// Connects with the settings of your client.
    ///
    /// # Errors
    /// Returns the errors of [`connect`](Self::connect).
    pub async fn client(self, client: Client) -> Result<RedisStore, RedisStoreError> {
        self.connected(Location::server(client.get_connection_info().clone()))
            .await
    }

    /// Connects to the primary that sentinels know by a name.
    ///
    /// Give the URLs of the sentinels, with their own user and password. `primary` is a name, or a URL with the name as
    /// host, such as `redis://limiter:password@mymaster/2`.
    ///
    /// # Errors
    /// Returns the errors of [`connect`](Self::connect).
    pub async fn sentinel(
        self,
        sentinels: impl IntoIterator<Item = impl AsRef<str>>,
        primary: &str,
    ) -> Result<RedisStore, RedisStoreError> {
        let location = Location::sentinels(sentinels, primary, &self.certificates)?;
        self.connected(location).await
    }

    /// Connects to the cluster of the nodes at these URLs.
    ///
    /// Give several nodes with the same user and password, so that your service can start while a node is away.
    ///
    /// # Errors
    /// Returns the errors of [`connect`](Self::connect).
    pub async fn cluster(
        self,
        nodes: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Result<RedisStore, RedisStoreError> {
        let location = Location::cluster(nodes, &self.certificates)?;
        self.connected(location).await
    }

    /// Connects at the first request, with connections from your pool.
    ///
    /// Each call takes a connection and returns it, so the limits, timeouts and metrics of your pool include the calls.
    /// Calls wait while all connections are taken. The pool checks each connection with a round trip, so a URL is
    /// faster. Configure `TCP_NODELAY` in your pool.
    ///
    /// ```no_run
    /// use tower_quota_redis::RedisStore;
    ///
    /// let config = deadpool_redis::Config::from_url("redis://127.0.0.1:6379/");
    /// let pool = config.create_pool(Some(deadpool_redis::Runtime::Tokio1))?;
    /// let store = RedisStore::options().prefix("orders").pool(pool)?;
    /// # drop(store);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`RedisStoreError::Config`] for a wrong option.
    #[cfg(feature = "pool")]
    pub fn pool(self, pool: Pool) -> Result<RedisStore, RedisStoreError> {
        let location = Location::pool(pool);
        let links = self.links(&location)?;
        self.store(links, location)
    }

    fn links(&self, location: &Location) -> Result<Arc<[Link]>, RedisConfigError> {
        (0..self.connections.get())
            .map(|_| location.link(self.link_settings()))
            .collect()
    }

    fn link_settings(&self) -> LinkSettings {
        LinkSettings {
            connect_timeout: self.connect_timeout.max(self.deadline),
            runtime: self.runtime.clone(),
            credentials: self.credentials.clone(),
        }
    }

    fn name_of(&self, location: &Location) -> Arc<str> {
        self.server_name
            .as_ref()
            .unwrap_or(&location.name)
            .as_str()
            .into()
    }

    async fn connected(self, location: Location) -> Result<RedisStore, RedisStoreError> {
        let (is_lazy, timeout) = (self.lazy, self.connect_timeout);
        let is_one = matches!(location.servers, Servers::One(_));
        let is_tls = location.has_tls();
        let name = self.name_of(&location);
        let links = self.links(&location)?;
        let store = self.store(Arc::clone(&links), location)?;
        if is_lazy {
            // Connect in the background, so that the first request finds a connection if the server
            // is up.
            links.iter().for_each(Link::replace);
            return Ok(store);
        }
        let connect = async {
            for link in links.iter() {
                link.connect().await?;
            }
            RedisResult::Ok(store.probe().await)
        };
        let source = match tokio::time::timeout(timeout, connect).await {
            Ok(Ok(Err(error))) if error.is_read_only() && is_one => {
                let server = name.as_ref().to_owned();
                return Err(RedisConfigError::Replica { server }.into());
            }
            // Ignore a transient error, because your service should start without Redis.
            Ok(Ok(Err(error))) if !error.is_transient() => return Err(error),
            Ok(Ok(_)) => return Ok(store),
            Ok(Err(error)) => error,
            Err(_) if is_tls => {
                let unanswered = "no answer within the connect timeout; does the port expect TLS?";
                (ErrorKind::Io, unanswered).into()
            }
            Err(_) => (ErrorKind::Io, "no answer within the connect timeout").into(),
        };
        Err(RedisStoreError::Connect {
            server: name,
            source,
        })
    }

    fn store(self, links: Arc<[Link]>, location: Location) -> Result<RedisStore, RedisStoreError> {
        let deadline = self.deadline.min(LONGEST_DEADLINE);
        if deadline.is_zero() {
            return Err(RedisConfigError::ZeroDeadline.into());
        }
        if self.connect_timeout.is_zero() {
            return Err(RedisConfigError::ZeroConnectTimeout.into());
        }
        let partitions = self.partitions.unwrap_or(match location.servers {
            Servers::Cluster { .. } => CLUSTER_PARTITIONS,
            _ => NonZeroUsize::MIN,
        });
        let settings = self.link_settings();
        let keys = KeyNames::new(
            &self.prefix,
            self.secret.as_deref(),
            self.readable_keys,
            partitions,
        )?;
        let server = self.name_of(&location);
        let (senders, shared_slots) = if partitions.get() == 1 {
            (SENDERS, None)
        } else {
            let slots = Semaphore::new(links.len() * SHARED_SLOTS);
            (SENDERS_OF_SEVERAL_PARTITIONS, Some(Arc::new(slots)))
        };
        let batchers = (0..keys.partitions())
            .map(|partition| {
                let caller = Caller {
                    links: Arc::clone(&links),
                    partition_key: keys.partition_key(partition).into(),
                    deadline,
                    clock: self.clock.clone(),
                    server: Arc::clone(&server),
                    shared_slots: shared_slots.clone(),
                    settings: settings.clone(),
                    last_failure: Mutex::default(),
                };
                Batcher::new(
                    caller,
                    links.len() * senders,
                    keys.partitions(),
                    Breaker::new(self.failures, deadline),
                )
            })
            .collect();
        Ok(RedisStore::new(
            batchers, keys, deadline, server, location, settings,
        ))
    }
}
