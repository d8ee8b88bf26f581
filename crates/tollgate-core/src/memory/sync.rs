//! What the store waits for other threads with. With `--cfg loom` it is loom's, and the models in `contention` go
//! through every order in which threads can get hold of it.

#[cfg(all(test, not(loom)))]
pub(super) mod collisions;
#[cfg(loom)]
mod once;

#[cfg(loom)]
pub(super) use loom::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
#[cfg(loom)]
pub(super) use loom::sync::{Mutex, MutexGuard};
#[cfg(not(loom))]
pub(super) use parking_lot::{Mutex, MutexGuard};
#[cfg(not(loom))]
pub(super) use std::sync::OnceLock;
#[cfg(not(loom))]
pub(super) use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

#[cfg(loom)]
pub(super) use self::once::OnceLock;

/// Locks.
#[inline]
#[cfg(not(loom))]
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    #[cfg(test)]
    collisions::count(mutex);
    mutex.lock()
}

/// Locks. A model in which a thread panics has failed already.
#[cfg(loom)]
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
