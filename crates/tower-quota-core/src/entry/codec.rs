//! The stored form of an entry: [`Entry`] describes it byte by byte.

use super::{DecodeError, Entry, FROM_FIRST_REQUEST, Slot, SlotHead, WATCHED};
use crate::algorithm::State;
use crate::bytes::{push_u56, push_varint, read_short, read_u56, read_varint};
use crate::quota::{Algorithm, Quota};

/// The version of the stored form.
pub const VERSION: u8 = 3;
/// The bits that hold the kind of state; the others are flags.
const KIND: u8 = 15;

impl Entry {
    /// Returns the stored form; empty if there is nothing to store.
    ///
    /// [Its layout](Self#stored-form) is public: stores in other languages read and write the same bytes.
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

    /// Reads the stored form. The bytes are not trusted: any entry that decodes can be decided on.
    ///
    /// # Errors
    /// [`DecodeError`] names the fault and its position.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut rest = match bytes.split_first() {
            Some((&VERSION, rest)) => rest,
            other => return Err(DecodeError::Version(other.map(|(&version, _)| version))),
        };
        let mut entry = Self {
            at: read_u56(&mut rest).ok_or(DecodeError::Truncated { slot: 0 })?,
            ..Self::default()
        };
        while !rest.is_empty() {
            let slot = bytes.len() - rest.len();
            let length = read_varint(&mut rest).and_then(|length| usize::try_from(length).ok());
            let length = length
                .filter(|&length| length <= rest.len())
                .ok_or(DecodeError::Truncated { slot })?;
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
        let mut head = SlotHead::of(&self.quota);
        if self.state.is_watched() {
            head.kind |= WATCHED;
        }
        head.push(self.limit, bytes);
        self.state.encode(&self.quota, bytes);
        push_u56(bytes, self.full_at());
    }

    /// Reads the slot that begins at an offset of an entry that was changed last `at`.
    fn decode(mut rest: &[u8], at: u64, slot: usize) -> Result<Self, DecodeError> {
        let truncated = DecodeError::Truncated { slot };
        let wrong = DecodeError::Numbers { slot };
        let (limit, after) = rest.split_first_chunk().ok_or(truncated)?;
        let (&kind, after) = after.split_first().ok_or(truncated)?;
        rest = after;
        let mut number = || read_short(&mut rest).ok_or(truncated);
        let (capacity, grain, pace) = (number()?, number()?, number()?);
        let algorithm =
            Algorithm::of_state_code(kind & KIND).ok_or(DecodeError::Kind { slot, kind })?;
        let offset = match (algorithm, kind & !KIND) {
            (Algorithm::FixedWindow, 0) => Some(number()?),
            (Algorithm::FixedWindow, FROM_FIRST_REQUEST) => None,
            (_, 0) | (Algorithm::TokenBucket, WATCHED) => Some(0),
            _ => return Err(DecodeError::Kind { slot, kind }),
        };
        let quota = Quota::from_stored(algorithm, capacity, grain, pace, offset).ok_or(wrong)?;
        let (state, full_at) = rest.split_last_chunk::<7>().ok_or(truncated)?;
        let full_at = read_u56(&mut &full_at[..]).ok_or(truncated)?;
        let state = State::decode(&quota, state, full_at, at).ok_or(wrong)?;
        let decoded = Self {
            limit: u32::from_le_bytes(*limit),
            quota,
            state,
        };
        let is_sound =
            decoded.full_at() == full_at && decoded.state.is_watched() == (kind & WATCHED != 0);
        if is_sound { Ok(decoded) } else { Err(wrong) }
    }
}
