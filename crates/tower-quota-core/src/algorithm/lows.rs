//! The recent low marks of a bucket, which make its refunds exact.
//!
//! A refund must leave the bucket as if the charge had never been made. Without the charge, some of its grains would
//! have been refilled into a full bucket, and lost. So a refund gives back at most the least that was used since the
//! charge. To know that minimum for any instant would take a list without bound. Two spans are kept instead: the
//! present one and the one before, each at least as long as an empty bucket takes to fill. They are exact in most
//! cases and never give back too much. A charge before both has been refilled since.
//!
//! The spans start again when the bucket was full or was converted to another quota. Time has therefore refilled the
//! bucket at one rate as far back as they reach. (A charge in the microsecond of a conversion counts as later.)

use crate::quota::{MOST_USED, Quota};
use crate::time::micros;

/// The least grains used in two spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lows {
    /// The start of the present span, in microseconds since the epoch.
    pub(super) since: u64,
    /// The least used since then.
    pub(super) low: u64,
    /// One more than the least used in the span before; 0 where there was none.
    pub(super) low_before: u64,
}

impl Lows {
    /// Makes the low marks of a bucket at `now`, with no span before.
    pub(super) const fn new(used: u64, now: u64) -> Self {
        Self { since: now, low: used, low_before: 0 }
    }

    /// Lowers the mark to what is used just before a change.
    pub(super) fn note(self, used: u64) -> Self {
        Self { low: self.low.min(used), ..self }
    }

    /// Starts a new span at `now` if the present one is long enough.
    pub(super) fn pass(self, quota: &Quota, used: u64, now: u64) -> Self {
        match now.saturating_sub(self.since) < micros(quota.window()) {
            true => self,
            false => Self { since: now, low: used, low_before: (self.low + 1).min(MOST_USED) },
        }
    }

    /// Returns the least used since an instant; `None` where it is not known.
    pub(super) fn since(self, quota: &Quota, instant: u64) -> Option<u64> {
        if instant >= self.since {
            Some(self.low)
        } else if instant.saturating_add(micros(quota.window())) >= self.since {
            Some(self.low.min(self.low_before.checked_sub(1)?))
        } else {
            None
        }
    }

    /// Lowers both marks by a refund, as if its charge had never been made.
    pub(super) fn refund(self, grains: u64) -> Self {
        let low_before = match self.low_before {
            0 => 0,
            low_before => low_before.saturating_sub(grains).max(1),
        };
        Self { since: self.since, low: self.low.saturating_sub(grains), low_before }
    }
}
