use core::future::Future;
use core::time::Duration;

use redis::{ConnectionInfo, ErrorKind, RedisError, RedisResult, ServerErrorKind, Value};

use super::request::LinkRequest;

pub(crate) trait Backend: Send + Sync + 'static {
    type Connection: LinkConnection;

    /// The number of unanswered calls in a row that put a connection in doubt.
    const DOUBTED_AFTER: u32 = 3;

    fn dial(&self) -> impl Future<Output = RedisResult<Self::Connection>> + Send;

    /// Connects to replace a doubtful connection. Returns `None` to keep the connection.
    fn replace(
        &self,
        doubtful: Self::Connection,
    ) -> impl Future<Output = RedisResult<Option<Self::Connection>>> + Send {
        drop(doubtful);
        async { self.dial().await.map(Some) }
    }

    /// Returns the address and the settings of the server that owns a key.
    fn locate(&self, key: &str) -> impl Future<Output = RedisResult<ConnectionInfo>> + Send;

    fn verdict(error: &RedisError) -> Verdict {
        if error.is_io_error() || error.is_unrecoverable_error() {
            Verdict::Drop
        } else if error.kind() == ErrorKind::Server(ServerErrorKind::ReadOnly) {
            // The server has become a replica. A new connection to the same name may reach the new
            // primary.
            Verdict::Replace
        } else {
            Verdict::Keep
        }
    }
}

pub(crate) trait LinkConnection: Clone + Send + Sync + 'static {
    fn run(
        &mut self,
        key: &str,
        request: &impl LinkRequest,
    ) -> impl Future<Output = RedisResult<Value>> + Send;

    /// Returns the address of the node that owns a key, in a cluster.
    fn node_of(&self, _key: &str) -> Option<String> {
        None
    }

    /// Looks for a closed connection before a call about a key.
    fn is_lost(
        &self,
        _key: &str,
        _is_silent: bool,
        _patience: Duration,
    ) -> impl Future<Output = bool> + Send {
        async { false }
    }
}

pub(crate) enum Verdict {
    Keep,
    /// The connection may lead to the wrong server, and serves until it is replaced.
    Replace,
    /// The same as `Replace`, but many unanswered calls drop the connection.
    Doubt,
    Drop,
}
