//! Holds: units that are in use until they are released or expire.
//!
//! 1. A request takes its units as one hold, which expires after the period of the quota. A renewal moves its expiry.
//! 2. A refund at the instant of the charge releases the hold. No two holds of a key have the same instant.
//! 3. A hold that was released in the microsecond of its charge is kept without units until that microsecond has
//!    passed, so that no later hold gets its instant.
//!
//! Bound: at most `units` are held at any instant.

use std::collections::BTreeMap;

use super::counting::{Counting, Refund};
use super::fixed_window::MOST_COUNTED;
use crate::bytes::{push_u56, read_u56};
use crate::outcome::Outcome;
use crate::quota::{LONGEST_LOG, Quota, YEAR};

/// The longest retry time of a refusal, in microseconds. Nobody knows when a hold is released.
const LONGEST_RETRY: u64 = 1_000_000;
/// The most units of a hold, so that those of all holds can be added.
const MOST_UNITS: u64 = MOST_COUNTED / LONGEST_LOG;

/// The holds of one client, by the instants of their charges, in microseconds since the epoch.
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

    fn held(&self, now: u64) -> u64 {
        self.live(now).map(|hold| hold.units).sum()
    }
}

impl Counting for Holds {
    fn judge(&self, quota: &Quota, now: u64, cost: u64, _: u64) -> Outcome {
        if self.held(now) + cost <= quota.capacity() {
            return Outcome::Allow;
        }
        let ends = self.live(now).map(|hold| hold.expires_at - now);
        Outcome::refuse_for(ends.fold(LONGEST_RETRY, u64::min))
    }

    fn full_at(&self, _: &Quota) -> u64 {
        self.live(0).map(|hold| hold.expires_at).max().unwrap_or(0)
    }

    fn used(&self, _: &Quota, now: u64) -> (u64, u64) {
        (self.held(now), 1)
    }

    fn advance(&mut self, _: &Quota, now: u64) {
        self.0.retain(|_, hold| hold.expires_at > now);
    }

    fn take(&mut self, quota: &Quota, now: u64, cost: u64) -> u64 {
        if self.0.len() as u64 >= LONGEST_LOG {
            // Only charges beyond the capacity get here.
            return 0;
        }
        let hold = self.0.entry(now).or_default();
        let units = cost.min(MOST_UNITS - hold.units);
        hold.units += units;
        hold.expires_at = now + quota.period_micros();
        units
    }

    /// Releases units of the hold that was taken at this instant.
    fn refund(&mut self, quota: &Quota, now: u64, Refund { cost, taken_at, .. }: Refund) {
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
        // A node of the tree has room for 11 holds, and at least 5 of them are there.
        self.0.len().div_ceil(5) * 11 * size_of::<(u64, Hold)>()
    }

    fn encode(&self, _: &Quota, bytes: &mut Vec<u8>) {
        for (taken_at, hold) in &self.0 {
            for number in [*taken_at, hold.expires_at, hold.units] {
                push_u56(bytes, number);
            }
        }
    }

    fn fresh(_: &Quota, _: u64) -> Self {
        Self::default()
    }

    fn decode(_: &Quota, bytes: &mut &[u8], _: u64, at: u64) -> Option<Self> {
        let mut holds = Self::default();
        while !bytes.is_empty() {
            let taken_at = read_u56(bytes)?;
            let hold = Hold {
                expires_at: read_u56(bytes)?,
                units: read_u56(bytes)?,
            };
            let newest = holds.0.last_key_value();
            let is_next = newest.is_none_or(|(newest, _)| *newest < taken_at);
            let is_sound =
                taken_at <= at && hold.expires_at <= at + YEAR && hold.units <= MOST_UNITS;
            if !(is_next && is_sound) {
                return None;
            }
            holds.0.insert(taken_at, hold);
        }
        (holds.0.len() as u64 <= LONGEST_LOG).then_some(holds)
    }
}
