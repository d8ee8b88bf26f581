//! The rows of a shard.

use core::num::NonZeroU64;
use core::slice;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::algorithm::{State, bucket};
use crate::charge::Counter;
use crate::entry::{Entry, Slot};
use crate::quota::Quota;
use crate::time::Timestamp;

/// The number of bits of an instant. The higher bits of the word are the mark of a refusal and the
/// number of uses.
const INSTANT_BITS: u32 = 53;
const INSTANT: u64 = (1 << INSTANT_BITS) - 1;
const REFUSED: u64 = 1 << INSTANT_BITS;
const ONE_USE: u64 = 1 << (u64::BITS - 8);
const MOST_USES: u8 = u8::MAX;

/// The latest instant that a row can hold, in the year 2255.
pub(super) const LATEST: Timestamp = Timestamp::from_micros(INSTANT);

/// The bytes of logs for which a row takes one more place.
const BYTES_OF_A_PLACE: usize = 1_024;

#[repr(align(32))] // A row never spans two cache lines.
pub(super) struct Row {
    /// Not 0, so that an optional row takes no more space.
    hash: NonZeroU64,
    /// The instant of the last change, the mark of a refusal, and the number of uses, packed so
    /// that a row takes 32 bytes.
    pub(super) touched: u64,
    pub(super) content: Content,
}

pub(super) enum Content {
    One(Count),
    /// More than one count, boxed so that a row takes half a cache line.
    More(Box<More>),
}

pub(super) struct More {
    counts: Counts,
    /// An entry that counts do not describe, for example with logs, marked buckets, holds, or
    /// windows that start with a request.
    entry: Option<Box<Entry>>,
}

pub(super) type Counts = SmallVec<[Count; 3]>;

#[derive(Clone)]
pub(super) struct Count {
    pub(super) definition: Arc<Definition>,
    pub(super) value: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    Charged,
    Refused,
    Neither,
}

/// A limit and its quota, which the rows of a shard share.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Definition {
    pub(super) limit: u32,
    /// The reduced quota. Quotas that count alike are equal in this form.
    pub(super) quota: Quota,
}

impl Definition {
    #[inline]
    pub(super) fn is_of(&self, counter: Counter<'_>) -> bool {
        self.limit == counter.id && self.quota.counts_like(counter.quota)
    }
}

impl Count {
    #[inline]
    pub(super) fn value_at(&self, from: u64, now: u64) -> u64 {
        let quota = &self.definition.quota;
        if quota.refill() > 0 {
            return bucket::refilled(quota, self.value, now - from);
        }
        // The counts of a window only fall with time, so the value still fits.
        State::unpacked(self.value, quota, from)
            .packed(quota, now)
            .unwrap_or(self.value)
    }

    fn balance(&self, at: u64) -> (i64, u64) {
        let quota = &self.definition.quota;
        State::unpacked(self.value, quota, at).balance(quota, at)
    }
}

impl Content {
    pub(super) fn of(mut counts: Counts) -> Self {
        match counts.pop() {
            Some(count) if counts.is_empty() => Self::One(count),
            last => {
                counts.extend(last);
                Self::More(Box::new(More {
                    counts,
                    entry: None,
                }))
            }
        }
    }

    pub(super) fn model(entry: Box<Entry>) -> Self {
        Self::More(Box::new(More {
            counts: Counts::new(),
            entry: Some(entry),
        }))
    }
}

impl Row {
    pub(super) fn new(hash: u64, uses: u8, at: u64, content: Content) -> Self {
        Self {
            hash: NonZeroU64::new(hash).unwrap_or(NonZeroU64::MIN),
            touched: (u64::from(uses) * ONE_USE) | at.min(INSTANT),
            content,
        }
    }

    pub(super) fn hash(&self) -> u64 {
        self.hash.get()
    }

    pub(super) fn at(&self) -> u64 {
        self.touched & INSTANT
    }

    pub(super) fn set_at(&mut self, at: u64) {
        self.touched = (self.touched & !INSTANT) | at.min(INSTANT);
    }

    /// Brings the counts to `now`, which is not before the last change.
    #[inline(always)]
    pub(super) fn advance(&mut self, now: u64) {
        let at = self.at();
        for count in self.counts_mut() {
            count.value = count.value_at(at, now);
        }
        self.set_at(now);
    }

    pub(super) fn uses(&self) -> u8 {
        u8::try_from(self.touched / ONE_USE).unwrap_or(MOST_USES)
    }

    pub(super) fn halve_uses(&mut self) {
        // Round up, because a key that is in the table has at least one use.
        let uses = u64::from(self.uses().div_ceil(2));
        self.touched = (self.touched % ONE_USE) | (uses * ONE_USE);
    }

    pub(super) fn mark(&mut self, mark: Mark) {
        match mark {
            Mark::Charged => self.touched &= !REFUSED,
            Mark::Refused => self.touched |= REFUSED,
            Mark::Neither => return,
        }
        if self.uses() < MOST_USES {
            self.touched += ONE_USE;
        }
    }

    pub(super) fn counts(&self) -> &[Count] {
        match &self.content {
            Content::One(count) => slice::from_ref(count),
            Content::More(more) => &more.counts,
        }
    }

    pub(super) fn counts_mut(&mut self) -> &mut [Count] {
        match &mut self.content {
            Content::One(count) => slice::from_mut(count),
            Content::More(more) => &mut more.counts,
        }
    }

    pub(super) fn full_at(&self) -> u64 {
        if let Some(entry) = self.entry() {
            return entry.full_at().as_micros();
        }
        let at = self.at();
        let until_full = self.counts().iter().map(|count| count.balance(at).1);
        at + until_full.max().unwrap_or(0)
    }

    pub(super) fn entry(&self) -> Option<&Entry> {
        match &self.content {
            Content::More(more) => more.entry.as_deref(),
            Content::One(_) => None,
        }
    }

    pub(super) fn is_limited(&self) -> bool {
        let at = self.at();
        self.touched & REFUSED != 0
            || match self.entry() {
                Some(entry) => entry.is_limited(entry.at()),
                None => self.counts().iter().any(|count| count.balance(at).0 <= 0),
            }
    }

    pub(super) fn into_entry(self) -> Box<Entry> {
        let at = self.at();
        let counts = match self.content {
            Content::One(count) => SmallVec::from_iter([count]),
            Content::More(more) => match more.entry {
                Some(entry) => return entry,
                None => more.counts,
            },
        };
        let slot = |count: Count| Slot {
            limit: count.definition.limit,
            quota: count.definition.quota,
            state: State::unpacked(count.value, &count.definition.quota, at),
        };
        let slots = counts.into_iter().map(slot).collect();
        Box::new(Entry { at, slots })
    }

    pub(super) fn heap_bytes(&self) -> usize {
        let Content::More(more) = &self.content else {
            return 0;
        };
        let spilled = if more.counts.spilled() {
            more.counts.capacity() * size_of::<Count>()
        } else {
            0
        };
        let entry = more.entry.as_ref();
        let entry = entry.map_or(0, |entry| size_of::<Entry>() + entry.heap_bytes());
        size_of::<More>() + spilled + entry
    }

    pub(super) fn places(&self) -> usize {
        let states = self.entry().map_or(0, Entry::state_bytes);
        1 + states / BYTES_OF_A_PLACE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instant_beyond_the_end_marks_no_refusal() {
        // The instant of a hold is a microsecond after the last change.
        let mut row = Row::new(1, 0, INSTANT + 1, Content::of(Counts::new()));
        assert_eq!((row.at(), row.is_limited()), (INSTANT, false));
        row.set_at(INSTANT + 1);
        assert_eq!((row.at(), row.is_limited()), (INSTANT, false));
    }

    #[test]
    fn row_takes_half_a_cache_line() {
        assert_eq!((size_of::<Row>(), align_of::<Row>()), (32, 32));
        assert!(size_of::<More>() <= 64);
    }
}
