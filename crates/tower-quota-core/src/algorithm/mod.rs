//! The algorithms: pure functions of a state, an instant and a cost.
//!
//! Every function here takes a state *as of* one instant (`from`) and asks about a later one (`now`); none reads a
//! clock, none fails, none panics, and all count in integers below 2^53, so that the same steps can be taken in Lua.
//! The caller keeps `now` from running backwards.

pub(crate) mod bucket;
mod convert;
mod fixed_window;
mod packed;
mod sliding_log;
mod sliding_window;

pub(crate) use self::bucket::longest_wait;
use self::sliding_log::Log;
use crate::quota::Quota;

/// What one limit remembers of one subject, as of some instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Any of the three buckets: the grains taken and not yet back. 0 is a full bucket; the theoretical arrival time of
    /// GCRA lies `used / refill` ahead.
    Bucket {
        /// Grains taken.
        used: u64,
    },
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
    /// Whether the request may pass.
    pub(crate) const fn admits(self) -> bool {
        matches!(self, Self::Admit { .. })
    }

    /// The same of a limit that is closed for so many microseconds more; 0: it is not.
    pub(crate) fn closed_for(self, blocked: u64) -> Self {
        match self {
            Self::Refuse { retry } => Self::Refuse { retry: retry.max(blocked) },
            Self::Admit { .. } if blocked > 0 => Self::Refuse { retry: blocked },
            _ => self,
        }
    }
}

impl State {
    /// The state of a subject that was never seen: a full bucket, an empty window.
    #[must_use]
    pub(crate) fn fresh(quota: &Quota, now: u64) -> Self {
        match quota.algorithm().state_code() {
            0 => Self::Bucket { used: 0 },
            1 => Self::Window { start: fixed_window::start(quota, now, now), count: 0 },
            2 => Self::Sliding { start: sliding_window::start(quota, now), before: 0, count: 0 },
            _ => Self::Log(Log::default()),
        }
    }

    /// What the quota says of `cost` units at `now`. `patience` is the longest wait, in microseconds, that the request
    /// would accept; windows never make one wait. A cost of 0 is always admitted.
    #[must_use]
    pub(crate) fn judge(&self, quota: &Quota, from: u64, now: u64, cost: u64, patience: u64) -> Verdict {
        if cost == 0 {
            return Verdict::Admit { wait: 0 };
        }
        if cost > quota.capacity() {
            return Verdict::Never;
        }
        match self {
            Self::Bucket { used } => bucket::judge(quota, bucket::refilled(quota, *used, now - from), cost, patience),
            Self::Window { start, count } => fixed_window::judge(quota, *start, *count, now, cost),
            Self::Sliding { start, before, count } => {
                sliding_window::judge(quota, sliding_window::at(quota, *start, *before, *count, now), now, cost)
            }
            Self::Log(log) => log.judge(quota, now, cost),
        }
    }

    /// Whole units left at `now`, and microseconds until all of them are back if nothing else is charged.
    #[must_use]
    pub(crate) fn left(&self, quota: &Quota, from: u64, now: u64) -> (u64, u64) {
        match self {
            Self::Bucket { used } => bucket::left(quota, bucket::refilled(quota, *used, now - from)),
            Self::Window { start, count } => fixed_window::left(quota, *start, *count, now),
            Self::Sliding { start, before, count } => {
                sliding_window::left(quota, sliding_window::at(quota, *start, *before, *count, now), now)
            }
            Self::Log(log) => log.left(quota, now),
        }
    }

    /// Moves a state that is as of `from` to `now`.
    pub(crate) fn advance(&mut self, quota: &Quota, from: u64, now: u64) {
        match self {
            Self::Bucket { used } => *used = bucket::refilled(quota, *used, now - from),
            Self::Window { start, count } => (*start, *count) = fixed_window::at(quota, *start, *count, now),
            Self::Sliding { start, before, count } => {
                (*start, *before, *count) = sliding_window::at(quota, *start, *before, *count, now);
            }
            Self::Log(log) => log.forget(quota, now),
        }
    }

    /// Takes `cost` units from a state that is as of `now`, whether they fit or not. What does not fit is a debt.
    pub(crate) fn take(&mut self, quota: &Quota, now: u64, cost: u64) {
        match self {
            Self::Bucket { used } => *used = bucket::taken(quota, *used, cost),
            Self::Window { start, count } => (*start, *count) = fixed_window::taken(quota, *start, *count, now, cost),
            Self::Sliding { count, .. } => *count = sliding_window::taken(quota, *count, cost),
            Self::Log(log) => log.take(now, cost),
        }
    }

    /// Takes up to `cost` units from a state that is as of `now`, never into debt: the price of a refused request where
    /// refusals count.
    pub(crate) fn penalise(&mut self, quota: &Quota, now: u64, cost: u64) {
        match self {
            Self::Bucket { used } => *used = bucket::penalised(quota, *used, cost),
            _ => self.take(quota, now, cost.min(self.left(quota, now, now).0)),
        }
    }

    /// Microseconds until a bucket's debt is paid; 0 where there is none.
    pub(crate) fn until_paid(&self, quota: &Quota, from: u64, now: u64) -> u64 {
        match self {
            Self::Bucket { used } => bucket::until_paid(quota, bucket::refilled(quota, *used, now - from)),
            // Strikes are counted in buckets.
            _ => 0,
        }
    }

    /// Takes one unit of a bucket that is as of `now`, into debt, but no deeper than `most_debt` units.
    pub(crate) fn strike(&mut self, quota: &Quota, most_debt: u64) {
        if let Self::Bucket { used } = self {
            *used = bucket::struck(quota, *used, most_debt);
        }
    }

    /// Gives back up to `cost` units that were taken at `taken_at`, in a state that is as of `now`: to the same window
    /// or bucket only, and never beyond its capacity.
    pub(crate) fn give_back(&mut self, quota: &Quota, taken_at: u64, cost: u64) {
        match self {
            Self::Bucket { used } => *used = bucket::given_back(quota, *used, cost),
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
            Self::Log(log) => log.give_back(taken_at, cost),
        }
    }

    /// The same standing under another quota, as of `now`: what is left stays left, up to the new capacity, and a debt
    /// stays a debt.
    #[must_use]
    pub(crate) fn convert(&self, old: &Quota, new: &Quota, from: u64, now: u64) -> Self {
        convert::convert(self, old, new, from, now)
    }
}
