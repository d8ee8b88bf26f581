//! One shared connection that is replaced when it is lost.
//!
//! 1. Requests share a multiplexed connection: many are under way at once, and one that is dropped harms no other.
//! 2. Connecting goes on in the background when the request that began it has given up, and every request that comes
//!    meanwhile waits for the same attempt. So a server that takes longer to connect to than a deadline allows is still
//!    reached, and one that is down is not asked twice at a time.
//! 3. A failed attempt, for whatever reason, is followed by another with the next request.
//! 4. A connection that leaves many requests in a row without an answer is given up: the other end may be gone without
//!    having said so.
//!
//! Nothing here sends a request twice.

use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redis::aio::MultiplexedConnection;
use redis::io::tcp::TcpSettings;
use redis::{AsyncConnectionConfig, Client, ErrorKind, RedisError, RedisResult, Value};
use tokio::sync::watch;

use super::Trouble;
use crate::script;

/// Requests that may wait to be written. The client's own 50 would make a burst wait for its turn.
const QUEUE: usize = 1024;
/// Requests in a row that a connection may leave unanswered.
pub(super) const MOST_UNANSWERED: u32 = 16;

pub(crate) struct Line {
    shared: Arc<Shared>,
}

struct Shared {
    client: Client,
    config: AsyncConnectionConfig,
    state: Mutex<State>,
}

enum State {
    Down,
    Connecting(Attempt),
    Up(Wire),
}

/// The outcome of an attempt to connect, once there is one.
type Attempt = watch::Receiver<Option<RedisResult<Wire>>>;

#[derive(Clone)]
struct Wire {
    connection: MultiplexedConnection,
    /// Requests given up since the last answer. Also tells one connection from the next.
    unanswered: Arc<AtomicU32>,
}

impl Line {
    pub(super) fn new(client: &Client, patience: Duration) -> RedisResult<Self> {
        let address = client.get_connection_info().clone();
        // Requests are small and each is waited for: holding one back to fill a packet only delays it.
        let settings: TcpSettings = address.tcp_settings().clone().set_nodelay(true);
        let client = Client::open(address.set_tcp_settings(settings))?;
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(patience))
            // The store's deadline covers the whole call.
            .set_response_timeout(None)
            .set_pipeline_buffer_size(QUEUE);
        Ok(Self { shared: Arc::new(Shared { client, config, state: Mutex::new(State::Down) }) })
    }

    pub(super) async fn connect(&self) -> RedisResult<()> {
        self.wire().await.map(drop)
    }

    pub(super) async fn run(&self, key: &str, request: &[u8]) -> Result<Value, Trouble> {
        let mut wire = self.wire().await.map_err(Trouble::connect)?;
        let mut waiting = Waiting { shared: &self.shared, unanswered: Arc::clone(&wire.unanswered), is_over: false };
        let answer = script::run(&mut wire.connection, key, request).await;
        waiting.is_over = true;
        match &answer {
            Err(error) if is_the_end_of_a_connection(error) => self.shared.hang_up(&wire.unanswered),
            _ => wire.unanswered.store(0, Ordering::Relaxed),
        }
        answer.map_err(Trouble::Call)
    }

    /// The connection, or what came of the attempt to make one.
    async fn wire(&self) -> RedisResult<Wire> {
        let mut attempt = {
            let mut state = self.shared.lock();
            match &*state {
                State::Up(wire) => return Ok(wire.clone()),
                // An attempt whose runtime was shut down under it will never end.
                State::Connecting(attempt) if attempt.has_changed().is_ok() => attempt.clone(),
                _ => {
                    let attempt = self.dial();
                    *state = State::Connecting(attempt.clone());
                    attempt
                }
            }
        };
        let outcome = attempt.wait_for(Option::is_some).await.ok().and_then(|outcome| outcome.clone());
        outcome.unwrap_or_else(|| Err(RedisError::from((ErrorKind::Io, "the attempt to connect was cut short"))))
    }

    fn dial(&self) -> Attempt {
        let (done, attempt) = watch::channel(None);
        let shared = Arc::clone(&self.shared);
        tokio::spawn(async move {
            let outcome = shared
                .client
                .get_multiplexed_async_connection_with_config(&shared.config)
                .await
                .map(|connection| Wire { connection, unanswered: Arc::default() });
            *shared.lock() = match &outcome {
                Ok(wire) => State::Up(wire.clone()),
                Err(_) => State::Down,
            };
            // Nobody may be waiting any more.
            let _ = done.send(Some(outcome));
        });
        attempt
    }
}

impl Shared {
    /// Gives a connection up, unless that has been done already.
    fn hang_up(&self, unanswered: &Arc<AtomicU32>) {
        let mut state = self.lock();
        if matches!(&*state, State::Up(wire) if Arc::ptr_eq(&wire.unanswered, unanswered)) {
            *state = State::Down;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A state is replaced whole, so a panic elsewhere leaves a sound one.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request under way. Dropped before it is over, it was given up.
struct Waiting<'a> {
    shared: &'a Shared,
    unanswered: Arc<AtomicU32>,
    is_over: bool,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if !self.is_over && self.unanswered.fetch_add(1, Ordering::Relaxed) + 1 >= MOST_UNANSWERED {
            self.shared.hang_up(&self.unanswered);
        }
    }
}

pub(super) fn is_the_end_of_a_connection(error: &RedisError) -> bool {
    error.is_io_error() || error.is_unrecoverable_error()
}
