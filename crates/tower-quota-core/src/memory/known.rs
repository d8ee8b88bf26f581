//! The limits a store has counted, by number: what a subject's row says instead of a limit and its quota.

use std::collections::HashMap;

use super::sync::{Mutex, OnceLock, locked};
use crate::charge::Counter;
use crate::quota::Quota;

/// Limits with their quotas that get a number. What has none is kept as a whole [`Entry`](crate::Entry).
const CHUNK: usize = if cfg!(any(loom, miri)) { 8 } else { 64 };
const MOST: usize = if cfg!(any(loom, miri)) { CHUNK * CHUNK } else { NO_NUMBER as usize };
/// Bits of a number.
pub(super) const NUMBER_BITS: u32 = 11;
/// The number that no limit gets.
pub(super) const NO_NUMBER: u16 = (1 << NUMBER_BITS) - 1;
/// How many are looked through one by one before the map is asked.
const FEW: usize = 8;

/// Grows and never forgets: a number that a row holds stays good. Reading takes no lock.
pub(super) struct Known {
    first: [OnceLock<Counted>; CHUNK],
    others: Chunk<Chunk<Counted>>,
    numbers: Mutex<HashMap<Counted, u16>>,
}

/// Places that are filled once.
type Chunk<T> = Box<[OnceLock<T>]>;

/// A limit, and one of the quotas it was counted by.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Counted {
    pub(super) limit: u32,
    pub(super) quota: Quota,
}

impl Known {
    pub(super) fn new() -> Self {
        Self {
            first: core::array::from_fn(|_| OnceLock::new()),
            others: nothing(),
            numbers: Mutex::new(HashMap::new()),
        }
    }

    /// The limit of a number.
    #[inline]
    pub(super) fn get(&self, number: u16) -> Option<&Counted> {
        let number = usize::from(number);
        match self.first.get(number) {
            Some(first) => first.get(),
            None => self.others.get(number / CHUNK)?.get()?.get(number % CHUNK)?.get(),
        }
    }

    /// Whether a number is that of a charge's limit, by a bucket that counts in the same integers.
    #[inline]
    pub(super) fn is_bucket_of(&self, number: u16, counter: Counter<'_>) -> bool {
        self.get(number).is_some_and(|counted| counted.is_bucket_of(counter))
    }

    /// The number of a limit, which gets one if there is one left.
    pub(super) fn number(&self, counted: &Counted) -> Option<u16> {
        let near = self.first.iter().take(FEW).map_while(OnceLock::get).position(|known| known == counted);
        near.and_then(|position| u16::try_from(position).ok()).or_else(|| self.number_of_many(counted))
    }

    fn number_of_many(&self, counted: &Counted) -> Option<u16> {
        let mut numbers = locked(&self.numbers);
        if let Some(&number) = numbers.get(counted) {
            return Some(number);
        }
        let position = numbers.len();
        if position == MOST {
            return None;
        }
        let chunk = match position / CHUNK {
            0 => &self.first[..],
            chunk => self.others.get(chunk)?.get_or_init(nothing),
        };
        // Positions are given out once, under the lock.
        let _ = chunk.get(position % CHUNK)?.set(*counted);
        let number = u16::try_from(position).ok()?;
        numbers.insert(*counted, number);
        Some(number)
    }
}

impl Counted {
    #[inline]
    const fn is_bucket_of(&self, counter: Counter<'_>) -> bool {
        // What refills is a bucket.
        self.limit == counter.id
            && self.quota.refill() == counter.quota.refill()
            && self.quota.grain() == counter.quota.grain()
            && self.quota.capacity() == counter.quota.capacity()
    }
}

fn nothing<T>() -> Chunk<T> {
    (0..CHUNK).map(|_| OnceLock::new()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_has_a_number_of_its_own_until_there_are_none_left() {
        let known = Known::new();
        let counted = |limit: usize| Counted { limit: u32::try_from(limit).unwrap(), quota: Quota::per_second(5) };
        for _ in 0..2 {
            for limit in 0..MOST {
                let number = known.number(&counted(limit)).unwrap();
                assert_eq!(usize::from(number), limit);
                assert!(known.get(number) == Some(&counted(limit)));
            }
            assert_eq!(known.number(&counted(MOST)), None);
        }
    }
}
