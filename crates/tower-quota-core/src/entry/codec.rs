//! The stored form of an entry, byte by byte. All numbers are little-endian.
//!
//! ```text
//! u8      version: 1
//! u56     instant of the last change, microseconds since the Unix epoch
//! slots until the end, each:
//!   varint  bytes of this slot that follow
//!   u32     number of the limit's name (Name::id), or of its strikes (Name::strikes_id)
//!   u8      low four bits, the kind of state: 0 bucket, 1 fixed window, 2 sliding window counter, 3 sliding log;
//!           16: the window starts with its first request
//!   varint  capacity, units
//!   varint  grain
//!   varint  refill of a bucket, grains per microsecond; period of a window or log, microseconds
//!   varint  offset, microseconds; only of a fixed window that does not start with its first request
//!   state:
//!     bucket          u56 rest, only where refill is above 1
//!     fixed window    u56 start, u56 count
//!     sliding window  u56 start, u56 count of the window before, u56 count
//!     sliding log     u56 total before the first stamp, then for each stamp: u56 instant, u56 total with it
//!   u56     instant from which nothing of the limit is used any more
//! ```
//!
//! A varint has 7 bits in each byte, the lowest first; the high bit says that more follow (LEB128). A bucket's grains
//! used at an instant are `(full_at - instant) * refill - rest`, at least 0. A slot begins with the same bytes, up to
//! its state, as long as limit and quota are the same, and its length and last instant are where they can be read without
//! the rest: a script finds, copies and drops slots without taking them apart.

use super::{DecodeError, Entry, Slot};
use crate::algorithm::bucket::MOST_USED;
use crate::algorithm::fixed_window::MOST_COUNTED;
use crate::algorithm::sliding_window::most_counted;
use crate::algorithm::{Bucket, Log, State};
use crate::quota::Quota;

const VERSION: u8 = 1;
const FROM_FIRST_REQUEST: u8 = 16;
const KIND: u8 = 15;
/// Instants are below this, in microseconds: the year 4253.
const LATEST: u64 = 1 << 56;

impl Entry {
    /// Returns the stored form, documented in the source of this method's module; empty if there is nothing to store.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        if self.is_empty() {
            return Vec::new();
        }
        let mut bytes = Vec::with_capacity(8 + 24 * self.slots.len());
        bytes.push(VERSION);
        push_u56(&mut bytes, self.at);
        let mut slot_bytes = Vec::new();
        for slot in &self.slots {
            slot_bytes.clear();
            slot.encode_into(&mut slot_bytes);
            push_varint(&mut bytes, slot_bytes.len() as u64);
            bytes.extend_from_slice(&slot_bytes);
        }
        bytes
    }

    /// Reads the stored form. The bytes are not trusted: whatever decodes can be decided on.
    ///
    /// # Errors
    /// [`DecodeError`] names what is wrong, and where.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut rest = match bytes.split_first() {
            Some((&VERSION, rest)) => rest,
            other => return Err(DecodeError::Version(other.map(|(&version, _)| version))),
        };
        let mut entry = Self { at: u56(&mut rest).ok_or(DecodeError::Truncated { slot: 0 })?, ..Self::default() };
        while !rest.is_empty() {
            let slot = bytes.len() - rest.len();
            let length = varint(&mut rest).and_then(|length| usize::try_from(length).ok());
            let length = length.filter(|&length| length <= rest.len()).ok_or(DecodeError::Truncated { slot })?;
            let (of_slot, after) = rest.split_at(length);
            rest = after;
            let decoded = Slot::decode(of_slot, entry.at, slot)?;
            if entry.slots.iter().any(|slot| slot.limit == decoded.limit) {
                return Err(DecodeError::Repeated { slot });
            }
            entry.slots.push(decoded);
        }
        Ok(entry)
    }
}

impl Slot {
    fn encode_into(&self, bytes: &mut Vec<u8>) {
        let quota = &self.quota;
        bytes.extend_from_slice(&self.limit.to_le_bytes());
        let flag = if quota.window_offset().is_none() { FROM_FIRST_REQUEST } else { 0 };
        bytes.push(quota.algorithm().state_code() | flag);
        let pace = if quota.refill() > 0 { quota.refill() } else { quota.period_micros() };
        [quota.capacity(), quota.grain(), pace].into_iter().for_each(|number| push_varint(bytes, number));
        match &self.state {
            State::Bucket(bucket) => {
                if quota.refill() > 1 {
                    push_u56(bytes, bucket.rest);
                }
            }
            State::Window { start, count } => {
                if let Some(offset) = quota.window_offset() {
                    push_varint(bytes, offset);
                }
                [*start, *count].into_iter().for_each(|number| push_u56(bytes, number));
            }
            State::Sliding { start, before, count } => {
                [*start, *before, *count].into_iter().for_each(|number| push_u56(bytes, number));
            }
            State::Log(log) => {
                push_u56(bytes, log.base);
                for &(stamp, running) in &log.entries {
                    push_u56(bytes, stamp);
                    push_u56(bytes, running);
                }
            }
        }
        push_u56(bytes, self.full_at());
    }

    /// Reads the slot that begins at an offset of an entry that was changed last `at`.
    fn decode(mut rest: &[u8], at: u64, slot: usize) -> Result<Self, DecodeError> {
        let truncated = DecodeError::Truncated { slot };
        let wrong = DecodeError::Numbers { slot };
        let (limit, after) = rest.split_first_chunk().ok_or(truncated)?;
        let (&kind, after) = after.split_first().ok_or(truncated)?;
        rest = after;
        let mut number = || varint(&mut rest).ok_or(truncated);
        let (capacity, grain, pace) = (number()?, number()?, number()?);
        let offset = match kind {
            1 => Some(number()?),
            17 => None,
            0 | 2 | 3 => Some(0),
            _ => return Err(DecodeError::Kind { slot, kind }),
        };
        let quota = Quota::from_stored(kind & KIND, capacity, grain, pace, offset).ok_or(wrong)?;
        let (state, full_at) = rest.split_last_chunk::<7>().ok_or(truncated)?;
        let full_at = u56(&mut &full_at[..]).ok_or(truncated)?;
        let state = decode_state(&quota, state, full_at, at).ok_or(wrong)?;
        let decoded = Self { limit: u32::from_le_bytes(*limit), quota, state };
        if decoded.full_at() == full_at { Ok(decoded) } else { Err(wrong) }
    }
}

/// Reads a state, if it is one that a limit of this quota can be in.
fn decode_state(quota: &Quota, mut rest: &[u8], full_at: u64, at: u64) -> Option<State> {
    let state = match quota.algorithm().state_code() {
        0 => {
            let unused = if quota.refill() > 1 { u56(&mut rest)? } else { 0 };
            let used = full_at.saturating_sub(at).checked_mul(quota.refill())?.checked_sub(unused)?;
            (unused < quota.refill() && used <= MOST_USED).then_some(State::Bucket(Bucket { full_at, rest: unused }))?
        }
        1 => {
            let (start, count) = (u56(&mut rest)?, u56(&mut rest)?);
            (start <= at && count <= MOST_COUNTED).then_some(State::Window { start, count })?
        }
        2 => {
            let (start, before, count) = (u56(&mut rest)?, u56(&mut rest)?, u56(&mut rest)?);
            let fits = before.max(count) <= most_counted(quota);
            (start <= at && start.is_multiple_of(quota.period_micros()) && fits).then_some(State::Sliding {
                start,
                before,
                count,
            })?
        }
        _ => {
            let mut log = Log { base: u56(&mut rest)?, ..Log::default() };
            let (mut newest, mut total) = (None, log.base);
            while !rest.is_empty() {
                let (stamp, running) = (u56(&mut rest)?, u56(&mut rest)?);
                if newest.is_some_and(|newest| stamp <= newest) || running <= total || stamp > at {
                    return None;
                }
                (newest, total) = (Some(stamp), running);
                log.entries.push_back((stamp, running));
            }
            (log.base <= 2 * MOST_COUNTED && total - log.base <= MOST_COUNTED).then_some(State::Log(log))?
        }
    };
    rest.is_empty().then_some(state)
}

fn push_u56(bytes: &mut Vec<u8>, number: u64) {
    bytes.extend_from_slice(&number.min(LATEST - 1).to_le_bytes()[..7]);
}

fn push_varint(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    bytes.push(number.to_le_bytes()[0]);
}

fn u56(rest: &mut &[u8]) -> Option<u64> {
    let (bytes, after) = rest.split_first_chunk::<7>()?;
    *rest = after;
    let &[a, b, c, d, e, f, g] = bytes;
    Some(u64::from_le_bytes([a, b, c, d, e, f, g, 0]))
}

/// Reads up to eight bytes: 56 bits, in no more bytes than they need.
fn varint(rest: &mut &[u8]) -> Option<u64> {
    let end = rest.iter().take(8).position(|byte| byte & 0x80 == 0)?;
    if end > 0 && rest[end] == 0 {
        return None;
    }
    let (bytes, after) = rest.split_at(end + 1);
    *rest = after;
    Some(bytes.iter().rev().fold(0, |number, byte| number << 7 | u64::from(byte & 0x7f)))
}
