//! The least that was used of a bucket lately: what makes its refunds exact.
//!
//! Had a charge never been made, a bucket would hold what it holds now and the charge's grains, but for those that
//! would have been refilled into a full bucket: no more come back than the least that was used since. The least since
//! any instant takes a list of any length to know. Two spans are enough to be exact in most cases and never too
//! generous: the present one, and the one before, each at least as long as an empty bucket takes to fill. Whatever was
//! charged before those has been refilled since.
//!
//! They begin anew where the bucket was full or was converted to another quota. So as far back as they reach, time has
//! refilled the bucket at one rate. (A charge of the very microsecond of a conversion counts as later.)

use crate::quota::{MOST_USED, Quota};

/// The least grains used in two spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lows {
    /// When the present span began, in microseconds since the epoch.
    pub(super) since: u64,
    /// The least used since then.
    pub(super) low: u64,
    /// One more than the least used in the span before; 0 where there was none.
    pub(super) low_before: u64,
}

impl Lows {
    /// Begins with what is used at `now`. Nothing is known of what was before.
    pub(super) const fn new(used: u64, now: u64) -> Self {
        Self { since: now, low: used, low_before: 0 }
    }

    /// Notes what is used just before a change.
    pub(super) fn note(self, used: u64) -> Self {
        Self { low: self.low.min(used), ..self }
    }

    /// Ends a span that is long enough at `now`, with so much used.
    pub(super) fn pass(self, quota: &Quota, used: u64, now: u64) -> Self {
        match now.saturating_sub(self.since) < horizon(quota) {
            true => self,
            false => Self { since: now, low: used, low_before: (self.low + 1).min(MOST_USED) },
        }
    }

    /// Returns the least used since an instant; `None` where it is not known.
    pub(super) fn since(self, quota: &Quota, instant: u64) -> Option<u64> {
        if instant >= self.since {
            Some(self.low)
        } else if instant.saturating_add(horizon(quota)) >= self.since {
            Some(self.low.min(self.low_before.checked_sub(1)?))
        } else {
            None
        }
    }

    /// Notes that so many grains were given back: the charge they were of was never made.
    pub(super) fn refund(self, grains: u64) -> Self {
        let low_before = match self.low_before {
            0 => 0,
            low_before => low_before.saturating_sub(grains).max(1),
        };
        Self { since: self.since, low: self.low.saturating_sub(grains), low_before }
    }
}

/// Returns the microseconds that an empty bucket takes to fill.
fn horizon(quota: &Quota) -> u64 {
    (quota.capacity() * quota.grain()).div_ceil(quota.refill())
}
