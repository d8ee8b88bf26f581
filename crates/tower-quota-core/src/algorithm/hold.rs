//! Holds: units that are in use until they are released or expire.
//!
//! The instant of a charge identifies its hold. A hold that is released in its first microsecond stays without
//! units until the next, so that no later hold gets the same instant.
//!
//! Bound: at most `units` are held at any instant.

use std::collections::BTreeMap;

use super::counting::Counting;
use super::window::MOST_COUNTED;
use crate::bytes::{push_u56, read_u56};
use crate::quota::{LONGEST_LOG, Quota, YEAR};

/// The longest retry time in microseconds. The time is a guess, because holds end at any time.
pub const LONGEST_RETRY: u64 = 1_000_000;
const MOST_UNITS: u64 = MOST_COUNTED / LONGEST_LOG;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Holds(BTreeMap<u64, Hold>);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Hold {
    expires_at: u64,
    units: u64,
}

impl Holds {
    fn live(&self, now: u64) -> impl Iterator<Item = &Hold> {
        self.0.values().filter(move |hold| hold.expires_at > now)
    }
}

impl Counting for Holds {
    fn until_fits(&self, quota: &Quota, now: u64, cost: u64) -> u64 {
        if self.used(quota, now) + cost <= quota.capacity() {
            return 0;
        }
        // A hold that was released in its first microsecond gives back no units.
        let held = self.live(now).filter(|hold| hold.units > 0);
        let ends = held.map(|hold| hold.expires_at - now);
        ends.fold(LONGEST_RETRY, u64::min)
    }

    fn full_at(&self, _: &Quota) -> u64 {
        self.live(0).map(|hold| hold.expires_at).max().unwrap_or(0)
    }

    fn used(&self, _: &Quota, now: u64) -> u64 {
        self.live(now).map(|hold| hold.units).sum()
    }

    fn advance(&mut self, _: &Quota, now: u64) {
        self.0.retain(|_, hold| hold.expires_at > now);
    }

    fn take(&mut self, quota: &Quota, now: u64, cost: u64) -> u64 {
        if self.0.len() as u64 >= LONGEST_LOG {
            // Do not record charges beyond the largest capacity.
            return 0;
        }
        let hold = self.0.entry(now).or_default();
        let units = cost.min(MOST_UNITS - hold.units);
        hold.units += units;
        hold.expires_at = now + quota.period_micros();
        units
    }

    fn take_evenly(&mut self, quota: &Quota, now: u64, units: u64) {
        // A hold of the request that converts the state must have an instant of its own.
        self.take(quota, now.saturating_sub(1), units);
    }

    fn refund(&mut self, quota: &Quota, now: u64, cost: u64, taken_at: u64, _: bool) {
        if let Some(hold) = self.0.get_mut(&taken_at) {
            hold.units = hold.units.saturating_sub(cost);
            if hold.units == 0 {
                hold.expires_at = taken_at + 1;
            }
        }
        self.advance(quota, now);
    }

    fn renew(&mut self, quota: &Quota, now: u64, taken_at: u64) -> u64 {
        match self.0.get_mut(&taken_at) {
            Some(hold) if hold.units > 0 => {
                hold.expires_at = now + quota.period_micros();
                hold.units
            }
            _ => 0,
        }
    }

    fn heap_bytes(&self) -> usize {
        // A node of the tree has room for 11 holds, and contains at least 5.
        self.0.len().div_ceil(5) * 11 * size_of::<(u64, Hold)>()
    }

    fn encode(&self, _: &Quota, bytes: &mut Vec<u8>) {
        for (taken_at, hold) in &self.0 {
            for number in [*taken_at, hold.expires_at, hold.units] {
                push_u56(bytes, number);
            }
        }
    }

    fn decode(quota: &Quota, bytes: &mut &[u8], _: u64, at: u64) -> Option<Self> {
        let mut holds = BTreeMap::new();
        let mut newest = None;
        while !bytes.is_empty() {
            let taken_at = read_u56(bytes)?;
            let (expires_at, units) = (read_u56(bytes)?, read_u56(bytes)?);
            let is_next = Some(taken_at) > newest && taken_at <= at;
            if !is_next || expires_at > at + YEAR || units > MOST_UNITS {
                return None;
            }
            newest = Some(taken_at);
            holds.insert(taken_at, Hold { expires_at, units });
        }
        let is_sound =
            quota.grain() == 1 && quota.capacity().max(holds.len() as u64) <= LONGEST_LOG;
        is_sound.then_some(Self(holds))
    }

    fn unpacked(_: u64, _: &Quota, _: u64) -> Self {
        Self::default()
    }
}
