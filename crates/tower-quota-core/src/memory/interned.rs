//! Numbers for the limits of a table: a row holds 11 bits instead of a limit's name and quota.
//!
//! Each table numbers its own limits under its own lock. A number stays valid as long as some row holds it. When the
//! definitions have doubled since the last time, `recycle` drops those that no row holds and numbers the others again. A
//! table therefore never has more than twice the definitions it uses, or a few.

use std::collections::HashMap;

use super::fetch::prefetch;
use super::row::{Count, NO_NUMBER, Row};
use crate::algorithm::{State, bucket_used};
use crate::charge::Counter;
use crate::quota::Quota;

/// Definitions that are searched one by one, and that are always kept.
const FEW: usize = 8;
/// Definitions above which numbers are recycled at the latest: there is room left for one more request.
const MANY: usize = NO_NUMBER as usize - 64;

/// Definitions that must be new for recycling to pay.
const ADDED: usize = 64;

/// A limit of some quota.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Definition {
    pub(super) limit: u32,
    /// Reduced, so that quotas that count alike are the same.
    pub(super) quota: Quota,
}

/// Identifies the limit of a charge, in half a cache line.
#[derive(Clone, Copy)]
struct Numbers {
    limit: u32,
    capacity: u64,
    grain: u64,
    /// 0 for a window or a log.
    refill: u64,
}

/// Numbers by definition.
struct Index(HashMap<Definition, u16>);

/// The definitions of a table, each at the position of its number.
#[derive(Default)]
pub(super) struct Interned {
    /// The part of each definition that every check compares.
    numbers: Vec<Numbers>,
    quotas: Vec<Quota>,
    /// The numbers of all definitions, if there are more than a few.
    index: Option<Box<Index>>,
    /// Definitions that were in use when numbers were recycled last.
    pub(super) live: usize,
}

impl Interned {
    /// Returns the definition of a number.
    #[inline]
    pub(super) fn get(&self, number: u16) -> Option<Definition> {
        let number = usize::from(number);
        Some(Definition {
            limit: self.numbers.get(number)?.limit,
            quota: *self.quotas.get(number)?,
        })
    }

    /// Returns the quota of a number.
    #[inline]
    pub(super) fn quota(&self, number: u16) -> Option<&Quota> {
        self.quotas.get(usize::from(number))
    }

    /// Returns the grains that come back to a number's limit in each microsecond; 0 for a window.
    #[inline]
    pub(super) fn refill(&self, number: u16) -> u64 {
        self.numbers
            .get(usize::from(number))
            .map_or(0, |numbers| numbers.refill)
    }

    /// Returns how many definitions there are.
    pub(super) const fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Fetches the numbers that a check of this many limits compares.
    #[inline]
    pub(super) fn prefetch<const LIMITS: usize>(&self) {
        (0..LIMITS.div_ceil(2))
            .for_each(|line| prefetch(self.numbers.as_ptr().wrapping_add(2 * line)));
    }

    /// Returns whether a number means a charge's limit, counted by a bucket in the same integers.
    #[inline]
    pub(super) fn is_bucket_of(&self, number: u16, counter: Counter<'_>) -> bool {
        self.numbers
            .get(usize::from(number))
            .is_some_and(|numbers| numbers.are_of_bucket(counter))
    }

    /// Returns whether a number means a limit, by any quota.
    #[inline]
    pub(super) fn is_limit(&self, number: u16, limit: u32) -> bool {
        self.numbers
            .get(usize::from(number))
            .is_some_and(|numbers| numbers.limit == limit)
    }

    /// Returns the position of a limit in a row, by any quota.
    #[inline]
    pub(super) fn position(&self, row: Row<'_>, limit: u32) -> Option<usize> {
        (0..row.limits()).find(|&position| self.is_limit(row.number(position), limit))
    }

    /// Returns the count of a charge's limit after this many microseconds, by the charge's quota.
    ///
    /// Returns `None` if either quota is a window, or if the charge's quota has no number yet.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "most limits are counted by the charge's quota"
    )]
    pub(super) fn count_for(
        &self,
        counter: Counter<'_>,
        known: Count,
        elapsed: u64,
    ) -> Option<Count> {
        let value = known
            .value
            .saturating_sub(elapsed.saturating_mul(self.refill(known.number)));
        let count = Count { value, ..known };
        if self.is_bucket_of(known.number, counter) {
            Some(count)
        } else {
            self.converted(counter, count)
        }
    }

    /// Returns a count at `now`, which was counted at `from`.
    pub(super) fn advanced(&self, known: Count, from: u64, now: u64) -> Count {
        let value = match (self.refill(known.number), self.quota(known.number)) {
            // No window counts more later.
            (0, Some(quota)) => State::unpacked(known.value, quota, from)
                .packed(quota, now)
                .unwrap_or(known.value),
            // The quota itself, which others may have pushed out of the cache, is not read.
            (refill, _) => known
                .value
                .saturating_sub((now - from).saturating_mul(refill)),
        };
        Count { value, ..known }
    }

    /// Returns a count by another quota.
    #[inline(never)]
    fn converted(&self, counter: Counter<'_>, count: Count) -> Option<Count> {
        let number = self.known_bucket(counter)?;
        let value = match self.quota(count.number)? {
            // An unused limit is unused by any quota.
            _ if count.value == 0 => 0,
            old if old.refill() == 0 => return None,
            old => bucket_used(old, counter.quota, count.value),
        };
        Some(Count { number, value })
    }

    /// Returns the number of a bucket, if it has one.
    #[inline]
    fn known_bucket(&self, counter: Counter<'_>) -> Option<u16> {
        match self
            .numbers
            .iter()
            .take(FEW)
            .position(|numbers| numbers.are_of_bucket(counter))
        {
            Some(position) => u16::try_from(position).ok(),
            None => self.known(&Definition {
                limit: counter.id,
                quota: counter.quota.reduced(),
            }),
        }
    }

    /// Returns whether a number means a charge's limit, counted in the same integers.
    pub(super) fn is_counter(&self, number: u16, counter: Counter<'_>) -> bool {
        match counter.quota.refill() {
            0 => {
                self.get(number)
                    == Some(Definition {
                        limit: counter.id,
                        quota: counter.quota.reduced(),
                    })
            }
            _ => self.is_bucket_of(number, counter),
        }
    }

    /// Returns the number of a charge's limit, which gets one if it has none. `None` when all numbers are taken.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "a first request asks for each of its limits"
    )]
    pub(super) fn number_of(&mut self, counter: Counter<'_>) -> Option<u16> {
        if counter.quota.refill() == 0 {
            return self.number_of_window(counter);
        }
        let definition = || Definition {
            limit: counter.id,
            quota: counter.quota.reduced(),
        };
        self.known_bucket(counter)
            .or_else(|| self.add(definition()))
    }

    #[cold]
    #[inline(never)]
    fn number_of_window(&mut self, counter: Counter<'_>) -> Option<u16> {
        self.number(Definition {
            limit: counter.id,
            quota: counter.quota.reduced(),
        })
    }

    /// Returns the number of a definition, which gets one if it has none. `None` when all numbers are taken.
    pub(super) fn number(&mut self, definition: Definition) -> Option<u16> {
        self.known(&definition).or_else(|| self.add(definition))
    }

    fn known(&self, definition: &Definition) -> Option<u16> {
        match &self.index {
            Some(index) => index.0.get(definition).copied(),
            None => (0..)
                .take(self.len())
                .find(|number| self.get(*number) == Some(*definition)),
        }
    }

    #[cold]
    fn add(&mut self, definition: Definition) -> Option<u16> {
        let number = u16::try_from(self.len())
            .ok()
            .filter(|number| *number < NO_NUMBER)?;
        let Definition { limit, quota } = definition;
        let (capacity, grain, refill) = (quota.capacity(), quota.grain(), quota.refill());
        self.numbers.push(Numbers {
            limit,
            capacity,
            grain,
            refill,
        });
        self.quotas.push(quota);
        if let Some(index) = &mut self.index {
            index.0.insert(definition, number);
        } else if self.len() > FEW {
            let all = (0..=number).filter_map(|number| Some((self.get(number)?, number)));
            self.index = Some(Box::new(Index(all.collect())));
        }
        Some(number)
    }

    /// Returns whether enough definitions were added for recycling to pay.
    #[inline]
    pub(super) const fn is_due(&self) -> bool {
        let len = self.len();
        len > FEW && (len > 2 * self.live || len > MANY && len >= self.live + ADDED)
    }
}

impl Numbers {
    #[inline]
    const fn are_of_bucket(&self, counter: Counter<'_>) -> bool {
        // Only buckets have a refill above 0.
        self.limit == counter.id
            && self.refill == counter.quota.refill()
            && self.grain == counter.quota.grain()
            && self.capacity == counter.quota.capacity()
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    #[test]
    fn definition_keeps_number_until_all_are_taken() {
        let mut interned = Interned::default();
        let definition = |limit: u16| Definition {
            limit: limit.into(),
            quota: Quota::per_second(5).reduced(),
        };
        for _ in 0..2 {
            for limit in 0..NO_NUMBER {
                assert_eq!(interned.number(definition(limit)), Some(limit));
                assert!(interned.get(limit) == Some(definition(limit)));
            }
            assert_eq!(interned.number(definition(NO_NUMBER)), None);
        }
    }
}
