//! Charges: the parts of a request, as data that any store can decide on.

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

/// One limit's part in a request: the name of the limit, its quota, the key and the cost.
///
/// A charge is plain data, so that the store with the state can decide. Name each limit of a key once in a request.
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

/// A counter in an entry, and the quota that counts it.
#[derive(Clone, Copy)]
pub(crate) struct Counter<'a> {
    pub(crate) id: u32,
    pub(crate) quota: &'a Quota,
}

impl Charge<'_> {
    /// The most charges of a request that every store accepts.
    pub const MOST: usize = 32;
}

impl<'a> Charge<'a> {
    /// Makes a charge of one unit. The name identifies the limit, so its quota may change.
    ///
    /// When you deploy a changed quota, both versions run for a while and count the client in turn. A bucket keeps the
    /// remaining units up to the new capacity, and refills at the rate of the version that counted last. If the capacity
    /// changes too, the larger version finds a new client each time the client was full under the smaller one: your
    /// clients may get the larger burst again after every refilled unit until the deployment is over.
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

    /// Sets the cost, in units of the quota. A cost of 0 only reports.
    #[must_use]
    pub const fn cost(mut self, units: u64) -> Self {
        self.cost = units;
        self
    }

    /// Sets the longest wait that the request accepts instead of a refusal.
    ///
    /// Defaults to any wait for a leaky bucket, and to no wait for other buckets. Windows always refuse.
    #[must_use]
    pub const fn max_wait(mut self, longest: Duration) -> Self {
        self.max_wait = Some(longest);
        self.with(ChargeOptions::SPECIAL)
    }

    /// Names the turn that a refund gives back: the [`reset_after`](crate::LimitStatus::reset_after) of its charge.
    ///
    /// A leaky bucket takes back only the last turn that still counts. If a later turn was given, the cancelled turn stays
    /// empty and its units come back with time, so that no two requests get the same turn. (Two turns may overlap by a
    /// microsecond if the quota has more than one unit in a microsecond.)
    ///
    /// A refund without a turn counts as the refund of the last turn. Other algorithms ignore the turn.
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

    /// Makes the charge a shadow, which is reported but never enforced.
    ///
    /// A shadow never refuses a request or makes it wait. The store takes the shadow if the request is admitted and the
    /// shadow fits.
    #[must_use]
    pub const fn shadow(self) -> Self {
        self.with(ChargeOptions::SHADOW)
    }

    /// Allows a partial grant: a check takes the remaining units up to the cost, and refuses if no unit remains.
    ///
    /// All such charges of a request take the same number of units, the fewest that an enforced one can take. Read the
    /// number from [`LimitStatus::taken`](crate::LimitStatus::taken).
    #[must_use]
    pub const fn at_most(self) -> Self {
        self.with(ChargeOptions::AT_MOST)
    }

    /// Sets whether the charge may refuse the request, and whether it takes its units.
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
    /// A prepared refund leaves the bucket as if the charge had never been made. This is exact for up to eight charges at a
    /// time; with more, a refund gives back a little less. An unprepared refund gives back the cost less the refill since
    /// the charge, which is too little if other requests have used the refill. Requests that wait are always prepared.
    /// Windows and logs need no preparation. Use the same option for the charge and for its refund.
    ///
    /// A reset or an eviction before the refund has given the units back already. An unprepared bucket and a window then
    /// give back units of later charges.
    ///
    /// # A quota that changes
    ///
    /// A refund names the quota of its charge. If another quota counts the limit by then, a bucket gives nothing back, and
    /// neither does a window of another length. A prepared bucket gives back only charges since its last conversion. An
    /// unprepared refund may give back too much if the quota changes to a higher rate and back before the refund.
    #[must_use]
    pub const fn refundable(self) -> Self {
        self.with(ChargeOptions::REFUNDABLE)
    }

    /// Adds a penalty: each refusal by this limit gives the client a strike.
    ///
    /// With too many strikes the limit refuses, even if units remain. A cost of 0 gives no strike and is not blocked. A
    /// reset forgets the strikes.
    #[must_use]
    pub const fn penalty(mut self, penalty: &'a Penalty) -> Self {
        self.penalty = Some(penalty);
        self.with(ChargeOptions::SPECIAL)
    }

    /// Removes the penalty.
    pub(crate) const fn without_penalty(mut self) -> Self {
        self.penalty = None;
        self
    }

    /// Removes the count of refusals.
    pub(crate) const fn without_counted_refusals(mut self) -> Self {
        self.options = self.options.without(ChargeOptions::COUNTS_REFUSALS);
        self
    }

    /// Makes the store decide each request itself, even if the store takes units in advance.
    #[must_use]
    pub const fn exact(self) -> Self {
        self.with(ChargeOptions::EXACT)
    }

    /// Counts by another quota of the same algorithm.
    #[must_use]
    pub const fn with_quota(mut self, quota: &'a Quota) -> Self {
        self.quota = quota;
        self
    }

    /// Adds options.
    const fn with(mut self, options: ChargeOptions) -> Self {
        self.options = self.options.with(options);
        self
    }

    /// Returns the limit's name.
    #[must_use]
    pub const fn name(&self) -> Name {
        self.name
    }

    /// Returns the limit's quota.
    #[must_use]
    pub const fn quota(&self) -> &'a Quota {
        self.quota
    }

    /// Returns the key that is counted.
    #[must_use]
    pub const fn key(&self) -> &'a Key<'a> {
        self.key
    }

    /// Returns the cost, in units.
    #[must_use]
    pub const fn units(&self) -> u64 {
        self.cost
    }

    /// Returns the longest accepted wait in microseconds, at most the longest that the quota can promise.
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

    /// Returns whether the charge is prepared for a refund, on request, because it may wait, or because it is a hold.
    #[must_use]
    pub fn is_refundable(&self) -> bool {
        self.options.has(ChargeOptions::REFUNDABLE) || self.max_wait_micros() > 0 || self.is_hold()
    }

    /// Returns whether it holds units until they are released; see [`Quota::concurrent`].
    #[must_use]
    pub const fn is_hold(&self) -> bool {
        matches!(self.quota.algorithm(), Algorithm::Concurrent)
    }

    /// Returns the mode: whether it may refuse the request, and whether it takes its units.
    #[must_use]
    pub const fn mode(&self) -> ChargeMode {
        self.mode
    }

    /// Returns whether a refused request is charged too.
    #[must_use]
    pub const fn counts_refusals(&self) -> bool {
        self.options.has(ChargeOptions::COUNTS_REFUSALS)
    }

    /// Returns whether the charge is a shadow.
    #[must_use]
    pub const fn is_shadow(&self) -> bool {
        self.options.has(ChargeOptions::SHADOW)
    }

    /// Returns whether the store has to decide each request itself.
    #[must_use]
    pub const fn is_exact(&self) -> bool {
        self.options.has(ChargeOptions::EXACT)
    }

    /// Returns the penalty for refusals, if there is one.
    #[must_use]
    pub const fn penalised_by(&self) -> Option<&'a Penalty> {
        self.penalty
    }

    /// Returns whether this is a plain charge, for which stores have a shorter way.
    ///
    /// A plain charge takes a cost above 0 from a token bucket or GCRA. It has no options but [`exact`](Self::exact).
    #[must_use]
    pub const fn is_plain(&self) -> bool {
        self.cost > 0 && self.options.are_plain_without(ChargeOptions::PLAIN)
    }

    /// Returns whether this is a [plain](Self::is_plain) charge that may be refundable.
    #[must_use]
    pub const fn is_plain_or_refundable(&self) -> bool {
        self.cost > 0 && self.options.are_plain_without(ChargeOptions::REFUNDABLE)
    }

    /// Returns whether this is a [plain](Self::is_plain) charge except that its quota has aligned windows.
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

    /// Returns the counter of the limit.
    pub(crate) const fn counter(&self) -> Counter<'a> {
        Counter {
            id: self.name.id(),
            quota: self.quota,
        }
    }

    /// Returns the counter of strikes and its penalty.
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

/// The operation of a store on the charges of a request.
///
/// `Check`, `Refuse` and `Peek` ask the limits for a verdict. The other operations always succeed. The enum is exhaustive,
/// because a store has to implement every operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Takes all charges if all of them fit. Otherwise takes no charge.
    Check,
    /// Takes all charges. Units that do not fit become a debt, which time pays back.
    Charge,
    /// Gives back the units of an earlier check, less the units that time has refilled since.
    ///
    /// [`Decision::refund`](crate::Decision::refund) makes a refund that can be used once. To give back the turn of a
    /// leaky bucket, name it by [`Charge::turn`].
    Refund {
        /// The instant of the charges, on the store's clock.
        taken_at: Timestamp,
    },
    /// Extends holds to one expiry time from now; see [`Quota::concurrent`]. Does nothing to other limits.
    ///
    /// [`LimitStatus::taken`](crate::LimitStatus::taken) has the units still held. It is 0 if the hold was released or
    /// has expired, which a renewal does not undo.
    Renew {
        /// The instant the holds were taken at, on the store's clock.
        taken_at: Timestamp,
    },
    /// Forgets the counters and strikes of the charges.
    Reset,
    /// Reports the decision that a request would get now, and changes nothing.
    ///
    /// Each charge counts as at least one unit.
    Peek,
    /// Judges the charges of a request that other limits have refused already.
    ///
    /// Charges counted refusals and adds strikes. The outcome covers these charges only.
    Refuse,
}

impl Operation {
    /// Returns whether the operation asks the limits for a verdict.
    pub(crate) const fn judges(self) -> bool {
        matches!(self, Self::Check | Self::Refuse | Self::Peek)
    }

    /// Returns whether the operation takes units that can be given back.
    pub(crate) const fn takes(self) -> bool {
        matches!(self, Self::Check | Self::Charge)
    }
}
