//! Refusals that a pool makes by itself, while it waits for units.

use core::time::Duration;

use tower_quota_core::{Left, LimitStatus, Name, Outcome, Timestamp};

/// The instants of a store's answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AnswerTimes {
    /// By this instance: before the call was sent, and after its answer has come.
    pub(crate) sent: u64,
    pub(crate) received: u64,
    /// By the store.
    pub(crate) at: Timestamp,
}

/// The status of a limit in the store's last answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(crate) remaining: u64,
    /// The instant of the answer by the store, and that of the call by this instance.
    pub(crate) at: Timestamp,
    pub(crate) sent: u64,
    /// The instants by this instance at which nothing is used, and from which the refused cost fits.
    pub(crate) full_at: u64,
    pub(crate) retry_at: u64,
    pub(crate) refused_cost: u64,
}

/// A refusal by a pool, which holds for its cost and larger ones.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PoolRefusal {
    pub(crate) limit: Name,
    pub(crate) capacity: u64,
    /// The largest cost that the store can ever admit.
    pub(crate) largest: u64,
    /// The units that remain for certain.
    pub(crate) remaining: u64,
    pub(crate) seen: Seen,
    /// The instant until which the pool refuses.
    pub(crate) refuse_until: u64,
    /// The instant until which threads may remember it. A change of the pool ends it before.
    pub(crate) known_until: u64,
}

impl Seen {
    /// Returns the present instant by the store's clock, as far as this answer shows it.
    pub(crate) fn store_now(&self, now: u64) -> Timestamp {
        self.at + Duration::from_micros(now.saturating_sub(self.sent))
    }
}

impl PoolRefusal {
    /// Returns the status of the limit, which refuses this many units.
    pub(crate) fn status(&self, now: u64, cost: u64) -> LimitStatus {
        let retry_at = if cost >= self.seen.refused_cost {
            self.seen.retry_at
        } else {
            0
        };
        let wait = self.refuse_until.max(retry_at).saturating_sub(now).max(1);
        let reset = self.seen.full_at.saturating_sub(now).max(wait);
        let remaining = self.remaining.min(cost.saturating_sub(1));
        LimitStatus {
            name: self.limit,
            limit: self.capacity,
            left: Left::new(remaining, Duration::from_micros(reset)),
            taken: 0,
            outcome: Outcome::Refuse(Duration::from_micros(wait)),
            is_shadow: false,
        }
    }
}
