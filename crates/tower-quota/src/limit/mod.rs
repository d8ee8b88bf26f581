//! Limits: a named quota, the key it counts, what a request costs, and when it applies.

mod charging;

use core::fmt;
use core::time::Duration;
use std::sync::Arc;

use tower_quota_core::{Name, Penalty, Quota};

use crate::degraded::OnStoreFailure;
use crate::head::RequestHead;
use crate::key::{KeyExtractor, everyone};
use crate::settle::{Rule, Settle, SettleRule, by_handler};
use crate::when::{Condition, not};

pub(crate) use self::charging::WithoutKey;

/// A named quota: the key it is counted by, what a request costs, when it applies.
///
/// By default a limit counts all requests together, applies to each, and each costs 1.
///
/// ```
/// use http::Method;
/// use tower_quota::{Limit, MissingKey, Quota, key};
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
    /// The choice for requests without a key, if one was made.
    missing: Option<MissingKey>,
    on_store_failure: Option<OnStoreFailure>,
    /// One instance's share of the quota.
    pub(crate) share: Quota,
    cost: Cost,
    /// All of them hold of the requests that the limit counts.
    conditions: Vec<Arc<dyn Condition>>,
    run_time_quota: Option<Arc<QuotaOf>>,
    /// The longest wait, if one was given; otherwise it depends on the quota.
    longest_wait: Option<Duration>,
    counts_refusals: bool,
    /// How it settles, if it does.
    pub(crate) settle_rule: Option<SettleRule>,
    /// The most that is added to a wait.
    pub(crate) jitter: Duration,
    is_shadow: bool,
    is_at_most: bool,
    penalty: Option<Penalty>,
    /// Says whether its charges have any option set.
    has_options: bool,
    /// What it counts, if not requests.
    pub(crate) unit: Option<Name>,
}

/// What a limit does with a request that has no key for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MissingKey {
    /// All such requests share one counter: leaving the key out never buys more, and one client can use it up for all
    /// others. Prefer a key that is always there, as by [`or`](crate::key::KeyExtractorExt::or).
    ShareOneCounter,
    /// The limit does not apply. Right only where another limit catches such requests.
    Skip,
    /// The request is refused as a bad one: 400, or `INVALID_ARGUMENT` for gRPC.
    Refuse,
    /// The request is refused for want of credentials: 401 with a challenge, or `UNAUTHENTICATED` for gRPC.
    Unauthenticated,
}

type CostOf = dyn Fn(&RequestHead<'_>) -> u64 + Send + Sync;
type QuotaOf = dyn Fn(&RequestHead<'_>) -> Option<Quota> + Send + Sync;

#[derive(Clone)]
enum Cost {
    Constant(u64),
    Computed(Arc<CostOf>),
}

impl Limit {
    /// The longest wait at a leaky bucket unless [`max_wait`](Self::max_wait) sets another: 30 seconds, the timeout of
    /// common clients and load balancers.
    pub const DEFAULT_MAX_WAIT: Duration = Duration::from_secs(30);

    /// Makes a limit of this name and quota, on all requests together.
    ///
    /// The name shows in headers and refusals and tells counters apart: 1 to 64 printable ASCII characters, once per policy.
    /// The quota may change under it.
    ///
    /// Limits of one name that count the same key in one store share one counter, wherever they are: in other layers and
    /// policies too, and in other services whose Redis prefix is the same. Name limits apart, as `"login-minute"` and
    /// `"search-minute"`, unless sharing is wanted. Limits that share should have one quota: where quotas differ, each
    /// request converts what was counted by the other quota, as if the limit had just been changed.
    pub fn new(name: impl Into<Name>, quota: Quota) -> Self {
        let quota = quota.for_waits_of(Self::DEFAULT_MAX_WAIT);
        Self {
            name: name.into(),
            quota,
            extractor: Arc::new(everyone()),
            missing: None,
            on_store_failure: None,
            share: quota,
            cost: Cost::Constant(1),
            conditions: Vec::new(),
            run_time_quota: None,
            longest_wait: None,
            counts_refusals: false,
            settle_rule: None,
            jitter: Duration::ZERO,
            is_shadow: false,
            is_at_most: false,
            penalty: None,
            has_options: false,
            unit: None,
        }
    }

    /// Counts by this key, see [`key`](crate::key).
    pub fn by(mut self, extractor: impl KeyExtractor) -> Self {
        self.extractor = Arc::new(extractor);
        self
    }

    /// Names what the limit counts, for clients: `content-bytes`, or a word of your own. The default is requests.
    ///
    /// It is the parameter `qu` of `RateLimit-Policy` in [`HeaderStyle::Draft11`](crate::HeaderStyle::Draft11), and
    /// takes 1 to 64 printable ASCII characters, as names of limits do.
    ///
    /// ```
    /// use tower_quota::{Limit, Quota, cost};
    ///
    /// let upload = Limit::new("upload", Quota::per_hour(10_000_000)).cost_with(cost::body_size(1, 1)).unit("content-bytes");
    /// # let _ = upload;
    /// ```
    pub fn unit(mut self, unit: impl Into<Name>) -> Self {
        self.unit = Some(unit.into()).filter(|unit| unit.as_str() != "requests");
        self
    }

    /// Sets what each request costs, in units of the quota. 0 reports and charges nothing.
    pub fn cost(mut self, units: u64) -> Self {
        self.cost = Cost::Constant(units);
        self
    }

    /// Sets what a request costs by a closure on its head, or a function of [`cost`](crate::cost).
    ///
    /// A cost above the quota's capacity can never pass: it is refused without a time to retry.
    pub fn cost_with(mut self, cost: impl Fn(&RequestHead<'_>) -> u64 + Send + Sync + 'static) -> Self {
        self.cost = Cost::Computed(Arc::new(cost));
        self
    }

    /// Applies only to requests of which this holds, see [`when`](crate::when). Of several conditions all must hold.
    pub fn when(mut self, condition: impl Condition) -> Self {
        self.conditions.push(Arc::new(condition));
        self
    }

    /// Applies only to requests of which this does not hold: [`when`](Self::when) it does [not](crate::when::not).
    pub fn unless(self, condition: impl Condition) -> Self {
        self.when(not(condition))
    }

    /// Sets the quota of each request by a closure: that of its tier or tenant. `None` means the limit's own quota.
    ///
    /// Clients may have different quotas; one client should have one. So choose by what the limit is counted by, or by
    /// something that follows from it: requests that count one key by different quotas keep converting what was counted.
    ///
    /// What the closure reads may have been [looked up](crate::Policy::look_up). It runs once per request. A cost above the capacity of such a quota never passes; a quota that cannot be divided
    /// among the [instances](crate::Policy::instances) is not counted by one alone: such a request is refused with 503.
    ///
    /// ```
    /// use tower_quota::{Limit, Quota, key};
    ///
    /// #[derive(Clone)]
    /// struct Tenant {
    ///     id: u64,
    ///     pro: bool,
    /// }
    ///
    /// let limit = Limit::new("tenant", Quota::per_minute(100))
    ///     .by(key::from_fn("tenant", |head| Some(head.extensions().get::<Tenant>()?.id.to_be_bytes())))
    ///     .quota_with(|head| head.extensions().get::<Tenant>()?.pro.then_some(Quota::per_minute(5_000)));
    /// # let _ = limit;
    /// ```
    pub fn quota_with(mut self, quota: impl Fn(&RequestHead<'_>) -> Option<Quota> + Send + Sync + 'static) -> Self {
        self.run_time_quota = Some(Arc::new(quota));
        self
    }

    /// Chooses what happens to requests without a key.
    ///
    /// The default is [`MissingKey::ShareOneCounter`], but for keys that the server has to provide: without the address
    /// of the peer the answer is 500, because the client is not to blame and all clients would be one.
    pub const fn when_missing(mut self, missing: MissingKey) -> Self {
        self.missing = Some(missing);
        self
    }

    /// Sets how long a request waits for its turn, at most, instead of being refused.
    ///
    /// The default is [`DEFAULT_MAX_WAIT`](Self::DEFAULT_MAX_WAIT) for leaky buckets, and no wait for other buckets. Windows
    /// never make requests wait: a policy refuses such a limit with [`ConfigError::WaitOnWindow`](crate::ConfigError).
    ///
    /// The queue of a leaky bucket is as long as this wait, unless [`Quota::queue`] sets its length.
    ///
    /// While it waits, a request holds its connection and its memory: keep this short where clients are many, and see
    /// [`max_waiting`](crate::RateLimitLayer::max_waiting). One that is dropped gives its turn back, and everything else
    /// it was charged: the next arrival is as early as if it had never been, and queued requests keep their turns.
    pub const fn max_wait(mut self, longest: Duration) -> Self {
        self.longest_wait = Some(longest);
        self.quota = self.quota.for_waits_of(longest);
        self.share = self.quota;
        self.has_options = true;
        self
    }

    /// Adds a random time, at most this long, to each wait at this limit: clients that came together do not go on together.
    ///
    /// It comes on top of [`max_wait`](Self::max_wait).
    pub const fn wait_jitter(mut self, longest: Duration) -> Self {
        self.jitter = longest;
        self
    }

    /// Settles what a request costs when it is over, by this rule or by the handler: see [`settle`](crate::settle).
    ///
    /// The [cost](Self::cost) is then an estimate that is charged up front. The handler settles it by a
    /// [`Reservation`](crate::settle::Reservation).
    pub fn settle(mut self, rule: impl Rule) -> Self {
        let abandoned = self.settle_rule.map(|settle| settle.abandoned).unwrap_or_default();
        self.settle_rule = Some(SettleRule { rule: Arc::new(rule), abandoned });
        self.has_options = true;
        self
    }

    /// Chooses what happens to the estimate when there is no response and the handler has said nothing.
    ///
    /// That is when the handler panicked, was cancelled with its client, or its service failed. By default the estimate
    /// stays, and a client gains nothing by going away. The limit settles then, [by its handler](crate::settle::by_handler)
    /// unless another rule is given.
    pub fn on_abandoned(mut self, choice: Settle) -> Self {
        let rule = self.settle_rule.map_or_else(|| Arc::new(by_handler()) as Arc<dyn Rule>, |settle| settle.rule);
        self.settle_rule = Some(SettleRule { rule, abandoned: choice });
        self.has_options = true;
        self
    }

    /// Charges refused requests too, down to empty and never into debt: clients who keep asking keep waiting.
    pub const fn count_refusals(mut self) -> Self {
        self.counts_refusals = true;
        self.has_options = true;
        self
    }

    /// Makes it a shadow, a dry run: it is evaluated and reported, and never enforced.
    ///
    /// It refuses no request, for want of a key or of the store either, makes none wait, and is in no header. A request takes
    /// of it what it would if it were enforced beside the others;
    /// [`Decision::would_refuse`](crate::Decision::would_refuse) has the limits that would have refused.
    #[doc(alias = "dry run")]
    pub const fn shadow(mut self) -> Self {
        self.is_shadow = true;
        self.has_options = true;
        self
    }

    /// Allows partial grants: a request takes as much of its cost as is left, and is refused only when no unit is.
    ///
    /// For batches, of which a handler does as many as [`LimitStatus::taken`](crate::LimitStatus::taken) says. All such limits
    /// of a request take the same number of units.
    pub const fn at_most(mut self) -> Self {
        self.is_at_most = true;
        self.has_options = true;
        self
    }

    /// Blocks clients who keep asking while this limit refuses them, for longer each time: see [`Penalty`].
    ///
    /// Refusals by other limits do not count. While a client is blocked, refusals name this limit, and `Retry-After` is
    /// the end of the block if the client does not ask before. Off unless called. With
    /// [`MissingKey::ShareOneCounter`] a policy refuses it unless that was chosen, since one client could block all others without a key.
    pub const fn penalty(mut self, penalty: Penalty) -> Self {
        self.penalty = Some(penalty);
        self.has_options = true;
        self
    }

    /// Chooses what this limit does while the store is unavailable. The default is the choice of its
    /// [policy](crate::Policy::on_store_failure).
    #[doc(alias = "fail open")]
    #[doc(alias = "fail closed")]
    pub const fn on_store_failure(mut self, choice: OnStoreFailure) -> Self {
        self.on_store_failure = Some(choice);
        self
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
