//! Locks the tables in memory.

use core::hint::spin_loop;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// The number of attempts before a thread sleeps. They take one to three microseconds, because a pause
/// lasts between 40 and 140 cycles.
const ATTEMPTS: u32 = 16;
/// The number of pauses after each attempt, because an attempt takes the cache line from the
/// holder.
const PAUSES: u32 = 16;

/// A mutex that stays usable after a thread panicked while holding it.
#[derive(Debug, Default)]
#[doc(hidden)]
pub struct Lock<T>(Mutex<T>);

impl<T> Lock<T> {
    pub const fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    /// Waits for the lock.
    ///
    /// `Mutex::lock` spins too, but looks at the lock after each pause. On one key, two threads then make a third fewer
    /// decisions.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        #[cfg(test)]
        collisions::count(&self.0);
        for _ in 0..ATTEMPTS {
            match self.0.try_lock() {
                Ok(guard) => return guard,
                Err(TryLockError::Poisoned(error)) => return error.into_inner(),
                Err(TryLockError::WouldBlock) => (0..PAUSES).for_each(|_| spin_loop()),
            }
        }
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
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

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn lock_stays_usable_after_panic() {
        let lock = Lock::new(1);
        let panicked = thread::scope(|scope| {
            let holder = scope.spawn(|| {
                *lock.lock() = 2;
                let _held = lock.lock();
                panic!("the holder ends here");
            });
            holder.join()
        });
        assert!(panicked.is_err());
        assert_eq!(*lock.lock(), 2);
    }
}
