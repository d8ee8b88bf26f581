//! Decisions that travel together.
//!
//! 1. A decision that finds one of the lanes free leaves at once. No timer ever holds one back.
//! 2. While all lanes are taken, decisions wait. A lane that becomes free takes with it as many as one call may carry,
//!    and goes on until nobody waits.
//! 3. A call is bounded by weight, so that it never occupies the server for more than about a millisecond.
//! 4. Each decision has a deadline and an outcome of its own. One whose caller has gone, or whose deadline has passed, is
//!    not sent.
//! 5. Calls are tasks of their own. A caller that is slow to look for its answer, or never does, holds no lane.
//! 6. A decision that comes while nothing else is going on needs no lane: its caller makes the call, which saves it two
//!    changes of task.

mod pending;
mod queue;

use core::iter::once;
use core::time::Duration;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redis::Value;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tower_quota_core::{Clock, Decision, Timestamp};

use self::pending::{Pending, now};
use self::queue::Queue;
use crate::error::RedisStoreError;
use crate::health::Health;
use crate::link::{Link, Trouble};
use crate::question::Question;
use crate::wire::{Reply, Request, Unreadable};

/// Calls under way on each connection. Two keep the server busy while a reply is read and the next call is put together.
const LANES_PER_CONNECTION: usize = 2;

/// What every call needs.
pub(crate) struct Caller {
    /// Connections to one server, or to one cluster.
    pub(crate) links: Vec<Link>,
    /// Whether they lead to a server that is worth asking.
    pub(crate) health: Arc<Health>,
    /// A key that leads to the partition.
    pub(crate) partition_key: String,
    pub(crate) deadline: Duration,
    pub(crate) clock: Option<Arc<dyn Clock>>,
    pub(crate) server: Arc<str>,
}

/// Takes decisions about the subjects of one partition.
pub(crate) struct Batcher {
    shared: Arc<Shared>,
}

struct Shared {
    caller: Caller,
    queue: Mutex<Queue>,
}

impl Batcher {
    pub(crate) fn new(caller: Caller) -> Self {
        let lanes = caller.links.len() * LANES_PER_CONNECTION;
        Self { shared: Arc::new(Shared { caller, queue: Mutex::new(Queue::new(lanes)) }) }
    }

    /// Waits for the connections, up to the deadline each.
    pub(crate) async fn connected(&self) -> Result<(), RedisStoreError> {
        self.shared.caller.connect().await
    }

    /// Decides, within the deadline; while the breaker is open, at once.
    pub(crate) async fn decide(&self, question: Question) -> Result<Decision, RedisStoreError> {
        let caller = &self.shared.caller;
        if caller.health.is_open() {
            return Err(caller.not_asked());
        }
        if self.shared.lock().go_alone() {
            return Alone { shared: &self.shared, is_answered: false }.decide(&question).await;
        }
        let expiry = now().checked_add(caller.deadline);
        match tokio::time::timeout(caller.deadline, self.shared.ask(question, expiry)).await {
            Ok(Ok(answer)) => answer,
            // It was too late to be sent.
            Ok(Err(_)) if expiry.is_some_and(|expiry| expiry <= now()) => Err(caller.too_late()),
            // The runtime that the call was made on was shut down under it.
            Ok(Err(_)) => Err(caller.cut_short()),
            Err(_) => Err(caller.too_late()),
        }
    }
}

impl Shared {
    /// Has a question sent: by a lane of its own if one is free, or by the next that becomes free.
    fn ask(
        self: &Arc<Self>,
        question: Question,
        expiry: Option<Instant>,
    ) -> oneshot::Receiver<Result<Decision, RedisStoreError>> {
        let (answer, answered) = oneshot::channel();
        let pending = Pending { question, answer, expiry };
        let lane = self.lock().free_lane_at_once();
        if let Some(number) = lane {
            tokio::spawn(Self::drain(Lane { shared: Arc::clone(self), number }, vec![pending]));
        } else {
            self.lock().push(pending);
            // A lane may have become free since it was asked for.
            self.send_for_a_lane();
        }
        answered
    }

    /// Has those who wait served by a lane that is free, if there is one.
    ///
    /// The task holds no lane before it runs: a runtime that is shutting down drops it at once, and a lane in it would
    /// then send for the next.
    fn send_for_a_lane(self: &Arc<Self>) {
        let Ok(runtime) = Handle::try_current() else { return };
        if self.lock().has_work() {
            let shared = Arc::clone(self);
            runtime.spawn(async move {
                let lane = shared.lock().free_lane();
                if let Some(number) = lane {
                    Self::drain(Lane { shared, number }, Vec::new()).await;
                }
            });
        }
    }

    /// Decides these, and then whatever waits until nothing does. Once the breaker has opened, each call fails at once,
    /// so whoever waits is told without delay.
    async fn drain(lane: Lane, mut batch: Vec<Pending>) {
        let shared = Arc::clone(&lane.shared);
        batch.retain(|pending| !pending.is_over(now()));
        loop {
            if !batch.is_empty() {
                shared.send(lane.number, batch).await;
            }
            batch = shared.lock().take_batch(now());
            if batch.is_empty() {
                // Dropped, the lane looks again: somebody may have come since.
                return;
            }
        }
    }

    /// One call, and each one's answer.
    async fn send(&self, lane: usize, batch: Vec<Pending>) {
        let reply = self.caller.call(lane, batch.iter().map(|pending| &pending.question)).await;
        match reply {
            Ok(reply) => {
                self.lock().answered();
                let mut reply = Reply::new(bytes_of(&reply));
                for pending in batch {
                    let outcome = self.caller.read(&mut reply, &pending.question);
                    // Its caller may have gone meanwhile.
                    let _ = pending.answer.send(outcome);
                }
            }
            Err(error) => batch.into_iter().for_each(|pending| {
                let _ = pending.answer.send(Err(error.clone()));
            }),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        // Nothing in a queue can be half done.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A caller that makes its call itself. Dropped without an answer, it leaves the next calls to the lanes.
struct Alone<'a> {
    shared: &'a Shared,
    is_answered: bool,
}

impl Alone<'_> {
    async fn decide(mut self, question: &Question) -> Result<Decision, RedisStoreError> {
        let caller = &self.shared.caller;
        let reply = caller.call(0, once(question)).await;
        self.is_answered = reply.is_ok();
        caller.read(&mut Reply::new(bytes_of(&reply?)), question)
    }
}

impl Drop for Alone<'_> {
    fn drop(&mut self) {
        self.shared.lock().came_back(self.is_answered);
    }
}

/// The right to have a call under way. Dropped, it goes to those who wait, or is free for the next to come.
struct Lane {
    shared: Arc<Shared>,
    number: usize,
}

impl Drop for Lane {
    fn drop(&mut self) {
        self.shared.lock().free(self.number);
        self.shared.send_for_a_lane();
    }
}

impl Caller {
    /// One call about these questions.
    async fn call<'a>(
        &self,
        lane: usize,
        questions: impl Iterator<Item = &'a Question>,
    ) -> Result<Value, RedisStoreError> {
        let mut request = Request::default();
        questions.for_each(|question| request.decide(&question.template, &question.clients));
        let call = request.into_call(self.instant());
        self.answered(self.link(lane).run(&self.partition_key, &call)).await
    }

    /// The answer to a call, within the deadline and unless the breaker is open, which hears of it.
    async fn answered(&self, call: impl Future<Output = Result<Value, Trouble>>) -> Result<Value, RedisStoreError> {
        if self.health.is_open() {
            return Err(self.not_asked());
        }
        let answer = self.within_deadline(call).await;
        match &answer {
            Err(RedisStoreError::Connect { .. } | RedisStoreError::Deadline { .. } | RedisStoreError::Lost { .. }) => {
                self.health.failed()
            }
            // A server that refuses is there.
            _ => self.health.answered(),
        }
        answer
    }

    fn link(&self, lane: usize) -> &Link {
        &self.links[lane % self.links.len()]
    }

    fn instant(&self) -> Option<Timestamp> {
        self.clock.as_ref().map(|clock| clock.now())
    }

    /// Waits until there is a connection.
    async fn connect(&self) -> Result<(), RedisStoreError> {
        for link in &self.links {
            self.within_deadline(link.connect()).await?;
        }
        Ok(())
    }

    async fn within_deadline<T>(&self, call: impl Future<Output = Result<T, Trouble>>) -> Result<T, RedisStoreError> {
        match tokio::time::timeout(self.deadline, call).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(Trouble::Connect(source))) => {
                Err(RedisStoreError::Connect { server: Arc::clone(&self.server), source: Arc::new(source) })
            }
            Ok(Err(Trouble::Call(error))) => Err(RedisStoreError::of_call(&self.server, error)),
            Err(_) => Err(self.too_late()),
        }
    }

    fn read(&self, reply: &mut Reply<'_>, question: &Question) -> Result<Decision, RedisStoreError> {
        reply.next(&question.template).map_err(|unreadable| match unreadable {
            Unreadable::State => RedisStoreError::State { server: Arc::clone(&self.server) },
            Unreadable::Reply => RedisStoreError::Garbled { server: Arc::clone(&self.server), source: None },
        })
    }

    fn not_asked(&self) -> RedisStoreError {
        RedisStoreError::BreakerOpen { server: Arc::clone(&self.server) }
    }

    fn too_late(&self) -> RedisStoreError {
        RedisStoreError::Deadline { server: Arc::clone(&self.server), after: self.deadline }
    }

    fn cut_short(&self) -> RedisStoreError {
        let source: Arc<dyn core::error::Error + Send + Sync> =
            Arc::new(std::io::Error::other("the runtime was shut down during the call"));
        RedisStoreError::Lost { server: Arc::clone(&self.server), source }
    }
}

/// A reply that is no string is as good as an empty one.
fn bytes_of(reply: &Value) -> &[u8] {
    match reply {
        Value::BulkString(bytes) => bytes,
        _ => &[],
    }
}
