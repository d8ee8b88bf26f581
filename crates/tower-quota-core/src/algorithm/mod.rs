//! The algorithms: pure functions of a state, an instant and a cost.
//!
//! 1. A state says by itself, with its quota's numbers, what is used at any instant `now`.
//! 2. No function reads a clock, fails or panics. All count in integers below 2^53, so that Lua takes the same steps.
//! 3. The caller keeps `now` from running backwards.

pub(crate) mod bucket;
mod convert;
pub(crate) mod fixed_window;
mod packed;
pub(crate) mod sliding_log;
pub(crate) mod sliding_window;

pub(crate) use self::bucket::{Bucket, longest_wait};
pub(crate) use self::convert::bucket_used;
pub(crate) use self::sliding_log::Log;
use crate::quota::Quota;

/// The counter of one limit in an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Any of the three buckets.
    Bucket(Bucket),
    /// A fixed window.
    Window {
        /// When the window started, in microseconds since the epoch.
        start: u64,
        /// Units counted in it.
        count: u64,
    },
    /// A sliding window counter.
    Sliding {
        /// When the current window started, in microseconds since the epoch.
        start: u64,
        /// Units counted in the window before.
        before: u64,
        /// Units counted in the current window.
        count: u64,
    },
    /// A sliding window log.
    Log(Log),
}

/// What one limit says of one cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It fits; the request goes ahead after `wait` microseconds (0: at once).
    Admit {
        /// Microseconds to wait.
        wait: u64,
    },
    /// It does not fit now, and will after `retry` microseconds if nothing else is charged until then.
    Refuse {
        /// Microseconds until it fits.
        retry: u64,
    },
    /// It is more than the capacity and will never fit.
    Never,
}

impl Verdict {
    /// Returns whether the request may pass.
    pub(crate) const fn admits(self) -> bool {
        matches!(self, Self::Admit { .. })
    }

    /// Returns the verdict of a limit that is blocked for this many microseconds more; 0 means not blocked.
    pub(crate) fn blocked_for(self, blocked: u64) -> Self {
        match self {
            Self::Refuse { retry } => Self::Refuse { retry: retry.max(blocked) },
            Self::Admit { .. } if blocked > 0 => Self::Refuse { retry: blocked },
            _ => self,
        }
    }
}

impl State {
    /// Returns the state of a client that was never seen: a full bucket, an empty window.
    #[must_use]
    pub(crate) fn fresh(quota: &Quota, now: u64) -> Self {
        match quota.algorithm().state_code() {
            0 => Self::Bucket(Bucket::FULL),
            1 => Self::Window { start: fixed_window::start(quota, now, now), count: 0 },
            2 => Self::Sliding { start: sliding_window::start(quota, now), before: 0, count: 0 },
            _ => Self::Log(Log::default()),
        }
    }

    /// Judges `cost` units at `now`. `patience` is the longest wait, in microseconds, that the request would accept;
    /// windows never make one wait. A cost of 0 is always admitted.
    #[must_use]
    pub(crate) fn judge(&self, quota: &Quota, now: u64, cost: u64, patience: u64) -> Verdict {
        if cost == 0 {
            return Verdict::Admit { wait: 0 };
        }
        if cost > quota.capacity() {
            return Verdict::Never;
        }
        match self {
            Self::Bucket(bucket) => bucket::judge(quota, bucket.used(quota, now), cost, patience),
            Self::Window { start, count } => fixed_window::judge(quota, *start, *count, now, cost),
            Self::Sliding { start, before, count } => {
                sliding_window::judge(quota, sliding_window::at(quota, *start, *before, *count, now), now, cost)
            }
            Self::Log(log) => log.judge(quota, now, cost),
        }
    }

    /// Returns the whole units left at `now`, and the microseconds until nothing is used if nothing else is charged.
    #[must_use]
    pub(crate) fn left(&self, quota: &Quota, now: u64) -> (u64, u64) {
        let remaining = match self {
            Self::Bucket(bucket) => bucket::remaining(quota, bucket.used(quota, now)),
            Self::Window { start, count } => {
                quota.capacity().saturating_sub(fixed_window::at(quota, *start, *count, now).1)
            }
            Self::Sliding { start, before, count } => {
                sliding_window::remaining(quota, sliding_window::at(quota, *start, *before, *count, now), now)
            }
            Self::Log(log) => quota.capacity().saturating_sub(log.total(quota, now)),
        };
        (remaining, self.full_at(quota).saturating_sub(now))
    }

    /// Returns the instant from which nothing is used any more, if nothing else is charged.
    #[must_use]
    pub(crate) fn full_at(&self, quota: &Quota) -> u64 {
        match self {
            Self::Bucket(bucket) => bucket.full_at,
            Self::Window { count: 0, .. } => 0,
            Self::Window { start, .. } => fixed_window::end(quota, *start),
            Self::Sliding { start, before, count } => sliding_window::full_at(quota, *start, *before, *count),
            Self::Log(log) => log.full_at(quota),
        }
    }

    /// Moves windows and logs to `now`: what has left them is dropped.
    pub(crate) fn advance(&mut self, quota: &Quota, now: u64) {
        match self {
            Self::Bucket(_) => {}
            Self::Window { start, count } => (*start, *count) = fixed_window::at(quota, *start, *count, now),
            Self::Sliding { start, before, count } => {
                (*start, *before, *count) = sliding_window::at(quota, *start, *before, *count, now);
            }
            Self::Log(log) => log.forget(quota, now),
        }
    }

    /// Takes `cost` units from a state that was advanced to `now`, whether they fit or not. What does not fit is a debt.
    pub(crate) fn take(&mut self, quota: &Quota, now: u64, cost: u64) {
        match self {
            Self::Bucket(bucket) => bucket.change(quota, now, |used| bucket::taken(quota, used, cost)),
            Self::Window { start, count } => (*start, *count) = fixed_window::taken(quota, *start, *count, now, cost),
            Self::Sliding { count, .. } => *count = sliding_window::taken(quota, *count, cost),
            Self::Log(log) => log.take(now, cost),
        }
    }

    /// Takes up to `cost` units from a state that was advanced to `now`, never into debt: the price of a refused request
    /// where refusals count.
    pub(crate) fn penalise(&mut self, quota: &Quota, now: u64, cost: u64) {
        match self {
            Self::Bucket(bucket) => bucket.change(quota, now, |used| bucket::penalised(quota, used, cost)),
            _ => self.take(quota, now, cost.min(self.left(quota, now).0)),
        }
    }

    /// Returns the microseconds until a bucket's debt is paid; 0 where there is none.
    pub(crate) fn until_paid(&self, quota: &Quota, now: u64) -> u64 {
        match self {
            Self::Bucket(bucket) => bucket::until_paid(quota, bucket.used(quota, now)),
            // Strikes are counted in buckets.
            _ => 0,
        }
    }

    /// Takes one unit of a bucket, into debt, but no deeper than `most_debt` units.
    pub(crate) fn strike(&mut self, quota: &Quota, now: u64, most_debt: u64) {
        if let Self::Bucket(bucket) = self {
            bucket.change(quota, now, |used| bucket::struck(quota, used, most_debt));
        }
    }

    /// Gives back up to `cost` units that were taken at `taken_at`, in a state that was advanced to `now`: to the same
    /// window only, never beyond the capacity, and to a bucket without what time has refilled since.
    pub(crate) fn refund(&mut self, quota: &Quota, now: u64, taken_at: u64, cost: u64) {
        match self {
            Self::Bucket(bucket) => {
                let elapsed = now.saturating_sub(taken_at);
                bucket.change(quota, now, |used| bucket::refunded(quota, used, cost, elapsed));
            }
            Self::Window { start, count } => {
                if taken_at >= *start {
                    *count = count.saturating_sub(cost);
                }
            }
            Self::Sliding { start, before, count } => {
                if taken_at >= *start {
                    *count = count.saturating_sub(cost);
                } else if *start - taken_at <= quota.period_micros() {
                    *before = before.saturating_sub(cost);
                }
            }
            Self::Log(log) => log.refund(taken_at, cost),
        }
    }

    /// Returns the state under another quota, as of `now`; `convert` has the rules.
    #[must_use]
    pub(crate) fn convert(&self, old: &Quota, new: &Quota, now: u64) -> Self {
        convert::convert(self, old, new, now)
    }
}
