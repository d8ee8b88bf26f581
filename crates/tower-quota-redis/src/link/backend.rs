//! The interface of a kind of server to [`Reconnecting`](super::reconnecting::Reconnecting).

use core::future::Future;

use redis::aio::PubSub;
use redis::{ErrorKind, RedisError, RedisResult, ServerErrorKind, Value};

use super::request::LinkRequest;

/// A kind of server, and how to connect to it.
pub(crate) trait Backend: Send + Sync + 'static {
    /// The connection that calls are sent on.
    type Connection: LinkConnection;

    /// Calls in a row without an answer that put a connection in doubt.
    const DOUBTED_AFTER: u32 = 3;

    /// Makes a connection within the connect timeout.
    fn dial(&self) -> impl Future<Output = RedisResult<Self::Connection>> + Send;

    /// Makes a connection to replace one in doubt. Returns `None` to keep the old one.
    fn replace(
        &self,
        doubtful: Self::Connection,
    ) -> impl Future<Output = RedisResult<Option<Self::Connection>>> + Send {
        drop(doubtful);
        async { self.dial().await.map(Some) }
    }

    /// Makes a connection for announcements.
    fn subscriber(&self) -> impl Future<Output = RedisResult<PubSub>> + Send;

    /// Returns what an error of a call says about the connection.
    fn verdict(error: &RedisError) -> Verdict {
        if error.is_io_error() || error.is_unrecoverable_error() {
            Verdict::Drop
        } else if error.kind() == ErrorKind::Server(ServerErrorKind::ReadOnly) {
            // The server has become a replica. Its name may lead to the new primary now.
            Verdict::Replace
        } else {
            Verdict::Keep
        }
    }
}

/// A connection that calls share. Its clones are the same connection.
pub(crate) trait LinkConnection: Clone + Send + Sync + 'static {
    /// Sends a request once, to the partition that a key stands for.
    fn run(
        &mut self,
        key: &str,
        request: &impl LinkRequest,
    ) -> impl Future<Output = RedisResult<Value>> + Send;

    /// Returns whether the connection is known to be lost.
    fn is_lost(&self) -> impl Future<Output = bool> + Send {
        async { false }
    }
}

/// The fate of a connection after an error.
pub(crate) enum Verdict {
    /// The connection works.
    Keep,
    /// The connection may lead to the wrong server. It serves until another one is made.
    Replace,
    /// The call had no reply. As `Replace`, but many of these in a row drop the connection.
    Doubt,
    /// The connection is lost.
    Drop,
}
