//! What the store waits for other threads with.

pub(super) use std::sync::OnceLock;
pub(super) use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

pub(super) use parking_lot::{Mutex, MutexGuard};

/// Locks.
#[inline]
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}
