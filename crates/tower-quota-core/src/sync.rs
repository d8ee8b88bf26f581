//! Locks of tables in memory.

#[cfg(test)]
pub(crate) mod collisions;

use core::cell::Cell;
use std::sync::PoisonError;
pub(crate) use std::sync::atomic::{AtomicUsize, Ordering};
pub(crate) use std::sync::{Mutex, MutexGuard};

/// Locks a mutex. A thread that panicked while it held the lock changes nothing for the others.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    #[cfg(test)]
    collisions::count(mutex);
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the number of this thread, by which it finds a place of its own. Threads take numbers in turn.
#[doc(hidden)]
#[must_use]
pub fn thread_place() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static PLACE: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    PLACE.with(|place| {
        if place.get() == usize::MAX {
            place.set(NEXT.fetch_add(1, Ordering::Relaxed));
        }
        place.get()
    })
}
