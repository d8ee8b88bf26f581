//! What the store waits for other threads with. With `--cfg loom` it is loom's, and the models in `contention` go
//! through every order in which threads can get hold of it.

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

/// How long a thread pauses between two looks at a lock: each look takes the holder's cache line from him.
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

/// Whoever holds a lock mostly gives it back in less time than it takes to sleep and be woken. When he does not, because a
/// table is growing or the system has stopped him, he gets the processor.
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
                    reason = "so that who holds it runs, though less urgent than this one"
                )]
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
    fn whoever_finds_a_lock_held_gets_it_however_long_that_takes() {
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
            // Longer than he looks for without sleeping, wherever threads get their turns.
            (0..20 * YIELDS).for_each(|_| std::thread::yield_now());
            *guard += 10;
            drop(guard);
        });
        assert_eq!(*locked(&mutex), 11);
    }
}
