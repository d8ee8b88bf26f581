//! The requests that are sent on a connection.

use core::future::Future;

use redis::aio::ConnectionLike;
use redis::{Cmd, Pipeline, RedisResult, Value};

use crate::script;
use crate::wire::Call;

/// A request to the servers of a connection.
pub(crate) trait LinkRequest: Sync {
    /// Sends it once, to the partition that a key stands for.
    fn send(
        &self,
        connection: &mut (impl ConnectionLike + Send),
        key: &str,
    ) -> impl Future<Output = RedisResult<Value>> + Send;
}

/// Decisions, which the script makes.
impl LinkRequest for Call {
    async fn send(
        &self,
        connection: &mut (impl ConnectionLike + Send),
        key: &str,
    ) -> RedisResult<Value> {
        script::run(connection, key, self).await
    }
}

/// A command, which leads to its partition by its own keys.
impl LinkRequest for Cmd {
    async fn send(
        &self,
        connection: &mut (impl ConnectionLike + Send),
        _key: &str,
    ) -> RedisResult<Value> {
        connection.req_packed_command(self).await?.extract_error()
    }
}

/// A part of the replies to several commands: how many to skip, and how many to return.
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
