//! A connection out of a pool, kept for as long as it works.
//!
//! A pool looks a connection over, with a `PING`, whenever it hands one out. That is paid once here, not once for each
//! request. When a connection is to be replaced it is taken away from the pool, which then has room for the next; it
//! serves until that is there. A good one goes back to the pool with the store.

use core::time::Duration;
use std::sync::{Mutex, PoisonError};

use deadpool_redis::{Connection, Pool, PoolError};
use redis::aio::MultiplexedConnection;
use redis::{ErrorKind, RedisError, RedisResult, Value};

use super::reach::{Reach, Verdict};
use super::server::Server;
use crate::script::Call;

pub(crate) struct Pooled {
    pool: Pool,
    /// Kept so that the pool counts the connection as taken.
    checked_out: Mutex<Option<Connection>>,
    patience: Duration,
}

impl Pooled {
    pub(super) fn new(pool: Pool, patience: Duration) -> Self {
        Self { pool, checked_out: Mutex::new(None), patience }
    }

    /// What the pool counts as taken from now on.
    fn check_out(&self, connection: Option<Connection>) -> Option<Connection> {
        let mut checked_out = self.checked_out.lock().unwrap_or_else(PoisonError::into_inner);
        core::mem::replace(&mut *checked_out, connection)
    }
}

impl Reach for Pooled {
    type Connection = MultiplexedConnection;

    async fn dial(&self) -> RedisResult<MultiplexedConnection> {
        if let Some(doubtful) = self.check_out(None) {
            // Not to be handed out again.
            drop(Connection::take(doubtful));
        }
        let handed_out = tokio::time::timeout(self.patience, self.pool.get()).await;
        let handed_out = handed_out
            .map_err(|_| (ErrorKind::Io, "the pool handed out no connection in time").into())
            .and_then(|outcome| outcome.map_err(of_pool))?;
        let connection = MultiplexedConnection::clone(&handed_out);
        self.check_out(Some(handed_out));
        Ok(connection)
    }

    async fn run(connection: &mut MultiplexedConnection, key: &str, call: &Call) -> RedisResult<Value> {
        Server::run(connection, key, call).await
    }

    async fn ping(connection: &mut MultiplexedConnection, key: &str) -> RedisResult<Value> {
        Server::ping(connection, key).await
    }

    fn verdict(error: &RedisError) -> Verdict {
        Server::verdict(error)
    }
}

fn of_pool(error: PoolError) -> RedisError {
    let kind = match error {
        PoolError::Backend(error) => return error,
        PoolError::Timeout(_) => ErrorKind::Io,
        // It has been closed, or was set up wrongly: another attempt will fare no better.
        _ => ErrorKind::InvalidClientConfig,
    };
    (kind, "the pool handed out no connection", error.to_string()).into()
}
