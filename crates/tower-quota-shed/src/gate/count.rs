use crate::sync::{AtomicU64, Ordering};

/// One waiting request. The places in use are in the lower half.
const WAITING: u64 = 1 << 32;

/// Counts the requests in progress and the requests that wait, in one word.
///
/// A request that leaves therefore sees the request that waits, or the request that waits sees the free place.
#[repr(align(128))] // Other fields stay out of the cache line that every request writes.
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Takes a place if fewer than `bound` are in use. Returns the places in use, including the new one.
    pub(crate) fn enter(&self, bound: usize) -> Option<usize> {
        let mut word = self.0.load(Ordering::Acquire);
        // An increment that a refusal takes back would refuse others meanwhile.
        while used(word) < bound {
            let entered = word + 1;
            let order = (Ordering::AcqRel, Ordering::Acquire);
            match self
                .0
                .compare_exchange_weak(word, entered, order.0, order.1)
            {
                Ok(_) => return Some(used(entered)),
                Err(present) => word = present,
            }
        }
        None
    }

    /// Returns a place. The caller must serve the queue if the result is true.
    #[must_use]
    pub(crate) fn leave(&self) -> bool {
        waiting(self.0.fetch_sub(1, Ordering::AcqRel)) > 0
    }

    /// Changes the number of waiting requests, under the lock of the queue. Afterwards the caller must try
    /// [`enter`](Self::enter) again.
    pub(crate) fn announce(&self, requests: usize) {
        let before = self.waiting() as u64 * WAITING;
        let after = requests as u64 * WAITING;
        self.0
            .fetch_add(after.wrapping_sub(before), Ordering::AcqRel);
    }

    pub(crate) fn used(&self) -> usize {
        used(self.0.load(Ordering::Acquire))
    }

    pub(crate) fn waiting(&self) -> usize {
        waiting(self.0.load(Ordering::Acquire))
    }
}

fn used(word: u64) -> usize {
    (word % WAITING) as usize
}

fn waiting(word: u64) -> usize {
    (word / WAITING) as usize
}
