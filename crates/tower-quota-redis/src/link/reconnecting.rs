//! Shares a connection, and replaces the connection when it is lost.
//!
//! 1. All calls wait for the same attempt to connect. An attempt continues after its caller gives up, so the link
//!    reaches servers that need longer than a deadline.
//! 2. The link replaces a lost connection at once. Further attempts have pauses with jitter that double. A call that
//!    fails during a pause schedules the next attempt, because the breaker may stop all other calls.
//! 3. If an attempt is slow, another begins. The first to succeed wins.
//! 4. After three unanswered calls in a row, in a cluster after one, a connection is in doubt, and serves until it is
//!    replaced. After 16, the link drops the connection. Calls that overlap count once, and a failed attempt to replace
//!    the connection counts too.
//! 5. After a silence, the link checks the connection, because a balancer may have closed it.

use core::pin::Pin;
use core::time::Duration;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use redis::{ConnectionInfo, ErrorKind, RedisError, RedisResult, Value};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::{timeout, timeout_at};

use super::attempts::Attempts;
use super::backend::{Backend, LinkConnection, Verdict};
use super::call_error::CallError;
use super::request::LinkRequest;
use super::tracked::{Calls, SILENCE, Tracked};
use crate::clock::now;
use crate::lock::locked;
use crate::wire::Call;

const MOST_UNANSWERED: u32 = 16;

pub(crate) type LateAnswer = Pin<Box<dyn Future<Output = RedisResult<Value>> + Send>>;

pub(crate) struct Reconnecting<B: Backend> {
    backend: B,
    state: Mutex<LinkState<B>>,
    /// A channel that changes whenever an attempt ends.
    ended: watch::Sender<()>,
    runtime: Option<Handle>,
}

struct LinkState<B: Backend> {
    connection: Option<Tracked<B::Connection>>,
    attempts: Attempts,
    last_error: Option<RedisError>,
}

pub(super) async fn answer_until(
    deadline: Instant,
    answer: &mut LateAnswer,
) -> Option<RedisResult<Value>> {
    if let Ok(answer) = timeout_at(deadline.into(), &mut *answer).await {
        return Some(answer);
    }
    // Look once more, because timers fire before sockets are read after a pause of the process.
    tokio::task::yield_now().await;
    timeout(Duration::ZERO, answer).await.ok()
}

impl<B: Backend> Reconnecting<B> {
    pub(super) fn new(backend: B, runtime: Option<Handle>) -> Self {
        let state = LinkState {
            connection: None,
            attempts: Attempts::default(),
            last_error: None,
        };
        Self {
            backend,
            state: Mutex::new(state),
            ended: watch::Sender::new(()),
            runtime,
        }
    }

    pub(super) async fn connect(self: &Arc<Self>) -> RedisResult<()> {
        self.connection().await.map(drop)
    }

    pub(super) async fn locate(&self, key: &str) -> RedisResult<ConnectionInfo> {
        self.backend.locate(key).await
    }

    pub(super) fn node_of(&self, key: &str) -> Option<String> {
        let state = locked(&self.state);
        state.connection.as_ref()?.connection.node_of(key)
    }

    pub(super) async fn run(
        self: &Arc<Self>,
        key: &str,
        request: &impl LinkRequest,
    ) -> Result<Value, CallError> {
        let mut tracked = self.ready(key, SILENCE).await.map_err(CallError::NotSent)?;
        let under_way = CallUnderWay::new(self, &tracked);
        let answer = tracked.connection.run(key, request).await;
        under_way.end(answer)
    }

    pub(super) async fn run_until(
        self: &Arc<Self>,
        connect_by: Instant,
        deadline: Instant,
        key: Arc<str>,
        mut call: Call,
    ) -> Result<Result<Value, CallError>, LateAnswer> {
        call.deadline = Some(deadline);
        let patience = deadline.saturating_duration_since(now()) / 4;
        let mut tracked = match timeout_at(connect_by.into(), self.ready(&key, patience)).await {
            Ok(Ok(tracked)) => tracked,
            Ok(Err(error)) => return Ok(Err(CallError::NotSent(error))),
            Err(_) => return Ok(Err(CallError::NotSent(self.missing_connection()))),
        };
        // This guard ends at the deadline, so that the link notices a silent connection while the
        // task still waits for a late answer.
        let under_way = CallUnderWay::new(self, &tracked);
        let mut answer: LateAnswer =
            Box::pin(async move { tracked.connection.run(&key, &call).await });
        match answer_until(deadline, &mut answer).await {
            Some(answer) => Ok(under_way.end(answer)),
            None => Err(answer),
        }
    }

    /// Returns a connection that is not known to be lost. `patience` bounds the look at it.
    async fn ready(
        self: &Arc<Self>,
        key: &str,
        patience: Duration,
    ) -> RedisResult<Tracked<B::Connection>> {
        let tracked = self.connection().await?;
        let is_silent = tracked.begin_call();
        if tracked.connection.is_lost(key, is_silent, patience).await {
            self.drop_connection(&tracked.calls);
            return self.connection().await;
        }
        Ok(tracked)
    }

    /// Returns or awaits the connection. Fails at once between attempts.
    async fn connection(self: &Arc<Self>) -> RedisResult<Tracked<B::Connection>> {
        let mut ended = self.ended.subscribe();
        loop {
            let (attempt, pause_error) = {
                let mut state = locked(&self.state);
                if let Some(tracked) = &state.connection {
                    return Ok(tracked.clone());
                }
                let attempt = Attempt::plan(self, &mut state);
                let is_pause = state.attempts.under_way == 0;
                (attempt, is_pause.then(|| state.last_error.clone()))
            };
            if let Some(attempt) = attempt {
                attempt.spawn(&Handle::current());
            }
            if let Some(error) = pause_error {
                return Err(error.unwrap_or_else(|| {
                    (ErrorKind::Io, "the attempt to connect was cut short").into()
                }));
            }
            // The call cannot fail, because the sender outlives this receiver.
            let _ = ended.changed().await;
        }
    }

    /// Returns the failure of the last attempt, or that no attempt has ended.
    fn missing_connection(&self) -> RedisError {
        let last_error = locked(&self.state).last_error.clone();
        last_error.unwrap_or_else(|| (ErrorKind::Io, "no connection within the deadline").into())
    }

    pub(super) fn replace(self: &Arc<Self>) {
        // No runtime is current if a future is dropped after its runtime has ended.
        let Some(runtime) = self.runtime.clone().or_else(|| Handle::try_current().ok()) else {
            return;
        };
        let attempt = Attempt::plan(self, &mut locked(&self.state));
        if let Some(attempt) = attempt {
            attempt.spawn(&runtime);
        }
    }

    fn went_unanswered(self: &Arc<Self>, calls: &Arc<Mutex<Calls>>, began: Instant) {
        let in_a_row = locked(calls).give_up(began);
        if in_a_row >= MOST_UNANSWERED {
            self.drop_connection(calls);
        }
        if in_a_row >= B::DOUBTED_AFTER {
            self.replace();
        }
    }

    /// If the last call was answered, the next attempt has no pause.
    fn drop_connection(&self, calls: &Arc<Mutex<Calls>>) {
        let mut state = locked(&self.state);
        let dropped = state
            .connection
            .take_if(|tracked| Arc::ptr_eq(&tracked.calls, calls));
        if dropped.is_some() && locked(calls).unanswered == 0 {
            state.attempts.reset();
        }
    }
}

impl<B: Backend> LinkState<B> {
    fn is_current(&self, doubtful: Option<&Tracked<B::Connection>>) -> bool {
        match (&self.connection, doubtful) {
            (Some(current), Some(doubtful)) => Arc::ptr_eq(&current.calls, &doubtful.calls),
            (None, None) => true,
            _ => false,
        }
    }

    fn install(&mut self, connection: B::Connection, doubtful: Option<&Tracked<B::Connection>>) {
        if self.connection.is_none() || self.is_current(doubtful) {
            self.connection = Some(Tracked::new(connection));
            self.last_error = None;
        }
    }
}

/// An attempt to connect, in progress or scheduled. Dropping the attempt ends it.
struct Attempt<B: Backend> {
    link: Arc<Reconnecting<B>>,
    doubtful: Option<Tracked<B::Connection>>,
    is_under_way: bool,
}

impl<B: Backend> Attempt<B> {
    fn plan(link: &Arc<Reconnecting<B>>, state: &mut LinkState<B>) -> Option<Self> {
        let now = now();
        let is_under_way = state.attempts.is_due(now);
        if is_under_way {
            state.attempts.begin(now);
        } else if core::mem::replace(&mut state.attempts.is_waiting, true) {
            return None;
        }
        Some(Self {
            link: Arc::clone(link),
            doubtful: state.connection.clone(),
            is_under_way,
        })
    }

    /// Call `spawn` without the state lock. An ending runtime drops the task at once, and the drop
    /// locks.
    fn spawn(mut self, caller: &Handle) {
        let runtime = self.link.runtime.clone();
        runtime.as_ref().unwrap_or(caller).spawn(async move {
            if !self.is_under_way && !self.begin_when_due().await {
                return;
            }
            let (backend, began) = (&self.link.backend, now());
            let outcome = match &self.doubtful {
                Some(doubtful) => backend.replace(doubtful.connection.clone()).await,
                None => backend.dial().await.map(Some),
            };
            let mut state = locked(&self.link.state);
            match outcome {
                Ok(Some(connection)) => state.install(connection, self.doubtful.as_ref()),
                Ok(None) => {}
                Err(error) => {
                    state.last_error = Some(error);
                    drop(state);
                    if let Some(doubtful) = &self.doubtful {
                        // Without calls, only attempts tell that a client is dead.
                        self.link.went_unanswered(&doubtful.calls, began);
                    }
                }
            }
        });
    }

    /// Returns false if the connection was replaced before the attempt was due.
    async fn begin_when_due(&mut self) -> bool {
        let mut ended = self.link.ended.subscribe();
        loop {
            let due = {
                let (mut state, now) = (locked(&self.link.state), now());
                if state.connection.is_none() {
                    // Connect afresh, because the doubtful connection was dropped meanwhile.
                    self.doubtful = None;
                } else if !state.is_current(self.doubtful.as_ref()) {
                    return false;
                }
                if state.attempts.is_due(now) {
                    state.attempts.is_waiting = false;
                    state.attempts.begin(now);
                    self.is_under_way = true;
                    return true;
                }
                state.attempts.due_at().filter(|due| *due > now)
            };
            // Without an instant, too many attempts are in progress, so wait until one ends.
            let _ = match due {
                Some(due) => timeout_at(due.into(), ended.changed()).await.is_ok(),
                None => ended.changed().await.is_ok(),
            };
        }
    }
}

impl<B: Backend> Drop for Attempt<B> {
    fn drop(&mut self) {
        let mut state = locked(&self.link.state);
        if self.is_under_way {
            state.attempts.under_way -= 1;
        } else {
            state.attempts.is_waiting = false;
        }
        drop(state);
        let _ = self.link.ended.send(());
    }
}

/// A guard that acts on its verdict when dropped. If the caller gives up, the verdict remains
/// `Doubt`.
struct CallUnderWay<'a, B: Backend> {
    link: &'a Arc<Reconnecting<B>>,
    calls: Arc<Mutex<Calls>>,
    began: Instant,
    verdict: Verdict,
}

impl<'a, B: Backend> CallUnderWay<'a, B> {
    fn new(link: &'a Arc<Reconnecting<B>>, tracked: &Tracked<B::Connection>) -> Self {
        Self {
            link,
            calls: Arc::clone(&tracked.calls),
            began: now(),
            verdict: Verdict::Doubt,
        }
    }

    fn end(mut self, answer: RedisResult<Value>) -> Result<Value, CallError> {
        self.verdict = answer.as_ref().err().map_or(Verdict::Keep, B::verdict);
        if let (Verdict::Drop, Err(error)) = (&self.verdict, &answer) {
            locked(&self.link.state).last_error = Some(error.clone());
        }
        answer.map_err(CallError::of_call)
    }
}

impl<B: Backend> Drop for CallUnderWay<'_, B> {
    fn drop(&mut self) {
        match self.verdict {
            Verdict::Drop => self.link.drop_connection(&self.calls),
            Verdict::Doubt => self.link.went_unanswered(&self.calls, self.began),
            Verdict::Replace => {
                locked(&self.calls).unanswered = 0;
                self.link.replace();
            }
            Verdict::Keep => locked(&self.calls).unanswered = 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use core::future::pending;
    use core::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    /// A backend that connects once, and answers only some calls.
    #[derive(Default)]
    struct Once(AtomicU32);

    impl Backend for Once {
        type Connection = u32;

        async fn dial(&self) -> RedisResult<u32> {
            if self.0.fetch_add(1, Ordering::Relaxed) > 0 {
                pending::<()>().await;
            }
            Ok(0)
        }

        async fn locate(&self, _key: &str) -> RedisResult<ConnectionInfo> {
            pending().await
        }

        fn verdict(_error: &RedisError) -> Verdict {
            Verdict::Doubt
        }
    }

    impl LinkConnection for u32 {
        async fn run(&mut self, key: &str, _request: &impl LinkRequest) -> RedisResult<Value> {
            if key == "answered" {
                Ok(Value::Nil)
            } else {
                Err((ErrorKind::Io, "the node is gone").into())
            }
        }
    }

    #[test]
    fn ended_runtime_cuts_an_attempt_short() {
        let runtime = || {
            tokio::runtime::Builder::new_current_thread()
                .build()
                .unwrap()
        };
        // An ended runtime drops spawned tasks at once.
        let ended = runtime().handle().clone();
        let link = Arc::new(Reconnecting::new(Once::default(), Some(ended)));
        assert!(runtime().block_on(link.connect()).is_err());
    }

    #[tokio::test]
    async fn failure_during_a_pause_is_followed_up() {
        for is_dropped in [false, true] {
            follow_up(is_dropped).await;
        }
    }

    async fn follow_up(is_dropped: bool) {
        let link = Arc::new(Reconnecting::new(Once::default(), None));
        assert!(link.connect().await.is_ok());
        link.replace();
        assert_eq!(
            link.backend.0.load(Ordering::Relaxed),
            1,
            "it was dialled just now"
        );
        if is_dropped {
            locked(&link.state).connection = None;
        }
        let mut ended = link.ended.subscribe();
        let is_dialled_again = async {
            while link.backend.0.load(Ordering::Relaxed) < 2 {
                let _ = tokio::time::timeout(Duration::from_millis(1), ended.changed()).await;
            }
        };
        assert!(
            tokio::time::timeout(Duration::from_secs(10), is_dialled_again)
                .await
                .is_ok()
        );
        assert!(!locked(&link.state).attempts.is_waiting);
    }

    #[test]
    fn late_attempt_keeps_a_newer_connection() {
        let link = Arc::new(Reconnecting::new(Once::default(), None));
        let mut state = locked(&link.state);
        state.install(1, None);
        let doubtful = state.connection.clone();
        state.install(2, doubtful.as_ref());
        state.install(1, doubtful.as_ref());
        state.install(1, None);
        assert_eq!(
            state.connection.as_ref().map(|tracked| tracked.connection),
            Some(2)
        );
        state.connection = None;
        state.install(1, doubtful.as_ref());
        assert_eq!(
            state.connection.as_ref().map(|tracked| tracked.connection),
            Some(1)
        );
    }

    #[tokio::test]
    async fn connection_without_answers_is_dropped() {
        let link = Arc::new(Reconnecting::new(Once::default(), None));
        assert!(link.connect().await.is_ok());
        let is_up = || locked(&link.state).connection.is_some();
        let run = async |key: &str| {
            link.run(
                key,
                &Call {
                    keys: Vec::new(),
                    request: Vec::new(),
                    deadline: None,
                },
            )
            .await
            .is_ok()
        };
        // The answer in between resets the count.
        for _ in 0..2 {
            assert!(run("answered").await);
            for _ in 1..MOST_UNANSWERED {
                assert!(!run("lost").await && is_up());
            }
        }
        assert!(!run("lost").await && !is_up());
    }
}
