//! The status of a limit.

use core::cmp::Ordering;
use core::fmt;
use core::time::Duration;

use crate::algorithm::{State, bucket};
use crate::name::Name;
use crate::outcome::Outcome;
use crate::quota::{MOST_USED, Quota};
use crate::time::{Timestamp, micros};

/// The status of a limit after a decision.
#[derive(Clone, Copy)]
#[repr(C)] // Written and moved word by word, in this order.
pub struct LimitStatus {
    /// The name of the limit.
    pub name: Name,
    /// The capacity of the quota.
    pub limit: u64,
    /// What [`remaining`](Self::remaining), [`debt`](Self::debt) and [`reset_after`](Self::reset_after) return.
    pub left: Left,
    /// The units that a refund would give back, or 0 for counted refusals.
    ///
    /// After a refund, `taken` has the units given back, and after a renewal the units of the hold.
    /// You cannot refund [forced](crate::ChargeMode::Forced) units of a refusal.
    pub taken: u64,
    /// The outcome of this limit alone.
    pub outcome: Outcome,
    /// Whether the limit is a shadow.
    pub is_shadow: bool,
}

/// The remaining units of a limit, and the time until the limit is full.
///
/// Both are quotients, which are divided on demand, because most requests do not read them.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Left {
    /// The grains that remain, or less than 0 for a debt.
    balance: i64,
    grain: u64,
    /// The grains until the limit is full.
    used: u64,
    refill: u64,
}

impl Left {
    /// Creates the state from remaining units and the time until the limit is full.
    pub const fn new(remaining: u64, reset_after: Duration) -> Self {
        let most = i64::MAX.cast_unsigned();
        let remaining = if remaining > most { most } else { remaining };
        Self::of_balance(remaining.cast_signed(), reset_after)
    }

    /// Creates the state from a balance, negative for a debt.
    #[doc(hidden)]
    pub const fn of_balance(balance: i64, reset_after: Duration) -> Self {
        Self {
            balance,
            grain: 1,
            used: micros(reset_after),
            refill: 1,
        }
    }

    pub(crate) const fn of_bucket(quota: &Quota, used: u64) -> Self {
        let full = quota.capacity() * quota.unit();
        Self {
            balance: full.cast_signed() - used.cast_signed(),
            grain: quota.unit(),
            used,
            refill: quota.refill(),
        }
    }
}

impl LimitStatus {
    /// Compares two limits of a decision by how tight they are. See
    /// [`Decision::tightest`](crate::Decision::tightest).
    #[must_use]
    pub fn cmp_tightness(&self, other: &Self) -> Ordering {
        let severities = self.outcome.severity().cmp(&other.outcome.severity());
        severities
            .then(other.remaining().cmp(&self.remaining()))
            .then(self.reset_after().cmp(&other.reset_after()))
            // Compare the names last, so that the order of the limits does not change the result.
            .then(other.name.cmp(&self.name))
    }

    /// Creates the status of an enforced bucket or window from its count.
    ///
    /// The count is the used [grains](Quota::grain) of a bucket, the units of a fixed window, or the units of a sliding
    /// window plus 2^32 times the units of the window before. The outcome is for a request of `cost` units that does
    /// not wait. A window that starts with the first request has no count.
    #[must_use]
    pub fn of_count(name: Name, quota: &Quota, count: u64, at: Timestamp, cost: u64) -> Self {
        let (left, outcome) = if quota.algorithm().is_bucket() {
            let used = count.min(MOST_USED);
            let outcome = bucket::outcome(quota, used, cost);
            (Left::of_bucket(quota, used), outcome)
        } else {
            let at = at.as_micros();
            let state = State::of_count(count, quota, at);
            let (balance, reset) = state.balance(quota, at);
            let left = Left::of_balance(balance, Duration::from_micros(reset));
            (left, state.judge(quota, at, cost, 0))
        };
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
    pub const fn remaining(&self) -> u64 {
        match self.left.balance {
            balance if balance < 0 => 0,
            balance => balance.cast_unsigned() / self.left.grain,
        }
    }

    /// Returns the units taken beyond the limit, rounded up.
    ///
    /// Only [forced](crate::ChargeMode::Forced) charges, [`Charge`](crate::Operation::Charge) and
    /// [`Surcharge`](crate::Operation::Surcharge) cause debts.
    pub const fn debt(&self) -> u64 {
        match self.left.balance {
            balance if balance < 0 => balance.unsigned_abs().div_ceil(self.left.grain),
            _ => 0,
        }
    }

    /// Returns the time until the limit is full without further charges.
    pub const fn reset_after(&self) -> Duration {
        Duration::from_micros(bucket::until_back(self.left.refill, self.left.used))
    }
}

/// Statuses are equal if the figures are equal. Debts are not compared.
impl PartialEq for LimitStatus {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
            && self.limit == other.limit
            && self.remaining() == other.remaining()
            && self.reset_after() == other.reset_after()
            && self.taken == other.taken
            && self.outcome == other.outcome
            && self.is_shadow == other.is_shadow
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
