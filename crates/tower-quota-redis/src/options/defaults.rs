use super::RedisOptions;
use crate::error::RedisStoreError;
use crate::store::RedisStore;

impl RedisStore {
    /// Connects to the server at a URL such as `redis://user:password@host:6379/0`, with default options.
    ///
    /// # Errors
    /// Returns the errors of [`RedisOptions::connect`].
    pub async fn connect(url: &str) -> Result<Self, RedisStoreError> {
        Self::options().connect(url).await
    }

    /// Returns the default options.
    #[must_use]
    pub fn options() -> RedisOptions {
        RedisOptions::new()
    }
}
