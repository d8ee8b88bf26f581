//! What can go wrong with a Redis store.

use core::fmt;
use core::time::Duration;
use std::error::Error;
use std::sync::Arc;

use redis::{ErrorKind, RedisError, ServerErrorKind};

/// A call of a [`RedisStore`](crate::RedisStore) that came to nothing, or a store that could not be set up.
///
/// Every variant that concerns a server names it, as host and port. No text, and no `Debug` form, contains a password.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum RedisStoreError {
    /// An option that cannot mean anything.
    Config(RedisConfigError),
    /// There is no connection, and none can be made. Nothing was charged.
    Connect {
        /// The server.
        server: Arc<str>,
        /// Why.
        source: Arc<dyn Error + Send + Sync>,
    },
    /// The server has left so many calls in a row unanswered that it is not asked any more, until a probe finds it
    /// well. Nothing was charged.
    BreakerOpen {
        /// The server.
        server: Arc<str>,
    },
    /// No answer came in time. The charges may have been taken.
    Deadline {
        /// The server.
        server: Arc<str>,
        /// The time that was allowed.
        after: Duration,
    },
    /// The server answered with an error, such as `OOM`, `READONLY`, `NOPERM` or `LOADING`. Nothing was charged by a
    /// server that does not run the script, or is out of memory or may not write, which stops it at its first write. One
    /// that denies the script only some of the commands it writes with may stop it after another: then part of the
    /// charges may have been taken.
    Refused {
        /// The server.
        server: Arc<str>,
        /// Its words.
        source: Arc<dyn Error + Send + Sync>,
    },
    /// The cluster is moving the slot that the subjects are in, and not all of their keys are on one node. Calls about
    /// these subjects may fail until the slot has its new owner. Almost always nothing was charged: what needs a key that has
    /// left is stopped as it reads. Of a call that has other keys to write first, part of the charges may have been taken.
    Moving {
        /// The server.
        server: Arc<str>,
        /// Its words.
        source: Arc<dyn Error + Send + Sync>,
    },
    /// The connection was lost before the answer came. The charges may have been taken.
    Lost {
        /// The server.
        server: Arc<str>,
        /// How.
        source: Arc<dyn Error + Send + Sync>,
    },
    /// What is stored of a subject, or of a limit's quota, is none of this store's making. Nothing was charged.
    State {
        /// The server.
        server: Arc<str>,
    },
    /// A request with more charges than a call may carry. Nothing was charged.
    TooManyCharges {
        /// How many it has.
        charges: usize,
        /// How many it may have.
        most: usize,
    },
    /// The answer is not one that the script gives. The charges may have been taken.
    Garbled {
        /// The server.
        server: Arc<str>,
        /// What could not be read, when the client could not even read it as a Redis reply.
        source: Option<Arc<dyn Error + Send + Sync>>,
    },
}

/// An option of a Redis store that cannot mean anything. Its text names the value and the mend.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum RedisConfigError {
    /// A prefix that is empty, longer than 64 bytes, or has other characters than letters, digits and `-_.:/`.
    Prefix(String),
    /// A deadline of zero.
    ZeroDeadline,
    /// A secret of fewer than 16 bytes.
    ShortSecret {
        /// How many it has.
        bytes: usize,
    },
    /// A URL that is not one of a Redis server.
    Url {
        /// The URL, without user and password.
        url: String,
        /// What the client says of it.
        source: Arc<dyn Error + Send + Sync>,
    },
}

impl RedisStoreError {
    /// Whether the same call may succeed before long without anybody's doing: the server is away, busy, loading, full,
    /// changing roles or moving slots. The others need a change of configuration or of the program.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Config(_) | Self::Garbled { .. } | Self::State { .. } | Self::TooManyCharges { .. } => false,
            Self::BreakerOpen { .. } | Self::Deadline { .. } | Self::Lost { .. } | Self::Moving { .. } => true,
            Self::Connect { source, .. } | Self::Refused { source, .. } => {
                source.downcast_ref::<RedisError>().is_some_and(passes)
            }
        }
    }

    /// Sorts an error that a call brought back.
    pub(crate) fn of_call(server: &Arc<str>, error: RedisError) -> Self {
        let server = Arc::clone(server);
        match error.kind() {
            ErrorKind::Io | ErrorKind::ClusterConnectionNotFound => Self::Lost { server, source: Arc::new(error) },
            ErrorKind::Parse | ErrorKind::UnexpectedReturnType => {
                Self::Garbled { server, source: Some(Arc::new(error)) }
            }
            _ if is_of_a_moving_slot(&error) => Self::Moving { server, source: Arc::new(error) },
            _ => Self::Refused { server, source: Arc::new(error) },
        }
    }
}

/// Whether a node of a cluster says that it has not, or no longer, all keys of a slot.
fn is_of_a_moving_slot(error: &RedisError) -> bool {
    match error.kind() {
        ErrorKind::Server(ServerErrorKind::Ask | ServerErrorKind::Moved | ServerErrorKind::TryAgain) => true,
        // What a script gets that meets a key that has left. There is no code for it.
        _ => error.detail().is_some_and(|words| words.contains("access a non local key")),
    }
}

fn passes(error: &RedisError) -> bool {
    match error.kind() {
        // The last is what a failover looks like before all sentinels agree.
        ErrorKind::Io | ErrorKind::ClusterConnectionNotFound | ErrorKind::MasterNameNotFoundBySentinel => true,
        ErrorKind::Server(kind) => matches!(
            kind,
            ServerErrorKind::BusyLoading
                | ServerErrorKind::TryAgain
                | ServerErrorKind::Ask
                | ServerErrorKind::Moved
                | ServerErrorKind::ClusterDown
                | ServerErrorKind::MasterDown
                | ServerErrorKind::ReadOnly
        ),
        // Codes that the client has no kind for: out of memory, a script in the way, too few replicas, disk trouble.
        _ => matches!(error.code(), Some("OOM" | "BUSY" | "NOREPLICAS" | "MISCONF")),
    }
}

impl From<RedisConfigError> for RedisStoreError {
    fn from(error: RedisConfigError) -> Self {
        Self::Config(error)
    }
}

impl fmt::Display for RedisStoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(error) => error.fmt(f),
            Self::Connect { server, source } => write!(f, "no connection to Redis at {server}: {source}"),
            Self::BreakerOpen { server } => {
                write!(f, "Redis at {server} does not answer and is not asked for the moment")
            }
            Self::Deadline { server, after } => write!(f, "no answer from Redis at {server} within {after:?}"),
            Self::Refused { server, source } => write!(f, "Redis at {server} refused the call: {source}"),
            Self::Moving { server, source } => {
                write!(f, "the cluster at {server} is moving what the call is about: {source}")
            }
            Self::Lost { server, source } => write!(f, "the connection to Redis at {server} was lost: {source}"),
            Self::State { server } => {
                write!(f, "what Redis at {server} has stored makes no sense: is the prefix shared?")
            }
            Self::TooManyCharges { charges, most } => {
                write!(f, "{charges} charges are too many for one request: give at most {most}")
            }
            Self::Garbled { server, .. } => write!(f, "the answer from Redis at {server} makes no sense"),
        }
    }
}

impl Error for RedisStoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Config(error) => error.source(),
            Self::Connect { source, .. }
            | Self::Refused { source, .. }
            | Self::Moving { source, .. }
            | Self::Lost { source, .. } => Some(&**source),
            Self::Garbled { source, .. } => source.as_deref().map(|source| source as _),
            Self::BreakerOpen { .. } | Self::Deadline { .. } | Self::State { .. } | Self::TooManyCharges { .. } => None,
        }
    }
}

impl fmt::Display for RedisConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Prefix(prefix) => write!(
                f,
                "the key prefix {prefix:?} cannot be used: give 1 to 64 letters, digits or characters of \"-_.:/\""
            ),
            Self::ZeroDeadline => f.write_str("a deadline of 0 fails every call: give at least a few milliseconds"),
            Self::ShortSecret { bytes } => {
                write!(f, "a secret of {bytes} bytes can be guessed: give at least 16 random ones")
            }
            Self::Url { url, source } => {
                write!(f, "{url:?} is no Redis URL ({source}): give one like redis://user:password@host:6379/0")
            }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(reply: &str) -> RedisStoreError {
        let value = redis::parse_redis_value(format!("-{reply}\r\n").as_bytes()).unwrap();
        RedisStoreError::of_call(&"here".into(), value.extract_error().unwrap_err())
    }

    #[test]
    fn what_a_moving_slot_answers_is_told_from_a_refusal() {
        for reply in [
            "ASK 42 other:6379",
            "MOVED 42 other:6379",
            "TRYAGAIN Multiple keys request during rehashing of slot",
            "ERR Script attempted to access a non local key in a cluster node script: 1f, on @user_script:9.",
            "ERR Error running script: 9: Lua script attempted to access a non local key in a cluster node",
        ] {
            let error = sorted(reply);
            assert!(matches!(error, RedisStoreError::Moving { .. }) && error.is_transient(), "{error:?}");
        }
        for (reply, passes) in [("OOM command not allowed", true), ("ERR unknown command", false)] {
            let error = sorted(reply);
            assert!(matches!(error, RedisStoreError::Refused { .. }), "{error:?}");
            assert_eq!(error.is_transient(), passes, "{error:?}");
        }
    }

    #[test]
    fn a_server_that_is_not_found_may_be_found_later() {
        for kind in [ErrorKind::ClusterConnectionNotFound, ErrorKind::MasterNameNotFoundBySentinel] {
            let source = Arc::new(RedisError::from((kind, "not found")));
            assert!(RedisStoreError::Connect { server: "here".into(), source }.is_transient(), "{kind:?}");
        }
    }
}
