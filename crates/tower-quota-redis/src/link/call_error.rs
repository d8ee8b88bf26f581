//! Errors of calls.

use redis::{ErrorKind, RedisError, ServerErrorKind};

/// The error of a call, with what it says about the charges.
#[derive(Debug)]
pub(crate) enum CallError {
    /// There was no connection to its server. Nothing was charged.
    NotSent(RedisError),
    /// The call was sent, and failed.
    Failed(RedisError),
}

impl CallError {
    /// Returns the client's error.
    pub(crate) fn into_inner(self) -> RedisError {
        let (Self::NotSent(error) | Self::Failed(error)) = self;
        error
    }

    /// Sorts an error that the client returned.
    pub(super) fn of_call(error: RedisError) -> Self {
        match error.kind() {
            // The client had no node to send it to, or the nodes it reached are not the owner and have not run it.
            ErrorKind::ClusterConnectionNotFound | ErrorKind::Server(ServerErrorKind::Moved) => {
                Self::NotSent(error)
            }
            _ => Self::Failed(error),
        }
    }
}
