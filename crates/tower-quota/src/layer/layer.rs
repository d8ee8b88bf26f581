//! The layer.

use core::error::Error;
use core::fmt;
use core::time::Duration;
use std::sync::Arc;

use tower_layer::Layer;
use tower_quota_core::{MemoryStore, Store};

use super::service::RateLimit;
use super::shared::{Settings, Shared};
use super::stage::Queue;
use crate::checks::{Check, CheckSet};
use crate::decided::Decided;
use crate::degraded::LocalCounters;
use crate::policy::Policy;
use crate::response::ResponseSettings;

/// Puts a [`Policy`] in front of services, see the [crate](crate). Clones, and all the services they make, share one
/// store and one policy.
///
/// The only type parameter is the store. `RateLimitLayer<BoxStore>` is the layer whose store is chosen at run time.
#[must_use]
pub struct RateLimitLayer<S> {
    shared: Arc<Shared<S>>,
}

impl<S: Store> RateLimitLayer<S> {
    /// The most requests that wait at once unless [`max_waiting`](Self::max_waiting) says otherwise.
    pub const DEFAULT_MAX_WAITING: usize = 10_000;

    /// Makes a layer that decides by this policy and counts in this store.
    pub fn new(store: S, policy: Policy) -> Self {
        let settings = Settings {
            policy,
            responses: ResponseSettings::default(),
            local: Arc::default(),
            on_store_error: Arc::new(|_| {}),
            on_decision: None,
            queue: Arc::new(Queue::new(Self::DEFAULT_MAX_WAITING)),
            store_timeout: None,
            attaches_decision: false,
            checks_off: CheckSet::default(),
        };
        Self { shared: Arc::new(Shared::new(Arc::new(store), settings)) }
    }

    /// Where [`OnStoreFailure::Local`](crate::OnStoreFailure::Local) limits are counted while the store is sick, instead
    /// of in a memory store with its default capacity. Layers that are given clones of one store count together, which
    /// is right for layers whose limits have the same names and keys. It is cleared when the real store is well again:
    /// let nothing else count in it.
    pub fn local_store(self, store: MemoryStore) -> Self {
        self.with(|settings| settings.local = Arc::new(LocalCounters::new(store)))
    }

    /// Hands the error to this closure whenever the store could not decide, once per request and whatever the limits do
    /// then, and whenever it could not [settle](crate::settle) or give a turn back: for logs and metrics. Unless told
    /// otherwise nobody hears of it, and a service whose limits [allow](crate::OnStoreFailure::Allow) runs unlimited in
    /// silence. A second closure replaces the first.
    ///
    /// It runs before the request goes on, or where it is dropped, for every request of an outage: it must be quick and
    /// never block or panic, and a log is better given one line in a while than one per request. The error is the
    /// store's own and can be downcast; a [`BoxStore`](crate::BoxStore) passes on the text and the source of its store's
    /// error, not the type. The text may name the server, and with tower-quota's stores it contains no keys.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicU64, Ordering};
    /// use tower_quota::{MemoryStore, Policy, RateLimitLayer};
    ///
    /// let failures = Arc::new(AtomicU64::new(0));
    /// let counted = Arc::clone(&failures);
    /// let layer = RateLimitLayer::new(MemoryStore::new(), Policy::new()).on_store_error(move |error| {
    ///     // The first, and every thousandth after it.
    ///     if counted.fetch_add(1, Ordering::Relaxed) % 1_000 == 0 {
    ///         eprintln!("rate limits cannot be checked: {error}");
    ///     }
    /// });
    /// # let _ = layer;
    /// ```
    pub fn on_store_error(self, listener: impl Fn(&(dyn Error + 'static)) + Send + Sync + 'static) -> Self {
        self.with(|settings| settings.on_store_error = Arc::new(listener))
    }

    /// Tells this closure of every decision, once per request: admitted, waiting, refused, blocked, without a key, and
    /// what becomes of requests while the store is sick. For metrics and logs. Requests that nothing was decided about,
    /// because no limit applies or they are [skipped](Policy::skip) or [allowed](Policy::allow), are not told. A second
    /// closure replaces the first.
    ///
    /// It runs before the request goes on: it must be quick and never block. Of a request that waits it hears when the
    /// wait begins.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicU64, Ordering};
    /// use tower_quota::{MemoryStore, Policy, RateLimitLayer};
    ///
    /// let refused = Arc::new(AtomicU64::new(0));
    /// let counted = Arc::clone(&refused);
    /// let layer = RateLimitLayer::new(MemoryStore::new(), Policy::new()).on_decision(move |decided| {
    ///     if decided.reason().is_some() {
    ///         counted.fetch_add(1, Ordering::Relaxed);
    ///     }
    /// });
    /// # let _ = layer;
    /// ```
    pub fn on_decision(self, listener: impl Fn(&Decided<'_>) + Send + Sync + 'static) -> Self {
        self.with(|settings| settings.on_decision = Some(Arc::new(listener)))
    }

    /// Puts the [`Decision`](crate::Decision) into the extensions of each request that is admitted, for handlers, and of
    /// each response, for layers around this one; of nested layers a refusal's stays. Off unless called: it costs each
    /// request a few allocations, and [`on_decision`](Self::on_decision) hears of the same without.
    ///
    /// ```
    /// use axum::{Extension, Router, routing::get};
    /// use tower_quota::{Decision, Limit, MemoryStore, Policy, Quota, RateLimitLayer};
    ///
    /// // Optional: where no limit applies, or the store failed, there is none, and a plain `Extension` would answer 500.
    /// async fn handler(decision: Option<Extension<Decision>>) -> String {
    ///     let left = decision.and_then(|Extension(decision)| Some(decision.status("minute")?.remaining()));
    ///     format!("{left:?} left")
    /// }
    ///
    /// let policy = Policy::new().limit(Limit::new("minute", Quota::per_minute(100)));
    /// let layer = RateLimitLayer::new(MemoryStore::new(), policy).attach_decision();
    /// let app: Router = Router::new().route("/", get(handler)).layer(layer);
    /// ```
    pub fn attach_decision(self) -> Self {
        self.with(|settings| settings.attaches_decision = true)
    }

    /// The most requests that wait for their turn at once in this process, behind this layer and its clones: see
    /// [`Limit::max_wait`](crate::Limit::max_wait). One more is refused as if it were over its quota, with the wait that it
    /// would have had as `Retry-After`, and is charged nothing. The default is
    /// [`DEFAULT_MAX_WAITING`](Self::DEFAULT_MAX_WAITING); with 0 nobody waits.
    ///
    /// Each holds its connection, its request and a timer, no task and no thread: a few kilobytes, unless bodies are read
    /// before they get here.
    pub fn max_waiting(self, requests: usize) -> Self {
        self.with(|settings| settings.queue = Arc::new(Queue::new(requests)))
    }

    /// Fails a call of the store that has not answered after this long, as if the store had said so: see
    /// [`Limit::on_store_failure`](crate::Limit::on_store_failure). The call may have been counted.
    ///
    /// None unless called. A `RedisStore` has a deadline of its own; this is for stores that have none.
    pub fn store_timeout(self, longest: Duration) -> Self {
        self.with(|settings| settings.store_timeout = Some(longest))
    }

    /// Turns off one of the [checks](Check) for mistakes in the configuration: it neither logs nor counts.
    ///
    /// ```
    /// use tower_quota::{Check, MemoryStore, Policy, RateLimitLayer};
    ///
    /// // Here a policy comes later, if at all.
    /// let layer = RateLimitLayer::new(MemoryStore::new(), Policy::new()).without_check(Check::NoLimits);
    /// # let _ = layer;
    /// ```
    pub fn without_check(self, check: Check) -> Self {
        self.with(|settings| settings.checks_off.insert(check))
    }

    pub(crate) const fn shared(&self) -> &Arc<Shared<S>> {
        &self.shared
    }

    /// Changes the settings. Services that were made before keep theirs.
    pub(super) fn with(self, change: impl FnOnce(&mut Settings)) -> Self {
        let mut settings = self.shared.settings.clone();
        change(&mut settings);
        Self { shared: Arc::new(Shared::new(Arc::clone(&self.shared.store), settings)) }
    }
}

impl<Svc, S> Layer<Svc> for RateLimitLayer<S> {
    type Service = RateLimit<Svc, S>;

    fn layer(&self, inner: Svc) -> Self::Service {
        RateLimit::new(inner, Arc::clone(&self.shared))
    }
}

impl<S> Clone for RateLimitLayer<S> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<S: fmt::Debug> fmt::Debug for RateLimitLayer<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimitLayer").field("shared", &self.shared).finish()
    }
}
