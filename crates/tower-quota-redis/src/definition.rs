//! Definitions: the quotas that states in Redis are counted by, and the numbers that stand for them there.

use siphasher::sip::SipHasher13;
use std::hash::Hasher;

use tower_quota_core::Quota;

use crate::request::push_number;

const FROM_FIRST_REQUEST: u8 = 1;
/// Bytes of the number that stands for a definition.
const NUMBER: usize = 5;

/// A limit's name and its quota's numbers, preceded by the number that stands for them in stored states.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Definition([u8; Definition::BYTES]);

impl Definition {
    pub(crate) const BYTES: usize = NUMBER + 34;

    /// The definition of what is counted under the number of a name.
    pub(crate) fn new(id: u32, quota: &Quota) -> Self {
        let mut bytes = Vec::with_capacity(Self::BYTES);
        bytes.extend_from_slice(&[0; NUMBER]);
        bytes.extend_from_slice(&id.to_le_bytes());
        let kind = quota.algorithm().state_code();
        let from_first_request = quota.window_offset().is_none();
        bytes.extend_from_slice(&[kind, if from_first_request { FROM_FIRST_REQUEST } else { 0 }]);
        let pace = if quota.algorithm().is_bucket() { quota.refill() } else { period(quota) };
        for number in [quota.capacity(), quota.grain(), pace, quota.window_offset().unwrap_or(0)] {
            push_number(&mut bytes, number);
        }
        // The same on every instance, so without a seed. The kind of state is in the number's two lowest bits: a state
        // can be told from the next without its definition.
        let mut hasher = SipHasher13::new();
        hasher.write(&bytes[NUMBER..]);
        let number = hasher.finish() & !3 | u64::from(kind);
        bytes[..NUMBER].copy_from_slice(&number.to_le_bytes()[..NUMBER]);
        let mut definition = [0; Self::BYTES];
        definition.copy_from_slice(&bytes);
        Self(definition)
    }

    /// The number's five bytes, then the name and the numbers of the quota.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// At most 366 days.
fn period(quota: &Quota) -> u64 {
    u64::try_from(quota.period().as_micros()).unwrap_or(u64::MAX)
}
