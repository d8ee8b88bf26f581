//! Locks and atomics of tables in memory.
//!
//! With `--cfg loom` they are loom's, and the models in `contention` try every order in which threads can take them.

#[cfg(all(test, not(loom)))]
pub(crate) mod collisions;
mod sequence;

use core::cell::Cell;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};

pub(crate) use self::sequence::{SequenceLock, Words};

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
#[cfg(loom)]
pub(crate) use loom::sync::{Mutex, MutexGuard};
#[cfg(not(loom))]
pub(crate) use spin::mutex::{SpinMutex as Mutex, SpinMutexGuard as MutexGuard};
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Spin hints between two looks at a lock. Each look takes the cache line from the holder.
#[cfg(not(loom))]
const PAUSES: u32 = 16;
/// Looks before a thread yields the processor, a few microseconds in all.
#[cfg(not(loom))]
const SPINS: u32 = 16;
/// Looks before a thread sleeps between two looks.
#[cfg(not(loom))]
const YIELDS: u32 = SPINS + 64;
/// The sleep between two looks.
#[cfg(not(loom))]
const SLEEP: core::time::Duration = core::time::Duration::from_micros(50);

/// Locks a mutex.
#[inline]
#[cfg(not(loom))]
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    #[cfg(test)]
    collisions::count(mutex);
    match mutex.try_lock() {
        Some(guard) => guard,
        None => locked_after_waiting(mutex),
    }
}

/// Waits for a held lock: spins, then yields, then sleeps between two looks.
///
/// A lock is usually released in less time than a sleep takes. If it is not, a table is growing or the system has
/// stopped the holder. Then the processor is left to the holder.
#[cold]
#[cfg(not(loom))]
fn locked_after_waiting<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    let mut looks = 0_u32;
    loop {
        if let Some(guard) = mutex.try_lock() {
            return guard;
        }
        while mutex.is_locked() {
            match looks {
                0..SPINS => (0..PAUSES).for_each(|_| core::hint::spin_loop()),
                SPINS..YIELDS => std::thread::yield_now(),
                #[expect(
                    clippy::disallowed_methods,
                    reason = "the holder has to run, also if it is less urgent"
                )]
                _ => std::thread::sleep(SLEEP),
            }
            looks = looks.saturating_add(1);
        }
    }
}

/// Locks a mutex. A model in which a thread panics has failed already.
#[cfg(loom)]
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Locks a mutex unless it is held.
#[cfg(not(loom))]
pub(crate) fn try_locked<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    mutex.try_lock()
}

/// Locks a mutex unless it is held.
#[cfg(loom)]
pub(crate) fn try_locked<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    mutex.try_lock().ok()
}

/// A spin lock for tables in memory, of all crates of tower-quota.
///
/// It should be held for some tens of nanoseconds, and rarely for microseconds. It is released by one store. Threads
/// that wait spin, then yield, then sleep between two looks. A thread that panics while it holds the lock releases it.
#[doc(hidden)]
#[derive(Debug, Default)]
pub struct ShortMutex<T>(Mutex<T>);

impl<T> ShortMutex<T> {
    /// Waits for the lock.
    #[inline]
    pub fn lock(&self) -> ShortGuard<'_, T> {
        ShortGuard {
            held: locked(&self.0),
            stays: PhantomData,
        }
    }
}

/// A held [`ShortMutex`]. It stays in its thread, so that no task keeps it while it waits.
#[doc(hidden)]
#[derive(Debug)]
pub struct ShortGuard<'m, T> {
    held: MutexGuard<'m, T>,
    stays: PhantomData<*const ()>,
}

impl<T> Deref for ShortGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.held
    }
}

impl<T> DerefMut for ShortGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.held
    }
}

/// Returns the number of this thread, by which it finds a place of its own. Threads take numbers in turn.
#[doc(hidden)]
#[must_use]
pub fn thread_place() -> usize {
    use std::sync::atomic::AtomicUsize;

    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static PLACE: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    PLACE.with(|place| {
        if place.get() == usize::MAX {
            place.set(NEXT.fetch_add(1, Ordering::Relaxed));
        }
        place.get()
    })
}

/// Runs a model in every order, and prints how many there are.
#[cfg(all(test, loom))]
pub(crate) fn every_order(name: &str, model: impl Fn() + Send + Sync + 'static) {
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;

    let orders = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&orders);
    loom::model(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        model();
    });
    println!("{name}: {} orders", orders.load(Ordering::Relaxed));
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[test]
    fn held_lock_is_acquired_after_release() {
        let (mutex, collisions) = (Mutex::new(0), Arc::new(AtomicUsize::new(0)));
        std::thread::scope(|threads| {
            let mut guard = locked(&mutex);
            threads.spawn(|| {
                collisions::count_in(&collisions);
                *locked(&mutex) += 1;
            });
            while collisions.load(Ordering::SeqCst) == 0 {
                std::thread::yield_now();
            }
            // Longer than the other thread looks without sleeping.
            (0..20 * YIELDS).for_each(|_| std::thread::yield_now());
            *guard += 10;
            drop(guard);
        });
        assert_eq!(*locked(&mutex), 11);
    }
}
