//! States in one word.
//!
//! A state is as of an instant, and where a window began follows from that instant and the quota. What is left to say of
//! a window is its count.

use super::{State, fixed_window, sliding_window};
use crate::quota::Quota;

impl State {
    /// A word that says it all, together with the quota and the instant that it is as of. `None` for a log, for a window
    /// that began with its first request, and for counts of which two do not fit.
    pub(crate) fn packed(&self, quota: &Quota, at: u64) -> Option<u64> {
        match *self {
            Self::Bucket { used } => Some(used),
            Self::Window { start, count } => {
                quota.window_offset()?;
                (fixed_window::start(quota, start, at) == start).then_some(count)
            }
            Self::Sliding { start, before, count } => {
                let (before, count) = (u32::try_from(before).ok()?, u32::try_from(count).ok()?);
                (sliding_window::start(quota, at) == start).then_some(u64::from(before) << 32 | u64::from(count))
            }
            Self::Log(_) => None,
        }
    }

    /// What [`packed`](Self::packed) made a word of.
    pub(crate) fn unpacked(word: u64, quota: &Quota, at: u64) -> Self {
        match Self::fresh(quota, at) {
            Self::Bucket { .. } => Self::Bucket { used: word },
            Self::Window { start, .. } => Self::Window { start, count: word },
            Self::Sliding { start, .. } => Self::Sliding { start, before: word >> 32, count: word & 0xffff_ffff },
            log @ Self::Log(_) => log,
        }
    }
}
