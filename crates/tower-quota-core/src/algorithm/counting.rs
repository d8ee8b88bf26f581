//! The operations that each kind of state implements.

use crate::outcome::Outcome;
use crate::quota::Quota;

/// Units to give back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refund {
    pub(crate) cost: u64,
    /// The instant of the charge, in microseconds since the epoch.
    pub(crate) taken_at: u64,
    /// Says if the charge was [`refundable`](crate::Charge::refundable).
    pub(crate) is_prepared: bool,
}

/// The counter of one limit.
pub(crate) trait Counting {
    /// Judges a cost up to the capacity. The request accepts a wait of `max_wait` microseconds.
    fn judge(&self, quota: &Quota, now: u64, cost: u64, max_wait: u64) -> Outcome;

    /// Returns the instant at which the state is full again if no other request is charged.
    fn full_at(&self, quota: &Quota) -> u64;

    /// Returns the used grains at `now`, and the grains in one unit.
    fn used(&self, quota: &Quota, now: u64) -> (u64, u64);

    /// Drops the units that have expired by `now`.
    fn advance(&mut self, quota: &Quota, now: u64);

    /// Takes a cost from a state that was advanced to `now`, into debt if the cost does not fit.
    ///
    /// Returns the recorded units. They are fewer than the cost if the state cannot count more.
    fn take(&mut self, quota: &Quota, now: u64, cost: u64) -> u64;

    /// Gives back a charge in a state that was advanced to `now`.
    ///
    /// A window gets back its own units only. A bucket gets back at most the units that time has not refilled.
    fn refund(&mut self, quota: &Quota, now: u64, refund: Refund);

    /// Extends the hold of an instant in a state that was advanced to `now`. Returns the units still held.
    fn renew(&mut self, _quota: &Quota, _now: u64, _taken_at: u64) -> u64 {
        0
    }

    /// Returns the bytes of the state on the heap.
    fn heap_bytes(&self) -> usize {
        0
    }

    /// Appends the stored form, without the last field (`full_at`).
    fn encode(&self, quota: &Quota, bytes: &mut Vec<u8>);

    /// Returns the state of a new client.
    fn fresh(quota: &Quota, now: u64) -> Self
    where
        Self: Sized;

    /// Reads the stored form of a state, up to the end of `rest`. Its entry was changed last at `at`.
    ///
    /// Returns `None` if no limit of this quota can be in this state.
    fn decode(quota: &Quota, rest: &mut &[u8], full_at: u64, at: u64) -> Option<Self>
    where
        Self: Sized;

    /// Returns a state that was advanced to `at` as one word, for a row of the memory store.
    ///
    /// Returns `None` if the state does not fit into a word.
    fn packed(&self, _quota: &Quota, _at: u64) -> Option<u64> {
        None
    }

    /// Reverses [`packed`](Self::packed).
    fn unpacked(_word: u64, quota: &Quota, at: u64) -> Self
    where
        Self: Sized,
    {
        Self::fresh(quota, at)
    }
}
