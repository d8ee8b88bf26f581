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
#[repr(C)] // Written and moved word by word, in this order.
pub struct LimitStatus {
    /// The name of the limit.
    pub name: Name,
    /// The capacity of the quota.
    pub limit: u64,
    /// The remaining units and the time until the limit is full.
    pub left: Left,
    /// The units that the operation took, which a refund would give back.
    ///
    /// A refusal takes 0 units, even with counted refusals. You cannot refund the units of a [forced](crate::ChargeMode::Forced)
    /// charge of a refused request. After a renewal, the units of the hold.
    pub taken: u64,
    /// The outcome of the limit alone.
    pub outcome: Outcome,
    /// Whether the store evaluates the limit and does not enforce the limit.
    pub is_shadow: bool,
}

/// The remaining units of a limit, and the time until the limit is full.
///
/// A bucket computes both when you read them, because most requests never do.
#[derive(Clone, Copy, Debug)]
pub struct Left(Amount);

#[derive(Clone, Copy, Debug)]
enum Amount {
    /// The time is in microseconds. A negative balance is a debt.
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
    /// Creates the state of a limit with `remaining` units. The time counts in full microseconds.
    #[must_use]
    pub const fn new(remaining: u64, reset_after: Duration) -> Self {
        let balance = remaining & i64::MAX.cast_unsigned();
        Self::of_balance(balance.cast_signed(), reset_after)
    }

    /// Creates the state of a limit with remaining units, or with a debt if the balance is negative.
    #[must_use]
    pub const fn of_balance(balance: i64, reset_after: Duration) -> Self {
        Self(Amount::Known {
            balance,
            reset_after: micros(reset_after),
        })
    }

    /// Creates the state of a bucket with `used` [grains](Quota::grain).
    ///
    /// A quota with windows has no units left.
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
    /// Creates the status of an enforced bucket with `used` grains, before a request of `cost` units.
    ///
    /// Use `of_bucket` in a store that answers with its state.
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

    /// Returns the remaining units, rounded down.
    #[must_use]
    pub const fn remaining(&self) -> u64 {
        match self.left.0 {
            Amount::Known { balance, .. } if balance < 0 => 0,
            Amount::Known { balance, .. } => balance.cast_unsigned(),
            Amount::Bucket { used, grain, .. } => bucket::units_left(self.limit, grain, used),
        }
    }

    /// Returns the units beyond the limit, rounded up.
    ///
    /// A debt comes from [forced](crate::ChargeMode::Forced) charges and from [charges](crate::Operation::Charge) without a check.
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

    /// Returns the time until the limit is full, without further charges.
    #[must_use]
    pub const fn reset_after(&self) -> Duration {
        Duration::from_micros(match self.left.0 {
            Amount::Known { reset_after, .. } => reset_after,
            Amount::Bucket { used, refill, .. } => bucket::until_back(refill, used),
        })
    }
}

/// Two statuses are equal if all numbers except debts are equal.
impl PartialEq for LimitStatus {
    fn eq(&self, other: &Self) -> bool {
        let numbers = |status: &Self| {
            let amounts = (status.limit, status.remaining(), status.taken);
            let rest = (status.reset_after(), status.outcome, status.is_shadow);
            (status.name, amounts, rest)
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
