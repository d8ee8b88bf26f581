//! Locks the tables in memory.

use core::hint::spin_loop;
pub(crate) use std::sync::{Mutex, MutexGuard};
use std::sync::{PoisonError, TryLockError};

// The number of attempts before a thread sleeps. All together take about two microseconds.
const ATTEMPTS: u32 = 64;
/// The number of pauses after each attempt, because an attempt takes the cache line from the
/// holder.
const PAUSES: u32 = 16;

/// Locks a mutex, even if a thread panicked while holding the lock.
///
/// A thread tries several times before it sleeps, because waking costs the holder a system call. Two threads on one key take
/// half as long as with `Mutex::lock` alone.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    #[cfg(test)]
    collisions::count(mutex);
    for _ in 0..ATTEMPTS {
        match mutex.try_lock() {
            Ok(guard) => return guard,
            Err(TryLockError::Poisoned(error)) => return error.into_inner(),
            Err(TryLockError::WouldBlock) => (0..PAUSES).for_each(|_| spin_loop()),
        }
    }
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
pub(crate) mod collisions {
    use std::cell::RefCell;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::Mutex;

    thread_local! {
        static COUNTER: RefCell<Option<Arc<AtomicUsize>>> = const { RefCell::new(None) };
    }

    pub(crate) fn count_in(counter: &Arc<AtomicUsize>) {
        COUNTER.set(Some(Arc::clone(counter)));
    }

    pub(super) fn count<T>(mutex: &Mutex<T>) {
        COUNTER.with_borrow(|counter| {
            if let Some(counter) = counter
                && mutex.try_lock().is_err()
            {
                counter.fetch_add(1, Ordering::SeqCst);
            }
        });
    }
}
