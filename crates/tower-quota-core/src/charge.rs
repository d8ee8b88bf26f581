//! Charges: what a request would take, as data that any store can decide on.

use core::time::Duration;

use crate::algorithm::longest_wait;
use crate::key::Key;
use crate::name::Name;
use crate::penalty::Penalty;
use crate::quota::{Algorithm, Quota};
use crate::time::{Timestamp, micros};

/// One limit's part in a request: whose counter, which quota, how many units. Plain data, so that it can be decided
/// wherever the state lives.
///
/// No two charges of one request may name the same limit of the same key.
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
    patience: Option<Duration>,
    counts_refusals: bool,
    is_shadow: bool,
    is_at_most: bool,
    /// Whether it is anything but a cost that a bucket takes or refuses at once.
    is_special: bool,
}

/// What a subject counts under one number.
#[derive(Clone, Copy)]
pub(crate) struct Counter<'a> {
    pub(crate) id: u32,
    pub(crate) quota: &'a Quota,
}

impl<'a> Charge<'a> {
    /// A charge of one unit. The name tells the limits of one key apart; a quota may change under it.
    #[must_use]
    #[inline]
    pub fn new(name: impl Into<Name>, quota: &'a Quota, key: &'a Key<'a>) -> Self {
        Self {
            name: name.into(),
            quota,
            key,
            cost: 1,
            patience: None,
            counts_refusals: false,
            is_shadow: false,
            is_at_most: false,
            penalty: None,
            is_special: !matches!(quota.algorithm(), Algorithm::TokenBucket | Algorithm::Gcra),
        }
    }

    /// What the request costs, in units of the quota. 0 is a peek: it reports and charges nothing.
    #[must_use]
    #[inline]
    pub const fn cost(mut self, units: u64) -> Self {
        self.cost = units;
        self
    }

    /// The longest the request would wait instead of being refused. A leaky bucket makes requests wait as long as its
    /// queue is unless this says less; the other buckets refuse at once unless this says more; windows always refuse.
    #[must_use]
    pub const fn patience(mut self, longest: Duration) -> Self {
        self.patience = Some(longest);
        self.is_special = true;
        self
    }

    /// Takes the cost even when the request is refused (down to empty, never into debt): a client who keeps asking
    /// keeps waiting.
    #[must_use]
    pub const fn count_refusals(mut self) -> Self {
        self.counts_refusals = true;
        self.is_special = true;
        self
    }

    /// Judged and told, but never enforced: it refuses nobody, makes nobody wait, and never binds. It is taken when the
    /// request is admitted and it fits itself, as if it were enforced beside the others, and its standing is told also
    /// where others refuse.
    #[must_use]
    pub const fn shadow(mut self) -> Self {
        self.is_shadow = true;
        self.is_special = true;
        self
    }

    /// Makes the cost the most that a check takes: as much of it as is left, but no less than one unit, and refused as
    /// one unit is when there is none. All such charges of a request take the same number of units, the least that any of
    /// the enforced ones has left or asks for. [`LimitStatus::taken`](crate::LimitStatus::taken) says how many.
    #[must_use]
    pub const fn at_most(mut self) -> Self {
        self.is_at_most = true;
        self.is_special = true;
        self
    }

    /// Holds refusals against the client: each time the request is refused, by this limit or another, he gets a strike,
    /// and while he has too many, this limit refuses, whatever it has left. The strikes are kept beside what the limit
    /// counts. A peek gives none and is not blocked. Charges and refunds leave them alone; a reset forgets them.
    #[must_use]
    pub const fn penalty(mut self, penalty: &'a Penalty) -> Self {
        self.penalty = Some(penalty);
        self.is_special = true;
        self
    }

    /// The limit's name.
    #[must_use]
    #[inline]
    pub const fn name(&self) -> Name {
        self.name
    }

    /// The limit's quota.
    #[must_use]
    #[inline]
    pub const fn quota(&self) -> &'a Quota {
        self.quota
    }

    /// Who is counted.
    #[must_use]
    #[inline]
    pub const fn key(&self) -> &'a Key<'a> {
        self.key
    }

    /// What the request costs, in units.
    #[must_use]
    #[inline]
    pub const fn units(&self) -> u64 {
        self.cost
    }

    /// The longest accepted wait in microseconds, cut to what the quota can promise.
    #[must_use]
    pub fn patience_micros(&self) -> u64 {
        let asked = match (self.patience, self.quota.algorithm()) {
            (Some(longest), _) => micros(longest),
            (None, Algorithm::LeakyBucket) => u64::MAX,
            (None, _) => 0,
        };
        asked.min(longest_wait(self.quota))
    }

    /// Whether a refused request is charged too.
    #[must_use]
    pub const fn counts_refusals(&self) -> bool {
        self.counts_refusals
    }

    /// Whether it is told and not enforced.
    #[must_use]
    pub const fn is_shadow(&self) -> bool {
        self.is_shadow
    }

    /// What refusals cost the client, if anything.
    #[must_use]
    pub const fn penalised_by(&self) -> Option<&'a Penalty> {
        self.penalty
    }

    /// Returns whether this is a plain charge: it takes a cost above 0 from a token bucket or GCRA, or is refused at once.
    ///
    /// Patience, counted refusals, shadows, [`at_most`](Self::at_most) and penalties are not plain, nor are queues, windows
    /// and logs. Stores have a shorter way for plain charges.
    #[must_use]
    #[inline]
    pub const fn is_plain(&self) -> bool {
        self.cost > 0 && !self.is_special
    }

    /// What the limit counts.
    #[inline]
    pub(crate) const fn counter(&self) -> Counter<'a> {
        Counter { id: self.name.id(), quota: self.quota }
    }

    /// The client's strikes, and the penalty they are for.
    pub(crate) fn strikes(&self) -> Option<(Counter<'a>, &'a Penalty)> {
        let of = |penalty: &'a Penalty| (Counter { id: self.name.strikes_id(), quota: penalty.strikes() }, penalty);
        self.penalty.map(of)
    }

    /// Whether a check takes what is left, up to the cost.
    #[must_use]
    pub const fn is_at_most(&self) -> bool {
        self.is_at_most
    }
}

/// What a store does with the charges of a request. All but `Check` and `Refuse` always succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Takes every charge if all of them fit, and none otherwise.
    Check,
    /// Takes every charge, whether it fits or not: what does not fit is a debt that time pays back.
    Charge,
    /// Gives back what an earlier check took at this instant: to the window or bucket it was taken from, and never
    /// beyond its capacity. [`Decision::refund`](crate::Decision::refund) makes one that can be used once.
    Refund {
        /// The instant the charges were taken at, on the store's clock.
        taken_at: Timestamp,
    },
    /// Forgets what the charges' limits have counted for their keys, strikes included.
    Reset,
    /// Reports what a request of these charges would get now, of at least one unit each, penalties included. Changes
    /// nothing.
    Peek,
    /// Judges the charges of a request that is refused already, by limits that are decided elsewhere: takes nothing but
    /// what counts refusals take. The outcome is what these charges alone would have got.
    Refuse,
}

impl Operation {
    /// Returns whether it asks the limits for a verdict.
    pub(crate) const fn judges(self) -> bool {
        matches!(self, Self::Check | Self::Refuse | Self::Peek)
    }
}
