//! Why a call failed.

use redis::{ErrorKind, RedisError};

/// The error of a call, with what it says about the charges.
#[derive(Debug)]
pub(crate) enum CallError {
    /// There was no connection to send it on. Nothing was charged.
    NotSent(RedisError),
    /// It was sent, and failed.
    Failed(RedisError),
}

impl CallError {
    /// Sorts an error that the client returned.
    pub(super) fn of_call(error: RedisError) -> Self {
        match error.kind() {
            // The client had no node to send it to.
            ErrorKind::ClusterConnectionNotFound => Self::NotSent(error),
            _ => Self::Failed(error),
        }
    }
}
