//! Takes a connection from a pool for each call.
//!
//! The pool's limits, timeouts and metrics include each call. The pool checks a connection before handing it out, which
//! takes a round trip. A call that is unanswered takes its connection out of the pool at its deadline, and awaits its
//! late answer there. The pool may connect again at once.

use core::time::Duration;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use deadpool_redis::{Connection, Pool, PoolError};
use redis::aio::MultiplexedConnection;
use redis::{ConnectionInfo, ErrorKind, RedisError, RedisResult, Value};
use tokio::runtime::Handle;
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::timeout_at;

use super::call_error::CallError;
use super::reconnecting::{LateAnswer, answer_until};
use super::request::LinkRequest;
use super::within;
use crate::lock::locked;
use crate::wire::Call;

const NOT_HANDED_OUT: &str = "the pool handed out no connection in time";

#[derive(Clone)]
pub(crate) struct Pooled {
    pool: Pool,
    connect_timeout: Duration,
    runtime: Option<Handle>,
    abandoned: Arc<Mutex<Option<AbortHandle>>>,
}

impl Pooled {
    pub(super) fn new(pool: Pool, connect_timeout: Duration, runtime: Option<Handle>) -> Self {
        Self {
            pool,
            connect_timeout,
            runtime,
            abandoned: Arc::default(),
        }
    }

    pub(super) async fn connect(&self) -> RedisResult<()> {
        self.take().await.map(|taken| taken.give_back())
    }

    /// Drops the idle connections, which may lead to the wrong server.
    pub(super) fn replace(&self) {
        self.pool.retain(|_, _| false);
    }

    /// Returns an error, because a pool hides its address.
    pub(super) async fn locate(&self, _key: &str) -> RedisResult<ConnectionInfo> {
        Err((ErrorKind::InvalidClientConfig, "a pool hides its address").into())
    }

    pub(super) fn node_of(&self, _key: &str) -> Option<String> {
        None
    }

    pub(super) async fn run(
        &self,
        key: &str,
        request: &impl LinkRequest,
    ) -> Result<Value, CallError> {
        let taken = self.take().await.map_err(CallError::NotSent)?;
        let answer = request.send(&mut taken.connection(), key).await;
        taken.end(answer)
    }

    pub(super) async fn run_until(
        &self,
        connect_by: Instant,
        deadline: Instant,
        key: Arc<str>,
        mut call: Call,
    ) -> Result<Result<Value, CallError>, LateAnswer> {
        call.deadline = Some(deadline);
        let taken = timeout_at(connect_by.into(), self.take()).await;
        let taken = match taken.unwrap_or_else(|_| Err((ErrorKind::Io, NOT_HANDED_OUT).into())) {
            Ok(taken) => taken,
            Err(error) => return Ok(Err(CallError::NotSent(error))),
        };
        // A late answer must not block a slot of the pool, so the guard leaves the pool at the deadline.
        let mut connection = taken.connection();
        let mut answer: LateAnswer =
            Box::pin(async move { call.send(&mut connection, &key).await });
        match answer_until(deadline, &mut answer).await {
            Some(answer) => Ok(taken.end(answer)),
            None => Err(answer),
        }
    }

    /// Takes a connection in a task, so that a handshake may take longer than a deadline.
    async fn take(&self) -> RedisResult<Taken> {
        let (pool, connect_timeout) = (self.pool.clone(), self.connect_timeout);
        let taking = async move {
            let handed_out = async { pool.get().await.map_err(of_pool) };
            within(connect_timeout, NOT_HANDED_OUT, handed_out).await
        };
        let runtime = self.runtime.clone().unwrap_or_else(Handle::current);
        let mut attempt = PoolAttempt {
            task: runtime.spawn(taking),
            abandoned: &self.abandoned,
        };
        let ended = || RedisError::from((ErrorKind::Io, "the attempt to connect was cut short"));
        let handed_out = (&mut attempt.task).await.map_err(|_| ended())?;
        handed_out.map(Taken::new)
    }
}

/// A task that takes a connection from the pool. If the caller gives up, one task of the link continues, and returns its
/// connection to the pool. More tasks would take the connections that later calls wait for.
struct PoolAttempt<'a> {
    task: JoinHandle<RedisResult<Connection>>,
    abandoned: &'a Mutex<Option<AbortHandle>>,
}

impl Drop for PoolAttempt<'_> {
    fn drop(&mut self) {
        let mut abandoned = locked(self.abandoned);
        if abandoned.as_ref().is_none_or(AbortHandle::is_finished) {
            *abandoned = Some(self.task.abort_handle());
        } else {
            self.task.abort();
        }
    }
}

/// A slot of the pool. If dropped during a call, the connection leaves the pool.
struct Taken {
    connection: MultiplexedConnection,
    pooled: Option<Connection>,
}

impl Taken {
    fn new(pooled: Connection) -> Self {
        Self {
            connection: pooled.clone(),
            pooled: Some(pooled),
        }
    }

    fn connection(&self) -> MultiplexedConnection {
        self.connection.clone()
    }

    fn end(self, answer: RedisResult<Value>) -> Result<Value, CallError> {
        if answer.as_ref().err().is_none_or(|error| !is_lost(error)) {
            self.give_back();
        }
        answer.map_err(CallError::of_call)
    }

    fn give_back(mut self) {
        drop(self.pooled.take());
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        if let Some(connection) = self.pooled.take() {
            drop(Connection::take(connection));
        }
    }
}

fn is_lost(error: &RedisError) -> bool {
    error.is_io_error() || error.is_unrecoverable_error()
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
