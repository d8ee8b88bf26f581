//! Entries: everything stored for one key.
//!
//! 1. An entry holds a slot for each limit that counts its key: the limit's number, the quota's numbers, the state.
//! 2. A slot holds all that is needed to compute its used units at any instant. A request reads and changes only the
//!    slots of its own limits, in any order.
//! 3. A slot that is full again is dropped when the entry changes. An entry without slots is the same as none.
//! 4. [`encode`](Entry::encode) and [`decode`](Entry::decode) give and take the stored form (`codec`).

mod codec;
mod error;
mod head;

use std::borrow::Cow;

use smallvec::SmallVec;

pub use self::codec::VERSION;
pub use self::error::DecodeError;
pub use self::head::{FROM_FIRST_REQUEST, SlotHead, WATCHED};
use crate::algorithm::State;
use crate::charge::{Charge, Counter};
use crate::outcome::Outcome;
use crate::quota::{Algorithm, Quota};
use crate::time::Timestamp;

/// The longest time that an entry may be ahead of the clock, in microseconds.
///
/// The time that its limits take to be full is added.
pub const TRUSTED_LEAD: u64 = 60_000_000;

/// Everything stored for one key: the counters of the limits that count it.
///
/// It is the model that every store follows, and all that a store has to keep. A store over a database does this in one
/// transaction:
///
/// 1. It loads the bytes and [decodes](Self::decode) them; a missing entry is the default one.
/// 2. It calls [`decide`](Self::decide).
/// 3. It saves the bytes until [`full_at`](Self::full_at), or deletes them if the entry [is empty](Self::is_empty).
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
/// All numbers are little-endian.
///
/// ```text
/// u8      version: 3
/// u56     instant of the last change, microseconds since the Unix epoch
/// slots until the end, each:
///   varint  bytes of this slot that follow
///   u32     number of the limit's name (Name::id), or of its strikes (Name::strikes_id)
///   u8      low four bits, the kind of state: 0 bucket, 1 fixed window, 2 sliding window counter, 3 sliding log;
///           16: the window starts with its first request; 32: the bucket records its low marks
///   short   capacity, units
///   short   grain
///   short   refill of a bucket, grains per microsecond; period of a window or log, microseconds
///   short   offset, microseconds; only of a fixed window that does not start with its first request
///   state:
///     bucket          u56 rest, only where refill is above 1;
///                     only with flag 32: one to eight marks, each u56 instant, u56 least grains used since;
///                     both rise from mark to mark
///     fixed window    u56 start, u56 count
///     sliding window  u56 start, u56 count of the window before, u56 count
///     sliding log     u56 total before the first stamp, then for each stamp: u56 instant, u56 total with it
///   u56     instant from which nothing of the limit is used any more
/// ```
///
/// A varint has 7 bits in each byte, the lowest first; the high bit says that more follow (LEB128). A short number is a
/// varint of 8 times the number without its last decimal zeros, plus how many these were, seven at most: 55 is 60,000,000.
/// A bucket's grains used at an instant are `(full_at - instant) * refill - rest`, at least 0.
///
/// A script finds, copies and drops slots without decoding them. For this, a slot's bytes before its state depend only
/// on limit and quota, its length comes first, and its last instant comes last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// The instant of the last change. No later decision uses an earlier instant.
    pub(crate) at: u64,
    pub(crate) slots: SmallVec<[Slot; 2]>,
}

/// The part of one limit in an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) limit: u32,
    /// Reduced to the numbers that the state is counted by.
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
}

impl Entry {
    /// Returns the instant from which nothing is used any more, if nothing else is charged: then it may be deleted.
    #[must_use]
    pub fn full_at(&self) -> Timestamp {
        let latest = self.slots.iter().map(Slot::full_at).max();
        Timestamp::from_micros(latest.unwrap_or(0).max(self.at))
    }

    /// Returns the instant of the last change.
    #[must_use]
    pub const fn at(&self) -> Timestamp {
        Timestamp::from_micros(self.at)
    }

    /// Returns whether some limit has nothing left at `now`: deleting the entry would release a limited client.
    #[must_use]
    pub fn is_limited(&self, now: Timestamp) -> bool {
        let now = now.as_micros().max(self.at);
        self.slots
            .iter()
            .any(|slot| slot.state.left(&slot.quota, now).0 == 0)
    }

    /// Returns whether there is nothing to store.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Returns whether the entry is too far ahead of the clock to be true. Such an entry counts as missing.
    ///
    /// The limit is a minute, beyond the time until nothing is used.
    pub(crate) fn is_from_the_future(&self, now: u64) -> bool {
        self.at > now && {
            let longest = self.full_at().as_micros() - self.at;
            self.at > now.saturating_add(TRUSTED_LEAD).saturating_add(longest)
        }
    }

    /// Ends a change at `now`: drops the slots that are full, and clears the instant if no slot is left.
    pub(crate) fn finish_change(&mut self, now: u64) {
        self.slots.retain(|slot| slot.full_at() > now);
        self.at = if self.is_empty() { 0 } else { now };
    }

    /// Judges this many units of a charge.
    pub(crate) fn judge(&self, charge: &Charge<'_>, units: u64, now: u64) -> Outcome {
        let outcome = self.state_for(charge.counter(), now).judge(
            charge.quota(),
            now,
            units,
            charge.max_wait_micros(),
        );
        if units > 0 {
            outcome.blocked_for(self.blocked(charge, now))
        } else {
            outcome
        }
    }

    /// Returns the units that a charge's limit has left, and the microseconds until nothing is used.
    ///
    /// The units are rounded down. None are left while the client is blocked.
    pub(crate) fn left(&self, charge: &Charge<'_>, now: u64) -> (u64, u64) {
        let (remaining, reset) = self
            .state_for(charge.counter(), now)
            .left(charge.quota(), now);
        match self.blocked(charge, now) {
            0 => (remaining, reset),
            blocked => (0, reset.max(blocked)),
        }
    }

    /// Returns the microseconds for which a charge's limit is blocked for the client's strikes.
    fn blocked(&self, charge: &Charge<'_>, now: u64) -> u64 {
        charge.strikes().map_or(0, |(counter, _)| {
            self.state_for(counter, now).until_paid(counter.quota, now)
        })
    }

    /// Returns the slot of a counter. A slot that is full again is the same as none.
    fn slot(&self, id: u32, now: u64) -> Option<&Slot> {
        self.slots
            .iter()
            .find(|slot| slot.limit == id && slot.full_at() > now)
    }

    /// Returns the state of a counter, under the quota that is asked.
    fn state_for(&self, counter: Counter<'_>, now: u64) -> Cow<'_, State> {
        match self.slot(counter.id, now) {
            Some(slot) if slot.quota == counter.quota.reduced() => Cow::Borrowed(&slot.state),
            Some(slot) => Cow::Owned(slot.state.convert(&slot.quota, counter.quota, now)),
            None => Cow::Owned(State::fresh(counter.quota, now)),
        }
    }

    /// Returns whether a refused request has to convert a counter.
    ///
    /// It has to if the counter is stored under another quota. A counter that would be full by the new quota stays as it
    /// is, because a full counter is dropped: the other quota would then find nothing used.
    pub(crate) fn needs_conversion(&self, counter: Counter<'_>, now: u64) -> bool {
        self.slot(counter.id, now)
            .is_some_and(|slot| slot.quota != counter.quota.reduced())
            && self.state_for(counter, now).full_at(counter.quota) > now
    }

    /// Returns whether a charge that was taken at an instant may be refunded.
    ///
    /// Its counter must be stored, and counted by the same quota or in the same windows. A turn in a queue must be the
    /// last one that was given.
    pub(crate) fn may_refund(&self, charge: &Charge<'_>, taken_at: u64, now: u64) -> bool {
        let (quota, turn) = (charge.quota(), charge.turn_micros());
        let Some(slot) = self.slot(charge.counter().id, now) else {
            return false;
        };
        let is_counted = slot.quota == quota.reduced() || slot.quota.has_windows_of(quota);
        let is_queue = quota.algorithm() == Algorithm::LeakyBucket;
        is_counted && (!is_queue || slot.full_at() <= taken_at.saturating_add(turn))
    }

    /// Changes the state of a counter at `now`, in its place.
    pub(crate) fn edit(&mut self, counter: Counter<'_>, now: u64, change: impl FnOnce(&mut State)) {
        let state = &mut self.slot_mut(counter, now).state;
        state.advance(counter.quota, now);
        change(state);
    }

    /// Returns the slot of a counter, counted by the counter's quota.
    fn slot_mut(&mut self, counter: Counter<'_>, now: u64) -> &mut Slot {
        let known = self.slots.iter().position(|slot| slot.limit == counter.id);
        let position = known.unwrap_or_else(|| {
            self.slots.push(Slot::fresh(counter, now));
            self.slots.len() - 1
        });
        let slot = &mut self.slots[position];
        if slot.full_at() <= now {
            *slot = Slot::fresh(counter, now);
        } else if slot.quota != counter.quota.reduced() {
            let state = slot.state.convert(&slot.quota, counter.quota, now);
            *slot = Slot::new(counter, state);
        }
        slot
    }

    /// Returns the bytes that the entry holds on the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        let slots = if self.slots.spilled() {
            self.slots.capacity() * size_of::<Slot>()
        } else {
            0
        };
        let states = self.slots.iter().map(|slot| slot.state.heap_bytes());
        slots + states.sum::<usize>()
    }

    /// Removes the slot of this number.
    pub(crate) fn forget(&mut self, id: u32) {
        self.slots.retain(|slot| slot.limit != id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::charge::Operation;
    use crate::key::Key;

    static LOG: Quota = Quota::per_hour(10_000).sliding_log();
    static BUCKET: Quota = Quota::per_hour(10_000);

    fn check(entry: &mut Entry, charge: Charge<'_>, micros: u64) {
        entry.decide(Operation::Check, &[charge], Timestamp::from_micros(micros));
    }

    #[test]
    fn heap_bytes_counts_slots_and_states() {
        let (key, mut entry) = (Key::EVERYONE, Entry::default());
        check(&mut entry, Charge::new("one", &BUCKET, &key), 1);
        check(&mut entry, Charge::new("two", &BUCKET, &key), 1);
        assert_eq!(entry.heap_bytes(), 0);
        check(
            &mut entry,
            Charge::new("two", &BUCKET, &key).refundable(),
            2,
        );
        let marks = entry.heap_bytes();
        assert!(marks >= 16, "{marks} bytes");
        check(&mut entry, Charge::new("three", &BUCKET, &key), 2);
        assert!(entry.heap_bytes() >= marks + 3 * size_of::<Slot>());
    }

    #[test]
    fn long_log_holds_sixteen_bytes_a_stamp() {
        let (key, mut entry) = (Key::EVERYONE, Entry::default());
        let charge = Charge::new("log", &LOG, &key);
        for micros in 1..=10_000 {
            check(&mut entry, charge, micros);
        }
        let bytes = entry.heap_bytes();
        assert!((160_000..=180_000).contains(&bytes), "{bytes} bytes");
        assert_eq!(
            Entry::decode(&entry.encode()).unwrap().heap_bytes(),
            160_000
        );
        // All but the last stamp expire.
        check(&mut entry, charge, 3_600_009_999);
        let bytes = entry.heap_bytes();
        assert!(bytes < 200, "{bytes} bytes");
    }
}
