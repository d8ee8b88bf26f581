use core::fmt;
use std::sync::Arc;

use redis::{ConnectionInfo, RedisResult};

use crate::config_error::RedisConfigError;
use crate::link::{Certificates, Link, LinkSettings};
use crate::location::Location;

/// Finds the server of a key, for your own connections to the Redis of a store.
///
/// [`RedisStore::locator`](crate::RedisStore::locator) uses the servers and certificates of a store.
#[derive(Clone)]
pub struct RedisLocator {
    link: Link,
    server: Arc<str>,
}

impl RedisLocator {
    /// Creates a locator from a URL of [`RedisOptions::connect`](crate::RedisOptions::connect).
    ///
    /// # Errors
    /// Returns [`RedisConfigError::Url`] for an invalid URL.
    pub fn new(url: &str) -> Result<Self, RedisConfigError> {
        let location = Location::parse(url, &Certificates::default())?;
        let settings = LinkSettings {
            connect_timeout: LinkSettings::CONNECT_TIMEOUT,
            runtime: None,
            credentials: None,
        };
        Self::to(&location, settings, location.name.as_str().into())
    }

    pub(crate) fn to(
        location: &Location,
        settings: LinkSettings,
        server: Arc<str>,
    ) -> Result<Self, RedisConfigError> {
        Ok(Self {
            link: location.link(settings)?,
            server,
        })
    }

    /// Returns the host and port of the server, or the name of the sentinels or the cluster.
    #[must_use]
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Returns the address and the settings of the server that owns a key.
    ///
    /// Under sentinels this is the present primary. Locate the server again if a connection is lost, or if the server
    /// answers with `MOVED` or `READONLY`.
    ///
    /// # Errors
    /// Returns the error of the client, or an error if the servers do not answer within a timeout. A locator of a store
    /// uses [`RedisOptions::connect_timeout`](crate::RedisOptions::connect_timeout), and any other locator five seconds.
    /// The credentials of a store have the same timeout.
    pub async fn locate(&self, key: &str) -> RedisResult<ConnectionInfo> {
        self.link.locate(key).await
    }
}

impl fmt::Debug for RedisLocator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisLocator")
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}
