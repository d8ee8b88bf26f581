use super::sync::{AtomicU64, Ordering};

/// One waiting request. The places within the limit are in the lower bits.
const WAITING: u64 = 1 << 24;
/// One long body. The upper bits may be negative for a moment, when a body ends before it is counted as long.
const LONG: u64 = 1 << 40;

/// Counts the requests within the limit, the long bodies, and the requests that wait, in one word.
///
/// A request that leaves therefore sees the request that waits, or the request that waits sees the free place.
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Takes a place if fewer than `bound` are in use, and with long bodies fewer than `ceiling`. Without the lock of the
    /// queue, the place is for a waiting request. Returns the places in use within the limit, including the new one.
    pub(crate) fn enter(&self, bound: usize, ceiling: usize, has_lock: bool) -> Option<usize> {
        let mut word = self.0.load(Ordering::Acquire);
        // An increment that a refusal takes back would refuse others meanwhile.
        while used(word) < bound && in_progress(word) < ceiling && (has_lock || waiting(word) == 0)
        {
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

    /// Moves the places of so many bodies out of the limit.
    pub(crate) fn lengthen(&self, bodies: u64) {
        self.0
            .fetch_add(bodies.wrapping_mul(LONG - 1), Ordering::AcqRel);
    }

    /// Returns a place. The caller must serve the queue if the result is true.
    #[must_use]
    pub(crate) fn leave(&self) -> bool {
        waiting(self.0.fetch_sub(1, Ordering::AcqRel)) > 0
    }

    /// Ends a long body. The caller must serve the queue if the result is true.
    #[must_use]
    pub(crate) fn leave_long(&self) -> bool {
        waiting(self.0.fetch_sub(LONG, Ordering::AcqRel)) > 0
    }

    /// Changes the number of waiting requests, under the lock of the queue. Afterwards the caller must try
    /// [`enter`](Self::enter) again.
    pub(crate) fn announce(&self, requests: usize) {
        let before = self.waiting() as u64 * WAITING;
        let after = requests as u64 * WAITING;
        self.0
            .fetch_add(after.wrapping_sub(before), Ordering::AcqRel);
    }

    /// Returns the places in use within the limit.
    pub(crate) fn used(&self) -> usize {
        used(self.0.load(Ordering::Acquire))
    }

    /// Returns the places in use, including the places of long bodies.
    pub(crate) fn in_progress(&self) -> usize {
        in_progress(self.0.load(Ordering::Acquire))
    }

    pub(crate) fn waiting(&self) -> usize {
        waiting(self.0.load(Ordering::Acquire))
    }
}

fn used(word: u64) -> usize {
    (word % WAITING) as usize
}

fn in_progress(word: u64) -> usize {
    let long = isize::try_from(word.cast_signed() >> LONG.ilog2());
    used(word).saturating_add_signed(long.unwrap_or_default())
}

fn waiting(word: u64) -> usize {
    (word % LONG / WAITING) as usize
}
