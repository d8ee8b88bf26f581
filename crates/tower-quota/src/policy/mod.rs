//! Defines policies, the plans into which they compile, and explanations.

mod choose;
pub(crate) mod explain;
pub(crate) mod explained;
mod fallback;
mod lists;
mod look_up;
mod names;
mod plan;
mod planned;
mod request_charges;

use core::fmt;
use core::future::Future;
use core::num::NonZeroU32;
use core::time::Duration;
use std::collections::HashSet;
use std::sync::Arc;

use tower_quota_core::{Charge, ConfigError, Key, Name, Quota};

use crate::degraded::OnStoreFailure;
use crate::head::RequestHead;
use crate::key::KeyExtractor;
use crate::limit::Limit;
use crate::valid::valid;
use crate::when::Condition;

use self::choose::Choice;
pub use self::choose::Chosen;
use self::explain::Explainer;
pub(crate) use self::explained::Explained;
pub(crate) use self::fallback::Fallback;
use self::lists::Lists;
use self::look_up::LookUp;
pub(crate) use self::look_up::LookUps;
use self::names::Names;
#[cfg(feature = "metrics")]
pub(crate) use self::plan::ById;
pub(crate) use self::plan::Plan;
pub(crate) use self::request_charges::{Charges, RequestCharges};

/// The limits of a request, which the store charges together or not at all.
///
/// In a Redis cluster, count all [concurrency limits](crate::Quota::concurrent) of a request by one key. With two keys, the
/// request gets 500.
///
/// ```
/// use tower_quota::{Limit, Policy, Quota, key};
///
/// let policy = Policy::new()
///     .limit(Limit::new("burst", Quota::per_second(10).burst(20)).by(key::client_ip()))
///     .limit(Limit::new("minute", Quota::per_minute(100)).by(key::header("x-api-key")))
///     .limit(Limit::new("everyone", Quota::per_second(5_000)));
/// # let _ = policy;
/// ```
#[derive(Clone)]
#[must_use]
pub struct Policy {
    limits: Vec<Limit>,
    choices: Vec<Choice>,
    names: Names,
    on_store_failure: Option<OnStoreFailure>,
    instances: u32,
    lists: Lists,
    look_ups: Vec<LookUp>,
    overrides: Option<Arc<Overrides>>,
    version: Option<u64>,
    close_after: Option<NonZeroU32>,
}

/// Returns the quota of a client of a limit, given the quota that would apply.
type Overrides = dyn Fn(Name, &Key<'_>, Option<&Quota>) -> Option<Quota> + Send + Sync;

impl Policy {
    /// Makes a policy without limits, where requests pass without the store.
    pub fn new() -> Self {
        Self {
            limits: Vec::new(),
            choices: Vec::new(),
            names: Names::default(),
            on_store_failure: None,
            instances: 1,
            lists: Lists::default(),
            look_ups: Vec::new(),
            overrides: None,
            version: None,
            close_after: None,
        }
    }

    /// Adds a limit.
    ///
    /// # Panics
    /// Panics when the limit is invalid. See [`Policy::try_limit`].
    #[track_caller]
    pub fn limit(self, limit: Limit) -> Self {
        valid(self.try_limit(limit))
    }

    /// Works like [`Policy::limit`], but returns an error for an invalid limit.
    ///
    /// # Errors
    /// Returns [`ConfigError`] when
    /// * the name is invalid or used, or a stored number of a name or scope collides,
    /// * different extractors have the same scope,
    /// * the constant cost is above the quota's capacity,
    /// * requests should wait at a quota that counts in windows,
    /// * more than [`Charge::MOST`](crate::store::Charge::MOST) limits would apply to every request,
    /// * a penalty would block all clients without a key,
    /// * or the quota cannot be [divided](tower_quota_core::Quota::divided) among the [instances](Self::instances).
    pub fn try_limit(mut self, limit: Limit) -> Result<Self, ConfigError> {
        self.examine(&limit)?;
        self.limits.push(limit);
        let mut always = self.limits.iter().filter(|limit| limit.always_applies());
        if let Some(limit) = always.nth(Charge::MOST) {
            return Err(ConfigError::TooManyLimits(limit.name));
        }
        Ok(self)
    }

    /// Adds a list of limits and a closure that chooses limits for each request.
    ///
    /// Use `choose` as an index for thousands of routes. The layer only evaluates the limits that your closure
    /// [adds](Chosen::add), with their conditions. The closure runs once per request, after [look-ups](Self::look_up).
    /// Your code must not block and should not allocate.
    ///
    /// ```
    /// use std::collections::HashMap;
    /// use tower_quota::{Limit, Policy, Quota, key};
    ///
    /// let per_client = |name: &'static str, quota| Limit::new(name, quota).by(key::client_ip());
    /// let limits = [per_client("search", Quota::per_minute(20)), per_client("upload", Quota::per_hour(100))];
    /// let routes = HashMap::from([("/search", 0), ("/suggest", 0), ("/upload", 1)]);
    ///
    /// let policy = Policy::new().choose(limits, move |head, chosen| {
    ///     if let Some(position) = routes.get(head.path()) {
    ///         chosen.add(*position, None);
    ///     }
    /// });
    /// # let _ = policy;
    /// ```
    ///
    /// # Panics
    /// Panics when a limit is invalid. See [`Policy::try_choose`].
    #[track_caller]
    pub fn choose(
        self,
        limits: impl IntoIterator<Item = Limit>,
        choose: impl Fn(&RequestHead<'_>, &mut Chosen<'_>) + Send + Sync + 'static,
    ) -> Self {
        valid(self.try_choose(limits, choose))
    }

    /// Works like [`Policy::choose`], but returns an error for an invalid limit.
    ///
    /// # Errors
    /// Returns the error of [`try_limit`](Self::try_limit) for the first invalid limit.
    pub fn try_choose(
        mut self,
        limits: impl IntoIterator<Item = Limit>,
        choose: impl Fn(&RequestHead<'_>, &mut Chosen<'_>) + Send + Sync + 'static,
    ) -> Result<Self, ConfigError> {
        let limits: Vec<Limit> = limits.into_iter().collect();
        for limit in &limits {
            self.examine(limit)?;
        }
        self.choices.push(Choice {
            limits,
            choose: Arc::new(choose),
        });
        Ok(self)
    }

    /// Returns the extractors of the limits without duplicate scopes, in the order of the limits.
    #[must_use]
    pub fn keys(&self) -> Vec<Arc<dyn KeyExtractor>> {
        let mut scopes = HashSet::new();
        let limits = self
            .limits
            .iter()
            .chain(self.choices.iter().flat_map(|choice| &choice.limits));
        let first_of_scope = limits.filter(|limit| scopes.insert(limit.extractor.scope()));
        first_of_scope
            .map(|limit| Arc::clone(&limit.extractor))
            .collect()
    }

    fn examine(&mut self, limit: &Limit) -> Result<(), ConfigError> {
        limit.check()?;
        let _ = limit.quota.try_divided(self.instances)?;
        self.names.add(limit)
    }

    /// Lets requests that match this condition pass, uncounted and without a call of the store.
    ///
    /// Use `skip` for health checks. [Blocked](Self::block) clients stay blocked. Any match of several conditions is
    /// enough.
    ///
    /// ```
    /// use tower_quota::{Limit, Policy, Quota, when};
    ///
    /// let policy = Policy::new()
    ///     .skip(when::path("/healthz"))
    ///     .skip(when::cors_preflight())
    ///     .limit(Limit::new("everyone", Quota::per_second(5_000)));
    /// # let _ = policy;
    /// ```
    pub fn skip(mut self, condition: impl Condition) -> Self {
        self.lists.skipped.push(Arc::new(condition));
        self
    }

    /// Lets requests that match this condition pass, uncounted and never [blocked](Self::block).
    ///
    /// Any match of several conditions is enough. If a request has conflicting values, such as two API keys, a listed
    /// value is not enough. The conditions run before [look-ups](Self::look_up).
    pub fn allow(mut self, condition: impl Condition) -> Self {
        self.lists.allowed.push(Arc::new(condition));
        self
    }

    /// Blocks requests that match this condition, unless [allowed](Self::allow).
    ///
    /// Any match of several conditions or conflicting values is enough. The answer has status 403, or
    /// `PERMISSION_DENIED` for gRPC.
    ///
    /// ```
    /// use tower_quota::{Limit, Policy, Quota, key, when};
    ///
    /// let policy = Policy::new()
    ///     .block(when::address_in(key::client_ip(), ["198.51.100.0/24"]))
    ///     .allow(when::address_in(key::client_ip(), ["198.51.100.7"]))
    ///     .limit(Limit::new("address", Quota::per_minute(600)).by(key::client_ip()));
    /// # let _ = policy;
    /// ```
    pub fn block(mut self, condition: impl Condition) -> Self {
        self.lists.blocked.push(Arc::new(condition));
        self
    }

    /// Refuses every request with status 503, or `UNAVAILABLE` for gRPC, unless [skipped](Self::skip) or
    /// [allowed](Self::allow).
    ///
    /// Use the policy while a service has no limits yet, for example until its first rules are read.
    ///
    /// ```
    /// use tower_quota::{Policy, when};
    ///
    /// let policy = Policy::new().skip(when::path("/healthz")).unavailable();
    /// # let _ = policy;
    /// ```
    pub const fn unavailable(mut self) -> Self {
        self.lists.is_unavailable = true;
        self
    }

    /// Looks up a value for each request before the limits, such as the owner of an API key.
    ///
    /// Limits and handlers read the value from the request's extensions. After the deadline the value is missing.
    ///
    /// Your closure copies values out of the head and returns a future. All look-ups run at the same time, on tokio's
    /// timer, and return different types. Refused requests cause look-ups too, so use a cache, even for unknown keys. Add a limit by address,
    /// because guesses of API keys only [count](crate::MissingKey::Refuse) by address.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tower_quota::{Limit, MissingKey, Policy, Quota, key};
    ///
    /// #[derive(Clone)]
    /// struct Tenant {
    ///     id: u64,
    ///     per_minute: u64,
    /// }
    ///
    /// /// Asks a database, or a cache in front of it.
    /// async fn tenant_of(api_key: String) -> Option<Tenant> {
    ///     (api_key == "s3cret").then_some(Tenant { id: 7, per_minute: 5_000 })
    /// }
    ///
    /// let policy = Policy::new()
    ///     .look_up(Duration::from_millis(20), |head| {
    ///         let api_key = head.headers().get("x-api-key").and_then(|key| key.to_str().ok().map(String::from));
    ///         async move { tenant_of(api_key?).await }
    ///     })
    ///     .limit(
    ///         Limit::new("tenant", Quota::per_minute(100))
    ///             .by(key::from_fn("tenant", |head| Some(head.extensions().get::<Tenant>()?.id.to_be_bytes())))
    ///             .quota_with(|head| {
    ///                 let tenant = head.extensions().get::<Tenant>()?;
    ///                 Quota::try_new(tenant.per_minute, Duration::from_secs(60)).ok()
    ///             })
    ///             .when_missing(MissingKey::ShareOneCounter),
    ///     );
    /// # let _ = policy;
    /// ```
    pub fn look_up<F, A, T>(mut self, deadline: Duration, look_up: F) -> Self
    where
        F: Fn(&RequestHead<'_>) -> A + Send + Sync + 'static,
        A: Future<Output = Option<T>> + Send + 'static,
        T: Clone + Send + Sync + 'static,
    {
        self.look_ups.push(LookUp::new(deadline, look_up));
        self
    }

    /// Sets the quota of single clients by a closure, over all other quotas.
    ///
    /// The closure gets the name of the limit, the key of the client, and the usual quota, unless the limit was
    /// [left out](Chosen::leave_out). Without a quota of your closure, the usual quota applies. Requests and operators run
    /// the closure for each limit, so your code must be fast. Return the same quota on all instances, and keep the
    /// [algorithm](Quota::algorithm) of a concurrency limit. A second closure takes precedence, and gets the quota of the
    /// first closure as the usual quota.
    ///
    /// ```
    /// use tower_quota::{Limit, Policy, Quota, key};
    ///
    /// let policy = Policy::new()
    ///     .limit(Limit::new("minute", Quota::per_minute(100)).by(key::header("x-api-key")))
    ///     .overrides(|limit, key, _| {
    ///         (limit.as_str() == "minute" && key.as_bytes() == b"launch").then(|| Quota::per_minute(60_000))
    ///     });
    /// # let _ = policy;
    /// ```
    pub fn overrides(
        mut self,
        quota: impl Fn(Name, &Key<'_>, Option<&Quota>) -> Option<Quota> + Send + Sync + 'static,
    ) -> Self {
        self.overrides = Some(match self.overrides.take() {
            None => Arc::new(quota),
            Some(first) => Arc::new(move |limit, key, usual| {
                let earlier = first(limit, key, usual);
                quota(limit, key, earlier.as_ref().or(usual)).or(earlier)
            }),
        });
        self
    }

    /// Sets a version number for operators. By default there is no number.
    ///
    /// [`trace_store_calls`](crate::RateLimitLayer::trace_store_calls) reports the number.
    pub const fn version(mut self, number: u64) -> Self {
        self.version = Some(number);
        self
    }

    /// Closes the connections of clients after this many refusals in a row. Defaults to 0, for never.
    ///
    /// Refusals have `Connection: close` in HTTP/1, and [`CloseConnection`](crate::CloseConnection) in the extensions
    /// for your HTTP/2 server. Only refusals by limits with a key count. An admitted request resets the count, and every
    /// five minutes the layer resets all counts.
    ///
    /// Do not use `close_after` behind a proxy that sends many clients over one connection. All of them would lose the
    /// connection.
    ///
    /// ```
    /// use tower_quota::{Limit, Policy, Quota, key};
    ///
    /// let policy = Policy::new()
    ///     .limit(Limit::new("minute", Quota::per_minute(100)).by(key::client_ip()))
    ///     .close_after(20);
    /// # let _ = policy;
    /// ```
    pub const fn close_after(mut self, refusals: u32) -> Self {
        self.close_after = NonZeroU32::new(refusals);
        self
    }

    /// Returns an explainer of the policy's actions, for tests and operators.
    #[must_use]
    pub fn explainer(&self) -> Explainer {
        Explainer {
            plan: Plan::new(self.clone()),
        }
    }

    /// Sets the choice of limits without their own while the store is unavailable.
    ///
    /// Defaults to [`OnStoreFailure::Allow`], and to [`OnStoreFailure::Local`] for an
    /// [overloaded](crate::store::Overloaded) store. [`Limit::on_store_failure`] takes precedence.
    pub const fn on_store_failure(mut self, choice: OnStoreFailure) -> Self {
        self.on_store_failure = Some(choice);
        self
    }

    /// Sets the maximum number of instances of the service. Defaults to 1.
    ///
    /// In an outage, limits with [`OnStoreFailure::Local`] divide the quota by this number. With more instances, you
    /// admit more than the quota.
    ///
    /// # Panics
    /// Panics when the number is invalid. See [`Policy::try_instances`].
    #[track_caller]
    pub fn instances(self, expected: u32) -> Self {
        valid(self.try_instances(expected))
    }

    /// Works like [`Policy::instances`], but returns an error for an invalid number.
    ///
    /// # Errors
    /// Returns [`ConfigError`] when the number is 0, or a quota cannot be
    /// [divided](tower_quota_core::Quota::divided).
    pub fn try_instances(mut self, expected: u32) -> Result<Self, ConfigError> {
        if expected == 0 {
            return Err(ConfigError::ZeroInstances);
        }
        let chosen = self.choices.iter().flat_map(|choice| &choice.limits);
        for limit in self.limits.iter().chain(chosen) {
            let _ = limit.quota.try_divided(expected)?;
        }
        self.instances = expected;
        Ok(self)
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Policy")
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}
