//! What a line needs to know of a kind of server.

use core::future::Future;

use crate::script::Call;
use redis::{RedisError, RedisResult, Value};

/// A server, or several that act as one, and how to call it.
pub(crate) trait Reach: Send + Sync + 'static {
    /// What calls are sent on. Its clones are the same connection.
    type Connection: Clone + Send + Sync + 'static;

    /// Makes a connection, or gives up after a while.
    fn dial(&self) -> impl Future<Output = RedisResult<Self::Connection>> + Send;

    /// Runs the script once on the partition that a key stands for.
    fn run(
        connection: &mut Self::Connection,
        key: &str,
        call: &Call,
    ) -> impl Future<Output = RedisResult<Value>> + Send;

    /// Asks for a sign of life from the server that holds a key.
    fn ping(connection: &mut Self::Connection, key: &str) -> impl Future<Output = RedisResult<Value>> + Send;

    /// What an error of a call says of the connection.
    fn verdict(error: &RedisError) -> Verdict;
}

/// What becomes of a connection after an error.
pub(crate) enum Verdict {
    /// Nothing is wrong with it.
    Keep,
    /// It may lead to the wrong place: another is made in the background, and this one serves until then.
    Renew,
    /// It had no answer to bring, and may have some to others: the same, but it is given up if that happens often in a row.
    Doubt,
    /// It is gone.
    HangUp,
}
