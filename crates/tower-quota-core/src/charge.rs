//! Charges: what a request takes from its limits, as data that any store can decide on.

mod options;
mod owned;

use core::time::Duration;

use self::options::ChargeOptions;
pub use self::owned::OwnedCharge;
use crate::algorithm::longest_wait;
use crate::key::Key;
use crate::name::Name;
use crate::penalty::Penalty;
use crate::quota::{Algorithm, Quota};
use crate::time::{Timestamp, micros};

/// One limit's part in a request: the limit's name, its quota, the key and the cost.
///
/// It is plain data, so that the store that has the state can decide it. No two charges of one request should name the
/// same limit of the same key.
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
#[repr(C)] // In this order it is written and moved word by word.
pub struct Charge<'a> {
    name: Name,
    quota: &'a Quota,
    key: &'a Key<'a>,
    cost: u64,
    penalty: Option<&'a Penalty>,
    max_wait: Option<Duration>,
    turn: Option<Duration>,
    options: ChargeOptions,
}

/// A counter of an entry: its number, and the quota that counts it.
#[derive(Clone, Copy)]
pub(crate) struct Counter<'a> {
    pub(crate) id: u32,
    pub(crate) quota: &'a Quota,
}

impl Charge<'_> {
    /// The most charges of a request that every store takes. A store may fail with more.
    pub const MOST: usize = 32;
}

impl<'a> Charge<'a> {
    /// Makes a charge of one unit. The name identifies the limit of a key; its quota may change.
    #[must_use]
    #[inline]
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
        }
    }

    /// Sets the cost, in units of the quota. A cost of 0 reports, charges nothing and is never refused.
    #[must_use]
    #[inline]
    pub const fn cost(mut self, units: u64) -> Self {
        self.cost = units;
        self
    }

    /// Sets the longest wait that the request accepts instead of being refused.
    ///
    /// The default is any wait for a leaky bucket and none for the other buckets. Windows always refuse.
    #[must_use]
    pub const fn max_wait(mut self, longest: Duration) -> Self {
        self.max_wait = Some(longest);
        self.with(ChargeOptions::SPECIAL)
    }

    /// Names the turn that a refund gives back, by the [`reset_after`](crate::LimitStatus::reset_after) of its charge.
    ///
    /// A leaky bucket gives the units of a turn back only if it has given no later turn that still counts. Otherwise the
    /// next request would get the last turn, which another request has. The place in the queue then stays empty, and
    /// its units come back with time. A refund that names no turn counts as the refund of the last one.
    ///
    /// Other algorithms ignore the turn.
    #[must_use]
    pub const fn turn(mut self, reset_after: Duration) -> Self {
        self.turn = Some(reset_after);
        self
    }

    /// Takes the cost of refused requests too, never into debt: clients who keep asking keep waiting.
    #[must_use]
    pub const fn count_refusals(self) -> Self {
        self.with(ChargeOptions::COUNTS_REFUSALS)
    }

    /// Makes it a shadow: it is evaluated and reported, and never enforced.
    ///
    /// A shadow refuses no request, makes none wait and never binds. It is taken when the request is admitted and it
    /// fits itself. Its status is reported also when other limits refuse.
    #[must_use]
    pub const fn shadow(self) -> Self {
        self.with(ChargeOptions::SHADOW)
    }

    /// Allows a partial grant: a check takes as much of the cost as is left, at least one unit.
    ///
    /// It is refused if not even one unit is left. All such charges of a request take the same number of units: the
    /// fewest that an enforced one has left or asks for. [`LimitStatus::taken`](crate::LimitStatus::taken) has that
    /// number.
    #[must_use]
    pub const fn at_most(self) -> Self {
        self.with(ChargeOptions::AT_MOST)
    }

    /// Prepares for a refund long after the charge: the bucket then records the least that is used.
    ///
    /// A prepared bucket gives back all that it can without leaving more than if the charge had never been made, of up to
    /// eight charges at a time, and of more somewhat less. An unprepared one, whose request does not wait, gives back what was taken less what time has refilled since. That is
    /// never too much. It is too little if other requests have used what was refilled. Windows and logs need no
    /// preparation. Give the charge that is refunded the same option.
    ///
    /// A reset between a charge and its refund has given the units back already. An unprepared bucket and a window do not
    /// know of it, nor of an eviction: they then give back as many units of later charges.
    ///
    /// # A quota that changes
    ///
    /// A refund names the quota of its charge. If the limit is counted by another one, a bucket gives nothing back, nor
    /// does a window of another length. A prepared bucket gives back only what was charged since it was last converted
    /// or full. A rate or a capacity that was cut in between therefore adds no units, even if two versions of a service
    /// take turns. An unprepared charge is safe unless its quota changes and changes back before the refund. Then it may
    /// give back again what a higher rate has refilled in between.
    #[must_use]
    pub const fn refundable(self) -> Self {
        self.with(ChargeOptions::REFUNDABLE)
    }

    /// Adds a penalty: each refusal by this limit gives the client a strike.
    ///
    /// Refusals by other limits of the request give none. With too many strikes the limit refuses, even if it has units
    /// left. Strikes are kept beside the limit's counter. A cost of 0 gives none and is not blocked. Charges and refunds
    /// do not change strikes; a reset forgets them.
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

    /// Decides every request by the store itself, also where a store takes units in advance.
    ///
    /// For limits of which every unit counts. It makes no difference to stores that take nothing in advance.
    #[must_use]
    pub const fn exact(self) -> Self {
        self.with(ChargeOptions::EXACT)
    }

    /// Counts by another quota of the same algorithm, such as one that allows for units taken in advance.
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
    #[inline]
    pub const fn name(&self) -> Name {
        self.name
    }

    /// Returns the limit's quota.
    #[must_use]
    #[inline]
    pub const fn quota(&self) -> &'a Quota {
        self.quota
    }

    /// Returns the key that is counted.
    #[must_use]
    #[inline]
    pub const fn key(&self) -> &'a Key<'a> {
        self.key
    }

    /// Returns the cost, in units.
    #[must_use]
    #[inline]
    pub const fn units(&self) -> u64 {
        self.cost
    }

    /// Returns the longest accepted wait in microseconds, at most what the quota can promise.
    #[must_use]
    pub fn max_wait_micros(&self) -> u64 {
        let asked = match (self.max_wait, self.quota.algorithm()) {
            (Some(longest), _) => micros(longest),
            (None, Algorithm::LeakyBucket) => u64::MAX,
            (None, _) => 0,
        };
        asked.min(longest_wait(self.quota))
    }

    /// Returns the end of the turn that a refund gives back, in microseconds after its charge.
    ///
    /// Returns `u64::MAX` if the refund names no turn.
    #[must_use]
    pub fn turn_micros(&self) -> u64 {
        self.turn.map_or(u64::MAX, micros)
    }

    /// Returns whether a bucket prepares for a refund: on request, or because requests wait.
    #[must_use]
    pub fn is_refundable(&self) -> bool {
        self.options.has(ChargeOptions::REFUNDABLE) || self.max_wait_micros() > 0
    }

    /// Returns whether a refused request is charged too.
    #[must_use]
    pub const fn counts_refusals(&self) -> bool {
        self.options.has(ChargeOptions::COUNTS_REFUSALS)
    }

    /// Returns whether it is evaluated and not enforced.
    #[must_use]
    pub const fn is_shadow(&self) -> bool {
        self.options.has(ChargeOptions::SHADOW)
    }

    /// Returns whether the store itself has to decide.
    #[must_use]
    pub const fn is_exact(&self) -> bool {
        self.options.has(ChargeOptions::EXACT)
    }

    /// Returns the penalty for refusals, if there is one.
    #[must_use]
    pub const fn penalised_by(&self) -> Option<&'a Penalty> {
        self.penalty
    }

    /// Returns whether this is a plain charge: it takes a cost above 0 from a token bucket or GCRA, or is refused at
    /// once.
    ///
    /// Max waits, refundable charges, counted refusals, shadows, [`at_most`](Self::at_most) and penalties are not plain,
    /// nor are queues, windows and logs. Stores have a shorter way for plain charges.
    #[must_use]
    #[inline]
    pub const fn is_plain(&self) -> bool {
        self.cost > 0 && self.options.are_plain_without(ChargeOptions::PLAIN)
    }

    /// Returns whether this is a [plain](Self::is_plain) charge but for being refundable.
    #[must_use]
    pub const fn is_plain_or_refundable(&self) -> bool {
        self.cost > 0 && self.options.are_plain_without(ChargeOptions::REFUNDABLE)
    }

    /// Returns whether it is [plain](Self::is_plain) but for a quota in windows.
    ///
    /// The windows begin at instants that do not depend on requests. It may be refundable, as windows always are.
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
            && self.options.are_plain_without(others)
    }

    /// Returns the counter of the limit.
    #[inline]
    pub(crate) const fn counter(&self) -> Counter<'a> {
        Counter {
            id: self.name.id(),
            quota: self.quota,
        }
    }

    /// Returns the counter of strikes, and their penalty.
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

    /// Returns whether a check takes as many units as are left, up to the cost.
    #[must_use]
    pub const fn is_at_most(&self) -> bool {
        self.options.has(ChargeOptions::AT_MOST)
    }
}

/// The operation of a store on the charges of a request.
///
/// `Check`, `Refuse` and `Peek` ask the limits for a verdict. The others always succeed. The list is exhaustive on
/// purpose: a store has to do every operation, and a new one must not be missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Takes every charge if all of them fit, and none otherwise.
    Check,
    /// Takes every charge, whether it fits or not. Units that do not fit are a debt, which time pays back.
    Charge,
    /// Gives back what an earlier check took.
    ///
    /// A window gets back only its own units. A bucket gets back less what time has refilled since. No state gets back
    /// more than its capacity. [`Decision::refund`](crate::Decision::refund) makes a refund that can be used once.
    Refund {
        /// The instant the charges were taken at, on the store's clock.
        taken_at: Timestamp,
    },
    /// Forgets what the charges' limits have counted for their keys, strikes included.
    Reset,
    /// Reports what a request of these charges would get now, penalties included. Changes nothing.
    ///
    /// Each charge counts as at least one unit.
    Peek,
    /// Judges the charges of a request that limits decided elsewhere have refused.
    ///
    /// Takes the cost of counted refusals, and adds strikes. The outcome is that of these charges alone.
    Refuse,
}

impl Operation {
    /// Returns whether the operation asks the limits for a verdict.
    pub(crate) const fn judges(self) -> bool {
        matches!(self, Self::Check | Self::Refuse | Self::Peek)
    }
}
