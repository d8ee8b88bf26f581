use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex, even after a panic of another thread. No change can panic halfway, so the value is
/// valid.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
