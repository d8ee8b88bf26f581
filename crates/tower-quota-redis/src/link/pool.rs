//! A connection from a pool, kept for as long as it works.
//!
//! A pool checks a connection, with a `PING`, whenever it hands one out. That is paid once here, not once for each
//! request. A connection that is to be replaced is taken away from the pool, which then has room for the next; it
//! serves until that is there. A good one returns to the pool with the store.

use core::time::Duration;
use std::sync::{Mutex, PoisonError};

use deadpool_redis::{Connection, Pool, PoolError};
use redis::aio::{MultiplexedConnection, PubSub};
use redis::{ErrorKind, RedisError, RedisResult};

use super::backend::Backend;

pub(crate) struct Pooled {
    pool: Pool,
    /// Kept so that the pool counts the connection as taken.
    checked_out: Mutex<Option<Connection>>,
    connect_timeout: Duration,
}

impl Pooled {
    pub(super) fn new(pool: Pool, connect_timeout: Duration) -> Self {
        Self {
            pool,
            checked_out: Mutex::new(None),
            connect_timeout,
        }
    }

    /// Replaces the connection that the pool counts as taken.
    fn check_out(&self, connection: Option<Connection>) -> Option<Connection> {
        let mut checked_out = self
            .checked_out
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        core::mem::replace(&mut *checked_out, connection)
    }
}

impl Backend for Pooled {
    type Connection = MultiplexedConnection;

    async fn dial(&self) -> RedisResult<MultiplexedConnection> {
        if let Some(doubtful) = self.check_out(None) {
            // The pool must not hand it out again.
            drop(Connection::take(doubtful));
        }
        let handed_out = tokio::time::timeout(self.connect_timeout, self.pool.get()).await;
        let handed_out = handed_out
            .map_err(|_| (ErrorKind::Io, "the pool handed out no connection in time").into())
            .and_then(|outcome| outcome.map_err(of_pool))?;
        let connection = MultiplexedConnection::clone(&handed_out);
        self.check_out(Some(handed_out));
        Ok(connection)
    }

    /// Returns an error: a pool does not say where its server is.
    async fn subscriber(&self) -> RedisResult<PubSub> {
        Err((
            ErrorKind::InvalidClientConfig,
            "a pool has no connections for announcements",
        )
            .into())
    }
}

fn of_pool(error: PoolError) -> RedisError {
    let kind = match error {
        PoolError::Backend(error) => return error,
        PoolError::Timeout(_) => ErrorKind::Io,
        // It has been closed, or was set up wrongly: another attempt will fail too.
        _ => ErrorKind::InvalidClientConfig,
    };
    (kind, "the pool handed out no connection", error.to_string()).into()
}
