//! Limits: a named quota, and whom and what it counts.

use core::fmt;
use core::time::Duration;
use std::sync::Arc;

use tollgate_core::{Algorithm, Charge, ConfigError, Key, Name, Penalty, Quota};

use crate::degraded::OnStoreFailure;
use crate::head::RequestHead;
use crate::key::{KeyExtractor, everyone};

/// A named quota: the key it is counted by, what a request costs, when it applies.
///
/// Until told otherwise a limit counts everyone together, applies to every request, and each costs 1.
///
/// ```
/// use http::Method;
/// use tollgate::{Limit, MissingKey, Quota, key};
///
/// let uploads = Limit::new("uploads", Quota::per_hour(1_000))
///     .by(key::header("x-api-key"))
///     .when_missing(MissingKey::Refuse)
///     .when(|head| head.method() == Method::POST)
///     .cost_with(|head| if head.uri().path().starts_with("/bulk") { 50 } else { 1 });
/// # let _ = uploads;
/// ```
#[derive(Clone)]
#[must_use]
pub struct Limit {
    pub(crate) name: Name,
    pub(crate) quota: Quota,
    pub(crate) extractor: Arc<dyn KeyExtractor>,
    missing: MissingKey,
    on_store_failure: Option<OnStoreFailure>,
    /// One instance's part of the quota.
    share: Quota,
    cost: Cost,
    condition: Option<Arc<Condition>>,
    patience: Option<Duration>,
    counts_refusals: bool,
    is_shadow: bool,
    is_at_most: bool,
    penalty: Option<Penalty>,
}

/// What a limit does with a request that has no key for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissingKey {
    /// The limit does not apply. Right only where another limit catches such requests.
    Skip,
    /// All such requests share one counter: leaving the key out never buys more.
    #[default]
    Share,
    /// The request is refused: 400, or `INVALID_ARGUMENT` for gRPC.
    Refuse,
}

type Condition = dyn Fn(&RequestHead<'_>) -> bool + Send + Sync;
type CostOf = dyn Fn(&RequestHead<'_>) -> u64 + Send + Sync;

#[derive(Clone)]
enum Cost {
    Constant(u64),
    Computed(Arc<CostOf>),
}

impl Limit {
    /// The longest a leaky bucket keeps a request waiting unless [`max_wait`](Self::max_wait) says otherwise: 30
    /// seconds, the patience of common clients and load balancers.
    pub const DEFAULT_MAX_WAIT: Duration = Duration::from_secs(30);

    /// A limit on everyone together, of this name and quota. The name shows in headers and refusals and tells counters
    /// apart: 1 to 64 printable ASCII characters, once per policy. The quota may change under it.
    ///
    /// Limits of one name that count the same key in one store share one counter, wherever they are: in other layers and
    /// policies too, and in other services whose Redis prefix is the same. Name limits apart, as `"login-minute"` and
    /// `"search-minute"`, unless sharing is wanted. Those that share should have one quota: where quotas differ, each
    /// request converts what was counted by the other quota, as if the limit had just been changed.
    pub fn new(name: impl Into<Name>, quota: Quota) -> Self {
        Self {
            name: name.into(),
            quota,
            extractor: Arc::new(everyone()),
            missing: MissingKey::default(),
            on_store_failure: None,
            share: quota,
            cost: Cost::Constant(1),
            condition: None,
            patience: (quota.algorithm() == Algorithm::LeakyBucket).then_some(Self::DEFAULT_MAX_WAIT),
            counts_refusals: false,
            is_shadow: false,
            is_at_most: false,
            penalty: None,
        }
    }

    /// Counts by this key, see [`key`](crate::key).
    pub fn by(mut self, extractor: impl KeyExtractor) -> Self {
        self.extractor = Arc::new(extractor);
        self
    }

    /// What each request costs, in units of the quota. 0 is a peek: it reports and charges nothing.
    pub fn cost(mut self, units: u64) -> Self {
        self.cost = Cost::Constant(units);
        self
    }

    /// What a request costs, worked out from its head. More than the quota's capacity can never pass: it is refused
    /// without a time to retry.
    pub fn cost_with(mut self, cost: impl Fn(&RequestHead<'_>) -> u64 + Send + Sync + 'static) -> Self {
        self.cost = Cost::Computed(Arc::new(cost));
        self
    }

    /// Applies only to requests of which this holds; others are not counted. It replaces an earlier condition.
    pub fn when(mut self, condition: impl Fn(&RequestHead<'_>) -> bool + Send + Sync + 'static) -> Self {
        self.condition = Some(Arc::new(condition));
        self
    }

    /// What happens to requests without a key. The default is [`MissingKey::Share`].
    pub const fn when_missing(mut self, missing: MissingKey) -> Self {
        self.missing = missing;
        self
    }

    /// The longest a request waits for its turn instead of being refused. A leaky bucket makes requests wait up to
    /// [`DEFAULT_MAX_WAIT`](Self::DEFAULT_MAX_WAIT) unless told otherwise; other buckets do not wait, unless told to;
    /// windows never do.
    ///
    /// While it waits, a request holds its connection and its memory: keep this short where clients are many.
    pub const fn max_wait(mut self, longest: Duration) -> Self {
        self.patience = Some(longest);
        self
    }

    /// Charges refused requests too, down to an empty bucket and never into debt: a client who keeps asking keeps
    /// waiting.
    pub const fn count_refusals(mut self) -> Self {
        self.counts_refusals = true;
        self
    }

    /// Counts and tells, and never enforces: to see what a limit would do before it does it. It refuses nobody, not for
    /// want of a key or of the store either, makes nobody wait, and is in no header. A request takes of it what it would
    /// if it were enforced beside the others; [`Decision::would_refuse`](crate::Decision::would_refuse) has those that
    /// would have refused.
    pub const fn shadow(mut self) -> Self {
        self.is_shadow = true;
        self
    }

    /// Makes the cost the most that a request takes: as much of it as is left, and refused only when not one unit is.
    /// For batches, of which a handler does as many as [`Standing::taken`](crate::Standing::taken) says. All such limits
    /// of a request take the same number of units.
    pub const fn at_most(mut self) -> Self {
        self.is_at_most = true;
        self
    }

    /// Blocks clients who keep asking while they are refused: see [`Penalty`]. A request that this policy refuses for any
    /// of its limits is held against the client of this one. While he is blocked, refusals name this limit, and its
    /// `Retry-After` is when the block ends, if he does not ask before. Off unless asked for.
    pub const fn penalty(mut self, penalty: Penalty) -> Self {
        self.penalty = Some(penalty);
        self
    }

    /// What this limit does when the store cannot be asked; left out, it does what its policy
    /// [says](crate::Policy::on_store_failure).
    pub const fn on_store_failure(mut self, choice: OnStoreFailure) -> Self {
        self.on_store_failure = Some(choice);
        self
    }

    /// Whether the limit counts this request.
    pub(crate) fn applies(&self, head: &RequestHead<'_>) -> bool {
        self.condition.as_ref().is_none_or(|holds| holds(head))
    }

    /// Whether it is told and not enforced.
    pub(crate) const fn is_shadow(&self) -> bool {
        self.is_shadow
    }

    /// The numbers that what it counts is stored under.
    pub(crate) fn stored_ids(&self) -> impl Iterator<Item = u32> {
        let strikes = self.penalty.is_some().then_some(self.name.strikes_id());
        [self.name.id()].into_iter().chain(strikes)
    }

    /// What it does without its key.
    pub(crate) const fn without_key(&self) -> MissingKey {
        match self.missing {
            MissingKey::Refuse if self.is_shadow => MissingKey::Skip,
            missing => missing,
        }
    }

    /// What it does without the store, where its policy says this.
    pub(crate) fn without_store(&self, policy: OnStoreFailure) -> OnStoreFailure {
        match self.on_store_failure.unwrap_or(policy) {
            OnStoreFailure::Refuse if self.is_shadow => OnStoreFailure::Allow,
            choice => choice,
        }
    }

    /// This limit's part in a request that the store decides.
    pub(crate) fn charge<'a>(&'a self, key: &'a Key<'a>, head: &RequestHead<'_>) -> Charge<'a> {
        self.charge_by(&self.quota, key, head)
    }

    /// This limit's part in a request that this instance decides by itself.
    pub(crate) fn charge_of_share<'a>(&'a self, key: &'a Key<'a>, head: &RequestHead<'_>) -> Charge<'a> {
        self.charge_by(&self.share, key, head)
    }

    fn charge_by<'a>(&'a self, quota: &'a Quota, key: &'a Key<'a>, head: &RequestHead<'_>) -> Charge<'a> {
        let cost = match &self.cost {
            Cost::Constant(units) => *units,
            Cost::Computed(of) => of(head),
        };
        let mut charge = Charge::new(self.name, quota, key).cost(cost);
        if let Some(longest) = self.patience {
            charge = charge.patience(longest);
        }
        if self.is_shadow {
            charge = charge.shadow();
        }
        if self.is_at_most {
            charge = charge.at_most();
        }
        if let Some(penalty) = &self.penalty {
            charge = charge.penalty(penalty);
        }
        if self.counts_refusals { charge.count_refusals() } else { charge }
    }

    /// Takes one instance's part of the quota.
    pub(crate) fn divide(&mut self, instances: u32) -> Result<(), ConfigError> {
        self.share = self.quota.try_divided(instances)?;
        Ok(())
    }

    /// What is wrong with this limit by itself.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let name = self.name.as_str().as_bytes();
        if !(1..=64).contains(&name.len()) || !name.iter().all(|byte| matches!(byte, b' '..=b'~')) {
            return Err(ConfigError::LimitName(self.name));
        }
        match self.cost {
            Cost::Constant(cost) if cost > self.quota.capacity() && !self.is_at_most => {
                Err(ConfigError::CostAboveCapacity { limit: self.name, cost, capacity: self.quota.capacity() })
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limit")
            .field("name", &self.name)
            .field("quota", &self.quota)
            .field("by", &self.extractor.scope())
            .field("when_missing", &self.missing)
            .finish_non_exhaustive()
    }
}
