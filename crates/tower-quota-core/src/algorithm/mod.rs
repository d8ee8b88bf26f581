//! The algorithms, as pure functions of a state, an instant and a cost.
//!
//! The algorithms count in integers below 2^53, so that Lua takes the same steps. The caller keeps
//! `now` from running backwards.

pub(crate) mod bucket;
mod convert;
mod counting;
mod hold;
mod low_marks;
mod sliding_log;
mod window;

use core::ops::{Deref, DerefMut};

pub(crate) use self::bucket::{Bucket, longest_wait};
pub(crate) use self::counting::Counting;
use self::hold::Holds;
pub use self::hold::{LONGEST_RETRY, MOST_HELD};
pub use self::low_marks::MOST_MARKS;
pub use self::sliding_log::KEPT_STAMPS;
pub(crate) use self::sliding_log::SlidingLog;
pub use self::window::MOST_COUNTED;
use self::window::Window;
use crate::outcome::Outcome;
use crate::quota::{Algorithm, MOST_USED, Quota};

/// Lists the kinds of state, and the algorithms of each kind.
macro_rules! kinds {
    ($($kind:ident: $($algorithm:ident),+;)*) => {
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub(crate) enum State {
            $($kind($kind),)*
        }

        impl State {
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
    Window: FixedWindow, SlidingWindow;
    SlidingLog: SlidingLog;
    Holds: Concurrent;
}

impl State {
    pub(crate) fn fresh(quota: &Quota, now: u64) -> Self {
        Self::unpacked(0, quota, now)
    }

    /// Makes a bucket or a window from a count, which may be impossible.
    pub(crate) fn of_count(count: u64, quota: &Quota, at: u64) -> Self {
        let count = match quota.algorithm() {
            Algorithm::FixedWindow | Algorithm::SlidingWindow => window::sound(count, quota),
            _ => count.min(MOST_USED),
        };
        Self::unpacked(count, quota, at)
    }

    /// Returns the outcome for a cost, if the request accepts a wait of `max_wait` microseconds.
    ///
    /// A cost of 0 fits unless units are owed.
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

    /// Returns the remaining or owed units, and the microseconds until the limit is full.
    pub(crate) fn balance(&self, quota: &Quota, now: u64) -> (i64, u64) {
        let used = self.used(quota, now).div_ceil(quota.unit());
        (
            quota.capacity().cast_signed() - used.cast_signed(),
            self.full_at(quota).saturating_sub(now),
        )
    }

    pub(crate) fn watch(&mut self, quota: &Quota, now: u64) {
        if let Self::Bucket(bucket) = self {
            bucket.watch(quota, now);
        }
    }

    pub(crate) const fn is_watched(&self) -> bool {
        matches!(self, Self::Bucket(bucket) if bucket.is_watched())
    }

    /// Takes units into a debt, up to the [largest](crate::Charge::most_debt).
    pub(crate) fn force(&mut self, quota: &Quota, now: u64, cost: u64, most_debt: u64) -> u64 {
        match self {
            Self::Bucket(bucket) => {
                let most = quota.capacity() * quota.grain() + most_debt * quota.refill();
                bucket.charge(quota, now, cost, most) / quota.grain()
            }
            Self::Holds(holds) => holds.take(quota, now, cost),
            _ => {
                let room = self.balance(quota, now).0 + most_debt.cast_signed();
                self.take(quota, now, cost.min(room.max(0).cast_unsigned()))
            }
        }
    }

    /// Takes units for a refused request. A bucket owes at most `most_debt` units afterwards.
    pub(crate) fn penalise(&mut self, quota: &Quota, now: u64, cost: u64, most_debt: u64) {
        match self {
            Self::Bucket(bucket) => {
                let most = (quota.capacity() + most_debt) * quota.grain();
                bucket.charge(quota, now, cost, most);
            }
            // A refused request could never release a hold.
            Self::Holds(_) => {}
            _ => {
                let left = self.balance(quota, now).0.max(0);
                self.take(quota, now, cost.min(left.cast_unsigned()));
            }
        }
    }
}
