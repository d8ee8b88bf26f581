//! Locks of tables in memory.

#[cfg(test)]
pub(crate) mod collisions;

use core::hint::spin_loop;
pub(crate) use std::sync::{Mutex, MutexGuard};
use std::sync::{PoisonError, TryLockError};

/// Looks at a held lock before the thread sleeps, about two microseconds.
const LOOKS: u32 = 64;
/// Pauses between two looks. Each look takes the cache line from the holder.
const PAUSES: u32 = 16;

/// Locks a mutex, also after a panic of another thread.
///
/// A lock is held for some tens of nanoseconds. To wake a sleeping thread costs the holder a system call, so a thread looks
/// several times before the thread sleeps.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    #[cfg(test)]
    collisions::count(mutex);
    for _ in 0..LOOKS {
        match mutex.try_lock() {
            Ok(guard) => return guard,
            Err(TryLockError::Poisoned(error)) => return error.into_inner(),
            Err(TryLockError::WouldBlock) => (0..PAUSES).for_each(|_| spin_loop()),
        }
    }
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
