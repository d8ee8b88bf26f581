//! A connection out of a pool, kept for as long as it works.
//!
//! A pool looks a connection over, with a `PING`, whenever it hands one out. That is paid once here, not once for each
//! request. A connection that fails is taken away from the pool, and the next request has another handed out.

use core::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;

use deadpool_redis::{Connection, Pool};
use redis::aio::MultiplexedConnection;
use redis::{RedisResult, Value};
use tokio::sync::Mutex;

use super::Trouble;
use super::line::MOST_UNANSWERED;
use super::server::is_the_end_of_a_connection;
use crate::script;

pub(crate) struct Held {
    pool: Pool,
    held: Mutex<Option<Wire>>,
}

struct Wire {
    /// Kept so that the pool counts the connection as taken.
    checked_out: Connection,
    /// Shared by those whose requests are under way.
    connection: MultiplexedConnection,
    /// Requests given up since the last answer, until there are so many that the connection counts as lost.
    unanswered: Arc<AtomicU32>,
}

impl Held {
    pub(super) fn new(pool: Pool) -> Self {
        Self { pool, held: Mutex::new(None) }
    }

    pub(super) async fn connect(&self) -> Result<(), Trouble> {
        self.wire().await.map(drop)
    }

    pub(super) async fn run(&self, key: &str, request: &[u8]) -> Result<Value, Trouble> {
        self.call(async |connection| script::run(connection, key, request).await).await
    }

    pub(super) async fn ping(&self) -> Result<Value, Trouble> {
        self.call(async |connection| redis::cmd("PING").query_async(connection).await).await
    }

    /// Has the next request take another connection. The pool looks it over first.
    pub(super) fn renew(&self) {
        // Taken at the moment, it is being replaced or about to be used: the next doubt will do.
        if let Ok(held) = self.held.try_lock()
            && let Some(wire) = &*held
        {
            wire.unanswered.store(MOST_UNANSWERED, Ordering::Relaxed);
        }
    }

    async fn call(
        &self,
        send: impl AsyncFnOnce(&mut MultiplexedConnection) -> RedisResult<Value>,
    ) -> Result<Value, Trouble> {
        let (mut connection, unanswered) = self.wire().await?;
        // Counted as unanswered until it is not: the future may be dropped at any point.
        unanswered.fetch_add(1, Ordering::Relaxed);
        let answer = send(&mut connection).await;
        let is_lost = answer.as_ref().is_err_and(is_the_end_of_a_connection);
        unanswered.store(if is_lost { MOST_UNANSWERED } else { 0 }, Ordering::Relaxed);
        answer.map_err(Trouble::Call)
    }

    async fn wire(&self) -> Result<(MultiplexedConnection, Arc<AtomicU32>), Trouble> {
        let mut held = self.held.lock().await;
        if let Some(lost) = held.take_if(|wire| wire.unanswered.load(Ordering::Relaxed) >= MOST_UNANSWERED) {
            // Not to be handed out again.
            drop(Connection::take(lost.checked_out));
        }
        let wire = match &mut *held {
            Some(wire) => wire,
            None => {
                let checked_out = self.pool.get().await.map_err(Trouble::from_pool)?;
                let connection = MultiplexedConnection::clone(&checked_out);
                held.insert(Wire { checked_out, connection, unanswered: Arc::default() })
            }
        };
        Ok((wire.connection.clone(), Arc::clone(&wire.unanswered)))
    }
}
