//! Charges, the parts of a request as plain data.

mod mode;
mod options;
mod owned;

use core::time::Duration;

pub use self::mode::ChargeMode;
use self::options::ChargeOptions;
pub use self::owned::OwnedCharge;
use crate::algorithm::longest_wait;
use crate::key::Key;
use crate::name::Name;
use crate::penalty::Penalty;
use crate::quota::{Algorithm, Quota};
use crate::time::{Timestamp, micros};

/// The part of one limit in a request, with the name, the quota, the key and the cost.
///
/// A charge is plain data, so every store can decide on it. Name each limit of a key only once in a request.
///
/// ```
/// use tower_quota_core::{Charge, Key, Name, Quota};
///
/// let minute = Quota::per_minute(100);
/// let ann = Key::owned(Name::new("user"), "ann");
/// let charge = Charge::new("minute", &minute, &ann).cost(5);
/// assert_eq!(charge.units(), 5);
/// ```
#[derive(Clone, Copy, Debug)]
#[repr(C)] // Written and moved word by word, in this order.
pub struct Charge<'a> {
    name: Name,
    quota: &'a Quota,
    key: &'a Key<'a>,
    cost: u64,
    penalty: Option<&'a Penalty>,
    max_wait: Option<Duration>,
    turn: Option<Duration>,
    options: ChargeOptions,
    mode: ChargeMode,
}

/// The id of a counter in an entry, and the quota that counts.
#[derive(Clone, Copy)]
pub(crate) struct Counter<'a> {
    pub(crate) id: u32,
    pub(crate) quota: &'a Quota,
}

impl Charge<'_> {
    /// The number of charges in a request that every store accepts.
    pub const MOST: usize = 32;
}

impl<'a> Charge<'a> {
    /// Creates a charge of one unit. The name identifies the limit, so you can change the quota.
    ///
    /// During a deployment with a changed quota, both versions count your clients in turn. A bucket keeps the remaining units up
    /// to the new capacity, and refills at the rate of the last version. If you change the capacity, clients may get the larger
    /// burst after every refilled unit until the deployment is over.
    #[must_use]
    pub fn new(name: impl Into<Name>, quota: &'a Quota, key: &'a Key<'a>) -> Self {
        let options = match quota.algorithm() {
            Algorithm::TokenBucket | Algorithm::Gcra => ChargeOptions::PLAIN,
            _ => ChargeOptions::SPECIAL,
        };
        Self {
            name: name.into(),
            quota,
            key,
            cost: 1,
            max_wait: None,
            turn: None,
            penalty: None,
            options,
            mode: ChargeMode::Checked,
        }
    }

    /// Sets the cost in units. A cost of 0 only reports.
    #[must_use]
    pub const fn cost(mut self, units: u64) -> Self {
        self.cost = units;
        self
    }

    /// Sets the longest wait that your request accepts instead of a refusal.
    ///
    /// Defaults to any wait for a leaky bucket, and to no wait for other buckets. Windows always refuse.
    #[must_use]
    pub const fn max_wait(mut self, longest: Duration) -> Self {
        self.max_wait = Some(longest);
        self.with(ChargeOptions::SPECIAL)
    }

    /// Names the turn to refund, by the [`reset_after`](crate::LimitStatus::reset_after) of the charge.
    ///
    /// A leaky bucket takes back only the last turn. An earlier turn stays empty, so that two requests never get the same turn. If
    /// the quota has more than one unit in a microsecond, two turns may overlap by a microsecond.
    ///
    /// A refund without a turn refunds the last turn. Other algorithms ignore the turn.
    #[must_use]
    pub const fn turn(mut self, reset_after: Duration) -> Self {
        self.turn = Some(reset_after);
        self
    }

    /// Charges refused requests too, but not into debt. Clients who keep asking keep waiting.
    #[must_use]
    pub const fn count_refusals(self) -> Self {
        self.with(ChargeOptions::COUNTS_REFUSALS)
    }

    /// Turns the charge into a shadow, which the store reports and does not enforce.
    ///
    /// The store takes the shadow if the shadow fits and the request is admitted.
    #[must_use]
    pub const fn shadow(self) -> Self {
        self.with(ChargeOptions::SHADOW)
    }

    /// Allows a partial grant. A check takes the remaining units, up to the cost.
    ///
    /// The store refuses if no unit remains. All partial charges of a request take the same number of units. Read the number from
    /// [`LimitStatus::taken`](crate::LimitStatus::taken).
    #[must_use]
    pub const fn at_most(self) -> Self {
        self.with(ChargeOptions::AT_MOST)
    }

    /// Sets whether the charge may refuse your request, and when the store takes the units.
    ///
    /// ```
    /// use tower_quota_core::{Charge, ChargeMode, Entry, Key, Operation, Quota, Timestamp};
    ///
    /// let (minute, attempts, key) = (Quota::per_minute(1), Quota::per_hour(10), Key::EVERYONE);
    /// let request = [
    ///     Charge::new("minute", &minute, &key),
    ///     Charge::new("attempts", &attempts, &key).in_mode(ChargeMode::Forced),
    /// ];
    /// let mut entry = Entry::default();
    /// let now = Timestamp::from_micros(1_763_712_000_000_000);
    /// assert!(entry.decide(Operation::Check, &request, now).is_allowed());
    /// let refused = entry.decide(Operation::Check, &request, now);
    /// assert!(!refused.is_allowed());
    /// assert_eq!(refused.statuses()[1].remaining(), 8);
    /// ```
    #[must_use]
    pub const fn in_mode(mut self, mode: ChargeMode) -> Self {
        self.mode = mode;
        self.with(ChargeOptions::SPECIAL)
    }

    /// Prepares a bucket for a refund long after the charge.
    ///
    /// After a prepared refund, the bucket is as if you had never charged. The refund is exact for up to eight charges at a time,
    /// and gives back a little less beyond. An unprepared refund gives back the cost less the refill since the charge. Requests that
    /// wait are always prepared. Windows and logs need no preparation. Use the same option for the charge and the refund.
    ///
    /// A reset or an eviction has already given the units back. An unprepared bucket and a window then give back units of later
    /// charges.
    ///
    /// # A changed quota
    ///
    /// A refund names the quota of the charge. If another quota counts the limit now, a bucket and a window of another length give
    /// no units back. A prepared bucket gives back only charges since the last conversion. An unprepared refund may give back too
    /// much if the rate was higher in between.
    #[must_use]
    pub const fn refundable(self) -> Self {
        self.with(ChargeOptions::REFUNDABLE)
    }

    /// Adds a penalty. Each refusal by the limit gives the client a strike.
    ///
    /// With too many strikes, the limit refuses even if units remain. A cost of 0 gives no strike and passes. A reset forgets the
    /// strikes.
    #[must_use]
    pub const fn penalty(mut self, penalty: &'a Penalty) -> Self {
        self.penalty = Some(penalty);
        self.with(ChargeOptions::SPECIAL)
    }

    pub(crate) const fn without_penalty(mut self) -> Self {
        self.penalty = None;
        self
    }

    pub(crate) const fn without_counted_refusals(mut self) -> Self {
        self.options = self.options.without(ChargeOptions::COUNTS_REFUSALS);
        self
    }

    /// Asks the store for each decision, even if the store takes units in advance.
    #[must_use]
    pub const fn exact(self) -> Self {
        self.with(ChargeOptions::EXACT)
    }

    /// Replaces the quota by another quota of the same algorithm.
    #[must_use]
    pub const fn with_quota(mut self, quota: &'a Quota) -> Self {
        self.quota = quota;
        self
    }

    const fn with(mut self, options: ChargeOptions) -> Self {
        self.options = self.options.with(options);
        self
    }

    /// Returns the name of the limit.
    #[must_use]
    pub const fn name(&self) -> Name {
        self.name
    }

    /// Returns the quota of the limit.
    pub const fn quota(&self) -> &'a Quota {
        self.quota
    }

    /// Returns the key that the limit counts.
    #[must_use]
    pub const fn key(&self) -> &'a Key<'a> {
        self.key
    }

    /// Returns the cost in units.
    #[must_use]
    pub const fn units(&self) -> u64 {
        self.cost
    }

    /// Returns the longest accepted wait in microseconds, at most the longest wait of the quota.
    #[must_use]
    pub fn max_wait_micros(&self) -> u64 {
        let asked = match (self.max_wait, self.quota.algorithm()) {
            (Some(longest), _) if !self.mode.is_report() => micros(longest),
            (_, Algorithm::LeakyBucket) => u64::MAX,
            _ => 0,
        };
        asked.min(longest_wait(self.quota))
    }

    /// Returns the end of the [turn](Self::turn) in microseconds after the charge, or `u64::MAX`.
    #[must_use]
    pub fn turn_micros(&self) -> u64 {
        self.turn.map_or(u64::MAX, micros)
    }

    /// Returns whether the charge is prepared for a refund. Waiting charges and holds always are.
    #[must_use]
    pub fn is_refundable(&self) -> bool {
        self.options.has(ChargeOptions::REFUNDABLE) || self.max_wait_micros() > 0 || self.is_hold()
    }

    /// Returns whether the charge holds units until a release. See [`Quota::concurrent`].
    #[must_use]
    pub const fn is_hold(&self) -> bool {
        matches!(self.quota.algorithm(), Algorithm::Concurrent)
    }

    /// Returns the mode.
    #[must_use]
    pub const fn mode(&self) -> ChargeMode {
        self.mode
    }

    /// Returns whether refused requests are charged too.
    #[must_use]
    pub const fn counts_refusals(&self) -> bool {
        self.options.has(ChargeOptions::COUNTS_REFUSALS)
    }

    /// Returns whether the charge is a shadow.
    #[must_use]
    pub const fn is_shadow(&self) -> bool {
        self.options.has(ChargeOptions::SHADOW)
    }

    /// Returns whether the store has to decide each request.
    #[must_use]
    pub const fn is_exact(&self) -> bool {
        self.options.has(ChargeOptions::EXACT)
    }

    /// Returns the penalty for refusals.
    #[must_use]
    pub const fn penalised_by(&self) -> Option<&'a Penalty> {
        self.penalty
    }

    /// Returns whether stores have a shortcut for the charge.
    ///
    /// A plain charge takes a cost above 0 from a token bucket or GCRA, without options other than [`exact`](Self::exact).
    #[must_use]
    pub const fn is_plain(&self) -> bool {
        self.cost > 0 && self.options.are_plain_without(ChargeOptions::PLAIN)
    }

    /// Returns whether the charge is [plain](Self::is_plain), apart from a refund.
    #[must_use]
    pub const fn is_plain_or_refundable(&self) -> bool {
        self.cost > 0 && self.options.are_plain_without(ChargeOptions::REFUNDABLE)
    }

    /// Returns whether the charge is [plain](Self::is_plain), apart from aligned windows.
    pub(crate) fn is_plain_but_for_window(&self) -> bool {
        let has_windows = match self.quota.algorithm() {
            Algorithm::FixedWindow => {
                self.quota.window_offset().is_some() && !self.quota.is_calendar()
            }
            algorithm => algorithm == Algorithm::SlidingWindow,
        };
        let others = ChargeOptions::SPECIAL.with(ChargeOptions::REFUNDABLE);
        has_windows
            && self.cost > 0
            && self.penalty.is_none()
            && self.mode == ChargeMode::Checked
            && self.options.are_plain_without(others)
    }

    pub(crate) const fn counter(&self) -> Counter<'a> {
        Counter {
            id: self.name.id(),
            quota: self.quota,
        }
    }

    /// Returns the counter of strikes and the penalty.
    pub(crate) fn strikes(&self) -> Option<(Counter<'a>, &'a Penalty)> {
        let of = |penalty: &'a Penalty| {
            (
                Counter {
                    id: self.name.strikes_id(),
                    quota: penalty.strikes(),
                },
                penalty,
            )
        };
        self.penalty.map(of)
    }

    /// Returns whether a check takes the remaining units, up to the cost.
    #[must_use]
    pub const fn is_at_most(&self) -> bool {
        self.options.has(ChargeOptions::AT_MOST)
    }
}

/// An operation of a store on the charges of a request.
///
/// Limits judge `Check`, `Refuse` and `Peek`. The remaining operations always succeed. The enum is exhaustive, because a store
/// has to implement every operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Takes all charges if all charges fit.
    Check,
    /// Takes all charges. Units that do not fit become a debt, which time pays back.
    Charge,
    /// Gives back the units of an earlier check, less the refill since.
    ///
    /// [`Decision::refund`](crate::Decision::refund) returns a refund that you can use once. To give back the turn of a leaky
    /// bucket, set [`Charge::turn`].
    Refund {
        /// The instant of the charges on the clock of the store.
        taken_at: Timestamp,
    },
    /// Extends holds to one expiry time from now. See [`Quota::concurrent`]. Other limits do not change.
    ///
    /// [`LimitStatus::taken`](crate::LimitStatus::taken) returns the units of the hold, or 0 after a release or an expiry.
    Renew {
        /// The instant of the holds on the clock of the store.
        taken_at: Timestamp,
    },
    /// Forgets the counters and strikes of the charges.
    Reset,
    /// Reports the decision for a request now, without a change. Each charge counts as at least one unit.
    Peek,
    /// Judges the charges of a request that other limits have refused.
    ///
    /// The store charges counted refusals and adds strikes. The outcome covers only these charges.
    Refuse,
}

impl Operation {
    pub(crate) const fn judges(self) -> bool {
        matches!(self, Self::Check | Self::Refuse | Self::Peek)
    }

    /// Returns whether you can give back the units of the operation.
    pub(crate) const fn takes(self) -> bool {
        matches!(self, Self::Check | Self::Charge)
    }
}
