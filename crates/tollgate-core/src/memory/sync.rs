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
pub(super) use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
#[cfg(not(loom))]
pub(super) use std::sync::{Mutex, MutexGuard, OnceLock};

use std::sync::PoisonError;

#[cfg(loom)]
pub(super) use self::once::OnceLock;

/// Locks, whatever became of the last one to do so: nothing here is left half done by a panic.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    #[cfg(all(test, not(loom)))]
    collisions::count(mutex);
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
