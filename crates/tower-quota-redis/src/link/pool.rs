//! Takes a connection from a pool.
//!
//! A pool checks a connection with a `PING` when handing it out, so the store keeps the connection while it works. The
//! store removes a doubtful connection from the pool, which then has room for another connection.

use core::time::Duration;
use std::sync::Mutex;

use deadpool_redis::{Connection, Pool, PoolError};
use redis::aio::{MultiplexedConnection, PubSub};
use redis::{ErrorKind, RedisError, RedisResult};

use super::backend::Backend;
use super::within;
use crate::lock::locked;

pub(crate) struct Pooled {
    pool: Pool,
    /// The checked out connection, kept so that the pool counts the connection as taken.
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

    fn check_out(&self, connection: Option<Connection>) -> Option<Connection> {
        core::mem::replace(&mut *locked(&self.checked_out), connection)
    }
}

impl Backend for Pooled {
    type Connection = MultiplexedConnection;

    async fn dial(&self) -> RedisResult<MultiplexedConnection> {
        if let Some(doubtful) = self.check_out(None) {
            // Take the connection out of the pool, which would hand it out again.
            drop(Connection::take(doubtful));
        }
        let handing_out = async { self.pool.get().await.map_err(of_pool) };
        let handed_out = within(
            self.connect_timeout,
            "the pool handed out no connection in time",
            handing_out,
        )
        .await?;
        let connection = MultiplexedConnection::clone(&handed_out);
        self.check_out(Some(handed_out));
        Ok(connection)
    }

    /// Returns an error, because a pool hides its address.
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
        // Otherwise the pool is closed or misconfigured.
        _ => ErrorKind::InvalidClientConfig,
    };
    (kind, "the pool handed out no connection", error.to_string()).into()
}
