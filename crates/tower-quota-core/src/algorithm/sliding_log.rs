//! Sliding window log: the instant of every admitted unit, for one period.
//!
//! Units of one microsecond share an entry. Each entry has the running total up to and including its own units, so that
//! binary search finds the units that still count.
//!
//! Bound: at most `units` in any span of one period. A unit of instant `t` counts until just before `t + period`.

use std::collections::VecDeque;

use super::counting::{Counting, Refund};
use super::fixed_window::MOST_COUNTED;
use crate::bytes::{push_u56, read_u56};
use crate::outcome::Outcome;
use crate::quota::{LONGEST_LOG, Quota};

/// The least entries to allocate.
const FEWEST: usize = 4;
/// The bytes of one entry in the stored form.
const STORED_BYTES: usize = 14;

/// The log of one client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SlidingLog {
    /// An instant in microseconds and a running total. Both grow from entry to entry.
    entries: VecDeque<(u64, u64)>,
    /// The running total before the first entry.
    base: u64,
}

impl Counting for SlidingLog {
    fn judge(&self, quota: &Quota, now: u64, cost: u64, _: u64) -> Outcome {
        let live = self.live(quota, now);
        let total = self.total_from(live);
        if total + cost <= quota.capacity() {
            return Outcome::Allow;
        }
        // The oldest entries have to expire up to this total.
        let must_go = self.total_before(live) + (total + cost - quota.capacity());
        let last_to_go = self
            .entries
            .partition_point(|&(_, running)| running < must_go);
        Outcome::refuse_for(self.entries[last_to_go].0 + quota.period_micros() - now)
    }

    fn full_at(&self, quota: &Quota) -> u64 {
        self.entries
            .back()
            .map_or(0, |&(newest, _)| newest + quota.period_micros())
    }

    fn advance(&mut self, quota: &Quota, now: u64) {
        let gone = self.live(quota, now);
        self.base = self.total_before(gone);
        self.entries.drain(..gone);
        self.shrink();
        if self.entries.is_empty() {
            self.base = 0;
        } else if self.base > MOST_COUNTED {
            // The totals of a log that is never empty restart long before they could overflow.
            for (_, running) in &mut self.entries {
                *running -= self.base;
            }
            self.base = 0;
        }
    }

    fn take(&mut self, _: &Quota, now: u64, cost: u64) -> u64 {
        let before = self.total_before(self.entries.len());
        let running = before.saturating_add(cost).min(self.base + MOST_COUNTED);
        if running == before {
            return 0;
        }
        let is_long = self.entries.len() as u64 >= LONGEST_LOG;
        match self.entries.back_mut() {
            Some((newest, total)) if *newest == now => *total = running,
            // Units in debt share an entry, so that no log is longer than the longest quota.
            Some(newest) if is_long => *newest = (now, running),
            _ => self.push(now, running),
        }
        running - before
    }

    fn refund(&mut self, _: &Quota, _: u64, Refund { cost, taken_at, .. }: Refund) {
        let Ok(position) = self
            .entries
            .binary_search_by_key(&taken_at, |&(stamp, _)| stamp)
        else {
            return;
        };
        let back = cost.min(self.entries[position].1 - self.total_before(position));
        for (_, running) in self.entries.range_mut(position..) {
            *running -= back;
        }
        if self.entries[position].1 == self.total_before(position) {
            self.entries.remove(position);
        }
    }

    fn used(&self, quota: &Quota, now: u64) -> (u64, u64) {
        (self.total_from(self.live(quota, now)), 1)
    }

    fn heap_bytes(&self) -> usize {
        self.entries.capacity() * size_of::<(u64, u64)>()
    }

    fn encode(&self, _: &Quota, bytes: &mut Vec<u8>) {
        push_u56(bytes, self.base);
        for &(stamp, running) in &self.entries {
            push_u56(bytes, stamp);
            push_u56(bytes, running);
        }
    }

    fn fresh(_: &Quota, _: u64) -> Self {
        Self::default()
    }

    fn decode(_: &Quota, bytes: &mut &[u8], _: u64, at: u64) -> Option<Self> {
        let mut log = Self {
            base: read_u56(bytes)?,
            entries: VecDeque::with_capacity(bytes.len() / STORED_BYTES),
        };
        let (mut newest, mut total) = (None, log.base);
        while !bytes.is_empty() {
            let (stamp, running) = (read_u56(bytes)?, read_u56(bytes)?);
            if newest.is_some_and(|newest| stamp <= newest) || running < total || stamp > at {
                return None;
            }
            (newest, total) = (Some(stamp), running);
            log.entries.push_back((stamp, running));
        }
        (log.base <= 2 * MOST_COUNTED && total - log.base <= MOST_COUNTED).then_some(log)
    }
}

/// The stamps of an abridged log that are kept as they are.
pub const KEPT_STAMPS: usize = 32;

impl SlidingLog {
    /// Merges all but the oldest stamps into one, which expires when the first of the merged stamps does.
    pub(crate) fn abridge(&mut self) {
        if self.entries.len() > KEPT_STAMPS + 1 {
            let total = self.total_before(self.entries.len());
            self.entries.truncate(KEPT_STAMPS + 1);
            self.entries[KEPT_STAMPS].1 = total;
            self.entries.shrink_to_fit();
        }
    }

    /// Adds an entry.
    ///
    /// A full log grows by an eighth. Doubling would leave half of the memory of a long log unused.
    fn push(&mut self, stamp: u64, running: u64) {
        if self.entries.len() == self.entries.capacity() {
            self.entries
                .reserve_exact(FEWEST.max(self.entries.len() / 8));
        }
        self.entries.push_back((stamp, running));
    }

    /// Frees memory if less than a quarter is used.
    fn shrink(&mut self) {
        let used = self.entries.len().max(FEWEST);
        if self.entries.capacity() / 4 > used {
            self.entries.shrink_to(2 * used);
        }
    }

    /// Returns the position of the first entry that still counts at `now`.
    fn live(&self, quota: &Quota, now: u64) -> usize {
        self.entries
            .partition_point(|&(stamp, _)| stamp + quota.period_micros() <= now)
    }

    /// Returns the running total before the entry at `position`.
    fn total_before(&self, position: usize) -> u64 {
        match position.checked_sub(1) {
            Some(last) => self.entries[last].1,
            None => self.base,
        }
    }

    fn total_from(&self, position: usize) -> u64 {
        self.total_before(self.entries.len()) - self.total_before(position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::State;
    use crate::charge::{Charge, Operation};
    use crate::entry::Entry;
    use crate::key::Key;
    use crate::time::Timestamp;

    #[test]
    fn check_copies_no_stamps() {
        let (quota, key) = (Quota::per_hour(10_000).sliding_log(), Key::EVERYONE);
        let charge = [Charge::new("log", &quota, &key)];
        let mut entry = Entry::default();
        let mut check = |micros| {
            let decision = entry.decide(Operation::Check, &charge, Timestamp::from_micros(micros));
            let State::SlidingLog(log) = &entry.slots[0].state else {
                unreachable!("the quota counts by a log");
            };
            let newest = log.entries.back().map(core::ptr::from_ref);
            (decision.is_allowed(), log.entries.capacity(), newest)
        };
        for micros in 1..10_000 {
            check(micros);
        }
        let (_, capacity, newest) = check(10_000);
        let refused = check(10_001);
        assert_eq!(refused, (false, capacity, newest));
        // One stamp leaves, and another one joins.
        let admitted = check(3_600_000_001);
        assert_eq!((admitted.0, admitted.1), (true, capacity));
        let next = newest.map(|stamp| stamp.wrapping_add(1));
        assert_eq!(admitted.2, next);
    }
}
