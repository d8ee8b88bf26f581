use core::time::Duration;

use super::count::Count;
use super::sync::{AtomicU64, Ordering};

/// A body is long after one to two periods.
const PERIODS_PER_SECOND: u64 = 10;

/// One period in the upper half of a word. The lower half counts bodies.
const NEXT: u64 = 1 << 32;

/// The bodies that began in each of the last two periods, and hold a place within the limit.
///
/// The first request of a later period moves the places of older bodies out of the limit. So long bodies need neither
/// timers nor a list.
pub(crate) struct Bodies([AtomicU64; 2]);

impl Bodies {
    pub(crate) fn new() -> Self {
        Self([AtomicU64::new(0), AtomicU64::new(NEXT)])
    }

    /// Moves the places of long bodies out of the limit.
    pub(crate) fn age(&self, now: Duration, count: &Count) {
        let last = period_at(now);
        for word in &self.0 {
            let turn = |word: u64| {
                let age = last.saturating_sub(word / NEXT);
                // Each word has every second period.
                (age >= 2).then(|| (last - age % 2) * NEXT)
            };
            if let Ok(before) = word.fetch_update(Ordering::AcqRel, Ordering::Acquire, turn) {
                count.lengthen(before % NEXT);
            }
        }
    }

    /// Counts the place of a body. Returns its period.
    pub(crate) fn begin(&self, now: Duration, count: &Count) -> u64 {
        self.age(now, count);
        // The word may be in a later period, because threads read the time in any order.
        self.word_of(period_at(now)).fetch_add(1, Ordering::AcqRel) / NEXT
    }

    /// Returns whether the body of this period still held a place within the limit.
    pub(crate) fn end(&self, period: u64) -> bool {
        let leave = |word: u64| (word / NEXT == period).then(|| word - 1);
        self.word_of(period)
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, leave)
            .is_ok()
    }

    fn word_of(&self, period: u64) -> &AtomicU64 {
        &self.0[usize::from(!period.is_multiple_of(2))]
    }
}

fn period_at(now: Duration) -> u64 {
    now.as_secs() * PERIODS_PER_SECOND + u64::from(now.subsec_millis()) * PERIODS_PER_SECOND / 1_000
}
