//! The head of a stored slot, with the limit and the numbers that count its state.

use crate::bytes::{push_short, read_short};
use crate::quota::{Algorithm, Quota};

/// The flag of a window that starts with its first request.
pub const FROM_FIRST_REQUEST: u8 = 16;
/// The flag of a bucket with low marks.
pub const WATCHED: u8 = 32;
const KIND: u8 = 15;

/// The numbers of a quota, as a slot stores them.
#[derive(Clone, Copy, Debug)]
pub struct SlotHead {
    /// The kind of state and its flags.
    pub kind: u8,
    /// The capacity in units.
    pub capacity: u64,
    /// The [grain](Quota::grain).
    pub grain: u64,
    /// The refill, or the period in microseconds.
    pub pace: u64,
    /// The offset in microseconds.
    pub offset: u64,
}

impl SlotHead {
    /// Returns the head of a new slot, without the flag [`WATCHED`].
    pub fn of(quota: &Quota) -> Self {
        let code = quota.algorithm().state_code();
        let offset = quota.window_offset();
        Self {
            kind: match offset {
                Some(_) => code,
                None => code | FROM_FIRST_REQUEST,
            },
            capacity: quota.capacity(),
            grain: quota.grain(),
            pace: match quota.refill() {
                0 => quota.period_micros(),
                refill => refill,
            },
            offset: offset.unwrap_or(0),
        }
    }

    /// Appends the head of a slot.
    pub fn push(&self, limit: u32, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&limit.to_le_bytes());
        bytes.push(self.kind);
        for number in [self.capacity, self.grain, self.pace] {
            push_short(bytes, number);
        }
        if self.has_offset() {
            push_short(bytes, self.offset);
        }
    }

    pub(super) fn read(rest: &mut &[u8]) -> Option<(u32, Self)> {
        let (limit, after) = rest.split_first_chunk()?;
        *rest = after;
        let mut head = Self {
            kind: *rest.split_off_first()?,
            capacity: read_short(rest)?,
            grain: read_short(rest)?,
            pace: read_short(rest)?,
            offset: 0,
        };
        if head.has_offset() {
            head.offset = read_short(rest)?;
        }
        Some((u32::from_le_bytes(*limit), head))
    }

    pub(super) fn quota(&self) -> Option<Quota> {
        let algorithm = Algorithm::of_state_code(self.kind & KIND)?;
        let anchor = match (algorithm, self.kind & !KIND) {
            (Algorithm::FixedWindow, FROM_FIRST_REQUEST) => None,
            (_, 0) | (Algorithm::TokenBucket, WATCHED) => Some(self.offset),
            _ => return None,
        };
        let quota = Quota::from_stored(algorithm, self.capacity, self.grain, self.pace, anchor);
        Some(quota)
    }

    fn has_offset(&self) -> bool {
        self.kind == Algorithm::FixedWindow.state_code()
    }
}
