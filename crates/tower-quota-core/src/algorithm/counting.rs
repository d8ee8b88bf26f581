//! The operations that every kind of state has.

use crate::outcome::Outcome;
use crate::quota::Quota;

/// Units to give back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refund {
    pub(crate) cost: u64,
    /// The instant at which they were taken, in microseconds since the epoch.
    pub(crate) taken_at: u64,
    /// Says whether the charge prepared for it; see [`Charge::refundable`](crate::Charge::refundable).
    pub(crate) is_prepared: bool,
}

/// The counter of one limit, of one kind. Each kind has a file of its own.
pub(crate) trait Counting {
    /// Judges a cost from 1 to the capacity at `now`. `max_wait` is the longest accepted wait, in microseconds.
    fn judge(&self, quota: &Quota, now: u64, cost: u64, max_wait: u64) -> Outcome;

    /// Returns the units left at `now`, rounded down.
    fn remaining(&self, quota: &Quota, now: u64) -> u64;

    /// Returns the instant from which nothing is used any more, if nothing else is charged.
    fn full_at(&self, quota: &Quota) -> u64;

    /// Returns the amount used at `now`, and the amount of one unit.
    fn used(&self, quota: &Quota, now: u64) -> (u64, u64);

    /// Drops the units that no longer count at `now`.
    fn advance(&mut self, quota: &Quota, now: u64);

    /// Takes a cost from a state that was advanced to `now`, whether it fits or not.
    ///
    /// Units that do not fit are a debt. Returns the units recorded, which are fewer than the cost if the state cannot
    /// count more.
    fn take(&mut self, quota: &Quota, now: u64, cost: u64) -> u64;

    /// Gives back some of a charge in a state that was advanced to `now`.
    ///
    /// A window gets back only its own units. A bucket gets back no more than was used all the time since the charge,
    /// or than time has not refilled. No state gets back more than its capacity.
    fn refund(&mut self, quota: &Quota, now: u64, refund: Refund);

    /// Returns the bytes that the state holds on the heap.
    fn heap_bytes(&self) -> usize {
        0
    }

    /// Appends the stored form, without the instant at which it is full.
    fn encode(&self, quota: &Quota, bytes: &mut Vec<u8>);

    /// Returns the state of a client that was never seen: a full bucket, an empty window.
    fn fresh(quota: &Quota, now: u64) -> Self
    where
        Self: Sized;

    /// Reads the stored form of a state whose entry was last changed at `at`. Reads `rest` to its end.
    ///
    /// Returns `None` if no limit of this quota can be in such a state.
    fn decode(quota: &Quota, rest: &mut &[u8], full_at: u64, at: u64) -> Option<Self>
    where
        Self: Sized;

    /// Returns a state that was advanced to `at` as one word.
    ///
    /// The word, the quota and `at` give the state back, so a row of the memory store can keep it. Returns `None` if
    /// one word is too little; the memory store then keeps the entry beside its rows.
    fn packed(&self, _quota: &Quota, _at: u64) -> Option<u64> {
        None
    }

    /// Returns the state that [`packed`](Self::packed) made a word of.
    fn unpacked(_word: u64, quota: &Quota, at: u64) -> Self
    where
        Self: Sized,
    {
        Self::fresh(quota, at)
    }
}
