use redis::{ErrorKind, RedisError, ServerErrorKind};

#[derive(Debug)]
pub(crate) enum CallError {
    /// The server cannot have run the call.
    NotSent(RedisError),
    /// The server may have run the call.
    Failed(RedisError),
}

impl CallError {
    pub(super) fn of_call(error: RedisError) -> Self {
        match error.kind() {
            // The client knew no node, or reached only nodes that do not own the slot.
            ErrorKind::ClusterConnectionNotFound | ErrorKind::Server(ServerErrorKind::Moved) => {
                Self::NotSent(error)
            }
            _ => Self::Failed(error),
        }
    }
}
