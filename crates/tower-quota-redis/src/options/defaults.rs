//! Stores with the default options.

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

    /// Returns the default options: prefix `quota`, a deadline of 50 ms, hashed keys without a secret, the server's
    /// clock.
    #[must_use]
    pub fn options() -> RedisOptions {
        RedisOptions::new()
    }
}
