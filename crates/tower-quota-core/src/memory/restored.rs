//! Restores the spent limits of an evicted row when the key returns.

use super::filter::STEP;
use crate::algorithm::{Bucket, State};
use crate::charge::Counter;
use crate::entry::Slot;
use crate::outcome::Outcome;
use crate::quota::MOST_USED;
use crate::time::micros;

pub(super) struct Restored {
    pub(super) slot: Slot,
    /// Whether the limit is spent for less time than the filter says. The filter then has to forget the limit, or each
    /// request would restore the limit as spent.
    pub(super) is_cut: bool,
}

impl Restored {
    pub(super) fn until(
        counter: Counter<'_>,
        is_strikes: bool,
        until: u64,
        now: u64,
    ) -> Option<Self> {
        let slot = if counter.quota.refill() > 0 {
            spent_bucket(counter, is_strikes, until, now)
        } else {
            spent_window(counter, until, now)?
        };
        Some(Self {
            is_cut: slot.unit_fits_at(now) < until,
            slot,
        })
    }
}

fn spent_bucket(counter: Counter<'_>, is_strikes: bool, until: u64, now: u64) -> Slot {
    let quota = counter.quota;
    // Strikes are a debt. A limit has no debt here, because the quota may have changed since the eviction.
    let most = if is_strikes {
        MOST_USED
    } else {
        quota.capacity() * quota.grain()
    };
    let refilled = (until - now).saturating_mul(quota.refill());
    let used = ((quota.capacity() - 1) * quota.grain()).saturating_add(refilled);
    let state = State::Bucket(Bucket::new(quota, used.min(most), now));
    Slot::new(counter, state)
}

fn spent_window(counter: Counter<'_>, until: u64, now: u64) -> Option<Slot> {
    let quota = counter.quota;
    let spent_since = |start: u64| {
        let mut state = State::fresh(quota, start);
        state.take(quota, start, quota.capacity());
        state.advance(quota, now);
        Slot::new(counter, state)
    };
    // The filter has rounded `until` down. The window may end at any instant that rounds down to `until`.
    let latest = until.saturating_add(STEP - 1);
    let starts = [
        now,
        latest.saturating_sub(quota.period_micros()),
        until.saturating_sub(quota.period_micros()),
    ];
    let spent = starts.into_iter().map(|start| spent_since(start.min(now)));
    let fading = State::fading_until(quota, until, now).map(|state| Slot::new(counter, state));
    spent
        .chain(fading)
        .find(|slot| (now + 1..=latest).contains(&slot.unit_fits_at(now)))
}

impl Slot {
    /// Returns the instant at which one unit fits, or `at` if a unit fits already.
    ///
    /// Holds count as spent until all expire. Otherwise an eviction would grant units that are still held.
    pub(super) fn unit_fits_at(&self, at: u64) -> u64 {
        if let State::Holds(_) = self.state {
            return self.state.full_at(&self.quota).max(at);
        }
        match self.state.judge(&self.quota, at, 1, 0) {
            Outcome::Refuse(retry) => at + micros(retry),
            _ => at,
        }
    }
}
