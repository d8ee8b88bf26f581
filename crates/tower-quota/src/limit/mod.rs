//! Named quotas with keys, costs and conditions.

mod charging;
mod degraded_quota;
mod flagged;
mod over;

use core::fmt;
use core::time::Duration;
use std::sync::Arc;

use tower_quota_core::{Algorithm, Key, Name, Penalty, Quota};

use crate::degraded::OnStoreFailure;
use crate::head::RequestHead;
use crate::key::{KeyExtractor, everyone};
use crate::settle::{LongestHold, Rule, Settle, SettleRule};
use crate::when::{Condition, not};

pub(crate) use self::degraded_quota::DegradedQuota;
pub use self::flagged::Flagged;
pub use self::over::Over;

/// A named quota, with a key, a cost per request, and conditions.
///
/// By default a limit counts all requests together, and each request costs 1.
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
    missing: Option<MissingKey>,
    on_store_failure: Option<OnStoreFailure>,
    cost: Cost,
    conditions: Vec<Arc<dyn Condition>>,
    run_time_quota: Option<Arc<QuotaOf>>,
    quota_of_key: Option<Arc<QuotaOfKey>>,
    pub(crate) longest_wait: Option<Duration>,
    counts_refusals: bool,
    is_exact: bool,
    pub(crate) settle_rule: Option<SettleRule>,
    pub(crate) longest_hold: Option<LongestHold>,
    pub(crate) jitter: Duration,
    is_shadow: bool,
    pub(crate) over: Over,
    /// Whether header fields leave out the limit, as always for limits of concurrent requests.
    pub(crate) is_hidden: bool,
    is_at_most: bool,
    penalty: Option<Penalty>,
    pub(crate) unit: Option<Name>,
    pub(crate) degraded: Option<DegradedQuota>,
    /// The words for clients about a missing key.
    pub(crate) key_words: Option<Name>,
}

/// The choice of a limit for requests without a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MissingKey {
    /// All requests with a missing or conflicting key share a counter, which a single client can use up.
    ///
    /// Prefer a key that always exists, such as [`first_of`](crate::key::first_of()).
    ShareOneCounter,
    /// The limit does not apply. Let another limit count the request.
    Skip,
    /// Refuses the request with 400, or `INVALID_ARGUMENT` for gRPC, unless another limit refuses with 429.
    ///
    /// The request still counts by its other keys, so a limit by address bounds guesses. Limits without a key, shared
    /// counters and [holds](crate::Quota::concurrent) do not count the request, and its charges never settle.
    Refuse,
    /// Like `Refuse`, but with 401 and a challenge, or `UNAUTHENTICATED`.
    ///
    /// Browsers send no credentials at first. If a limit by address should not count these requests, add a
    /// [condition](Limit::when) on the header.
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
    /// The default of [`max_wait`](Self::max_wait) for leaky buckets: 30 seconds, a common timeout of clients.
    pub const DEFAULT_MAX_WAIT: Duration = Duration::from_secs(30);

    /// Makes a limit with this name and quota, for all requests together.
    ///
    /// The name has 1 to 64 printable ASCII characters, is unique in a policy, and visible to clients. You may change
    /// the quota later.
    ///
    /// Limits with the same name, key and store share a counter, even across layers, policies, and services with the
    /// same Redis prefix. [`Check::TwoQuotas`](crate::Check::TwoQuotas) finds different quotas in a process. Use names such as `"login-minute"` to keep counters apart. Shared counters need the same
    /// quota everywhere, because different quotas convert the counter at each request.
    pub fn new(name: impl Into<Name>, quota: Quota) -> Self {
        let quota = quota.for_waits_of(Self::DEFAULT_MAX_WAIT);
        Self {
            name: name.into(),
            quota,
            extractor: Arc::new(everyone()),
            missing: None,
            on_store_failure: None,
            cost: Cost::Constant(1),
            conditions: Vec::new(),
            run_time_quota: None,
            quota_of_key: None,
            longest_wait: None,
            counts_refusals: false,
            is_exact: false,
            settle_rule: None,
            longest_hold: None,
            jitter: Duration::ZERO,
            is_shadow: false,
            over: Over::Refuse,
            is_hidden: quota.algorithm() == Algorithm::Concurrent,
            is_at_most: false,
            penalty: None,
            unit: None,
            degraded: None,
            key_words: None,
        }
    }

    /// Counts by the keys of this [extractor](crate::key).
    pub fn by(mut self, extractor: impl KeyExtractor) -> Self {
        self.extractor = Arc::new(extractor);
        self
    }

    /// Names the counted unit for clients, the parameter `qu` of [`HeaderStyle::Draft11`](crate::HeaderStyle::Draft11).
    ///
    /// Defaults to requests. Use 1 to 64 printable ASCII characters.
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

    /// Sets the cost of each request in units of the quota. With 0, requests are only reported.
    pub fn cost(mut self, units: u64) -> Self {
        self.cost = Cost::Constant(units);
        self
    }

    /// Sets the cost of a request by a closure on the head, or by a function of [`cost`](crate::cost).
    ///
    /// A cost above the capacity is refused without a time to retry.
    pub fn cost_with(
        mut self,
        cost: impl Fn(&RequestHead<'_>) -> u64 + Send + Sync + 'static,
    ) -> Self {
        self.cost = Cost::Computed(Arc::new(cost));
        self
    }

    /// Applies the limit only to requests that match this and all other [conditions](crate::when).
    pub fn when(mut self, condition: impl Condition) -> Self {
        self.conditions.push(Arc::new(condition));
        self
    }

    /// Applies the limit only to requests that do [not](crate::when::not) match this condition.
    pub fn unless(self, condition: impl Condition) -> Self {
        self.when(not(condition))
    }

    /// Sets the quota of each request by a closure, for example by tenant or tier.
    ///
    /// Return `None` for the limit's own quota. Derive the quota from the limit's key, because different quotas for a
    /// key convert the counter at each request.
    ///
    /// The closure runs once per request, and can read [looked-up](crate::Policy::look_up) values. In an outage you get
    /// 503 if the quota cannot be divided among the [instances](crate::Policy::instances).
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

    /// Sets a quota by key, for clients that an operator names without a request.
    ///
    /// Return the same as [`quota_with`](Self::quota_with) or [`Policy::choose`](crate::Policy::choose) for this key.
    /// Requests do not run the closure.
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
    /// By default, missing or conflicting keys are refused with 401 for
    /// [credentials](crate::key::KeyExtractor::has_credentials), with 500 if the server did not
    /// attach the address of the peer, and with 400 otherwise. Other limits still [count](MissingKey::Refuse) the
    /// request, so add a limit by address against guesses.
    pub const fn when_missing(mut self, missing: MissingKey) -> Self {
        self.missing = Some(missing);
        self
    }

    /// Describes the key to clients whose requests lack the key, or have conflicting values.
    ///
    /// By default the message has the [scope](KeyExtractor::scope) of the missing part. Write words that complete `The
    /// request cannot be counted: it has no ..`, and name where clients get the value.
    ///
    /// ```
    /// use tower_quota::{Limit, Quota, key};
    ///
    /// let limit = Limit::new("minute", Quota::per_minute(100))
    ///     .by(key::header("x-api-key"))
    ///     .describe_key("API key in the header x-api-key (get one at example.com/keys)");
    /// # let _ = limit;
    /// ```
    pub fn describe_key(mut self, words: impl Into<Name>) -> Self {
        self.key_words = Some(words.into());
        self
    }

    /// Sets the longest wait of a request. Defaults to 30 seconds for leaky buckets, else to zero.
    ///
    /// Windows never make requests wait, see [`ConfigError::WaitOnWindow`](crate::ConfigError). The queue of a leaky
    /// bucket is as long as the longest wait, unless you set [`Quota::queue`]. See also
    /// [`max_waiting`](crate::RateLimitLayer::max_waiting).
    ///
    /// If you drop a waiting request, the store refunds the charges. A leaky bucket only refunds the last turn. A waiting
    /// request holds no unit of a [concurrency limit](crate::Quota::concurrent). The layer takes the unit when the turn
    /// comes, or refuses the request.
    pub const fn max_wait(mut self, longest: Duration) -> Self {
        self.longest_wait = Some(longest);
        self.quota = self.quota.for_waits_of(longest);
        self
    }

    /// Adds a random time of at most this length to each wait, to spread the requests.
    pub const fn wait_jitter(mut self, longest: Duration) -> Self {
        self.jitter = longest;
        self
    }

    /// Corrects the [cost](Self::cost) of a finished request by this rule or the handler.
    ///
    /// See [`settle`](crate::settle).
    pub fn settle(mut self, rule: impl Rule) -> Self {
        self.settle_rule.get_or_insert_default().rule = Arc::new(rule);
        self
    }

    /// Sets the choice for a request without a response that the handler did not settle.
    ///
    /// For example, the handler panicked or the client disconnected. By default the estimate stays charged, so clients
    /// gain no units by disconnecting. Without [`settle`](Self::settle), the handler settles.
    pub fn on_abandoned(mut self, choice: Settle) -> Self {
        self.settle_rule.get_or_insert_default().abandoned = choice;
        self
    }

    /// Ends the holds of a [concurrency limit](crate::Quota::concurrent) after this time, while the request runs on.
    ///
    /// By default a hold lasts as long as the request. A client that sends a head and no body could then hold a unit
    /// without end. Set a time above your longest request, and put timeouts for bodies and responses inside the layer,
    /// because the request itself is not ended. The units return at most a third of the [`ttl`](crate::Quota::ttl)
    /// later, and not before the `ttl`. The first such hold is logged.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tower_quota::{Limit, Quota};
    ///
    /// let uploads = Limit::new("uploads", Quota::concurrent(200)).longest_hold(Duration::from_secs(900));
    /// # let _ = uploads;
    /// ```
    pub fn longest_hold(mut self, longest: Duration) -> Self {
        self.longest_hold = Some(LongestHold::new(longest));
        self
    }

    /// Charges refused requests too, but never into debt.
    ///
    /// A client that keeps sending then stays limited.
    pub const fn count_refusals(mut self) -> Self {
        self.counts_refusals = true;
        self
    }

    /// Decides every request in the store, without [leases](https://docs.rs/tower-quota-lease).
    ///
    /// Use `exact` if every unit counts, such as attempts of a password.
    pub const fn exact(mut self) -> Self {
        self.is_exact = true;
        self
    }

    /// Makes the limit a shadow, a dry run that you evaluate but never enforce.
    ///
    /// A shadow never refuses, delays or appears in a header field, but charges like an enforced limit.
    /// [`Decision::would_refuse`](crate::Decision::would_refuse) returns the shadows that would have refused or
    /// [flagged](Over::Flag) the request. A shadow that would have delayed the request has the outcome
    /// [`Wait`](crate::Outcome::Wait).
    #[doc(alias = "dry run")]
    pub const fn shadow(mut self) -> Self {
        self.is_shadow = true;
        self
    }

    /// Sets what happens to requests over the quota. By default the limit refuses.
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
        self
    }

    /// Leaves the limit out of all header fields.
    ///
    /// Use `hidden` if the fields would slow your clients too much, for example because you refund most estimates.
    /// The refusals of a hidden limit have `Retry-After` and a message, but no fields of other limits. Limits of
    /// [`Quota::concurrent`] are always hidden.
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

    pub(crate) fn always_applies(&self) -> bool {
        self.conditions.is_empty() && !self.is_dry_run() && self.missing != Some(MissingKey::Skip)
    }

    /// Allows partial grants, where a request takes the remaining units up to the cost.
    ///
    /// Use `at_most` for batches, where your handler processes [`LimitStatus::taken`](crate::LimitStatus::taken) items.
    /// All `at_most` limits of a request take the same number, and the limit refuses without remaining units.
    pub const fn at_most(mut self) -> Self {
        self.is_at_most = true;
        self
    }

    /// Blocks clients that keep sending while refused, longer each time. See [`Penalty`].
    ///
    /// Refusals by other limits do not count. During a block, `Retry-After` is the end of the block. With
    /// [`MissingKey::ShareOneCounter`], a single client can block all clients without a key.
    pub const fn penalty(mut self, penalty: Penalty) -> Self {
        self.penalty = Some(penalty);
        self
    }

    /// Sets the choice of this limit in an outage.
    ///
    /// Defaults to the choice of the [policy](crate::Policy::on_store_failure).
    #[doc(alias = "fail open")]
    #[doc(alias = "fail closed")]
    pub const fn on_store_failure(mut self, choice: OnStoreFailure) -> Self {
        self.on_store_failure = Some(choice);
        self
    }

    /// Counts by this quota and key in an outage, in this process and instead of a share of the limit's quota.
    ///
    /// Use `when_degraded` to keep a service alive while its store is away, for example with ten requests a second for
    /// each address. The quota replaces [`on_store_failure`](Self::on_store_failure), and every quota that a request
    /// would have otherwise. Each instance admits the whole quota. Costs above the quota get a 503, and all requests without
    /// the key of the outage share one counter.
    ///
    /// Requests without the limit's own key are treated as always. A client that the store has refused stays refused until
    /// the request fits.
    ///
    /// ```
    /// use tower_quota::{Limit, Quota, key};
    ///
    /// let limit = Limit::new("day", Quota::per_day(100_000).fixed_window())
    ///     .by(key::header("x-api-key"))
    ///     .when_degraded(Quota::per_second(10), key::client_ip());
    /// # let _ = limit;
    /// ```
    pub fn when_degraded(mut self, quota: Quota, by: impl KeyExtractor) -> Self {
        self.degraded = Some(DegradedQuota::new(quota, by));
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
