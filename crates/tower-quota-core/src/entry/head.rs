//! The head of a stored slot: the limit, and the numbers by which its state is counted.

use crate::bytes::push_short;
use crate::quota::{Algorithm, Quota};

/// Flag of a window that starts with its first request.
pub const FROM_FIRST_REQUEST: u8 = 16;
/// Flag of a bucket that records the least that is used, for refunds.
pub const WATCHED: u8 = 32;

/// The numbers of a quota, as a slot stores them.
#[derive(Clone, Copy, Debug)]
pub struct SlotHead {
    /// The kind of state, with its flags.
    pub kind: u8,
    /// The capacity in units.
    pub capacity: u64,
    /// The grain of the quota; see [`Quota::grain`].
    pub grain: u64,
    /// The refill of a bucket in grains per microsecond; the period of a window or log in microseconds.
    pub pace: u64,
    /// The offset of a window in microseconds; 0 if it starts with its first request.
    pub offset: u64,
}

impl SlotHead {
    /// Returns the head of a new slot, without the flag [`WATCHED`].
    #[must_use]
    pub const fn of(quota: &Quota) -> Self {
        let (flag, offset) = match quota.window_offset() {
            Some(offset) => (0, offset),
            None => (FROM_FIRST_REQUEST, 0),
        };
        let pace = if quota.algorithm().is_bucket() {
            quota.refill()
        } else {
            quota.period_micros()
        };
        let kind = quota.algorithm().state_code() | flag;
        Self {
            kind,
            capacity: quota.capacity(),
            grain: quota.grain(),
            pace,
            offset,
        }
    }

    /// Appends the first bytes of a slot: from the number of its limit to the last number of its quota.
    pub fn push(&self, limit: u32, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&limit.to_le_bytes());
        bytes.push(self.kind);
        [self.capacity, self.grain, self.pace]
            .into_iter()
            .for_each(|number| push_short(bytes, number));
        if self.kind == Algorithm::FixedWindow.state_code() {
            push_short(bytes, self.offset);
        }
    }
}
