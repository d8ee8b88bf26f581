//! Charges of a request, as plain data for any store.

mod mode;
mod options;
mod owned;

use core::time::Duration;

pub use self::mode::ChargeMode;
use self::options::ChargeOptions;
pub use self::owned::OwnedCharge;
use crate::algorithm::{MOST_COUNTED, longest_wait};
use crate::key::Key;
use crate::name::Name;
use crate::penalty::Penalty;
use crate::quota::{Algorithm, Quota};
use crate::time::{Timestamp, micros};

/// A limit's part in a request, with a name, a quota, a key and a cost.
///
/// A request may have each name once per key.
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
#[must_use]
#[repr(C)] // A charge is written and moved word by word, in the order of the fields.
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

#[derive(Clone, Copy)]
pub(crate) struct Counter<'a> {
    pub(crate) id: u32,
    pub(crate) quota: &'a Quota,
}

impl Charge<'_> {
    /// The maximum number of charges per request that every store accepts.
    pub const MOST: usize = 32;
}

impl<'a> Charge<'a> {
    /// Creates a charge of one unit.
    ///
    /// You may change the quota of a name. While you deploy a larger capacity, clients who are full under the old
    /// capacity may get the larger burst again.
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

    /// Sets the cost in units. Use 0 to read the status only.
    pub const fn cost(mut self, units: u64) -> Self {
        self.cost = units;
        self
    }

    /// Sets the longest wait before a refusal.
    ///
    /// By default, only a leaky bucket waits, for any time. Windows never wait. A [forced](ChargeMode::Forced) charge never
    /// waits, and takes no units beyond a debt that the quota refills within `longest`, except for holds.
    pub const fn max_wait(mut self, longest: Duration) -> Self {
        self.max_wait = Some(longest);
        self.with(ChargeOptions::SPECIAL)
    }

    /// Names the turn of a refund by the [`reset_after`](crate::LimitStatus::reset_after) of the charge.
    ///
    /// A leaky bucket takes back only the last turn, the default. An earlier turn stays empty, so that two requests
    /// never share a turn. At more than one unit per microsecond, turns may overlap by a microsecond.
    pub const fn turn(mut self, reset_after: Duration) -> Self {
        self.turn = Some(reset_after);
        self
    }

    /// Charges refused requests too, but never into debt.
    pub const fn count_refusals(self) -> Self {
        self.with(ChargeOptions::COUNTS_REFUSALS)
    }

    /// Makes the charge a shadow, which never refuses or delays a request, and takes units that fit.
    pub const fn shadow(self) -> Self {
        self.with(ChargeOptions::SHADOW)
    }

    /// Accepts fewer units than the cost, and refuses only if no unit remains.
    ///
    /// All such charges of a request take the same number of [units](crate::LimitStatus::taken).
    pub const fn at_most(self) -> Self {
        self.with(ChargeOptions::AT_MOST)
    }

    /// Sets the mode.
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
    pub const fn in_mode(mut self, mode: ChargeMode) -> Self {
        self.mode = mode;
        self.with(ChargeOptions::SPECIAL)
    }

    /// Prepares a bucket for a refund. Use `refundable` if your handler may give units back.
    ///
    /// Set the option on the charge and on the refund. Windows, logs and requests that wait need no preparation.
    ///
    /// | bucket | a refund gives back |
    /// |---|---|
    /// | prepared | the exact units for up to eight open charges, a little less for more |
    /// | unprepared | the cost minus the refill since the charge, even if your client used the refill |
    ///
    /// After a reset or an eviction, an unprepared bucket or a window may give back units of later charges. After you
    /// change the quota, a bucket or a window of another length gives no units back. If you raise the rate and lower it
    /// again, an unprepared bucket may give back too much.
    pub const fn refundable(self) -> Self {
        self.with(ChargeOptions::REFUNDABLE)
    }

    /// Adds a penalty. Every refusal by the limit gives the client a strike.
    ///
    /// With too many strikes, the limit refuses even if units remain. A cost of 0 gives no strike and always passes.
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

    /// Decides every request in the store, even if the store takes units in advance.
    pub const fn exact(self) -> Self {
        self.with(ChargeOptions::EXACT)
    }

    /// Replaces the quota by a quota of the same algorithm.
    #[doc(hidden)]
    pub const fn with_quota(mut self, quota: &'a Quota) -> Self {
        self.quota = quota;
        self
    }

    const fn with(mut self, options: ChargeOptions) -> Self {
        self.options = self.options.with(options);
        self
    }

    /// Returns the name of the limit.
    pub const fn name(&self) -> Name {
        self.name
    }

    /// Returns the quota of the limit.
    pub const fn quota(&self) -> &'a Quota {
        self.quota
    }

    /// Returns the key.
    pub const fn key(&self) -> &'a Key<'a> {
        self.key
    }

    /// Returns the cost in units.
    pub const fn units(&self) -> u64 {
        self.cost
    }

    /// Returns the longest wait in microseconds.
    pub fn max_wait_micros(&self) -> u64 {
        let asked = match (self.max_wait, self.quota.algorithm()) {
            _ if matches!(self.mode, ChargeMode::Forced) => 0,
            (Some(longest), _) if !self.mode.is_report() => micros(longest),
            (_, Algorithm::LeakyBucket) => u64::MAX,
            _ => 0,
        };
        asked.min(longest_wait(self.quota))
    }

    /// Returns the largest debt of a forced charge, as the units of a window or log, or as the microseconds in which
    /// time refills a bucket.
    #[doc(hidden)]
    pub fn most_debt(&self) -> u64 {
        let longest = self.max_wait.map_or(u64::MAX, micros);
        if self.quota.refill() > 0 {
            return longest.min(longest_wait(self.quota));
        }
        let units = u128::from(longest) * u128::from(self.quota.capacity());
        let units = units.div_ceil(self.quota.period().as_micros().max(1));
        u64::try_from(units).unwrap_or(u64::MAX).min(MOST_COUNTED)
    }

    /// Returns the end of the [turn](Self::turn) in microseconds, or `u64::MAX`.
    #[doc(hidden)]
    pub fn turn_micros(&self) -> u64 {
        self.turn.map_or(u64::MAX, micros)
    }

    /// Returns whether the charge is prepared for a refund.
    pub fn is_refundable(&self) -> bool {
        self.options.has(ChargeOptions::REFUNDABLE) || self.max_wait_micros() > 0 || self.is_hold()
    }

    /// Returns whether the quota is [concurrent](Quota::concurrent).
    pub const fn is_hold(&self) -> bool {
        matches!(self.quota.algorithm(), Algorithm::Concurrent)
    }

    /// Returns the mode.
    pub const fn mode(&self) -> ChargeMode {
        self.mode
    }

    /// Returns whether refused requests are charged too.
    pub const fn counts_refusals(&self) -> bool {
        self.options.has(ChargeOptions::COUNTS_REFUSALS)
    }

    /// Returns whether the charge is a shadow.
    pub const fn is_shadow(&self) -> bool {
        self.options.has(ChargeOptions::SHADOW)
    }

    /// Returns whether the charge is [exact](Self::exact).
    pub const fn is_exact(&self) -> bool {
        self.options.has(ChargeOptions::EXACT)
    }

    /// Returns the penalty for refusals, if any.
    pub const fn penalised_by(&self) -> Option<&'a Penalty> {
        self.penalty
    }

    pub(crate) const fn is_plain(&self) -> bool {
        self.cost > 0 && self.options.are_plain_without(ChargeOptions::PLAIN)
    }

    /// Returns whether the charge is plain or refundable, and its bucket or window fits in a [count](LimitStatus::of_count).
    #[doc(hidden)]
    pub fn has_count(&self) -> bool {
        self.is_plain_but_for_window()
            || self.cost > 0 && self.options.are_plain_without(ChargeOptions::REFUNDABLE)
    }

    pub(crate) fn is_plain_but_for_window(&self) -> bool {
        let others = ChargeOptions::SPECIAL.with(ChargeOptions::REFUNDABLE);
        self.quota.has_aligned_windows()
            && self.cost > 0
            && self.penalty.is_none()
            && matches!(self.mode, ChargeMode::Checked)
            && self.options.are_plain_without(others)
    }

    pub(crate) const fn counter(&self) -> Counter<'a> {
        if !self.is_hold() {
            return self.rate_counter();
        }
        Counter {
            id: self.name.holds_id(),
            quota: self.quota,
        }
    }

    /// Returns the counter of a charge without holds.
    pub(crate) const fn rate_counter(&self) -> Counter<'a> {
        Counter {
            id: self.name.id(),
            quota: self.quota,
        }
    }

    pub(crate) fn strikes(&self) -> Option<(Counter<'a>, &'a Penalty)> {
        let penalty = self.penalty?;
        let counter = Counter {
            id: self.name.strikes_id(),
            quota: penalty.strikes(),
        };
        Some((counter, penalty))
    }

    /// Returns whether the charge accepts fewer units.
    pub const fn is_at_most(&self) -> bool {
        self.options.has(ChargeOptions::AT_MOST)
    }
}

/// An operation of a store on the charges of a request.
///
/// Only `Check`, `Refuse` and `Peek` may refuse. Your store has to implement all operations, so the enum is exhaustive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Takes all charges if all charges fit. Otherwise takes no charge.
    Check,
    /// Takes all charges, without an earlier check. Units that do not fit become a debt until time refills them.
    Charge,
    /// Takes more units for an earlier check that cost more than it took, and otherwise like [`Charge`](Self::Charge).
    ///
    /// The instant leads to the store that admitted the check, if your store is made of several.
    Surcharge {
        /// The instant of the charges, on the clock of the store.
        taken_at: Timestamp,
    },
    /// Gives back the units of an earlier check, less the refill since.
    ///
    /// Use [`Decision::refund`](crate::Decision::refund), and for a leaky bucket [`Charge::turn`]. You can repeat the refund
    /// of [holds](Quota::concurrent), which have an instant of their own. Do not repeat another refund whose answer is
    /// lost, because a second refund may give back units of later charges.
    Refund {
        /// The instant of the charges, on the clock of the store.
        taken_at: Timestamp,
    },
    /// Extends [holds](Quota::concurrent) to a full expiry time from now.
    ///
    /// [`LimitStatus::taken`](crate::LimitStatus::taken) has the held units, 0 after a release or an expiry. If the store has
    /// lost the hold, a [forced](ChargeMode::Forced) charge takes the units again, into debt if necessary. You can repeat
    /// the call after a lost answer, because the hold keeps its instant. If the clock of the store is more than a minute
    /// behind this instant, the hold gets the instant of the decision.
    Renew {
        /// The instant of the charges, on the clock of the store.
        taken_at: Timestamp,
    },
    /// Forgets the counters and strikes of the charges.
    Reset,
    /// Reports the decision without a change. A charge counts as at least one unit.
    Peek,
    /// Counts a refusal by other limits, adds strikes, and takes forced charges.
    Refuse,
}

impl Operation {
    /// Returns the instant of an earlier check, if the operation has one.
    #[doc(hidden)]
    pub const fn taken_at_mut(&mut self) -> Option<&mut Timestamp> {
        match self {
            Self::Surcharge { taken_at } | Self::Refund { taken_at } | Self::Renew { taken_at } => {
                Some(taken_at)
            }
            _ => None,
        }
    }

    pub(crate) const fn judges(self) -> bool {
        matches!(self, Self::Check | Self::Refuse | Self::Peek)
    }

    pub(crate) const fn takes(self) -> bool {
        matches!(self, Self::Check | Self::Charge | Self::Surcharge { .. })
    }
}
