//! Policies: the limits of a request, decided together.

mod ask;
mod lists;
mod look_up;
mod plan;

use core::future::Future;
use core::time::Duration;
use std::sync::Arc;

use tower_quota_core::{ConfigError, Name};

use crate::degraded::OnStoreFailure;
use crate::head::RequestHead;
use crate::limit::Limit;
use crate::when::Condition;

pub(crate) use self::ask::{Ask, Fallback, NotAsked};
pub(crate) use self::lists::Listed;
use self::lists::Lists;
use self::look_up::LookUp;
pub(crate) use self::look_up::LookUps;
pub(crate) use self::plan::Plan;

/// The limits of a request, decided together in one step: either all of them are charged or none is.
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
#[derive(Clone, Debug)]
#[must_use]
pub struct Policy {
    limits: Vec<Limit>,
    on_store_failure: OnStoreFailure,
    instances: u32,
    lists: Lists,
    look_ups: Vec<LookUp>,
}

impl Policy {
    /// Makes a policy without limits: every request passes, and the store is never asked.
    pub const fn new() -> Self {
        Self {
            limits: Vec::new(),
            on_store_failure: OnStoreFailure::Allow,
            instances: 1,
            lists: Lists::new(),
            look_ups: Vec::new(),
        }
    }

    /// Adds a limit.
    ///
    /// # Panics
    /// When the limit cannot be told from the others or could never be met; see [`Policy::try_limit`].
    #[track_caller]
    pub fn limit(self, limit: Limit) -> Self {
        match self.try_limit(limit) {
            Ok(policy) => policy,
            #[expect(clippy::panic, reason = "documented: a policy written in code fails at start")]
            Err(error) => panic!("{error}"),
        }
    }

    /// Adds a limit that was not written in code.
    ///
    /// # Errors
    /// [`ConfigError`] when
    /// * the name fits no header, is taken, or shares its stored number with another,
    /// * the key's scope shares its stored number with another scope, or is that of a different extractor,
    /// * the constant cost is above the quota's capacity,
    /// * requests are to wait for a quota that counts in windows,
    /// * a penalty would punish all clients without a key for one of them,
    /// * or the quota cannot be [divided](tower_quota_core::Quota::divided) among the [instances](Self::instances).
    pub fn try_limit(mut self, mut limit: Limit) -> Result<Self, ConfigError> {
        limit.check()?;
        limit.divide(self.instances)?;
        for other in &self.limits {
            if limit.name == other.name {
                return Err(ConfigError::DuplicateLimit(limit.name));
            }
            if limit.stored_ids().any(|id| other.stored_ids().any(|taken| taken == id)) {
                return Err(ConfigError::CollidingNames(other.name, limit.name));
            }
            let (one, another) = (&limit.extractor, &other.extractor);
            distinct(one.scope(), another.scope())?;
            if one.scope() == another.scope() && one.identity() != another.identity() {
                return Err(ConfigError::SharedScope(one.scope()));
            }
        }
        self.limits.push(limit);
        Ok(self)
    }

    /// Skips requests of which this holds: they are not limited, and the store is not asked.
    ///
    /// For health checks, and what is cheap to serve. [Blocked](Self::block) clients stay blocked. Of several such conditions,
    /// one is enough.
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

    /// Allows requests of which this holds: they are not limited, and not [blocked](Self::block) either.
    ///
    /// Of several conditions, one is enough. They are asked before anything is [looked up](Self::look_up). A request with
    /// conflicting values, such as two API keys, is not allowed for one of them.
    pub fn allow(mut self, condition: impl Condition) -> Self {
        self.lists.allowed.push(Arc::new(condition));
        self
    }

    /// Blocks requests of which this holds, unless they are [allowed](Self::allow).
    ///
    /// Of several conditions, one is enough; of conflicting values, such as two API keys, one listed is enough. The answer is
    /// the [`Refusal`](crate::Refusal)'s, with status 403, or `PERMISSION_DENIED` for gRPC, and says nothing of limits. The
    /// store is not asked, and nothing is [looked up](Self::look_up).
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

    /// Looks up a value for each request before its limits are asked, such as the owner of an API key.
    ///
    /// The value is put into the request's extensions. Limits read it there for their keys, conditions, costs and
    /// [quotas](crate::Limit::quota_with), and so do handlers. A value that is late or `None` is not there. A key made of it is
    /// then missing, and the limit [chooses](crate::Limit::when_missing) what that means.
    ///
    /// The closure copies what it needs out of the head and returns a future that owns it. All look-ups of a request run
    /// together, each up to its own deadline on tokio's timer; give each a type of its own to find.
    /// Requests that are [skipped](Self::skip), [allowed](Self::allow) or [blocked](Self::block) look nothing up. A
    /// look-up is dropped with its request, and a panic in it is the request's. It runs for every other request, also for
    /// those that are then refused: let it answer from a cache, made-up keys too.
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

    /// Chooses what limits do while the store is unavailable that do not [choose](Limit::on_store_failure) themselves.
    ///
    /// The default is [`OnStoreFailure::Allow`].
    pub const fn on_store_failure(mut self, choice: OnStoreFailure) -> Self {
        self.on_store_failure = choice;
        self
    }

    /// Sets how many instances of the service there are, at most.
    ///
    /// Each takes this part of a quota where a limit is [`OnStoreFailure::Local`] and the store is unavailable. The default
    /// is 1, by which every instance takes all of it; more instances than this admit more than the quota together.
    ///
    /// # Panics
    /// When this is 0, or a quota cannot be divided so; see [`Policy::try_instances`].
    #[track_caller]
    pub fn instances(self, expected: u32) -> Self {
        match self.try_instances(expected) {
            Ok(policy) => policy,
            #[expect(clippy::panic, reason = "documented: a policy written in code fails at start")]
            Err(error) => panic!("{error}"),
        }
    }

    /// Sets the number of instances when it was not written in code.
    ///
    /// # Errors
    /// [`ConfigError`] when this is 0, or when the quota of one of the limits, whatever it does when the store fails,
    /// cannot be [divided](tower_quota_core::Quota::divided) so.
    pub fn try_instances(mut self, expected: u32) -> Result<Self, ConfigError> {
        if expected == 0 {
            return Err(ConfigError::ZeroInstances);
        }
        for limit in &mut self.limits {
            limit.divide(expected)?;
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

/// Checks that names which differ have different stored numbers.
fn distinct(one: Name, other: Name) -> Result<(), ConfigError> {
    if one != other && one.id() == other.id() {
        return Err(ConfigError::CollidingNames(other, one));
    }
    Ok(())
}
