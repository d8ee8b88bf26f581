//! The least that was used of a bucket lately: what makes its refunds exact.
//!
//! Had a charge never been made, a bucket would hold what it holds now and the charge's grains, but for those that
//! would have been refilled into a full bucket: no more come back than the least that was used since. The least since
//! any instant takes a list of any length to know. Two spans are enough to be exact in most cases and never too
//! generous: the present one, and the one before, each at least as long as an empty bucket takes to fill. Whatever was
//! charged before those has been refilled since.

use crate::quota::Quota;

/// The least grains used in two spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lows {
    /// When the present span began, in microseconds since the epoch.
    pub(super) since: u64,
    /// The least used since then.
    pub(super) low: u64,
    /// The least used in the span before.
    pub(super) low_before: u64,
}

impl Lows {
    /// Begins with what is used at `now`. Nothing is known of what was before.
    pub(super) const fn new(used: u64, now: u64) -> Self {
        Self { since: now, low: used, low_before: 0 }
    }

    /// Notes what is used at `now`, just before a change. A span that is long enough ends.
    pub(super) fn note(self, quota: &Quota, used: u64, now: u64) -> Self {
        let low = self.low.min(used);
        match now.saturating_sub(self.since) < horizon(quota) {
            true => Self { low, ..self },
            false => Self { since: now, low: used, low_before: low },
        }
    }

    /// Returns the least used since an instant, as far as it is known; 0 is always true.
    pub(super) fn since(self, quota: &Quota, instant: u64) -> u64 {
        if instant >= self.since {
            self.low
        } else if instant.saturating_add(horizon(quota)) >= self.since {
            self.low.min(self.low_before)
        } else {
            0
        }
    }

    /// Notes that so many grains were given back: the charge they were of was never made.
    pub(super) const fn refund(self, grains: u64) -> Self {
        let (low, low_before) = (self.low.saturating_sub(grains), self.low_before.saturating_sub(grains));
        Self { since: self.since, low, low_before }
    }
}

/// Returns the microseconds that an empty bucket takes to fill.
fn horizon(quota: &Quota) -> u64 {
    (quota.capacity() * quota.grain()).div_ceil(quota.refill())
}
