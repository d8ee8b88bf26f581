use core::time::Duration;
use std::io;
use std::sync::Arc;

use redis::{ErrorKind, RedisError, ServerErrorKind};
use thiserror::Error;
use tower_quota_core::{Name, Overloaded, Undecidable};

use crate::config_error::RedisConfigError;

/// The error of a [`RedisStore`](crate::RedisStore).
///
/// The text names the server by host and port, and never contains a password. Unless a variant says otherwise, the
/// request was not charged. The source of a failed call is a [`redis::RedisError`].
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum RedisStoreError {
    /// The configuration is invalid.
    #[error(transparent)]
    Config(#[from] RedisConfigError),
    /// The store had no connection, so the decision was not sent.
    ///
    /// If an attempt to connect takes longer than the deadline, the source is the failure of the attempt before.
    /// The source is a broken pipe if the server has closed the new connection, for example at its `maxclients`.
    #[error("no connection to Redis at {server}: {}", words_of(source))]
    Connect {
        /// The server.
        server: Arc<str>,
        /// The cause.
        source: RedisError,
    },
    /// The breaker is open after too many failed calls, and the decision was not sent.
    #[error(
        "Redis at {server} is not asked for the moment, since: {}",
        words_of(source)
    )]
    BreakerOpen {
        /// The server.
        server: Arc<str>,
        /// The failure that opened the breaker.
        source: RedisError,
    },
    /// The server is overloaded, so the decision was not sent within the deadline.
    #[error(
        "the decision was not sent to Redis at {server} within {deadline:?}; nothing was charged"
    )]
    Overloaded {
        /// The server.
        server: Arc<str>,
        /// The deadline.
        deadline: Duration,
        /// The source that lets a layer count the request locally.
        source: Overloaded,
    },
    /// The server did not answer within the deadline. The request may have been charged.
    #[error("no answer from Redis at {server} within {after:?}")]
    Deadline {
        /// The server.
        server: Arc<str>,
        /// The deadline.
        after: Duration,
    },
    /// The server answered with an error, such as `OOM`, `READONLY`, `NOPERM` or `LOADING`.
    ///
    /// The request may have been charged if the user may call only some of the commands of the script.
    #[error("Redis at {server} refused the call: {}", words_of(source))]
    Refused {
        /// The server.
        server: Arc<str>,
        /// The cause.
        source: RedisError,
    },
    /// The cluster is moving the slot of the keys. Decisions succeed again when the move ends.
    #[error(
        "Redis at {server} is moving the keys of the call: {}",
        words_of(source)
    )]
    Moving {
        /// The server.
        server: Arc<str>,
        /// The cause.
        source: RedisError,
    },
    /// The connection was lost before the answer. The request may have been charged.
    #[error("the connection to Redis at {server} was lost: {source}")]
    Lost {
        /// The server.
        server: Arc<str>,
        /// The cause.
        source: RedisError,
    },
    /// The stored value of a client has another format.
    ///
    /// Delete the Redis key. Until then, your `on_store_failure` decides about the client.
    #[error(
        "what Redis at {server} has stored under one of {keys:?} makes no sense: is the prefix shared? \
         Delete the key to forget its client"
    )]
    State {
        /// The server.
        server: Arc<str>,
        /// The Redis keys of the request.
        keys: Vec<String>,
    },
    /// The request has too many charges.
    #[error("{charges} charges are too many for one request: give at most {most}")]
    TooManyCharges {
        /// The number of charges of the request.
        charges: usize,
        /// The maximum number of charges of a request.
        most: usize,
        /// The source that lets a layer refuse the request.
        source: Undecidable,
    },
    /// The request has concurrency limits on keys in different partitions of a cluster.
    ///
    /// The instant of a decision identifies its holds, and each partition has a clock of its own.
    #[error(
        "the concurrency limit {limit:?} is on another key than an earlier one, and a cluster holds units of one \
         key for a request: count both by one key, or give the store one partition"
    )]
    HoldsOfSeveralKeys {
        /// The limit on the second key.
        limit: Name,
        /// The source that lets a layer refuse the request.
        source: Undecidable,
    },
    /// The answer is unreadable. The request may have been charged.
    #[error("the answer from Redis at {server} makes no sense")]
    Garbled {
        /// The server.
        server: Arc<str>,
        /// The error of the client, if the answer is not a Redis reply.
        source: Option<RedisError>,
    },
    /// The store has been [closed](tower_quota_core::Store::close).
    #[error("the store has been closed")]
    Closed,
}

impl RedisStoreError {
    /// Returns whether the same decision may succeed soon without a change of configuration.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Config(_)
            | Self::Garbled { .. }
            | Self::State { .. }
            | Self::TooManyCharges { .. }
            | Self::HoldsOfSeveralKeys { .. }
            | Self::Closed => false,
            Self::BreakerOpen { .. }
            | Self::Overloaded { .. }
            | Self::Deadline { .. }
            | Self::Lost { .. }
            | Self::Moving { .. } => true,
            Self::Connect { source, .. } | Self::Refused { source, .. } => is_transient(source),
        }
    }

    pub(crate) fn is_read_only(&self) -> bool {
        matches!(self, Self::Refused { source, .. } if source.code() == Some("READONLY"))
    }

    pub(crate) fn is_unavailable(&self) -> bool {
        matches!(self, Self::Refused { source, .. } if matches!(source.code(), Some("BUSY" | "LOADING")))
    }

    pub(crate) fn not_written(server: &Arc<str>, words: &str) -> Self {
        let (code, detail) = words.split_once(' ').unwrap_or((words, ""));
        let source = redis::make_extension_error(code.to_owned(), Some(detail.to_owned()));
        Self::Refused {
            server: Arc::clone(server),
            source,
        }
    }

    /// Returns the cause of a failure that counts against the breaker.
    pub(crate) fn failure(&self) -> Option<RedisError> {
        match self {
            Self::Deadline { after, .. } => Some(unanswered(*after)),
            Self::Connect { source, .. } | Self::Lost { source, .. } => Some(source.clone()),
            Self::Refused { source, .. } if self.is_unavailable() => Some(source.clone()),
            _ => None,
        }
    }

    pub(crate) fn of_call(server: &Arc<str>, source: RedisError) -> Self {
        let server = Arc::clone(server);
        match source.kind() {
            ErrorKind::Io | ErrorKind::ClusterConnectionNotFound => Self::Lost { server, source },
            ErrorKind::Parse | ErrorKind::UnexpectedReturnType => Self::Garbled {
                server,
                source: Some(source),
            },
            _ if is_slot_moving(&source) => Self::Moving { server, source },
            _ => Self::Refused { server, source },
        }
    }
}

pub(crate) fn unanswered(within: Duration) -> RedisError {
    let text = format!("no answer within {within:?}");
    io::Error::new(io::ErrorKind::TimedOut, text).into()
}

fn words_of(error: &RedisError) -> String {
    match (error.code(), error.detail()) {
        (Some(code), Some(detail)) => format!("{code} {detail}"),
        _ => error.to_string(),
    }
}

fn is_slot_moving(error: &RedisError) -> bool {
    match error.kind() {
        ErrorKind::Server(ServerErrorKind::Ask | ServerErrorKind::TryAgain) => true,
        // The error of a script has no code, so search the text.
        _ => error
            .detail()
            .is_some_and(|text| text.contains("access a non local key")),
    }
}

fn is_transient(error: &RedisError) -> bool {
    match error.kind() {
        // Sentinels may not know the primary during a failover, so treat the error as transient.
        ErrorKind::Io
        | ErrorKind::ClusterConnectionNotFound
        | ErrorKind::MasterNameNotFoundBySentinel => true,
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
        // The client has no kinds for these codes, so compare the texts.
        _ => matches!(
            error.code(),
            Some("OOM" | "BUSY" | "NOREPLICAS" | "MISCONF" | "READONLY")
        ),
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
    fn errors_of_moving_slots_are_moving() {
        for reply in [
            "ASK 42 other:6379",
            "TRYAGAIN Multiple keys request during rehashing of slot",
            "ERR Script attempted to access a non local key in a cluster node script: 1f, on @user_script:9.",
            "ERR Error running script: 9: Lua script attempted to access a non local key in a cluster node",
        ] {
            let error = sorted(reply);
            assert!(
                matches!(error, RedisStoreError::Moving { .. }) && error.is_transient(),
                "{error:?}"
            );
            let text = error.to_string();
            assert!(text.starts_with("Redis at here is moving"), "{text}");
        }
        for (reply, is_transient) in [
            ("OOM command not allowed", true),
            ("ERR unknown command", false),
        ] {
            let error = sorted(reply);
            assert!(
                matches!(error, RedisStoreError::Refused { .. }),
                "{error:?}"
            );
            assert_eq!(error.is_transient(), is_transient, "{error:?}");
        }
    }

    #[test]
    fn missing_server_is_a_transient_error() {
        for kind in [
            ErrorKind::ClusterConnectionNotFound,
            ErrorKind::MasterNameNotFoundBySentinel,
        ] {
            let source = RedisError::from((kind, "not found"));
            assert!(
                RedisStoreError::Connect {
                    server: "here".into(),
                    source
                }
                .is_transient(),
                "{kind:?}"
            );
        }
    }
}
