//! The queue of requests that wait for their turn.

use core::sync::atomic::{AtomicUsize, Ordering};
use core::time::Duration;
use std::sync::Arc;

use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

/// The number of requests that wait for their turn, and its bound.
#[derive(Debug)]
pub(crate) struct Queue {
    waiting: AtomicUsize,
    /// The maximum number of waiting requests; 0 after the queue is closed.
    capacity: AtomicUsize,
    closed: Arc<Notify>,
}

/// A place in the queue. It is released when it is dropped.
#[derive(Debug)]
pub(crate) struct Place(Arc<Queue>);

impl Queue {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            waiting: AtomicUsize::new(0),
            capacity: AtomicUsize::new(capacity),
            closed: Arc::default(),
        }
    }

    /// Sets the maximum number of waiting requests.
    pub(crate) fn set_capacity(&self, capacity: usize) {
        self.capacity.store(capacity, Ordering::Release);
    }

    /// Returns the longest wait: zero while all places are taken, unbounded otherwise.
    #[inline]
    pub(crate) fn longest_wait(&self) -> Option<Duration> {
        let is_full = self.waiting.load(Ordering::Relaxed) >= self.capacity.load(Ordering::Relaxed);
        is_full.then_some(Duration::ZERO)
    }

    /// Takes a place, if one is free.
    pub(crate) fn place(self: &Arc<Self>) -> Option<Place> {
        let capacity = self.capacity.load(Ordering::Acquire);
        // Relaxed is enough: no other memory depends on the count.
        let enter = |waiting| (waiting < capacity).then_some(waiting + 1);
        self.waiting
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, enter)
            .ok()?;
        Some(Place(Arc::clone(self)))
    }

    /// Returns the number of places that are taken.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Ends all waits, and prevents new ones.
    pub(crate) fn close(&self) {
        self.capacity.store(0, Ordering::Release);
        self.closed.notify_waiters();
    }
}

impl Place {
    /// Returns a future that completes when the queue is closed.
    pub(crate) fn closed(&self) -> OwnedNotified {
        Arc::clone(&self.0.closed).notified_owned()
    }

    /// Returns whether the queue is closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.0.capacity.load(Ordering::Acquire) == 0
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}
