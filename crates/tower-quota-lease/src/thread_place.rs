//! Numbers of threads.

use core::cell::Cell;
use core::sync::atomic::{AtomicUsize, Ordering};

/// Returns the number of this thread, by which it finds a place of its own. Threads take numbers in turn.
pub(crate) fn thread_place() -> usize {
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
