//! Conversion between entries of the model and their rows.

use smallvec::SmallVec;

use super::filter::STEP;
use super::interned::{Definition, Interned};
use super::row::{Count, MOST_LIMITS, Row};
use super::table::Table;
use crate::algorithm::{Bucket, State, bucket};
use crate::charge::Counter;
use crate::entry::{Entry, Slot, TRUSTED_LEAD};
use crate::outcome::Outcome;
use crate::quota::{MOST_USED, Quota};
use crate::time::micros;

/// The balance after an entry's last change.
#[derive(Clone, Copy)]
pub(super) struct Balance {
    /// The instant at which it is full again, in microseconds.
    pub(super) full_at: u64,
    /// Says whether some limit was spent, or the entry was refused since.
    pub(super) is_limited: bool,
}

/// Counts that fit into a row.
pub(super) type Counts = SmallVec<[Count; MOST_LIMITS]>;

impl Table {
    /// Takes out the entry of a row, to be written back or forgotten.
    pub(super) fn check_out(&mut self, position: usize) -> Entry {
        let row = self.row(position);
        let hash = row.hash();
        match row.is_elsewhere() {
            true => self.rare().elsewhere.remove(&hash).unwrap_or_default(),
            false => self.entry_of(row.at(), row.counts()),
        }
    }

    /// Returns the entry of these counts.
    pub(super) fn entry_of(&self, at: u64, counts: impl Iterator<Item = Count>) -> Entry {
        let slot = |count: Count| {
            let Definition { limit, quota } = self.interned.get(count.number)?;
            Some(Slot {
                limit,
                quota,
                state: State::unpacked(count.value, &quota, at),
            })
        };
        Entry {
            at,
            slots: counts.filter_map(slot).collect(),
        }
    }

    /// Returns the counts of an entry, if they fit into a row.
    pub(super) fn counts_of(&mut self, entry: &Entry) -> Option<Counts> {
        if entry.slots.len() > MOST_LIMITS {
            return None;
        }
        let count = |slot: &Slot| {
            let value = slot.state.packed(&slot.quota, entry.at)?;
            let number = self.interned.number(Definition {
                limit: slot.limit,
                quota: slot.quota,
            })?;
            Some(Count { number, value })
        };
        entry.slots.iter().map(count).collect()
    }

    /// Returns whether the instant of a row is close enough to the clock, by the model's rule.
    pub(super) fn is_trusted(&self, position: usize, clock: u64) -> bool {
        let row = self.row(position);
        let (at, full_at) = (row.at(), || self.balance(row).full_at);
        at <= clock
            || at
                <= clock
                    .saturating_add(TRUSTED_LEAD)
                    .saturating_add(full_at() - at)
    }

    /// Returns whether nothing of a row's entry is used any more at an instant after its last change.
    #[inline]
    pub(super) fn is_full(&self, row: Row<'_>, instant: u64) -> bool {
        let elapsed = instant - row.at();
        let is_back = |count: Count| match self.interned.refill(count.number) {
            0 => None,
            refill => Some(count.value <= elapsed.saturating_mul(refill)),
        };
        match row.is_elsewhere() {
            true => self.balance(row).full_at <= instant,
            // Buckets need no division.
            false => row.counts().all(|count| {
                is_back(count).unwrap_or_else(|| self.balance(row).full_at <= instant)
            }),
        }
    }

    /// Returns the balance after the last change of a row's entry.
    #[inline]
    pub(super) fn balance(&self, row: Row<'_>) -> Balance {
        match self.elsewhere(row) {
            None => row.balance(&self.interned),
            Some(entry) => Balance {
                full_at: entry.full_at().as_micros(),
                is_limited: row.was_refused() || entry.is_limited(entry.at()),
            },
        }
    }
}

impl Row<'_> {
    #[inline]
    fn balance(self, interned: &Interned) -> Balance {
        let at = self.at();
        let mut balance = Balance {
            full_at: at,
            is_limited: self.was_refused(),
        };
        for count in self.counts() {
            let Some(quota) = interned.quota(count.number) else {
                continue;
            };
            let (is_spent, reset) = if quota.refill() > 0 {
                (
                    bucket::is_spent(quota, count.value),
                    bucket::until_back(quota.refill(), count.value),
                )
            } else {
                let (remaining, reset) = State::unpacked(count.value, quota, at).left(quota, at);
                (remaining == 0, reset)
            };
            balance.full_at = balance.full_at.max(at + reset);
            balance.is_limited |= is_spent;
        }
        balance
    }
}

/// A limit that was spent when its entry was evicted.
pub(super) struct Restored<T> {
    pub(super) value: T,
    /// Says whether the limit is spent for less time than the filter says. The filter then has to forget it, or it would
    /// be spent anew at each request, and no wait would be long enough.
    pub(super) is_cut: bool,
}

/// Returns the used grains of a spent bucket in which one unit fits at `until`; at most `most`.
pub(super) fn spent_until(quota: &Quota, until: u64, now: u64, most: u64) -> Restored<u64> {
    let refilled = (until - now).saturating_mul(quota.refill());
    let used = ((quota.capacity() - 1) * quota.grain()).saturating_add(refilled);
    Restored {
        value: used.min(most),
        is_cut: used > most,
    }
}

impl Slot {
    /// Returns the instant at which one unit fits; `at` or earlier if it fits already.
    pub(super) fn unit_fits_at(&self, at: u64) -> u64 {
        match self.state.judge(&self.quota, at, 1, 0) {
            Outcome::Refuse(retry) => at + micros(retry),
            _ => at,
        }
    }

    /// Returns how long one unit takes to come back, in microseconds.
    pub(super) const fn unit_micros(&self) -> u64 {
        match self.quota.refill() {
            0 => self.quota.period_micros(),
            refill => self.quota.grain().div_ceil(refill),
        }
    }

    /// Returns the slot of a limit that is spent until then, or shorter if a window cannot express it.
    pub(super) fn spent(
        counter: Counter<'_>,
        is_strikes: bool,
        until: u64,
        now: u64,
    ) -> Option<Restored<Self>> {
        let quota = counter.quota;
        if quota.refill() > 0 {
            // Strikes are a debt. A limit has no debt here: its quota may have changed since it was spent.
            let most = if is_strikes {
                MOST_USED
            } else {
                quota.capacity() * quota.grain()
            };
            let Restored {
                value: used,
                is_cut,
            } = spent_until(quota, until, now, most);
            return Some(Restored {
                value: Self::new(counter, State::Bucket(Bucket::new(quota, used, now))),
                is_cut,
            });
        }
        let spent_since = |start: u64| {
            let mut state = State::fresh(quota, start);
            state.take(quota, start, quota.capacity());
            state.advance(quota, now);
            Self::new(counter, state)
        };
        // `until` was rounded down. A window's end must be one of the instants that it may have been rounded from.
        let latest = until.saturating_add(STEP - 1);
        let starts = [
            now,
            latest - quota.period_micros().min(latest),
            until - quota.period_micros().min(until),
        ];
        let spent = starts.into_iter().map(|start| spent_since(start.min(now)));
        let fading = State::fading_until(quota, until, now).map(|state| Self::new(counter, state));
        let value = spent
            .chain(fading)
            .find(|slot| (now + 1..=latest).contains(&slot.unit_fits_at(now)))?;
        Some(Restored {
            value,
            is_cut: false,
        })
    }
}
