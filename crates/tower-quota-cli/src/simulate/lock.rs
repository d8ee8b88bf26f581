use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks the counts. One thread replays, and a panic in it ends the command.
pub(super) fn lock<T>(counts: &Mutex<T>) -> MutexGuard<'_, T> {
    counts.lock().unwrap_or_else(PoisonError::into_inner)
}
