use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks the counts. Only a single thread replays, and a panic ends the command.
pub(super) fn lock<T>(counts: &Mutex<T>) -> MutexGuard<'_, T> {
    counts.lock().unwrap_or_else(PoisonError::into_inner)
}
