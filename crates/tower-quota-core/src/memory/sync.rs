//! Locks and atomics of the store. With `--cfg loom` they are loom's, and the models in `contention` go through every
//! order in which threads can take them.

#[cfg(all(test, not(loom)))]
pub(super) mod collisions;

#[cfg(loom)]
pub(super) use loom::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
#[cfg(loom)]
pub(super) use loom::sync::{Mutex, MutexGuard};
#[cfg(not(loom))]
pub(super) use spin::mutex::{SpinMutex as Mutex, SpinMutexGuard as MutexGuard};
#[cfg(not(loom))]
pub(super) use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// How long a thread pauses between two looks at a lock: each look takes the cache line from the holder.
#[cfg(not(loom))]
const PAUSES: u32 = 16;
/// How often it looks without giving the processor away, a few microseconds in all.
#[cfg(not(loom))]
const SPINS: u32 = 16;
/// How often it does before it sleeps between two looks.
#[cfg(not(loom))]
const YIELDS: u32 = SPINS + 64;
#[cfg(not(loom))]
const NAP: core::time::Duration = core::time::Duration::from_micros(50);

/// Locks.
#[inline]
#[cfg(not(loom))]
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    #[cfg(test)]
    collisions::count(mutex);
    match mutex.try_lock() {
        Some(guard) => guard,
        None => locked_after_waiting(mutex),
    }
}

/// A lock is mostly given back in less time than it takes to sleep and be woken. When it is not, because a table is
/// growing or the system has stopped its holder, the processor is yielded to that one.
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
                #[expect(clippy::disallowed_methods, reason = "the holder has to run, also if it is less urgent")]
                _ => std::thread::sleep(NAP),
            }
            looks = looks.saturating_add(1);
        }
    }
}

/// Locks. A model in which a thread panics has failed already.
#[cfg(loom)]
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[test]
    fn held_lock_is_got_in_the_end() {
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
