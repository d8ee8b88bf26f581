//! Entries, which hold everything stored for one key.
//!
//! A full slot is dropped when the entry changes. A missing slot or entry means a full limit.

mod codec;
mod error;
mod head;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use smallvec::SmallVec;

pub use self::codec::VERSION;
pub use self::error::DecodeError;
pub use self::head::{FROM_FIRST_REQUEST, SlotHead, WATCHED};
use crate::algorithm::{Counting, State};
use crate::charge::{Charge, ChargeMode, Counter};
use crate::name::Name;
use crate::outcome::Outcome;
use crate::quota::{Algorithm, Quota};
use crate::time::Timestamp;

/// The longest lead over the clock in microseconds, beyond the time until the entry is full.
pub const TRUSTED_LEAD: u64 = 60_000_000;

/// The counters of all limits of one key.
///
/// To write a store over your database, do this in one transaction:
///
/// 1. Load the bytes and [decode](Self::decode) them. Use the default entry if there are no bytes.
/// 2. Call [`decide`](Self::decide).
/// 3. Save the bytes until [`full_at`](Self::full_at), or delete them if the entry [is empty](Self::is_empty).
///
/// ```
/// use tower_quota_core::{Charge, Entry, Key, Name, Operation, Quota, Timestamp};
///
/// let quota = Quota::per_minute(2);
/// let ann = Key::owned(Name::new("user"), "ann");
/// let now = Timestamp::from_micros(1_763_712_000_000_000);
///
/// let mut entry = Entry::default();
/// assert!(entry.decide(Operation::Check, &[Charge::new("minute", &quota, &ann)], now).is_allowed());
///
/// let bytes = entry.encode();
/// let loaded = Entry::decode(&bytes)?;
/// assert_eq!(loaded, entry);
/// # Ok::<(), tower_quota_core::DecodeError>(())
/// ```
///
/// # Stored form
///
/// ```text
/// u8      version: 3
/// u56     instant of the last change, microseconds since the Unix epoch
/// slots until the end, each:
///   varint  bytes of this slot that follow
///   u32     number of the limit's name (Name::id), of its holds (Name::holds_id) or its strikes (Name::strikes_id)
///   u8      low four bits, the kind of state: 0 bucket, 1 fixed window, 2 sliding window counter, 3 sliding log,
///           4 holds; 16: the window starts with its first request; 32: the bucket records its low marks
///   short   capacity, units
///   short   grain
///   short   refill of a bucket, grains per microsecond; period of a window, a log or holds, microseconds
///   short   offset, microseconds; only of a fixed window that does not start with its first request
///   state:
///     bucket          u56 rest, only where refill is above 1;
///                     only with flag 32: one to eight marks, each u56 instant, u56 least grains used since;
///                     both rise from mark to mark
///     fixed window    u56 start, u56 count
///     sliding window  u56 start, u56 count of the window before, u56 count
///     sliding log     u56 total before the first stamp, then for each stamp: u56 instant, u56 total with it
///     holds           for each hold, in the order of their instants: u56 instant, u56 expiry, u56 units, which are 0 if
///                     it was released in the microsecond of its instant; or only u56 number of holds, u56 units, if a
///                     store keeps the holds apart
///   u56     instant from which nothing of the limit is used any more
/// ```
///
/// Numbers are little-endian, and a varint is LEB128. A short number is a varint of `8 * digits + zeros`, with up
/// to seven decimal zeros. A bucket uses `(full_at - instant) * refill - rest` grains at an instant, at least 0.
///
/// Your script can find, copy and drop slots without decoding them. The bytes before the state depend only on the
/// limit and its quota.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    pub(crate) at: u64,
    pub(crate) slots: SmallVec<[Slot; 2]>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) limit: u32,
    pub(crate) quota: Quota,
    pub(crate) state: State,
}

impl Slot {
    pub(crate) const fn new(counter: Counter<'_>, state: State) -> Self {
        Self {
            limit: counter.id,
            quota: counter.quota.reduced(),
            state,
        }
    }

    fn fresh(counter: Counter<'_>, now: u64) -> Self {
        Self::new(counter, State::fresh(counter.quota, now))
    }

    pub(crate) fn full_at(&self) -> u64 {
        self.state.full_at(&self.quota)
    }

    /// Returns whether the slot has the state of a counter. An earlier build may have kept holds by the id of the name.
    fn counts(&self, counter: Counter<'_>) -> bool {
        let is_hold = |quota: &Quota| quota.algorithm() == Algorithm::Concurrent;
        self.limit == counter.id && is_hold(&self.quota) == is_hold(counter.quota)
    }
}

impl Entry {
    /// Makes an entry from each limit, its quota and its [count](crate::LimitStatus::of_count).
    ///
    /// Use this function for refusals if your store answers with counts.
    pub fn of_counts<'a>(
        at: Timestamp,
        counts: impl IntoIterator<Item = (Name, &'a Quota, u64)>,
    ) -> Self {
        let at = at.as_micros();
        let slots = counts.into_iter().map(|(limit, quota, count)| Slot {
            limit: limit.id(),
            quota: quota.reduced(),
            state: State::of_count(count, quota, at),
        });
        Self {
            at,
            slots: slots.collect(),
        }
    }

    /// Returns the instant from which you may delete the entry.
    pub fn full_at(&self) -> Timestamp {
        let full_at = self.slots.iter().map(Slot::full_at);
        Timestamp::from_micros(full_at.fold(self.at, u64::max))
    }

    /// Returns the instant of the last change.
    pub const fn at(&self) -> Timestamp {
        Timestamp::from_micros(self.at)
    }

    /// Returns whether a limit has no units left. If you delete such an entry, you release its client.
    pub fn is_limited(&self, now: Timestamp) -> bool {
        let now = now.as_micros().max(self.at);
        let mut slots = self.slots.iter();
        slots.any(|slot| {
            let has_holds = matches!(slot.state, State::Holds(_));
            slot.state.balance(&slot.quota, now).0 <= 0
                || has_holds && slot.state.full_at(&slot.quota) > now
        })
    }

    /// Returns the entry as of an instant, with at most 33 stamps of each sliding log, and one hold of each limit.
    ///
    /// The last stamp stands for the rest and expires first. The hold stands for all holds until the last expiry. By rate
    /// limits, an abridged entry admits all that the entry admits.
    #[must_use]
    pub fn abridged(mut self, at: Timestamp) -> Self {
        self.at = self.at.max(at.as_micros());
        for slot in &mut self.slots {
            match &mut slot.state {
                State::SlidingLog(log) => {
                    log.advance(&slot.quota, self.at);
                    log.abridge();
                }
                State::Holds(holds) => {
                    holds.advance(&slot.quota, self.at);
                    holds.abridge();
                }
                _ => {}
            }
        }
        self
    }

    /// Returns whether the entry is full, so that your store need not keep it.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    pub(crate) fn is_from_the_future(&self, now: u64) -> bool {
        let lead = self.at.saturating_sub(now);
        lead > TRUSTED_LEAD && lead - TRUSTED_LEAD > self.full_at().as_micros() - self.at
    }

    pub(crate) fn finish_change(&mut self, now: u64) {
        self.slots.retain(|slot| slot.full_at() > now);
        self.at = if self.is_empty() { 0 } else { now };
    }

    pub(crate) fn judge(&self, charge: &Charge<'_>, units: u64, now: u64) -> Outcome {
        match charge.mode() {
            ChargeMode::Forced => return Outcome::Allow,
            ChargeMode::Checked if units == 0 => return Outcome::Allow,
            _ => {}
        }
        let (counter, units) = (charge.counter(), charge.mode().needed(units));
        let (state, max_wait) = (self.state_for(counter, now), charge.max_wait_micros());
        let mut outcome = state.judge(charge.quota(), now, units, max_wait);
        if let (Outcome::Refuse(_), Some(retry)) =
            (outcome, self.until_old_fits(counter, now, units, max_wait))
        {
            outcome = outcome.min(Outcome::refuse_for(retry));
        }
        if charge.mode().is_report() && !outcome.is_refusal() {
            // A report never delays a request.
            outcome = Outcome::Allow;
        }
        match self.blocked(charge, now) {
            0 => outcome,
            blocked => outcome.max(Outcome::refuse_for(blocked)),
        }
    }

    pub(crate) fn balance(&self, charge: &Charge<'_>, now: u64) -> (i64, u64) {
        let state = self.state_for(charge.counter(), now);
        let (left, reset) = state.balance(charge.quota(), now);
        match self.blocked(charge, now) {
            0 => (left, reset),
            blocked => (left.min(0), reset.max(blocked)),
        }
    }

    fn blocked(&self, charge: &Charge<'_>, now: u64) -> u64 {
        charge.strikes().map_or(0, |(counter, _)| {
            // The limit is blocked while the bucket of strikes is in debt.
            let strikes = self.state_for(counter, now);
            strikes.until_fits(counter.quota, now, 0)
        })
    }

    fn slot(&self, counter: Counter<'_>, now: u64) -> Option<&Slot> {
        let mut slots = self.slots.iter();
        slots.find(|slot| slot.counts(counter) && slot.full_at() > now)
    }

    fn state_for(&self, counter: Counter<'_>, now: u64) -> Cow<'_, State> {
        match self.slot(counter, now) {
            // Copying the holds of another quota would cost more for more holds.
            Some(slot)
                if slot.quota.counts_like(counter.quota)
                    || slot.quota.has_windows_of(counter.quota) =>
            {
                Cow::Borrowed(&slot.state)
            }
            Some(slot) => Cow::Owned(slot.state.convert(&slot.quota, counter.quota, now)),
            None => Cow::Owned(State::fresh(counter.quota, now)),
        }
    }

    pub(crate) fn has_other_quota(&self, counter: Counter<'_>, now: u64) -> bool {
        let slot = self.slot(counter, now);
        slot.is_some_and(|slot| !slot.quota.counts_like(counter.quota))
    }

    /// Returns whether a request that takes nothing converts a counter.
    ///
    /// A counter stays if the new quota would be full, so that the old quota still finds the client. A counter that
    /// refuses also stays if the units fit sooner by the old quota.
    pub(crate) fn needs_conversion(
        &self,
        counter: Counter<'_>,
        now: u64,
        units: u64,
        max_wait: u64,
    ) -> bool {
        if !self.has_other_quota(counter, now) {
            return false;
        }
        let state = self.state_for(counter, now);
        if let Some(old_retry) = self.until_old_fits(counter, now, units, max_wait) {
            let outcome = state.judge(counter.quota, now, units, max_wait);
            if outcome.is_refusal() && Outcome::refuse_for(old_retry) <= outcome {
                return false;
            }
        }
        state.full_at(counter.quota) > now
    }

    /// Returns the microseconds until units fit by the old quota of a counter, if the counter may stay until then.
    ///
    /// A window or log cannot keep the part of a unit that a conversion finds, and the next unit of a bucket comes
    /// later if its rate is lower. Each conversion of a refused client must bring the next admission forward, because
    /// otherwise versions in turn would convert the state again and again, and lock the client out.
    fn until_old_fits(
        &self,
        counter: Counter<'_>,
        now: u64,
        units: u64,
        max_wait: u64,
    ) -> Option<u64> {
        let slot = self.slot(counter, now)?;
        let (old, new) = (&slot.quota, counter.quota);
        let algorithms = [old, new].map(Quota::algorithm);
        // Buckets count parts of units, so a conversion from bucket to bucket loses less than a grain.
        let is_exact = algorithms.into_iter().all(Algorithm::is_bucket) || old.has_windows_of(new);
        if is_exact || units > new.capacity() {
            return None;
        }
        let old_units = new.needed_before(units, max_wait);
        (old_units <= old.capacity()).then(|| slot.state.until_fits(old, now, old_units))
    }

    /// Returns whether the same quota or windows still count a charge. A turn in a queue must be the last.
    pub(crate) fn may_refund(&self, charge: &Charge<'_>, taken_at: u64, now: u64) -> bool {
        let (quota, turn) = (charge.quota(), charge.turn_micros());
        self.slot(charge.counter(), now).is_some_and(|slot| {
            let is_counted = slot.quota.counts_like(quota) || slot.quota.has_windows_of(quota);
            let is_queue = quota.algorithm() == Algorithm::LeakyBucket;
            is_counted && (!is_queue || slot.full_at() <= taken_at.saturating_add(turn))
        })
    }

    pub(crate) fn edit(&mut self, counter: Counter<'_>, now: u64, change: impl FnOnce(&mut State)) {
        let known = self.slots.iter().position(|slot| slot.limit == counter.id);
        let position = known.unwrap_or_else(|| {
            self.slots.push(Slot::fresh(counter, now));
            self.slots.len() - 1
        });
        let slot = &mut self.slots[position];
        if !slot.counts(counter) || slot.full_at() <= now {
            *slot = Slot::fresh(counter, now);
        } else if !slot.quota.counts_like(counter.quota) {
            if slot.quota.has_windows_of(counter.quota) {
                slot.quota = *counter.quota;
            } else {
                let state = slot.state.convert(&slot.quota, counter.quota, now);
                *slot = Slot::new(counter, state);
            }
        }
        slot.state.advance(counter.quota, now);
        change(&mut slot.state);
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        let slots = match self.slots.spilled() {
            true => self.slots.capacity() * size_of::<Slot>(),
            false => 0,
        };
        slots + self.state_bytes()
    }

    pub(crate) fn state_bytes(&self) -> usize {
        self.slots.iter().map(|slot| slot.state.heap_bytes()).sum()
    }

    pub(crate) fn forget(&mut self, id: u32) {
        self.slots.retain(|slot| slot.limit != id);
    }
}
