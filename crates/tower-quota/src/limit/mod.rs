//! Limits: named quotas, each with the key it counts by, the cost of a request, and its conditions.

mod by_id;
mod charging;
mod over;

use core::fmt;
use core::time::Duration;
use std::sync::Arc;

use tower_quota_core::{Algorithm, Key, Name, Penalty, Quota};

use crate::degraded::OnStoreFailure;
use crate::head::RequestHead;
use crate::key::{KeyExtractor, everyone};
use crate::settle::{Rule, Settle, SettleRule, by_handler};
use crate::when::{Condition, not};

pub(crate) use self::by_id::ById;
pub(crate) use self::charging::WithoutKey;
pub use self::over::Over;

/// A named quota, with the key it counts by, the cost of a request, and its conditions.
///
/// By default a limit counts all requests together, applies to all of them, and each costs 1.
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
    /// The choice for requests without a key, if it is set.
    missing: Option<MissingKey>,
    on_store_failure: Option<OnStoreFailure>,
    /// True if the limit or its policy refuses requests while the store is unavailable.
    fails_closed: bool,
    cost: Cost,
    /// The conditions that a request must match to be counted.
    conditions: Vec<Arc<dyn Condition>>,
    run_time_quota: Option<Arc<QuotaOf>>,
    quota_of_key: Option<Arc<QuotaOfKey>>,
    /// The longest wait, if it is set; otherwise it depends on the quota.
    pub(crate) longest_wait: Option<Duration>,
    counts_refusals: bool,
    is_exact: bool,
    /// The rule by which the limit settles, if it does.
    pub(crate) settle_rule: Option<SettleRule>,
    /// The maximum random time that is added to a wait.
    pub(crate) jitter: Duration,
    is_shadow: bool,
    pub(crate) over: Over,
    is_hidden: bool,
    is_at_most: bool,
    penalty: Option<Penalty>,
    /// True if its charges have any option set.
    has_options: bool,
    /// The unit that the limit counts, if not requests.
    pub(crate) unit: Option<Name>,
}

/// The choice of a limit for requests without its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MissingKey {
    /// All such requests share one counter, and so do requests with conflicting values.
    ///
    /// One client can use up the counter for all others. Prefer a key that is never missing: see
    /// [`first_of`](crate::key::first_of()).
    ShareOneCounter,
    /// The limit does not apply. Use it only if another limit counts such requests.
    Skip,
    /// The request is refused as a bad request: 400, or `INVALID_ARGUMENT` for gRPC.
    Refuse,
    /// The request is refused for missing credentials: 401 with a challenge, or `UNAUTHENTICATED`.
    Unauthenticated,
}

type CostOf = dyn Fn(&RequestHead<'_>) -> u64 + Send + Sync;
type QuotaOf = dyn Fn(&RequestHead<'_>) -> Option<Quota> + Send + Sync;
type QuotaOfKey = dyn Fn(&Key<'_>) -> Option<Quota> + Send + Sync;

#[derive(Clone)]
enum Cost {
    Constant(u64),
    Computed(Arc<CostOf>),
}

impl Limit {
    /// The default of [`max_wait`](Self::max_wait) for leaky buckets: 30 seconds.
    ///
    /// That is the timeout of common clients and load balancers.
    pub const DEFAULT_MAX_WAIT: Duration = Duration::from_secs(30);

    /// Makes a limit with this name and quota, which counts all requests together.
    ///
    /// Header fields and refusals show the name, and it identifies the counters. It has 1 to 64 printable ASCII
    /// characters and is unique in a policy. You may change the quota under the same name.
    ///
    /// Limits of one name that count the same key in one store share one counter, also across layers, policies, and
    /// services with the same Redis prefix. Give them different names, such as `"login-minute"`, unless they should
    /// share. Limits that share need the same quota, because each request converts the counter otherwise.
    pub fn new(name: impl Into<Name>, quota: Quota) -> Self {
        let quota = quota.for_waits_of(Self::DEFAULT_MAX_WAIT);
        Self {
            name: name.into(),
            quota,
            extractor: Arc::new(everyone()),
            missing: None,
            on_store_failure: None,
            fails_closed: false,
            cost: Cost::Constant(1),
            conditions: Vec::new(),
            run_time_quota: None,
            quota_of_key: None,
            longest_wait: None,
            counts_refusals: false,
            is_exact: false,
            settle_rule: None,
            jitter: Duration::ZERO,
            is_shadow: false,
            over: Over::Refuse,
            is_hidden: false,
            is_at_most: false,
            penalty: None,
            has_options: false,
            unit: None,
        }
    }

    /// Counts by the keys of this extractor, see [`key`](crate::key).
    pub fn by(mut self, extractor: impl KeyExtractor) -> Self {
        self.extractor = Arc::new(extractor);
        self
    }

    /// Sets the name of the counted unit for clients, such as `content-bytes`. The default is requests.
    ///
    /// It is the parameter `qu` of `RateLimit-Policy` in [`HeaderStyle::Draft11`](crate::HeaderStyle::Draft11), with
    /// 1 to 64 printable ASCII characters.
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

    /// Sets the cost of each request, in units of the quota. 0 reports and charges nothing.
    pub fn cost(mut self, units: u64) -> Self {
        self.cost = Cost::Constant(units);
        self
    }

    /// Sets the cost of a request by a closure on its head, or by a function of [`cost`](crate::cost).
    ///
    /// The layer refuses a request that costs more than the quota's capacity, without a time to retry.
    pub fn cost_with(
        mut self,
        cost: impl Fn(&RequestHead<'_>) -> u64 + Send + Sync + 'static,
    ) -> Self {
        self.cost = Cost::Computed(Arc::new(cost));
        self
    }

    /// Applies the limit only to requests that match this condition, see [`when`](crate::when).
    ///
    /// A request must match all conditions of a limit.
    pub fn when(mut self, condition: impl Condition) -> Self {
        self.conditions.push(Arc::new(condition));
        self
    }

    /// Applies the limit only to requests that do [not](crate::when::not) match this condition.
    pub fn unless(self, condition: impl Condition) -> Self {
        self.when(not(condition))
    }

    /// Sets the quota of each request by a closure, such as that of its tier or tenant.
    ///
    /// `None` means the limit's own quota. Choose the quota by the limit's key, or by a value that depends on it. If
    /// requests count one key by different quotas, each converts the counter.
    ///
    /// The closure runs once per request, and may read values that were [looked up](crate::Policy::look_up). If the
    /// store is unavailable and the quota cannot be divided among the [instances](crate::Policy::instances), the
    /// answer is 503.
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
    pub fn quota_with(
        mut self,
        quota: impl Fn(&RequestHead<'_>) -> Option<Quota> + Send + Sync + 'static,
    ) -> Self {
        self.run_time_quota = Some(Arc::new(quota));
        self
    }

    /// Sets a quota that depends on the key, for clients that an operator names without a request.
    ///
    /// Return the quota that [`quota_with`](Self::quota_with) or [`Policy::choose`](crate::Policy::choose) would
    /// choose for a request with this key. `None` means the limit's own quota. Requests do not run the closure.
    ///
    /// ```
    /// use tower_quota::{Limit, Quota, key};
    ///
    /// fn tier(api_key: &[u8]) -> Option<Quota> {
    ///     api_key.starts_with(b"pro_").then_some(Quota::per_minute(5_000))
    /// }
    ///
    /// let limit = Limit::new("minute", Quota::per_minute(100))
    ///     .by(key::header("x-api-key"))
    ///     .quota_with(|head| tier(head.headers().get("x-api-key")?.as_bytes()))
    ///     .quota_of_key(|key| tier(key.as_bytes()));
    /// # let _ = limit;
    /// ```
    pub fn quota_of_key(
        mut self,
        quota: impl Fn(&Key<'_>) -> Option<Quota> + Send + Sync + 'static,
    ) -> Self {
        self.quota_of_key = Some(Arc::new(quota));
        self
    }

    /// Sets the choice for requests without a key.
    ///
    /// By default the layer refuses the request: with 401 if the key is a credential, with 500 if the server did not
    /// attach the address of the peer, and with 400 otherwise. It refuses conflicting values too.
    pub const fn when_missing(mut self, missing: MissingKey) -> Self {
        self.missing = Some(missing);
        self
    }

    /// Sets the longest time that a request waits for its turn. Defaults to 30 seconds for leaky buckets, else to
    /// zero.
    ///
    /// Windows never make requests wait: see [`ConfigError::WaitOnWindow`](crate::ConfigError). The queue of a leaky
    /// bucket is as long as this wait, unless [`Quota::queue`] sets its length.
    ///
    /// A waiting request holds its connection and its memory: see
    /// [`max_waiting`](crate::RateLimitLayer::max_waiting). If a waiting request is dropped, its charges are
    /// refunded. A leaky bucket refunds only its last turn, because queued requests keep their turns.
    pub const fn max_wait(mut self, longest: Duration) -> Self {
        self.longest_wait = Some(longest);
        self.quota = self.quota.for_waits_of(longest);
        self.has_options = true;
        self
    }

    /// Adds a random time of at most this length to each wait, so that requests do not leave together.
    pub const fn wait_jitter(mut self, longest: Duration) -> Self {
        self.jitter = longest;
        self
    }

    /// Corrects the cost of a request when it is over, by this rule or by the handler.
    ///
    /// The [cost](Self::cost) is then an estimate. The handler settles it by a
    /// [`Reservation`](crate::settle::Reservation). See [`settle`](crate::settle).
    pub fn settle(mut self, rule: impl Rule) -> Self {
        let abandoned = self
            .settle_rule
            .map(|settle| settle.abandoned)
            .unwrap_or_default();
        self.settle_rule = Some(SettleRule {
            rule: Arc::new(rule),
            abandoned,
        });
        self.has_options = true;
        self
    }

    /// Sets the choice for the estimate if there is no response and the handler did not settle.
    ///
    /// That is the case if the handler panicked, was cancelled with its client, or its service failed. By default the
    /// estimate stays charged, so that a client gains nothing by disconnecting. Without another rule, the limit
    /// settles [by its handler](crate::settle::by_handler).
    pub fn on_abandoned(mut self, choice: Settle) -> Self {
        let rule = self.settle_rule.map_or_else(
            || Arc::new(by_handler()) as Arc<dyn Rule>,
            |settle| settle.rule,
        );
        self.settle_rule = Some(SettleRule {
            rule,
            abandoned: choice,
        });
        self.has_options = true;
        self
    }

    /// Charges refused requests too, down to an empty limit and never into debt.
    ///
    /// A client that does not stop sending then stays limited.
    pub const fn count_refusals(mut self) -> Self {
        self.counts_refusals = true;
        self.has_options = true;
        self
    }

    /// Decides every request in the store, also if a store takes units in advance.
    ///
    /// Use it for limits of which every unit counts, such as attempts of a password.
    /// [Leases](https://docs.rs/tower-quota-lease) then never decide the limit from memory. It makes no difference to
    /// other stores.
    pub const fn exact(mut self) -> Self {
        self.is_exact = true;
        self.has_options = true;
        self
    }

    /// Makes the limit a shadow, a dry run: it is evaluated and reported, and never enforced.
    ///
    /// A shadow refuses no request, also without a key or without the store, makes none wait, and is in no header.
    /// The store charges a shadow as if it were enforced together with the other limits.
    /// [`Decision::would_refuse`](crate::Decision::would_refuse) returns the shadows that would have refused.
    #[doc(alias = "dry run")]
    pub const fn shadow(mut self) -> Self {
        self.is_shadow = true;
        self.has_options = true;
        self
    }

    /// Sets what happens to requests over the quota. By default the limit refuses them.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tower_quota::{Limit, Over, Quota, key};
    ///
    /// let quota = Quota::new(3, Duration::from_secs(900)).sliding_log();
    /// // After three attempts, the handler asks for a challenge.
    /// let challenge = Limit::new("challenge", quota).by(key::client_ip()).over(Over::Flag);
    /// // Each further attempt waits half a second longer, up to ten seconds.
    /// let (step, most) = (Duration::from_millis(500), Duration::from_secs(10));
    /// let tarpit = Limit::new("tarpit", quota).by(key::client_ip()).over(Over::Delay { step, most });
    /// # let _ = (challenge, tarpit);
    /// ```
    pub const fn over(mut self, choice: Over) -> Self {
        self.over = choice;
        self.has_options = true;
        self
    }

    /// Leaves the limit out of all header fields, of admitted and of refused responses.
    ///
    /// Use it if clients that spread their requests by the fields would wait too long, such as for a limit whose estimates are
    /// refunded. If the limit refuses, the response has its `Retry-After` and its message, and no fields of other limits,
    /// whose times would be too short. Limits of [`Quota::concurrent`] are always left out, because their units come back
    /// when work ends and not by time.
    ///
    /// ```
    /// use tower_quota::{Limit, Quota};
    ///
    /// let limit = Limit::new("internal", Quota::per_second(5_000)).hidden();
    /// # let _ = limit;
    /// ```
    pub const fn hidden(mut self) -> Self {
        self.is_hidden = true;
        self
    }

    pub(crate) fn is_hidden(&self) -> bool {
        self.is_hidden || self.quota.algorithm() == Algorithm::Concurrent
    }

    /// Returns whether the limit is enforced for every request, also without a key.
    pub(crate) fn always_applies(&self) -> bool {
        self.conditions.is_empty() && !self.is_shadow() && self.missing != Some(MissingKey::Skip)
    }

    /// Allows partial grants: a request takes the units that are left, up to its cost, and is refused without any.
    ///
    /// Use it for batches: the handler processes [`LimitStatus::taken`](crate::LimitStatus::taken) items. All such
    /// limits of a request take the same number of units.
    pub const fn at_most(mut self) -> Self {
        self.is_at_most = true;
        self.has_options = true;
        self
    }

    /// Blocks clients that keep sending requests while they are refused, longer each time: see [`Penalty`].
    ///
    /// Refusals by other limits do not count. During a block, refusals name this limit, and `Retry-After` is the end
    /// of the block if the client waits. With [`MissingKey::ShareOneCounter`], one client without a key can block all
    /// others without a key.
    pub const fn penalty(mut self, penalty: Penalty) -> Self {
        self.penalty = Some(penalty);
        self.has_options = true;
        self
    }

    /// Sets the choice of this limit while the store is unavailable.
    ///
    /// The default is the choice of its [policy](crate::Policy::on_store_failure).
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
