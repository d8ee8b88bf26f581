use redis::RedisError;
use thiserror::Error;

/// An invalid configuration. The message names the value and tells you how to fix it.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum RedisConfigError {
    /// The prefix is not 1 to 64 letters, digits or characters of `-_.:/`.
    #[error(
        "the key prefix {0:?} cannot be used: give 1 to 64 letters, digits or characters of \"-_.:/\""
    )]
    Prefix(String),
    /// The deadline is zero.
    #[error("a deadline of 0 fails every call: give at least a few milliseconds")]
    ZeroDeadline,
    /// The connect timeout is zero.
    #[error(
        "a connect timeout of 0 lets no connection be made: give at least a few hundred milliseconds"
    )]
    ZeroConnectTimeout,
    /// The secret has fewer than 16 bytes.
    #[error("a secret of {bytes} bytes can be guessed: give at least 16 random ones")]
    ShortSecret {
        /// The length of the secret.
        bytes: usize,
    },
    /// The URL is invalid.
    #[error("{url:?} is no Redis URL ({source}): give one like redis://user:password@host:6379/0")]
    Url {
        /// The scheme of the URL. The rest may have a password in any place.
        url: String,
        /// The error of the client.
        source: RedisError,
    },
    /// A certificate or its key is invalid.
    #[error("the certificates cannot be used ({source}): give certificates and key as PEM")]
    Certificate {
        /// The error of the client.
        source: RedisError,
    },
    /// The URL of sentinels lacks the name of a primary.
    #[error(
        "{url:?} names no primary: give one like redis+sentinel://host:26379,host:26379/mymaster"
    )]
    NoPrimary {
        /// The scheme of the URL. The rest may have a password in any place.
        url: String,
    },
    /// The URL of several hosts has more than one user.
    #[error(
        "{url:?} names more than one user: give user and password once, before the first host, with %40 for an @"
    )]
    RepeatedUser {
        /// The scheme of the URL. The rest may have a password in any place.
        url: String,
    },
    /// The user or password in the URL has an unencoded character.
    #[error(
        "{url:?} has an @ behind a /, ? or #: write %2F, %3F or %23 for these in a user or password, and %40 \
         for an @ elsewhere"
    )]
    Unencoded {
        /// The scheme of the URL. The rest may have a password in any place.
        url: String,
    },
    /// The URL of a single server leads to a node of a cluster.
    #[error(
        "{server} is a node of a cluster: connect by redis+cluster://{server} (rediss+cluster for TLS)"
    )]
    ClusterNode {
        /// The node.
        server: String,
    },
    /// The URL of a single server leads to a replica, which cannot count.
    #[error(
        "{server} is a read-only replica: connect to its primary, or by redis+sentinel or redis+cluster"
    )]
    Replica {
        /// The replica.
        server: String,
    },
    /// The URL begins with `rediss`, but the feature `tls` is off.
    #[error("{url:?} is a URL for TLS: enable the feature \"tls\"")]
    NoTls {
        /// The scheme of the URL. The rest may have a password in any place.
        url: String,
    },
    /// A store on a pool has no address for a [`locator`](crate::RedisStore::locator).
    #[error("a pool does not say where its server is: connect the store by a URL")]
    PoolAddress,
}
