//! Stores with the default options.

use deadpool_redis::Pool;
use redis::Client;

use super::RedisOptions;
use crate::error::RedisStoreError;
use crate::store::RedisStore;

impl RedisStore {
    /// Connects to the server at a URL, with the default options.
    ///
    /// A URL is `redis://user:password@host:6379/0`, for example.
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

    /// Returns the default options: prefix `quota`, a deadline of 50 ms, hashed keys without a secret, the server's
    /// clock.
    #[must_use]
    pub fn options() -> RedisOptions {
        RedisOptions::new()
    }
}
