//! States in one word, as a row of the memory store keeps them.
//!
//! A row has one instant for all its limits; where a window began follows from that instant and the quota.

use super::{Bucket, State, fixed_window, sliding_window};
use crate::quota::Quota;

impl State {
    /// Returns a word that, with the quota and the instant `at`, says all of a state that was advanced to it. Returns
    /// `None` for a log, for a window that began with its first request, and for counts of which two do not fit.
    pub(crate) fn packed(&self, quota: &Quota, at: u64) -> Option<u64> {
        match *self {
            Self::Bucket(bucket) => Some(bucket.used(quota, at)),
            Self::Window { start, count } => {
                quota.window_offset()?;
                let (_, count) = fixed_window::at(quota, start, count, at);
                Some(count)
            }
            Self::Sliding { start, before, count } => {
                let (_, before, count) = sliding_window::at(quota, start, before, count, at);
                Some(u64::from(u32::try_from(before).ok()?) << 32 | u64::from(u32::try_from(count).ok()?))
            }
            Self::Log(_) => None,
        }
    }

    /// Returns the state that [`packed`](Self::packed) made a word of.
    pub(crate) fn unpacked(word: u64, quota: &Quota, at: u64) -> Self {
        match Self::fresh(quota, at) {
            Self::Bucket(_) => Self::Bucket(Bucket::new(quota, word, at)),
            Self::Window { start, .. } => Self::Window { start, count: word },
            Self::Sliding { start, .. } => Self::Sliding { start, before: word >> 32, count: word & 0xffff_ffff },
            log @ Self::Log(_) => log,
        }
    }
}
