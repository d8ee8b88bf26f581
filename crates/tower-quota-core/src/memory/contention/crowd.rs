//! A clock on which threads collide.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;

use crate::clock::Clock;
use crate::time::Timestamp;

thread_local! {
    static HOLDS_UP: Cell<bool> = const { Cell::new(false) };
}

/// A manual clock. `hold_up` holds a thread until another thread has collided, or all have left.
#[derive(Clone, Debug, Default)]
pub(super) struct Crowd(Arc<Meeting>);

#[derive(Debug, Default)]
struct Meeting {
    now: AtomicU64,
    busy: AtomicUsize,
    collisions: Arc<AtomicUsize>,
    /// Whether a thread has been held up. Two could wait for each other.
    was_held_up: AtomicBool,
}

impl Crowd {
    pub(super) fn at(now: Timestamp) -> Self {
        let crowd = Self::default();
        crowd.advance(now.as_micros());
        crowd
    }

    pub(super) fn advance(&self, micros: u64) {
        self.0.now.fetch_add(micros, Ordering::SeqCst);
    }

    pub(super) fn gather(&self, threads: usize) {
        self.0.was_held_up.store(false, Ordering::SeqCst);
        self.0.busy.store(threads, Ordering::SeqCst);
    }

    pub(super) fn leave(&self) {
        self.0.busy.fetch_sub(1, Ordering::SeqCst);
    }

    pub(super) fn hold_up(&self) {
        HOLDS_UP.set(true);
    }

    pub(super) fn wait_for_hold_up(&self) {
        while !self.0.was_held_up.load(Ordering::SeqCst) && self.0.busy.load(Ordering::SeqCst) > 1 {
            thread::yield_now();
        }
    }

    pub(super) fn collisions(&self) -> &Arc<AtomicUsize> {
        &self.0.collisions
    }
}

impl Clock for Crowd {
    fn now(&self) -> Timestamp {
        let now = Timestamp::from_micros(self.0.now.load(Ordering::SeqCst));
        let collisions = || self.0.collisions.load(Ordering::SeqCst);
        // Read the count before other threads go on, because they may collide with this thread at
        // once.
        let before = collisions();
        if HOLDS_UP.take() && !self.0.was_held_up.swap(true, Ordering::SeqCst) {
            while collisions() == before && self.0.busy.load(Ordering::SeqCst) > 1 {
                thread::yield_now();
            }
        }
        now
    }
}
