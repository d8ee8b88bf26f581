//! A limit and its quota in bytes.

use tower_quota_core::Quota;

use super::{FROM_FIRST_REQUEST, push_u56};

/// The numbers that a quota's states are counted by.
struct Numbers {
    kind: u8,
    capacity: u64,
    grain: u64,
    /// The refill of a bucket, the period of anything else in microseconds.
    pace: u64,
    offset: Option<u64>,
}

impl Numbers {
    fn of(quota: &Quota) -> Self {
        let offset = quota.window_offset();
        let flag = if offset.is_none() { FROM_FIRST_REQUEST } else { 0 };
        // A period is at most 366 days.
        let period = u64::try_from(quota.period().as_micros()).unwrap_or(u64::MAX);
        Self {
            kind: quota.algorithm().state_code() | flag,
            capacity: quota.capacity(),
            grain: quota.grain(),
            pace: if quota.algorithm().is_bucket() { quota.refill() } else { period },
            offset,
        }
    }
}

/// Appends the numbers of a quota at their full width, then the bytes of a stored slot from the limit's number to the
/// quota's numbers, after a byte with their count.
pub(super) fn push_quota(bytes: &mut Vec<u8>, id: u32, quota: &Quota) {
    let numbers = Numbers::of(quota);
    bytes.push(numbers.kind);
    for number in [numbers.capacity, numbers.grain, numbers.pace, numbers.offset.unwrap_or(0)] {
        push_u56(bytes, number);
    }
    let count = bytes.len();
    bytes.push(0);
    bytes.extend_from_slice(&id.to_le_bytes());
    bytes.push(numbers.kind);
    [numbers.capacity, numbers.grain, numbers.pace].into_iter().for_each(|number| push_varint(bytes, number));
    if numbers.kind == super::FIXED_WINDOW {
        push_varint(bytes, numbers.offset.unwrap_or(0));
    }
    // At most five bytes and four numbers of eight.
    bytes[count] = u8::try_from(bytes.len() - count - 1).unwrap_or(u8::MAX);
}

/// Appends a number with 7 bits in each byte, the lowest first.
fn push_varint(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    bytes.push(number.to_le_bytes()[0]);
}
