//! Holds: units that are in use until they are released or expire.
//!
//! The instant of a charge identifies its hold. A hold that is released in its first microsecond stays without
//! units until the next, so that no later hold gets the same instant. With the sum of the units and an index by expiry,
//! a decision costs the same for any number of holds.
//!
//! Bound: at most `units` are held at any instant.

use std::collections::{BTreeMap, BTreeSet};

use super::counting::Counting;
use super::window::MOST_COUNTED;
use crate::bytes::{push_u56, read_u56};
use crate::quota::{LONGEST_LOG, Quota, YEAR};

/// The longest retry time in microseconds. The time is a guess, because holds end at any time.
pub const LONGEST_RETRY: u64 = 1_000_000;
/// The most units of a hold.
pub const MOST_HELD: u64 = MOST_COUNTED / LONGEST_LOG;
/// The bytes of a stored number of holds and their units.
const SUMMARY: usize = 14;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Holds {
    by_instant: BTreeMap<u64, Hold>,
    /// The expiry and the instant of each hold.
    by_expiry: BTreeSet<(u64, u64)>,
    units: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Hold {
    expires_at: u64,
    units: u64,
}

impl Holds {
    /// Merges the holds into one, which lasts until the last expiry.
    pub(crate) fn abridge(&mut self) {
        let (newest, last) = (self.by_instant.last_key_value(), self.by_expiry.last());
        if let (Some((&taken_at, _)), Some(&(expires_at, _))) = (newest, last) {
            let units = self.units.min(MOST_HELD);
            *self = Self::default();
            self.set(taken_at, Hold { expires_at, units });
        }
    }

    fn units_of(&self, taken_at: u64) -> u64 {
        self.by_instant.get(&taken_at).map_or(0, |hold| hold.units)
    }

    fn set(&mut self, taken_at: u64, hold: Hold) {
        self.remove(taken_at);
        self.units += hold.units;
        self.by_expiry.insert((hold.expires_at, taken_at));
        self.by_instant.insert(taken_at, hold);
    }

    fn remove(&mut self, taken_at: u64) {
        if let Some(hold) = self.by_instant.remove(&taken_at) {
            self.units -= hold.units;
            self.by_expiry.remove(&(hold.expires_at, taken_at));
        }
    }
}

impl Counting for Holds {
    fn until_fits(&self, quota: &Quota, now: u64, cost: u64) -> u64 {
        if self.used(quota, now) + cost <= quota.capacity() {
            return 0;
        }
        let mut live = self.by_expiry.range((now + 1, 0)..);
        // A hold that was released in its first microsecond gives back no units.
        let first = live.find(|(_, taken_at)| self.units_of(*taken_at) > 0);
        first.map_or(LONGEST_RETRY, |(end, _)| LONGEST_RETRY.min(end - now))
    }

    fn full_at(&self, _: &Quota) -> u64 {
        self.by_expiry.last().map_or(0, |(end, _)| *end)
    }

    fn used(&self, _: &Quota, now: u64) -> u64 {
        let expired = self.by_expiry.range(..(now + 1, 0));
        let units = expired.map(|(_, taken_at)| self.units_of(*taken_at));
        self.units - units.sum::<u64>()
    }

    fn advance(&mut self, _: &Quota, now: u64) {
        while let Some(&(expires_at, taken_at)) = self.by_expiry.first()
            && expires_at <= now
        {
            self.remove(taken_at);
        }
    }

    fn take(&mut self, quota: &Quota, now: u64, cost: u64) -> u64 {
        if self.by_instant.len() as u64 >= LONGEST_LOG {
            // Do not record charges beyond the largest capacity.
            return 0;
        }
        let held = self.units_of(now);
        let units = cost.min(MOST_HELD - held);
        let hold = Hold {
            expires_at: now + quota.period_micros(),
            units: held + units,
        };
        self.set(now, hold);
        units
    }

    fn refund(&mut self, quota: &Quota, now: u64, cost: u64, taken_at: u64, _: bool) {
        if let Some(&hold) = self.by_instant.get(&taken_at) {
            let units = hold.units.saturating_sub(cost);
            let expires_at = match units {
                0 => taken_at + 1,
                _ => hold.expires_at,
            };
            self.set(taken_at, Hold { expires_at, units });
        }
        self.advance(quota, now);
    }

    fn renew(&mut self, quota: &Quota, now: u64, taken_at: u64, lost_units: u64) -> u64 {
        // Only a wrong clock gives a later instant. No hold is later than the last change.
        let taken_at = taken_at.min(now);
        let mut units = self.units_of(taken_at);
        if units == 0 && (self.by_instant.len() as u64) < LONGEST_LOG {
            units = lost_units.min(MOST_HELD);
        }
        if units > 0 {
            let expires_at = now + quota.period_micros();
            self.set(taken_at, Hold { expires_at, units });
        }
        units
    }

    fn heap_bytes(&self) -> usize {
        // A node of a tree has room for 11 holds, and contains at least 5.
        let hold = size_of::<(u64, Hold)>() + size_of::<(u64, u64)>();
        self.by_instant.len().div_ceil(5) * 11 * hold
    }

    fn encode(&self, _: &Quota, bytes: &mut Vec<u8>) {
        for (taken_at, hold) in &self.by_instant {
            for number in [*taken_at, hold.expires_at, hold.units] {
                push_u56(bytes, number);
            }
        }
    }

    fn decode(quota: &Quota, bytes: &mut &[u8], full_at: u64, at: u64) -> Option<Self> {
        let mut holds = Self::default();
        if quota.grain() != 1 || quota.capacity() > LONGEST_LOG || full_at > at + YEAR {
            return None;
        }
        if bytes.len() == SUMMARY {
            let (count, units) = (read_u56(bytes)?, read_u56(bytes)?);
            let hold = Hold {
                expires_at: full_at,
                units: units.min(MOST_HELD),
            };
            holds.set(at, hold);
            return (count <= LONGEST_LOG).then_some(holds);
        }
        let mut newest = None;
        while !bytes.is_empty() {
            let taken_at = read_u56(bytes)?;
            let (expires_at, units) = (read_u56(bytes)?, read_u56(bytes)?);
            let is_next = Some(taken_at) > newest && taken_at <= at;
            if !is_next || expires_at > at + YEAR || units > MOST_HELD {
                return None;
            }
            newest = Some(taken_at);
            holds.set(taken_at, Hold { expires_at, units });
        }
        (holds.by_instant.len() as u64 <= LONGEST_LOG).then_some(holds)
    }

    fn unpacked(_: u64, _: &Quota, _: u64) -> Self {
        Self::default()
    }
}
