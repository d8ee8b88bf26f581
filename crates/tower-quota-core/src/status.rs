//! The status of one limit.

use core::fmt;
use core::time::Duration;

use crate::algorithm::bucket;

use crate::name::Name;
use crate::outcome::Outcome;
use crate::quota::{MOST_GRAINS, Quota};
use crate::time::micros;

/// The status of one limit after a decision.
#[derive(Clone, Copy)]
#[repr(C)] // In this order it is written and moved word by word.
pub struct LimitStatus {
    /// The limit's name.
    pub name: Name,
    /// The most it admits at once: the capacity of its quota.
    pub limit: u64,
    /// The units left and the time until full: read them by [`remaining`](Self::remaining) and
    /// [`reset_after`](Self::reset_after).
    pub left: Left,
    /// Units that this operation took of this limit: what a refund would give back. 0 on a refusal, counted or not.
    /// A [forced](crate::ChargeMode::Forced) charge of a refused request has taken its units, and they cannot be refunded.
    /// After a renewal, the units of the hold.
    pub taken: u64,
    /// Says whether this limit let the request pass, and if not, when it would.
    pub outcome: Outcome,
    /// Says whether this limit is evaluated and not enforced.
    pub is_shadow: bool,
}

/// The units left of a limit, and the time until it is full.
///
/// A bucket's are computed when they are read, because most requests never read them.
#[derive(Clone, Copy, Debug)]
pub struct Left(Amount);

#[derive(Clone, Copy, Debug)]
enum Amount {
    /// The time is in microseconds. A balance below 0 is a debt.
    Known {
        balance: i64,
        reset_after: u64,
    },
    Bucket {
        used: u64,
        grain: u64,
        refill: u64,
    },
}

impl Left {
    /// Makes the amount of this many units, and the time until nothing is used.
    ///
    /// The time counts in full microseconds, up to half a million years.
    #[must_use]
    pub const fn new(remaining: u64, reset_after: Duration) -> Self {
        let balance = remaining & i64::MAX.cast_unsigned();
        Self::of_balance(balance.cast_signed(), reset_after)
    }

    /// Makes the amount of this many units left, or owed if the balance is below 0.
    #[must_use]
    pub const fn of_balance(balance: i64, reset_after: Duration) -> Self {
        Self(Amount::Known {
            balance,
            reset_after: micros(reset_after),
        })
    }

    /// Makes the amount left of a bucket of which `used` [grains](Quota::grain) are taken.
    ///
    /// No units are left if the quota counts in windows.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tower_quota_core::{Left, Name, Outcome, Quota, LimitStatus};
    ///
    /// let minute = Quota::per_minute(60);
    /// let left = Left::of_bucket(&minute, 15 * minute.grain());
    /// let status =
    ///     LimitStatus { name: Name::new("minute"), limit: 60, left, taken: 0, outcome: Outcome::Allow, is_shadow: false };
    /// assert_eq!(status.remaining(), 45);
    /// assert_eq!(status.reset_after(), Duration::from_secs(15));
    /// ```
    #[must_use]
    pub const fn of_bucket(quota: &Quota, used: u64) -> Self {
        Self(Amount::Bucket {
            used,
            grain: quota.grain(),
            refill: quota.refill(),
        })
    }
}

impl LimitStatus {
    /// Makes the status of an enforced bucket of which `used` grains are taken.
    ///
    /// Its outcome is that of a request of `cost` units that does not wait. Nothing is taken. This is for stores that
    /// answer with their state.
    #[must_use]
    pub fn of_bucket(name: Name, quota: &Quota, used: u64, cost: u64) -> Self {
        let used = used.min(2 * MOST_GRAINS);
        let outcome = bucket::outcome(quota, used, cost);
        let left = Left::of_bucket(quota, used);
        Self {
            name,
            limit: quota.capacity(),
            left,
            outcome,
            taken: 0,
            is_shadow: false,
        }
    }

    /// Returns the units left, rounded down, on a refusal too.
    #[must_use]
    pub const fn remaining(&self) -> u64 {
        match self.left.0 {
            Amount::Known { balance, .. } if balance < 0 => 0,
            Amount::Known { balance, .. } => balance.cast_unsigned(),
            Amount::Bucket { used, grain, .. } => bucket::units_left(self.limit, grain, used),
        }
    }

    /// Returns the units owed: those taken beyond the limit, rounded up. 0 unless charges were
    /// [forced](crate::ChargeMode::Forced) or the limit was [charged](crate::Operation::Charge) without a check.
    ///
    /// `RedisStore` does not report the debts of windows and logs yet.
    #[must_use]
    pub const fn debt(&self) -> u64 {
        match self.left.0 {
            Amount::Known { balance, .. } if balance < 0 => balance.unsigned_abs(),
            Amount::Known { .. } | Amount::Bucket { grain: 0, .. } => 0,
            Amount::Bucket { used, grain, .. } => used
                .saturating_sub(self.limit.saturating_mul(grain))
                .div_ceil(grain),
        }
    }

    /// Returns the time until nothing of the limit is used, if nothing else is charged.
    #[must_use]
    pub const fn reset_after(&self) -> Duration {
        Duration::from_micros(match self.left.0 {
            Amount::Known { reset_after, .. } => reset_after,
            Amount::Bucket { used, refill, .. } => bucket::until_back(refill, used),
        })
    }
}

/// Two statuses are equal if their numbers are, computed or not. Debts are not compared.
impl PartialEq for LimitStatus {
    fn eq(&self, other: &Self) -> bool {
        let numbers = |status: &Self| {
            let Self {
                name,
                limit,
                taken,
                outcome,
                is_shadow,
                ..
            } = *status;
            (
                name,
                limit,
                status.remaining(),
                status.reset_after(),
                taken,
                outcome,
                is_shadow,
            )
        };
        numbers(self) == numbers(other)
    }
}

impl Eq for LimitStatus {}

impl fmt::Debug for LimitStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LimitStatus")
            .field("name", &self.name)
            .field("limit", &self.limit)
            .field("remaining", &self.remaining())
            .field("debt", &self.debt())
            .field("reset_after", &self.reset_after())
            .field("taken", &self.taken)
            .field("outcome", &self.outcome)
            .field("is_shadow", &self.is_shadow)
            .finish()
    }
}
