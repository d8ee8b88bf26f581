//! Errors of a Redis store's configuration.

use core::error;
use std::sync::Arc;

use thiserror::Error;

/// Invalid configuration. The message names the value and how to fix it.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum RedisConfigError {
    /// A prefix other than 1 to 64 letters, digits or characters of `-_.:/`.
    #[error(
        "the key prefix {0:?} cannot be used: give 1 to 64 letters, digits or characters of \"-_.:/\""
    )]
    Prefix(String),
    /// A deadline of zero.
    #[error("a deadline of 0 fails every call: give at least a few milliseconds")]
    ZeroDeadline,
    /// A connect timeout of zero.
    #[error(
        "a connect timeout of 0 lets no connection be made: give at least a few hundred milliseconds"
    )]
    ZeroConnectTimeout,
    /// A secret of fewer than 16 bytes.
    #[error("a secret of {bytes} bytes can be guessed: give at least 16 random ones")]
    ShortSecret {
        /// The length that was given.
        bytes: usize,
    },
    /// An invalid URL.
    #[error("{url:?} is no Redis URL ({source}): give one like redis://user:password@host:6379/0")]
    Url {
        /// The URL, without user and password.
        url: String,
        /// The client's error.
        source: Arc<dyn error::Error + Send + Sync>,
    },
    /// A URL of sentinels without the name of a primary.
    #[error(
        "{url:?} names no primary: give one like redis+sentinel://host:26379,host:26379/mymaster"
    )]
    NoPrimary {
        /// The URL, without user and password.
        url: String,
    },
    /// A URL of several hosts with more than one user.
    #[error(
        "{url:?} names more than one user: give user and password once, before the first host, with %40 for an @"
    )]
    RepeatedUser {
        /// The URL, without users and passwords.
        url: String,
    },
    /// A URL whose user or password has an unencoded character.
    #[error(
        "{url:?} has an @ behind a /, ? or #: write %2F, %3F or %23 for these in a user or password, and %40 \
         for an @ elsewhere"
    )]
    Unencoded {
        /// The URL, without user and password.
        url: String,
    },
    /// A node of a cluster in the URL of a single server.
    ///
    /// The store would count some clients, and fail for all others.
    #[error(
        "{server} is a node of a cluster: connect by redis+cluster://{server} (rediss+cluster for TLS)"
    )]
    ClusterNode {
        /// The node.
        server: String,
    },
    /// A replica in the URL of a single server. Replicas count nothing.
    #[error(
        "{server} is a read-only replica: connect to its primary, or by redis+sentinel or redis+cluster"
    )]
    Replica {
        /// The replica.
        server: String,
    },
    /// A `rediss` URL without the feature `tls`.
    #[error("{url:?} is a URL for TLS: enable the feature \"tls\"")]
    NoTls {
        /// The URL, without user and password.
        url: String,
    },
    /// [`RedisStore::connection`](crate::RedisStore::connection) of a store on a pool, which hides its address.
    #[error("a pool does not say where its server is: connect the store by a URL")]
    PoolAddress,
}
