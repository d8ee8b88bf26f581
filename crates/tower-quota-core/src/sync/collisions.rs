//! Counts of locks that a thread has found held by another, for tests that need such collisions.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::Mutex;

thread_local! {
    static COUNTER: RefCell<Option<Arc<AtomicUsize>>> = const { RefCell::new(None) };
}

/// Counts this thread's later collisions in `counter`.
pub(crate) fn count_in(counter: &Arc<AtomicUsize>) {
    COUNTER.set(Some(Arc::clone(counter)));
}

/// Counts a collision if the lock is held at this moment.
pub(crate) fn count<T>(mutex: &Mutex<T>) {
    COUNTER.with_borrow(|counter| {
        if let Some(counter) = counter
            && mutex.try_lock().is_err()
        {
            counter.fetch_add(1, Ordering::SeqCst);
        }
    });
}
