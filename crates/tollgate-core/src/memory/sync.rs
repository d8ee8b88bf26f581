//! What the store waits for other threads with.

pub(super) use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
pub(super) use std::sync::{Mutex, MutexGuard, OnceLock};

use std::sync::PoisonError;

/// Locks, whatever became of the last one to do so: nothing here is left half done by a panic.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
