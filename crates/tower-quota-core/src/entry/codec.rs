//! The stored form of an entry. [`Entry`] describes it byte by byte.

use super::{DecodeError, Entry, Slot, SlotHead, WATCHED};
use crate::algorithm::State;
use crate::bytes::{push_u56, push_varint, read_u56, read_varint};

/// The version of the stored form.
pub const VERSION: u8 = 3;

impl Entry {
    /// Returns the [stored form](Self#stored-form), or no bytes if the entry is empty.
    pub fn encode(&self) -> Vec<u8> {
        if self.is_empty() {
            return Vec::new();
        }
        let mut bytes = Vec::with_capacity(8 + 24 * self.slots.len());
        bytes.push(VERSION);
        push_u56(&mut bytes, self.at);
        for slot in &self.slots {
            let encoded = slot.encode();
            push_varint(&mut bytes, encoded.len() as u64);
            bytes.extend(encoded);
        }
        bytes
    }

    /// Reads the stored form. You can decide on any entry that decodes.
    ///
    /// # Errors
    /// Returns [`DecodeError`] with the fault and its position.
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
            let encoded = split_slot(&mut rest).ok_or(DecodeError::Truncated { slot })?;
            let decoded = Slot::decode(encoded, entry.at, slot)?;
            if entry.slots.iter().any(|slot| slot.limit == decoded.limit) {
                return Err(DecodeError::Repeated { slot });
            }
            entry.slots.push(decoded);
        }
        Ok(entry)
    }
}

fn split_slot<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = read_varint(rest)?;
    rest.split_off(..usize::try_from(length).ok()?)
}

impl Slot {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut head = SlotHead::of(&self.quota);
        if self.state.is_watched() {
            head.kind |= WATCHED;
        }
        head.push(self.limit, &mut bytes);
        self.state.encode(&self.quota, &mut bytes);
        push_u56(&mut bytes, self.full_at());
        bytes
    }

    fn decode(mut rest: &[u8], at: u64, slot: usize) -> Result<Self, DecodeError> {
        let truncated = DecodeError::Truncated { slot };
        let (limit, head) = SlotHead::read(&mut rest).ok_or(truncated)?;
        let kind = head.kind;
        let quota = head.quota().ok_or(DecodeError::Kind { slot, kind })?;
        let (state, full_at) = rest.split_last_chunk::<7>().ok_or(truncated)?;
        let full_at = read_u56(&mut &full_at[..]).ok_or(truncated)?;
        let state = State::decode(&quota, state, full_at, at);
        let decoded = state.map(|state| Self {
            limit,
            quota,
            state,
        });
        let is_watched = kind & WATCHED != 0;
        decoded
            .filter(|slot| slot.full_at() == full_at && slot.state.is_watched() == is_watched)
            .ok_or(DecodeError::Numbers { slot })
    }
}
