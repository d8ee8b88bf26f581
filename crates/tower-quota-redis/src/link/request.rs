use core::future::Future;

use redis::aio::ConnectionLike;
use redis::{Cmd, Pipeline, RedisResult, Value};

use crate::script;
use crate::wire::Call;

pub(crate) trait LinkRequest: Sync {
    /// Sends the request once, to the partition of a key.
    fn send(
        &self,
        connection: &mut (impl ConnectionLike + Send),
        key: &str,
    ) -> impl Future<Output = RedisResult<Value>> + Send;

    /// Returns whether the request may be sent again after an answer that proves that it has not run.
    fn may_repeat(&self) -> bool {
        true
    }
}

impl LinkRequest for Call {
    async fn send(
        &self,
        connection: &mut (impl ConnectionLike + Send),
        key: &str,
    ) -> RedisResult<Value> {
        script::run(connection, key, self).await
    }

    fn may_repeat(&self) -> bool {
        !self.is_late()
    }
}

/// Sends a command, which leads to its partition by its own keys.
impl LinkRequest for Cmd {
    async fn send(
        &self,
        connection: &mut (impl ConnectionLike + Send),
        _key: &str,
    ) -> RedisResult<Value> {
        connection.req_packed_command(self).await?.extract_error()
    }
}

/// Several commands in one request. The caller gets `count` replies after the first `offset`.
pub(crate) struct Several<'a> {
    pub(crate) commands: &'a Pipeline,
    pub(crate) offset: usize,
    pub(crate) count: usize,
}

impl LinkRequest for Several<'_> {
    async fn send(
        &self,
        connection: &mut (impl ConnectionLike + Send),
        _key: &str,
    ) -> RedisResult<Value> {
        let replies = connection
            .req_packed_commands(self.commands, self.offset, self.count)
            .await?;
        Value::Array(replies).extract_error()
    }
}
