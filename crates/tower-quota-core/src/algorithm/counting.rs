//! The interface of all kinds of state.

use crate::quota::Quota;

pub(crate) trait Counting {
    fn until_fits(&self, quota: &Quota, now: u64, cost: u64) -> u64;

    fn full_at(&self, quota: &Quota) -> u64;

    fn used(&self, quota: &Quota, now: u64) -> u64;

    /// Drops expired units. Call `advance` before any other change.
    fn advance(&mut self, _quota: &Quota, _now: u64) {}

    /// Takes a cost, into debt if necessary. Returns the recorded units.
    fn take(&mut self, quota: &Quota, now: u64, cost: u64) -> u64;

    /// Takes units of another quota, which come back no earlier than at the rate of this quota.
    fn take_evenly(&mut self, quota: &Quota, now: u64, units: u64) {
        self.take(quota, now, units);
    }

    /// Gives back a charge of the instant `taken_at`, if the units still count.
    ///
    /// `is_prepared` says whether the charge was [`refundable`](crate::Charge::refundable).
    fn refund(&mut self, quota: &Quota, now: u64, cost: u64, taken_at: u64, is_prepared: bool);

    /// Extends the hold of an instant, or takes the lost units. Returns the held units.
    fn renew(&mut self, _quota: &Quota, _now: u64, _taken_at: u64, _lost_units: u64) -> u64 {
        0
    }

    fn heap_bytes(&self) -> usize {
        0
    }

    fn encode(&self, quota: &Quota, bytes: &mut Vec<u8>);

    /// Reads the stored form to the end. `at` is the instant of the last change.
    ///
    /// Also checks that the algorithm can count the numbers of the quota below 2^53.
    fn decode(quota: &Quota, rest: &mut &[u8], full_at: u64, at: u64) -> Option<Self>
    where
        Self: Sized;

    /// Returns a state as of `at` in one word, for a row of the memory store.
    fn packed(&self, _quota: &Quota, _at: u64) -> Option<u64> {
        None
    }

    /// Reverses [`packed`](Self::packed). The word 0 is a new client.
    fn unpacked(word: u64, quota: &Quota, at: u64) -> Self
    where
        Self: Sized;
}
