//! Restores the spent limits of an evicted row when the key returns.

use crate::algorithm::{Bucket, SlidingLog, State};
use crate::charge::Counter;
use crate::entry::Slot;
use crate::outcome::Outcome;
use crate::quota::MOST_USED;
use crate::time::micros;

impl Slot {
    /// Makes the slot of a limit in which no unit is left at `now`.
    pub(super) fn spent(counter: Counter<'_>, now: u64) -> Self {
        let mut state = State::fresh(counter.quota, now);
        state.take(counter.quota, now, counter.quota.capacity());
        Self::new(counter, state)
    }

    /// Makes the slot of a limit in which one unit fits at `until`, an instant after `now`.
    pub(super) fn spent_until(counter: Counter<'_>, until: u64, now: u64) -> Self {
        let quota = counter.quota;
        if quota.refill() > 0 {
            let missing = (until - now).saturating_mul(quota.refill());
            let used = missing.saturating_add((quota.capacity() - 1) * quota.grain());
            let bucket = Bucket::new(quota, used.min(MOST_USED), now);
            return Self::new(counter, State::Bucket(bucket));
        }
        let stamp = until.saturating_sub(quota.period_micros());
        if stamp > now {
            // Only a sliding window that is spent within its current period refuses for longer than a period.
            return Self::spent(counter, now);
        }
        // Any kind of window can count by a log. A log refuses until any instant, and a window until few instants.
        let log = SlidingLog::of_stamp(stamp, quota.capacity());
        Self::new(counter, State::SlidingLog(log))
    }

    /// Returns the instant at which one unit fits, or `at` if a unit fits already.
    ///
    /// Holds count as spent until all expire. Otherwise an eviction would grant units that are still held.
    pub(super) fn unit_fits_at(&self, at: u64) -> u64 {
        if let State::Holds(_) = self.state {
            return self.state.full_at(&self.quota).max(at);
        }
        match self.state.judge(&self.quota, at, 1, 0) {
            Outcome::Refuse(retry) => at + micros(retry),
            _ => at,
        }
    }
}
