//! The algorithms: pure functions of a state, an instant and a cost.
//!
//! 1. A state and its quota give the units used at any instant `now`.
//! 2. The functions neither read a clock nor fail. They count in integers below 2^53, so that Lua takes the same steps.
//! 3. The caller keeps `now` from running backwards.

pub(crate) mod bucket;
mod convert;
mod counting;
mod fixed_window;
mod hold;
mod lows;
mod sliding_log;
mod sliding_window;

use core::ops::{Deref, DerefMut};

pub(crate) use self::bucket::{Bucket, longest_wait};
pub(crate) use self::counting::Counting;
use self::fixed_window::FixedWindow;
pub use self::fixed_window::MOST_COUNTED;
use self::hold::Holds;
pub use self::lows::MOST_MARKS;
pub use self::sliding_log::KEPT_STAMPS;
use self::sliding_log::SlidingLog;
use self::sliding_window::SlidingWindow;
use crate::outcome::Outcome;
use crate::quota::{Algorithm, Quota};

/// Lists the kinds of state, and the algorithms of each kind.
macro_rules! kinds {
    ($($kind:ident: $($algorithm:ident),+;)*) => {
        /// The counter of one limit in an entry.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub(crate) enum State {
            $($kind($kind),)*
        }

        impl State {
            /// Reads the stored form; see [`Counting::decode`].
            pub(crate) fn decode(quota: &Quota, mut rest: &[u8], full_at: u64, at: u64) -> Option<Self> {
                if !quota.is_in_range() {
                    return None;
                }
                let rest = &mut rest;
                let state = match quota.algorithm() {
                    $($(Algorithm::$algorithm)|+ => Self::$kind($kind::decode(quota, rest, full_at, at)?),)*
                };
                rest.is_empty().then_some(state)
            }

            /// Reverses [`packed`](Counting::packed).
            pub(crate) fn unpacked(word: u64, quota: &Quota, at: u64) -> Self {
                match quota.algorithm() {
                    $($(Algorithm::$algorithm)|+ => Self::$kind($kind::unpacked(word, quota, at)),)*
                }
            }
        }

        impl Deref for State {
            type Target = dyn Counting;

            fn deref(&self) -> &Self::Target {
                match self {
                    $(Self::$kind(state) => state,)*
                }
            }
        }

        impl DerefMut for State {
            fn deref_mut(&mut self) -> &mut Self::Target {
                match self {
                    $(Self::$kind(state) => state,)*
                }
            }
        }
    };
}

kinds! {
    Bucket: TokenBucket, Gcra, LeakyBucket;
    FixedWindow: FixedWindow;
    SlidingWindow: SlidingWindow;
    SlidingLog: SlidingLog;
    Holds: Concurrent;
}

impl State {
    /// Returns the state of a new client: a full bucket, an empty window.
    #[must_use]
    pub(crate) fn fresh(quota: &Quota, now: u64) -> Self {
        Self::unpacked(0, quota, now)
    }

    /// Judges `cost` units at `now`. A cost of 0 fits unless units are owed.
    ///
    /// `max_wait` is the longest wait that the request accepts, in microseconds. Windows make no request wait.
    #[must_use]
    pub(crate) fn judge(&self, quota: &Quota, now: u64, cost: u64, max_wait: u64) -> Outcome {
        if cost > quota.capacity() {
            return Outcome::Never;
        }
        if let Self::Bucket(bucket) = self {
            return bucket::judge(quota, bucket.used(quota, now), cost, max_wait);
        }
        match self.until_fits(quota, now, cost) {
            0 => Outcome::Allow,
            retry => Outcome::refuse_for(retry),
        }
    }

    /// Returns the remaining units at `now`, rounded down, and the microseconds until the limit is full.
    ///
    /// Units below 0 are owed. The time assumes that no other request is charged.
    #[must_use]
    pub(crate) fn balance(&self, quota: &Quota, now: u64) -> (i64, u64) {
        let used = self.used(quota, now).div_ceil(quota.unit());
        (
            quota.capacity().cast_signed() - used.cast_signed(),
            self.full_at(quota).saturating_sub(now),
        )
    }

    /// Makes the last charge refundable exactly. Only buckets need this.
    pub(crate) fn watch(&mut self, quota: &Quota, now: u64) {
        if let Self::Bucket(bucket) = self {
            bucket.watch(quota, now);
        }
    }

    /// Returns whether this is a bucket that records its low marks.
    pub(crate) const fn is_watched(&self) -> bool {
        matches!(self, Self::Bucket(bucket) if bucket.is_watched())
    }

    /// Takes up to `cost` units for a refused request from a state that was advanced to `now`.
    ///
    /// A bucket owes at most `most_debt` units afterwards. Windows go into no debt.
    pub(crate) fn penalise(&mut self, quota: &Quota, now: u64, cost: u64, most_debt: u64) {
        match self {
            Self::Bucket(bucket) => {
                let most = (quota.capacity() + most_debt) * quota.grain();
                bucket.charge(quota, now, cost, most);
            }
            // A refused request has no hold that it could release.
            Self::Holds(_) => {}
            _ => {
                let left = self.balance(quota, now).0.max(0);
                self.take(quota, now, cost.min(left.cast_unsigned()));
            }
        }
    }
}
