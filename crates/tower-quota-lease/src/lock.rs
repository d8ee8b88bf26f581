//! Locks of tables in memory.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex. A thread that panicked while it held the lock changes nothing for the others.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
