//! The interface of all kinds of state.

use crate::quota::Quota;

/// The counter of one limit.
///
/// A unit of a bucket has [`Quota::unit`] grains. The other states count in units.
pub(crate) trait Counting {
    /// Returns the microseconds until a cost up to the capacity fits, or 0 if the cost fits now.
    fn until_fits(&self, quota: &Quota, now: u64, cost: u64) -> u64;

    /// Returns the instant at which the state is full again if no other request is charged.
    fn full_at(&self, quota: &Quota) -> u64;

    /// Returns the used grains or units at `now`.
    fn used(&self, quota: &Quota, now: u64) -> u64;

    /// Drops the units that have expired by `now`.
    fn advance(&mut self, _quota: &Quota, _now: u64) {}

    /// Takes a cost from a state that was advanced to `now`, into debt if the cost does not fit.
    ///
    /// Returns the recorded units, which are fewer than the cost if the state cannot count more.
    fn take(&mut self, quota: &Quota, now: u64, cost: u64) -> u64;

    /// Gives back a charge of the instant `taken_at` in a state that was advanced to `now`.
    ///
    /// A window gives back only its own units. A bucket gives back at most the units that time has not refilled.
    /// `is_prepared` says whether the charge was [`refundable`](crate::Charge::refundable).
    fn refund(&mut self, quota: &Quota, now: u64, cost: u64, taken_at: u64, is_prepared: bool);

    /// Extends a hold in a state that was advanced to `now`. Returns the units that are still held.
    fn renew(&mut self, _quota: &Quota, _now: u64, _taken_at: u64) -> u64 {
        0
    }

    /// Returns the bytes of the state on the heap.
    fn heap_bytes(&self) -> usize {
        0
    }

    /// Appends the stored form without its last number, the time at which the state is full.
    fn encode(&self, quota: &Quota, bytes: &mut Vec<u8>);

    /// Reads the stored form up to the end of `rest`. `at` is the instant of the last change.
    ///
    /// Returns `None` if the quota has numbers that its algorithm cannot count below 2^53, or if no limit with this
    /// quota can have this state.
    fn decode(quota: &Quota, rest: &mut &[u8], full_at: u64, at: u64) -> Option<Self>
    where
        Self: Sized;

    /// Returns a state as of `at` in one word, for a row of the memory store, or `None` if a word is too small.
    fn packed(&self, _quota: &Quota, _at: u64) -> Option<u64> {
        None
    }

    /// Reverses [`packed`](Self::packed). The word 0 is the state of a new client.
    fn unpacked(word: u64, quota: &Quota, at: u64) -> Self
    where
        Self: Sized;
}
