//! One shared connection that is replaced when it is lost.
//!
//! 1. Requests share a multiplexed connection: many are under way at once, and one that is dropped harms no other.
//! 2. Connecting goes on in the background when the request that began it has given up, and every request that comes
//!    meanwhile waits for the same attempt. So a server that takes longer to connect to than a deadline allows is still
//!    reached, and one that is down is not asked twice at a time.
//! 3. A failed attempt, for whatever reason, is followed by another with the next request.
//! 4. A connection that leaves many requests in a row without an answer is given up: the other end may be gone without
//!    having said so, and a cluster's client that has lost all nodes looks for them with each request, or without pause.
//! 5. A connection that is only suspected serves until another is there.
//! 6. Probes of many partitions share the attempts to connect: together they make no more than one would.
//!
//! Nothing here sends a request twice.

use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use redis::{ErrorKind, RedisError, RedisResult, Value};
use tokio::runtime::Handle;
use tokio::sync::watch;

use super::Trouble;
use super::reach::{Reach, Verdict};
use crate::script::Call;

/// Requests and probes in a row that a connection may leave unanswered.
const MOST_UNANSWERED: u32 = 16;
/// The least time between the beginnings of two attempts to connect that no request waits for.
pub(crate) const RENEWAL_PAUSE: Duration = Duration::from_millis(75);

pub(crate) struct Line<R: Reach> {
    shared: Arc<Shared<R>>,
}

struct Shared<R: Reach> {
    reach: R,
    state: Mutex<State<R::Connection>>,
}

/// There may be a connection, an attempt to make one, both, or neither.
struct State<C> {
    up: Option<Wire<C>>,
    attempt: Option<Attempt<C>>,
    last_attempt: Option<Instant>,
}

/// On whose behalf a connection is asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asker {
    Request,
    Probe,
}

/// The outcome of an attempt to connect, once there is one.
type Attempt<C> = watch::Receiver<Option<RedisResult<Wire<C>>>>;

#[derive(Clone)]
struct Wire<C> {
    connection: C,
    /// Requests without an answer since the last one that had one. Also tells one connection from the next.
    unanswered: Arc<AtomicU32>,
}

impl<R: Reach> Line<R> {
    pub(super) fn new(reach: R) -> Self {
        let state = State { up: None, attempt: None, last_attempt: None };
        Self { shared: Arc::new(Shared { reach, state: Mutex::new(state) }) }
    }

    pub(super) async fn connect(&self) -> Result<(), Trouble> {
        self.wire(Asker::Request).await.map(drop).map_err(Trouble::Connect)
    }

    pub(super) async fn run(&self, key: &str, call: &Call) -> Result<Value, Trouble> {
        self.call(Asker::Request, async |connection| R::run(connection, key, call).await).await
    }

    pub(super) async fn ping(&self, key: &str) -> Result<Value, Trouble> {
        self.call(Asker::Probe, async |connection| R::ping(connection, key).await).await
    }

    /// Makes another connection in the background, unless that has just been tried. The one there is serves until then.
    pub(super) fn renew(&self) {
        self.shared.renew();
    }

    async fn call(
        &self,
        asker: Asker,
        send: impl AsyncFnOnce(&mut R::Connection) -> RedisResult<Value>,
    ) -> Result<Value, Trouble> {
        let mut wire = self.wire(asker).await.map_err(Trouble::Connect)?;
        let mut waiting = Waiting { shared: &self.shared, unanswered: Arc::clone(&wire.unanswered), is_over: false };
        let answer = send(&mut wire.connection).await;
        waiting.is_over = true;
        match answer.as_ref().err().map(R::verdict) {
            Some(Verdict::HangUp) => self.shared.hang_up(&wire.unanswered),
            Some(Verdict::Doubt) => {
                self.shared.went_unanswered(&wire.unanswered);
                self.shared.renew();
            }
            Some(Verdict::Renew) => {
                wire.unanswered.store(0, Ordering::Relaxed);
                self.shared.renew();
            }
            Some(Verdict::Keep) | None => wire.unanswered.store(0, Ordering::Relaxed),
        }
        answer.map_err(Trouble::of_call)
    }

    /// The connection, or what came of the attempt to make one.
    async fn wire(&self, asker: Asker) -> RedisResult<Wire<R::Connection>> {
        let mut attempt = {
            let mut state = self.shared.lock();
            if asker == Asker::Probe && !state.admits_probe() {
                return Err((ErrorKind::Io, "an attempt to connect has just failed").into());
            }
            if let Some(wire) = &state.up {
                return Ok(wire.clone());
            }
            match state.attempt_under_way() {
                Some(attempt) => attempt,
                None => self.shared.dial(&mut state, &Handle::current()),
            }
        };
        let outcome = attempt.wait_for(Option::is_some).await.ok().and_then(|outcome| outcome.clone());
        outcome.unwrap_or_else(|| Err(RedisError::from((ErrorKind::Io, "the attempt to connect was cut short"))))
    }
}

impl<R: Reach> Shared<R> {
    #[expect(clippy::disallowed_methods, reason = "how often a server is dialled is a matter of this machine's time")]
    fn dial(self: &Arc<Self>, state: &mut State<R::Connection>, runtime: &Handle) -> Attempt<R::Connection> {
        let (done, attempt) = watch::channel(None);
        let shared = Arc::clone(self);
        runtime.spawn(async move {
            let outcome = shared.reach.dial().await.map(|connection| Wire { connection, unanswered: Arc::default() });
            {
                let mut state = shared.lock();
                state.attempt = None;
                if let Ok(wire) = &outcome {
                    state.up = Some(wire.clone());
                }
            }
            // Nobody may be waiting any more.
            let _ = done.send(Some(outcome));
        });
        state.attempt = Some(attempt.clone());
        state.last_attempt = Some(Instant::now());
        attempt
    }

    fn renew(self: &Arc<Self>) {
        let mut state = self.lock();
        // Without a runtime, as when a future is dropped after it has ended, nothing can be made.
        if let (true, None, Ok(runtime)) = (state.is_another_due(), state.attempt_under_way(), Handle::try_current()) {
            self.dial(&mut state, &runtime);
        }
    }

    /// Notes a request that a connection has left without an answer, and gives the connection up if that is one too many.
    fn went_unanswered(&self, unanswered: &Arc<AtomicU32>) {
        if unanswered.fetch_add(1, Ordering::Relaxed) + 1 >= MOST_UNANSWERED {
            self.hang_up(unanswered);
        }
    }

    /// Gives a connection up, unless that has been done already.
    fn hang_up(&self, unanswered: &Arc<AtomicU32>) {
        self.lock().up.take_if(|wire| Arc::ptr_eq(&wire.unanswered, unanswered));
    }

    fn lock(&self) -> MutexGuard<'_, State<R::Connection>> {
        // What is in a state is replaced whole, so a panic elsewhere leaves a sound one.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<C> State<C> {
    fn attempt_under_way(&self) -> Option<Attempt<C>> {
        // One whose runtime was shut down under it will never end.
        self.attempt.clone().filter(|attempt| attempt.has_changed().is_ok())
    }

    /// Whether the last attempt is so long ago that another may be made though no request waits for it.
    fn is_another_due(&self) -> bool {
        self.last_attempt.is_none_or(|last| last.elapsed() >= RENEWAL_PAUSE)
    }

    /// Whether a probe may go out on the connection there is, wait for the attempt under way, or begin another.
    fn admits_probe(&self) -> bool {
        self.up.is_some() || self.attempt_under_way().is_some() || self.is_another_due()
    }
}

/// A request under way. Dropped before it is over, it was given up.
struct Waiting<'a, R: Reach> {
    shared: &'a Arc<Shared<R>>,
    unanswered: Arc<AtomicU32>,
    is_over: bool,
}

impl<R: Reach> Drop for Waiting<'_, R> {
    fn drop(&mut self) {
        if !self.is_over {
            self.shared.went_unanswered(&self.unanswered);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::future::pending;

    /// One connection, which answers some and not others, and no second one ever.
    #[derive(Default)]
    struct Once(AtomicU32);

    impl Reach for Once {
        type Connection = ();

        async fn dial(&self) -> RedisResult<()> {
            if self.0.fetch_add(1, Ordering::Relaxed) > 0 {
                pending::<()>().await;
            }
            Ok(())
        }

        async fn run(connection: &mut (), key: &str, _call: &Call) -> RedisResult<Value> {
            Self::ping(connection, key).await
        }

        async fn ping(_connection: &mut (), key: &str) -> RedisResult<Value> {
            if key == "answered" { Ok(Value::Nil) } else { Err((ErrorKind::Io, "the node is gone").into()) }
        }

        fn verdict(_error: &RedisError) -> Verdict {
            Verdict::Doubt
        }
    }

    #[tokio::test]
    async fn a_connection_in_doubt_is_given_up_when_it_has_brought_no_answer_for_long() {
        let line = Line::new(Once::default());
        assert!(line.connect().await.is_ok());
        let is_up = || line.shared.lock().up.is_some();
        // The answer in between begins the count anew.
        for _ in 0..2 {
            assert!(line.ping("answered").await.is_ok());
            for _ in 1..MOST_UNANSWERED {
                assert!(line.ping("lost").await.is_err() && is_up());
            }
        }
        assert!(line.ping("lost").await.is_err() && !is_up());
    }
}
