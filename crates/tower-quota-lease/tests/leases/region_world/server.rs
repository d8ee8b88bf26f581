//! Stores that lose data, and the ways to them.

use std::fmt;
use std::future::{Future, Ready, ready};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tower_quota_core::{Charge, Clock, Decision, MemoryStore, Operation, Store, Timestamp};
use tower_quota_testkit::ManualClock;

/// What happens to the calls of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Open,
    LosesCalls,
    LosesAnswers,
}

#[derive(Debug)]
pub(crate) struct Lost;

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the call was lost")
    }
}

impl std::error::Error for Lost {}

/// A clock that is ahead of the time of the world.
#[derive(Clone, Debug)]
pub(super) struct Ahead {
    pub(super) clock: ManualClock,
    pub(super) by: Duration,
}

impl Clock for Ahead {
    fn now(&self) -> Timestamp {
        self.clock.now() + self.by
    }
}

/// A store that may lose its data.
#[derive(Clone)]
pub(super) struct Server {
    clock: Ahead,
    data: Arc<Mutex<MemoryStore>>,
}

impl Server {
    pub(super) fn new(clock: Ahead) -> Self {
        let data = MemoryStore::with_clock(100, clock.clone());
        Self {
            clock,
            data: Arc::new(Mutex::new(data)),
        }
    }

    pub(super) fn lose(&self) {
        *self.data.lock().unwrap() = MemoryStore::with_clock(100, self.clock.clone());
    }
}

/// The way of a region to a store.
#[derive(Clone)]
pub(crate) struct Link {
    pub(super) server: Server,
    pub(super) way: Arc<Mutex<Way>>,
}

impl Store for Link {
    type Error = Lost;
    type Future = Ready<Result<Decision, Lost>>;

    fn apply(&self, operation: Operation, charges: &[Charge<'_>]) -> Self::Future {
        let way = *self.way.lock().unwrap();
        if way == Way::LosesCalls {
            return ready(Err(Lost));
        }
        let Ok(decision) = now(self.server.data.lock().unwrap().apply(operation, charges));
        ready(match way {
            Way::LosesAnswers => Err(Lost),
            _ => Ok(decision),
        })
    }
}

/// Returns the output of a future that never waits.
pub(super) fn now<F: Future>(future: F) -> F::Output {
    let mut future = Box::pin(future);
    let mut context = Context::from_waker(Waker::noop());
    let output = match future.as_mut().poll(&mut context) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    };
    output.unwrap()
}
