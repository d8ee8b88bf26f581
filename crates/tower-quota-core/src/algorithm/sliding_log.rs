//! Sliding window log: the instant of every admitted unit, for one period.
//!
//! Bound: at most `units` in any span of one period.

use std::collections::VecDeque;

use super::counting::Counting;
use super::window::MOST_COUNTED;
use crate::bytes::{push_u56, read_u56};
use crate::quota::{LONGEST_LOG, Quota};

const FEWEST: usize = 4;
/// The number of stamps that an abridged log keeps unchanged.
pub const KEPT_STAMPS: usize = 32;
const STORED_BYTES: usize = 14;
/// A converted log merges the units of an eighth of the elapsed time, so a unit is late by at most that much.
const UNITS_PER_STAMP: u64 = 8;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SlidingLog {
    /// The stamps, as instants in microseconds and the total up to and including their units. Both
    /// grow.
    entries: VecDeque<(u64, u64)>,
    base: u64,
}

impl SlidingLog {
    pub(crate) fn of_stamp(stamp: u64, units: u64) -> Self {
        Self {
            entries: VecDeque::from([(stamp, units)]),
            base: 0,
        }
    }

    /// Merges all but the oldest stamps into one, which expires when the first merged stamp does.
    pub(crate) fn abridge(&mut self) {
        if self.entries.len() > KEPT_STAMPS + 1 {
            let total = self.total();
            self.entries.truncate(KEPT_STAMPS + 1);
            self.entries[KEPT_STAMPS].1 = total;
            self.entries.shrink_to_fit();
        }
    }

    fn live(&self, quota: &Quota, now: u64) -> usize {
        self.entries
            .partition_point(|&(stamp, _)| stamp + quota.period_micros() <= now)
    }

    fn total(&self) -> u64 {
        self.total_before(self.entries.len())
    }

    fn total_before(&self, position: usize) -> u64 {
        match position {
            0 => self.base,
            position => self.entries[position - 1].1,
        }
    }
}

impl Counting for SlidingLog {
    fn until_fits(&self, quota: &Quota, now: u64, cost: u64) -> u64 {
        // The cost fits once the stamps up to this total have expired.
        let must_go = (self.total() + cost).saturating_sub(quota.capacity());
        if self.total_before(self.live(quota, now)) >= must_go {
            return 0;
        }
        let last_to_go = self.entries.partition_point(|entry| entry.1 < must_go);
        self.entries[last_to_go].0 + quota.period_micros() - now
    }

    fn full_at(&self, quota: &Quota) -> u64 {
        let newest = self.entries.back();
        newest.map_or(0, |&(stamp, _)| stamp + quota.period_micros())
    }

    fn used(&self, quota: &Quota, now: u64) -> u64 {
        self.total() - self.total_before(self.live(quota, now))
    }

    fn advance(&mut self, quota: &Quota, now: u64) {
        let gone = self.live(quota, now);
        self.base = self.total_before(gone);
        self.entries.drain(..gone);
        let used = self.entries.len().max(FEWEST);
        if self.entries.capacity() / 4 > used {
            self.entries.shrink_to(2 * used);
        }
        // The totals of a log that is never empty restart long before they could overflow.
        if self.entries.is_empty() || self.base > MOST_COUNTED {
            for (_, running) in &mut self.entries {
                *running -= self.base;
            }
            self.base = 0;
        }
    }

    fn take(&mut self, _: &Quota, now: u64, cost: u64) -> u64 {
        let before = self.total();
        let taken = cost.min(self.base + MOST_COUNTED - before);
        if taken == 0 {
            return 0;
        }
        let is_long = self.entries.len() as u64 >= LONGEST_LOG;
        match self.entries.back_mut() {
            // A full log counts the units in debt under one stamp, so that no log is longer than
            // the longest quota.
            Some(newest) if newest.0 == now || is_long => *newest = (now, before + taken),
            _ => {
                if self.entries.len() == self.entries.capacity() {
                    // Doubling would leave half of the memory of a long log unused.
                    self.entries
                        .reserve_exact(FEWEST.max(self.entries.len() / 8));
                }
                self.entries.push_back((now, before + taken));
            }
        }
        taken
    }

    fn take_evenly(&mut self, quota: &Quota, now: u64, units: u64) {
        let mut placed = 0;
        while placed < units {
            // A stamp for each unit would make the log of a large quota long.
            let together = (placed / UNITS_PER_STAMP).clamp(1, units - placed);
            placed += together;
            let expires_at = now + quota.refill_micros(placed);
            let stamp = expires_at.saturating_sub(quota.period_micros());
            self.take(quota, stamp, together);
        }
    }

    fn refund(&mut self, _: &Quota, _: u64, cost: u64, taken_at: u64, _: bool) {
        let found = self
            .entries
            .binary_search_by_key(&taken_at, |&(stamp, _)| stamp);
        if let Ok(position) = found {
            let before = self.total_before(position);
            let back = cost.min(self.entries[position].1 - before);
            for (_, running) in self.entries.range_mut(position..) {
                *running -= back;
            }
            if self.entries[position].1 == before {
                self.entries.remove(position);
            }
        }
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

    fn decode(quota: &Quota, bytes: &mut &[u8], _: u64, at: u64) -> Option<Self> {
        let base = read_u56(bytes)?;
        let mut entries = VecDeque::with_capacity(bytes.len() / STORED_BYTES);
        let (mut newest, mut total) = (None, base);
        while !bytes.is_empty() {
            let (stamp, running) = (read_u56(bytes)?, read_u56(bytes)?);
            if Some(stamp) <= newest || running < total || stamp > at {
                return None;
            }
            newest = Some(stamp);
            total = running;
            entries.push_back((stamp, running));
        }
        let is_sound = quota.grain() == 1
            && quota.capacity() <= LONGEST_LOG
            && base <= 2 * MOST_COUNTED
            && total - base <= MOST_COUNTED;
        is_sound.then_some(Self { entries, base })
    }

    fn unpacked(_: u64, _: &Quota, _: u64) -> Self {
        Self::default()
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
        // The oldest stamp expires, and the new one takes its place.
        let admitted = check(3_600_000_001);
        assert_eq!((admitted.0, admitted.1), (true, capacity));
        let next = newest.map(|stamp| stamp.wrapping_add(1));
        assert_eq!(admitted.2, next);
    }
}
