//! States in one word, as a row of the memory store keeps them.
//!
//! A row has one instant for all its limits; where a window began follows from that instant and the quota.

use super::{Bucket, FixedWindow, SlidingWindow, State};
use crate::quota::Quota;

impl State {
    /// Returns a word that, with the quota and the instant `at`, says all of a state that was advanced to it. Returns
    /// `None` for a log, for a bucket that notes what is used, for a window that began with its first request, and for counts of which two do not fit.
    pub(crate) fn packed(&self, quota: &Quota, at: u64) -> Option<u64> {
        match *self {
            Self::Bucket(bucket) => bucket.lows.is_none().then(|| bucket.used_grains(quota, at)),
            Self::FixedWindow(window) => {
                quota.window_offset()?;
                Some(window.at(quota, at).count)
            }
            Self::SlidingWindow(window) => {
                let SlidingWindow { before, count, .. } = window.at(quota, at);
                Some(u64::from(u32::try_from(before).ok()?) << 32 | u64::from(u32::try_from(count).ok()?))
            }
            Self::SlidingLog(_) => None,
        }
    }

    /// Returns the state that [`packed`](Self::packed) made a word of.
    pub(crate) fn unpacked(word: u64, quota: &Quota, at: u64) -> Self {
        match Self::fresh(quota, at) {
            Self::Bucket(_) => Self::Bucket(Bucket::new(quota, word, at)),
            Self::FixedWindow(window) => Self::FixedWindow(FixedWindow { count: word, ..window }),
            Self::SlidingWindow(window) => {
                Self::SlidingWindow(SlidingWindow { before: word >> 32, count: word & 0xffff_ffff, ..window })
            }
            log @ Self::SlidingLog(_) => log,
        }
    }
}
