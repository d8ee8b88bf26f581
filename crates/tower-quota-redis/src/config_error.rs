//! Errors of a Redis store's configuration.

use core::fmt;
use std::error::Error;
use std::sync::Arc;

/// Invalid configuration. The message names the value and how to fix it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum RedisConfigError {
    /// A prefix that is not 1 to 64 letters, digits or characters of `-_.:/`.
    Prefix(String),
    /// A deadline of zero.
    ZeroDeadline,
    /// A connect timeout of zero.
    ZeroConnectTimeout,
    /// A secret of fewer than 16 bytes.
    ShortSecret {
        /// The length that was given.
        bytes: usize,
    },
    /// A URL that is not one of a Redis server.
    Url {
        /// The URL, without user and password.
        url: String,
        /// The client's error.
        source: Arc<dyn Error + Send + Sync>,
    },
    /// A URL of sentinels without the name of a primary.
    NoPrimary {
        /// The URL, without user and password.
        url: String,
    },
    /// A URL of several hosts with more than one user.
    RepeatedUser {
        /// The URL, without users and passwords.
        url: String,
    },
    /// A URL whose user or password has a character that ends it: the rest would be taken for settings.
    Unencoded {
        /// The URL, without user and password.
        url: String,
    },
    /// A node of a cluster in the URL of a single server.
    ///
    /// The store would count some clients, and fail for all others.
    ClusterNode {
        /// The node.
        server: String,
    },
    /// A replica in the URL of a single server. Replicas count nothing.
    Replica {
        /// The replica.
        server: String,
    },
    /// A `rediss` URL without the feature `tls`.
    NoTls {
        /// The URL, without user and password.
        url: String,
    },
    /// A connection beside a store on a pool, which does not say where its server is.
    PoolAddress,
}

impl fmt::Display for RedisConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Prefix(prefix) => write!(
                f,
                "the key prefix {prefix:?} cannot be used: give 1 to 64 letters, digits or characters of \"-_.:/\""
            ),
            Self::ZeroDeadline => f.write_str("a deadline of 0 fails every call: give at least a few milliseconds"),
            Self::ZeroConnectTimeout => f.write_str(
                "a connect timeout of 0 lets no connection be made: give at least a few hundred milliseconds",
            ),
            Self::ShortSecret { bytes } => {
                write!(f, "a secret of {bytes} bytes can be guessed: give at least 16 random ones")
            }
            Self::Url { url, source } => {
                write!(f, "{url:?} is no Redis URL ({source}): give one like redis://user:password@host:6379/0")
            }
            Self::NoPrimary { url } => {
                write!(f, "{url:?} names no primary: give one like redis+sentinel://host:26379,host:26379/mymaster")
            }
            Self::RepeatedUser { url } => write!(
                f,
                "{url:?} names more than one user: give user and password once, before the first host, with %40 for an @"
            ),
            Self::Unencoded { url } => {
                write!(
                    f,
                    "{url:?} has an @ behind a /, ? or #: write %2F, %3F or %23 for these in a user or password, and %40 \
                 for an @ elsewhere"
                )
            }
            Self::ClusterNode { server } => write!(
                f,
                "{server} is a node of a cluster: connect by redis+cluster://{server} (rediss+cluster for TLS)"
            ),
            Self::Replica { server } => write!(
                f,
                "{server} is a read-only replica: connect to its primary, or by redis+sentinel or redis+cluster"
            ),
            Self::NoTls { url } => {
                write!(f, "{url:?} is a URL for TLS: enable the feature \"tls\"")
            }
            Self::PoolAddress => f.write_str("a pool does not say where its server is: connect the store by a URL"),
        }
    }
}

impl Error for RedisConfigError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Url { source, .. } => Some(&**source),
            _ => None,
        }
    }
}
