//! Numbers for the limits of a table: a row holds 11 bits instead of a limit's name and quota.
//!
//! Each table numbers its own limits under its own lock. A number stays valid as long as some row holds it. When the
//! definitions have doubled since the last time, [`Table::recycle_numbers`] drops those that no row holds and numbers
//! the rest anew. So a table never knows more than twice the definitions it uses, or a handful.

use std::collections::HashMap;

use super::row::Row;
use super::table::Table;
use crate::charge::Counter;
use crate::quota::Quota;

/// Bits of a number.
pub(super) const NUMBER_BITS: u32 = 11;
/// The number that no limit gets.
pub(super) const NO_NUMBER: u16 = (1 << NUMBER_BITS) - 1;
/// Definitions that are searched one by one, and that are always kept.
const FEW: usize = 8;
/// Definitions above which numbers are recycled at the latest: there is room left for one more request.
const MANY: usize = NO_NUMBER as usize - 64;

/// A limit of some quota.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Definition {
    pub(super) limit: u32,
    pub(super) quota: Quota,
}

/// The definitions of a table, each at the position of its number.
#[derive(Default)]
pub(super) struct Interned {
    definitions: Vec<Definition>,
    /// All of them by definition, once there are more than a few.
    numbers: Option<Box<HashMap<Definition, u16>>>,
    /// Definitions that were in use when numbers were recycled last.
    live: usize,
}

impl Interned {
    /// Returns the definition of a number.
    #[inline]
    pub(super) fn get(&self, number: u16) -> Option<&Definition> {
        self.definitions.get(usize::from(number))
    }

    /// Returns how many definitions there are.
    pub(super) const fn len(&self) -> usize {
        self.definitions.len()
    }

    /// Whether a number means a charge's limit, counted by a bucket in the same integers.
    #[inline]
    pub(super) fn is_bucket_of(&self, number: u16, counter: Counter<'_>) -> bool {
        self.get(number).is_some_and(|definition| definition.is_bucket_of(counter))
    }

    /// Whether a number means a limit, by whatever quota.
    #[inline]
    pub(super) fn is_limit(&self, number: u16, limit: u32) -> bool {
        self.get(number).is_some_and(|definition| definition.limit == limit)
    }

    /// Returns the position in a row of a charge's limit, counted by a bucket in the same integers.
    #[inline]
    pub(super) fn position(&self, row: Row<'_>, counter: Counter<'_>) -> Option<usize> {
        (0..row.limits()).find(|&position| self.is_bucket_of(row.number(position), counter))
    }

    /// Returns the number of a bucket, which gets one if it has none. `None` when all numbers are taken.
    #[inline]
    pub(super) fn number_of(&mut self, counter: Counter<'_>) -> Option<u16> {
        let few = self.definitions.get(..FEW).unwrap_or(&self.definitions);
        match few.iter().position(|definition| definition.is_bucket_of(counter)) {
            Some(position) => u16::try_from(position).ok(),
            None => self.number(Definition { limit: counter.id, quota: counter.quota.reduced() }),
        }
    }

    /// Returns the number of a definition, which gets one if it has none. `None` when all numbers are taken.
    pub(super) fn number(&mut self, definition: Definition) -> Option<u16> {
        let known = match &self.numbers {
            Some(numbers) => numbers.get(&definition).copied(),
            None => {
                self.definitions.iter().position(|known| *known == definition).and_then(|at| u16::try_from(at).ok())
            }
        };
        known.or_else(|| self.add(definition))
    }

    #[cold]
    fn add(&mut self, definition: Definition) -> Option<u16> {
        let number = u16::try_from(self.len()).ok().filter(|number| *number < NO_NUMBER)?;
        self.definitions.push(definition);
        if self.len() > FEW {
            let definitions = &self.definitions;
            let all = || Box::new((0..).zip(definitions).map(|(number, definition)| (*definition, number)).collect());
            self.numbers.get_or_insert_with(all).insert(definition, number);
        }
        Some(number)
    }

    /// Whether enough definitions were added for recycling to pay.
    #[inline]
    const fn is_due(&self) -> bool {
        let len = self.definitions.len();
        len > FEW && (len > 2 * self.live || len > MANY)
    }
}

impl Definition {
    #[inline]
    pub(super) const fn is_bucket_of(&self, counter: Counter<'_>) -> bool {
        // What refills is a bucket.
        self.limit == counter.id
            && self.quota.refill() == counter.quota.refill()
            && self.quota.grain() == counter.quota.grain()
            && self.quota.capacity() == counter.quota.capacity()
    }
}

impl Table {
    /// Drops the definitions that no row holds, if there are many. All numbers may change, so no caller may keep one.
    #[inline]
    pub(super) fn recycle_numbers(&mut self) {
        if self.interned.is_due() {
            self.renumber();
        }
    }

    #[cold]
    fn renumber(&mut self) {
        let before = core::mem::take(&mut self.interned);
        for position in 0..self.rows() {
            for limit in 0..self.row(position).limits() {
                let definition = before.get(self.row(position).number(limit));
                let number = definition.and_then(|definition| self.interned.number(*definition));
                self.row_mut(position).set_number(limit, number.unwrap_or(NO_NUMBER));
            }
        }
        self.interned.live = self.interned.len();
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    #[test]
    fn definition_keeps_number_until_all_are_taken() {
        let mut interned = Interned::default();
        let definition = |limit: u16| Definition { limit: limit.into(), quota: Quota::per_second(5) };
        for _ in 0..2 {
            for limit in 0..NO_NUMBER {
                assert_eq!(interned.number(definition(limit)), Some(limit));
                assert!(interned.get(limit) == Some(&definition(limit)));
            }
            assert_eq!(interned.number(definition(NO_NUMBER)), None);
        }
    }
}
