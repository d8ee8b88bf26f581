//! A clock that follows the runtime, and a service that records its requests.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::time::Instant;
use tower::Service;
use tower_quota::{
    Limiter, MemoryStore, Quota,
    store::{Clock, Timestamp},
};

pub(crate) const SECOND: Duration = Duration::from_secs(1);
/// The precision of tokio's timer.
pub(crate) const TICK: Duration = Duration::from_millis(2);

/// The time of the paused runtime.
#[derive(Debug)]
struct RuntimeClock(Instant);

impl Clock for RuntimeClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(1_763_683_200_000_000) + now().duration_since(self.0)
    }
}

#[expect(clippy::disallowed_methods, reason = "the runtime's time is paused")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

#[expect(clippy::disallowed_methods, reason = "the runtime's time is paused")]
pub(crate) async fn pass(time: Duration) {
    tokio::time::sleep(time).await;
}

pub(crate) fn memory() -> MemoryStore {
    MemoryStore::with_clock(100, RuntimeClock(now()))
}

pub(crate) fn limiter(quota: Quota) -> Limiter<MemoryStore> {
    Limiter::new(memory(), "limit", quota)
}

/// A request without a protocol: its sender, its cost, and the pushback of its response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Order {
    pub(crate) user: &'static str,
    pub(crate) pages: u64,
    pub(crate) pause: Option<Duration>,
}

impl Order {
    pub(crate) const fn of(user: &'static str) -> Self {
        Self {
            user,
            pages: 1,
            pause: None,
        }
    }

    pub(crate) const fn pages(self, pages: u64) -> Self {
        Self { pages, ..self }
    }

    pub(crate) const fn pushes_back(self, pause: Duration) -> Self {
        Self {
            pause: Some(pause),
            ..self
        }
    }
}

pub(crate) fn user(order: &Order) -> String {
    order.user.to_owned()
}

/// Returns the pushback of a response, which is the request itself.
pub(crate) fn pause(order: &Order) -> Option<Duration> {
    order.pause
}

/// A service that returns each request and records the time of its arrival.
#[derive(Clone, Debug, Default)]
pub(crate) struct Printer {
    printed: Arc<Mutex<Vec<(&'static str, Instant)>>>,
}

impl Printer {
    /// Returns the sender and the arrival of each request.
    pub(crate) fn printed(&self) -> Vec<(&'static str, Instant)> {
        self.printed.lock().unwrap().clone()
    }

    pub(crate) fn calls(&self) -> usize {
        self.printed.lock().unwrap().len()
    }
}

impl Service<Order> for Printer {
    type Response = Order;
    type Error = Infallible;
    type Future = Ready<Result<Order, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, order: Order) -> Self::Future {
        self.printed.lock().unwrap().push((order.user, now()));
        ready(Ok(order))
    }
}

/// Polls a future once.
pub(crate) fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}
