//! The algorithms: pure functions of a state, an instant and a cost.
//!
//! 1. A state and its quota give the units used at any instant `now`.
//! 2. No function reads a clock, fails or panics. All count in integers below 2^53, so that Lua takes the same steps.
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
pub(crate) use self::counting::{Counting, Refund};
use self::fixed_window::FixedWindow;
pub use self::fixed_window::MOST_COUNTED;
use self::hold::Holds;
pub use self::lows::MOST_MARKS;
pub use self::sliding_log::KEPT_STAMPS;
use self::sliding_log::SlidingLog;
use self::sliding_window::SlidingWindow;
use crate::outcome::Outcome;
use crate::quota::{Algorithm, Quota};

/// The kinds of state, and the algorithms that keep them.
macro_rules! kinds {
    ($($kind:ident: $($algorithm:ident),+;)*) => {
        /// The counter of one limit in an entry.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub(crate) enum State {
            $($kind($kind),)*
        }

        impl State {
            /// Returns the state of a client that was never seen: a full bucket, an empty window.
            #[must_use]
            pub(crate) fn fresh(quota: &Quota, now: u64) -> Self {
                match quota.algorithm() {
                    $($(Algorithm::$algorithm)|+ => Self::$kind($kind::fresh(quota, now)),)*
                }
            }

            /// Reads the stored form; see [`Counting::decode`].
            pub(crate) fn decode(quota: &Quota, mut rest: &[u8], full_at: u64, at: u64) -> Option<Self> {
                let rest = &mut rest;
                let state = match quota.algorithm() {
                    $($(Algorithm::$algorithm)|+ => Self::$kind($kind::decode(quota, rest, full_at, at)?),)*
                };
                rest.is_empty().then_some(state)
            }

            /// Returns the state that [`packed`](Self::packed) made a word of.
            pub(crate) fn unpacked(word: u64, quota: &Quota, at: u64) -> Self {
                match quota.algorithm() {
                    $($(Algorithm::$algorithm)|+ => Self::$kind($kind::unpacked(word, quota, at)),)*
                }
            }

        }

        /// A state is used as a [`Counting`] of its kind.
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
    /// Judges `cost` units at `now`. A cost of 0 is always admitted.
    ///
    /// `max_wait` is the longest wait that the request accepts, in microseconds. Windows make no request wait.
    #[must_use]
    pub(crate) fn judge(&self, quota: &Quota, now: u64, cost: u64, max_wait: u64) -> Outcome {
        match cost {
            0 => Outcome::Allow,
            cost if cost > quota.capacity() => Outcome::Never,
            cost => (**self).judge(quota, now, cost, max_wait),
        }
    }

    /// Returns the units left at `now`, rounded down, and the microseconds until nothing is used.
    ///
    /// Units below 0 are owed. The time holds if nothing else is charged.
    #[must_use]
    pub(crate) fn balance(&self, quota: &Quota, now: u64) -> (i64, u64) {
        let (used, grain) = self.used(quota, now);
        (
            quota.capacity().cast_signed() - used.div_ceil(grain).cast_signed(),
            self.full_at(quota).saturating_sub(now),
        )
    }

    /// Judges a charge that takes nothing and only asks whether `units` are left. It makes no request wait.
    pub(crate) fn report(&self, quota: &Quota, now: u64, units: u64, max_wait: u64) -> Outcome {
        match (**self).judge(quota, now, units, max_wait) {
            Outcome::Wait(_) => Outcome::Allow,
            outcome => outcome,
        }
    }

    /// Makes the last charge refundable exactly. Only buckets have to prepare for this.
    pub(crate) fn watch(&mut self, quota: &Quota, now: u64) {
        if let Self::Bucket(bucket) = self {
            bucket.watch(quota, now);
        }
    }

    /// Returns whether it is a bucket that records its low marks.
    pub(crate) const fn is_watched(&self) -> bool {
        matches!(self, Self::Bucket(Bucket { lows, .. }) if !lows.are_none())
    }

    /// Takes up to `cost` units for a refused request, if refusals count. Never goes into debt.
    ///
    /// The state was advanced to `now`.
    pub(crate) fn penalise(&mut self, quota: &Quota, now: u64, cost: u64) {
        match self {
            Self::Bucket(bucket) => {
                bucket.change(quota, now, |used| bucket::penalised(quota, used, cost))
            }
            // A refused request has no hold that it could release.
            Self::Holds(_) => {}
            _ => {
                let left = self.balance(quota, now).0.max(0);
                self.take(quota, now, cost.min(left.cast_unsigned()));
            }
        }
    }

    /// Returns the microseconds until a bucket of strikes has paid its debt; 0 where there is none.
    pub(crate) fn until_paid(&self, quota: &Quota, now: u64) -> u64 {
        match self {
            Self::Bucket(bucket) => {
                let debt = bucket
                    .used_grains(quota, now)
                    .saturating_sub(quota.capacity() * quota.grain());
                bucket::until_back(quota.refill(), debt)
            }
            _ => 0,
        }
    }

    /// Takes one unit of a bucket of strikes, into debt, but no deeper than `most_debt` units.
    pub(crate) fn strike(&mut self, quota: &Quota, now: u64, most_debt: u64) {
        if let Self::Bucket(bucket) = self {
            let deepest = (quota.capacity() + most_debt) * quota.grain();
            bucket.change(quota, now, |used| {
                used.max((used + quota.grain()).min(deepest))
            });
        }
    }

    /// Returns the state of a sliding window that fades until one unit fits, within its present window.
    pub(crate) fn fading_until(quota: &Quota, until: u64, now: u64) -> Option<Self> {
        match Self::fresh(quota, now) {
            Self::SlidingWindow(_) => {
                SlidingWindow::fading_until(quota, until, now).map(Self::SlidingWindow)
            }
            _ => None,
        }
    }

    /// Returns the state under another quota, as of `now`; `convert` has the rules.
    #[must_use]
    pub(crate) fn convert(&self, old: &Quota, new: &Quota, now: u64) -> Self {
        convert::convert(self, old, new, now)
    }
}
