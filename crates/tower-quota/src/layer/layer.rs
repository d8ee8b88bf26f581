use core::error::Error;
use core::time::Duration;
use std::sync::Arc;

use http::header::HeaderName;
use tower_layer::Layer;
use tower_quota_core::{MemoryStore, Name, RefusalCache, Store};

use super::service::RateLimit;
use super::settings::Settings;
use super::shared::LayerState;
use crate::checks::Check;
use crate::degraded::LocalCounters;
use crate::observe::Decided;
use crate::observe::{OnDecision, OnStoreError};
use crate::policy::Policy;
use crate::protocol::Protocol;
use crate::response::{GrpcStatus, HeaderStyle, IntoRefusal, Refused, ResponseSettings};
use crate::traced::KeySeed;
use crate::valid::valid;

/// A tower layer that applies a [`Policy`] to services. The [front page](crate) has examples.
///
/// Clones share the counters of the store. A setting on a clone changes only the clone, which then also has its own
/// handle, with its own blocks and waiting places.
///
/// After the first call of [`layer`](Layer::layer) or [`handle`](Self::handle), the layer and the clones that share its
/// settings are in use together. A setting then also changes the running services of all of them. To change a running
/// layer, prefer the handle.
#[derive(Debug)]
#[must_use]
pub struct RateLimitLayer<S> {
    pub(crate) shared: Arc<LayerState<S>>,
}

impl<S: Store> RateLimitLayer<S> {
    /// Makes a layer with this store and this policy.
    pub fn new(store: S, policy: Policy) -> Self {
        Self::with_refusal_cache(RefusalCache::new(store), policy)
    }

    /// Works like `new`, but with your settings of the refusal cache.
    ///
    /// The cache remembers refusals of a shared store, so a flood of refused requests hardly reaches the store.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tower_quota::{MemoryStore, Policy, RateLimitLayer, RefusalCache};
    ///
    /// # let shared_store = MemoryStore::new();
    /// let cache = RefusalCache::new(shared_store).max_age(Duration::from_millis(200));
    /// let layer = RateLimitLayer::with_refusal_cache(cache, Policy::new());
    /// # let _ = layer;
    /// ```
    pub fn with_refusal_cache(cache: RefusalCache<S>, policy: Policy) -> Self {
        Self {
            shared: Arc::new(LayerState::new(cache, policy)),
        }
    }

    /// Sets the store of limits that count [locally](crate::OnStoreFailure::Local) in an outage.
    ///
    /// Defaults to a memory store of default capacity. You can share a clone between layers with the same names and
    /// keys, but do not use the store elsewhere, because the layer clears the store after an outage.
    pub fn local_store(self, store: MemoryStore) -> Self {
        self.with(|settings| settings.local = Arc::new(LocalCounters::new(store)))
    }

    /// Calls this closure with each failure of the store, for metrics of your own.
    ///
    /// The closure runs once per undecided request, for each failed call that settles, refunds, renews or releases units,
    /// repeated calls included, and for each [hold](crate::Quota::concurrent) that the store has lost. Your code must not
    /// block or panic. You can downcast the error, unless the store is a [`BoxStore`](crate::BoxStore).
    ///
    /// The layer always logs failures through `tracing` with the target `tower_quota`.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicU64, Ordering};
    /// use tower_quota::{MemoryStore, Policy, RateLimitLayer};
    ///
    /// let failures = Arc::new(AtomicU64::new(0));
    /// let counted = Arc::clone(&failures);
    /// let layer = RateLimitLayer::new(MemoryStore::new(), Policy::new()).on_store_error(move |_| {
    ///     counted.fetch_add(1, Ordering::Relaxed);
    /// });
    /// # let _ = layer;
    /// ```
    pub fn on_store_error(
        self,
        listener: impl Fn(&(dyn Error + 'static)) + Send + Sync + 'static,
    ) -> Self {
        self.with(|settings| {
            settings.on_store_error = Some(Arc::new(OnStoreError(Box::new(listener))))
        })
    }

    /// Calls this closure with every decision, once per request, for metrics and logs.
    ///
    /// Requests without limits, and [skipped](Policy::skip) or [allowed](Policy::allow) requests, are left out. The
    /// closure runs before the request continues or waits, so your code must be quick and never block.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicU64, Ordering};
    /// use tower_quota::{MemoryStore, Policy, RateLimitLayer};
    ///
    /// let refused = Arc::new(AtomicU64::new(0));
    /// let counted = Arc::clone(&refused);
    /// let layer = RateLimitLayer::new(MemoryStore::new(), Policy::new()).on_decision(move |decided| {
    ///     if decided.reason.is_some() {
    ///         counted.fetch_add(1, Ordering::Relaxed);
    ///     }
    /// });
    /// # let _ = layer;
    /// ```
    pub fn on_decision(self, listener: impl Fn(&Decided<'_>) + Send + Sync + 'static) -> Self {
        self.with(|settings| settings.on_decision = Some(Arc::new(OnDecision(Box::new(listener)))))
    }

    /// Puts the [`Decision`](crate::Decision) into the extensions of admitted requests and of responses.
    ///
    /// With the feature `axum`, use the extractor `RequestDecision`. Off by default, to save allocations.
    ///
    /// ```
    /// use axum::{Extension, Router, routing::get};
    /// use tower_quota::{Decision, Limit, MemoryStore, Policy, Quota, RateLimitLayer};
    ///
    /// // Optional, because there is none if no limit applies or the store failed: a plain `Extension` would answer 500.
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

    /// Sets the maximum number of [waiting](crate::Limit::max_wait) requests. Defaults to 10,000.
    ///
    /// The layer refuses further requests without a charge. With 0, requests never wait. A key gets a place only while
    /// more places are free than the key holds. The shared key of limits without [`by`](crate::Limit::by) takes any
    /// place. If several limits of the policy make requests wait, a limit also gets a place only while more places are
    /// free than the limit holds, so that a full tarpit does not keep other requests from waiting. A waiting request costs a few kilobytes, but no task.
    ///
    /// Turns are not bounded. If a client hangs up before its last request, the turn of a leaky bucket stays empty, and
    /// later requests with the key wait longer, up to [`max_wait`](crate::Limit::max_wait). For a counter that clients
    /// share, add a limit by address.
    pub fn max_waiting(self, requests: usize) -> Self {
        let layer = self.apart();
        layer.shared.queue.set_capacity(requests);
        layer
    }

    /// Sets a timeout for calls of the store and the handle. Defaults to 5 seconds.
    ///
    /// A late call counts as failed. Background refunds and settlements get at least a minute. A `RedisStore` has a
    /// shorter deadline.
    pub fn store_timeout(self, longest: Duration) -> Self {
        self.with(|settings| settings.store_timeout = longest)
    }

    /// Counts the clients with most requests, for [`top_busy`](crate::RateLimitHandle::top_busy).
    ///
    /// The layer samples 1 in 32 requests at random. Off by default.
    #[cfg(feature = "top")]
    pub fn count_busy_clients(self) -> Self {
        self.with(|settings| settings.counts_busy = true)
    }

    /// Writes an event for each refusal and for 1 in `admissions` admissions, through `tracing`.
    ///
    /// The target is `tower_quota::decision`. The level is `INFO` for refusals and outages, `DEBUG` for admissions. You
    /// never log keys, addresses or paths. With 0, you get no admissions. Off by default.
    ///
    /// The event of a refusal has the client as a hash, the scope of the key, the route, the wait, the version of the
    /// policy, and the request's own `traceparent` and `x-request-id`. Live rules also log the clients of blocked requests
    /// and of missing keys. Their hashes are the hashes of the admin API, unless you pass a seed to
    /// [`trace_store_calls`](Self::trace_store_calls) and no `key_seed` to the live rules. Without live rules and a seed,
    /// the hashes differ between processes.
    ///
    /// ```
    /// use tower_quota::{MemoryStore, Policy, RateLimitLayer};
    ///
    /// let layer = RateLimitLayer::new(MemoryStore::new(), Policy::new()).trace_decisions(100);
    /// # let _ = layer;
    /// ```
    pub fn trace_decisions(self, admissions: u32) -> Self {
        self.with(|settings| settings.traced_admissions = Some(admissions))
    }

    /// Records a span, through `tracing`, for each decision that waits for a store. Off by default.
    ///
    /// The name is `rate_limit.check`, the target `tower_quota::store`, the level `INFO`.
    ///
    /// | field | value |
    /// |---|---|
    /// | `otel.kind` | `client` |
    /// | `otel.status_code` | `ERROR` if the store fails |
    /// | `rate_limit.limits` | the number of limits |
    /// | `rate_limit.keys` | hashes of the keys, separated by commas, as in audit records with the same seed |
    /// | `rate_limit.rules.version` | the [version](crate::Policy::version) of the policy, if set |
    /// | `rate_limit.outcome` | `allowed`, `queued`, `limited`, `never` (cost above capacity), `error`, or empty if the client left |
    /// | `rate_limit.limit` | the limit closest to exhaustion, or with the longest wait |
    /// | `rate_limit.store.duration_us` | latency of the store in microseconds |
    /// | `error.kind`, `error.message` | `store` or `timeout`, and the error |
    ///
    /// ```
    /// use tower_quota::{MemoryStore, Policy, RateLimitLayer};
    ///
    /// # let key_seed = [7; 16];
    /// let layer = RateLimitLayer::new(MemoryStore::new(), Policy::new()).trace_store_calls(key_seed);
    /// # let _ = layer;
    /// ```
    pub fn trace_store_calls(self, key_seed: [u8; 16]) -> Self {
        self.with(|settings| {
            settings.key_seed = KeySeed::chosen(key_seed);
            settings.traces_calls = true;
        })
    }

    /// Turns off a [check](Check) for mistakes in the configuration.
    ///
    /// ```
    /// use tower_quota::{Check, MemoryStore, Policy, RateLimitLayer};
    ///
    /// // Peers in this private network are clients, although they send `X-Forwarded-For`.
    /// let layer = RateLimitLayer::new(MemoryStore::new(), Policy::new()).without_check(Check::UntrustedProxy);
    /// # let _ = layer;
    /// ```
    pub fn without_check(self, check: Check) -> Self {
        let layer = self.apart();
        layer.shared.observed.checks.turn_off(check);
        layer
    }

    /// Answers refused HTTP requests by this closure. Defaults to [`problem_details`](crate::response::problem_details).
    ///
    /// Return text, bytes, or a [`RefusalBody`](crate::response::RefusalBody). With the feature `axum`, you can return
    /// a response of axum, a status, or a tuple that begins with a status.
    ///
    /// The layer adds rate limit fields, and missing `Retry-After`, `Cache-Control: no-store` and `WWW-Authenticate`.
    /// Responses to `HEAD` lose their body.
    ///
    /// ```
    /// use http::Response;
    /// use tower_quota::{MemoryStore, Policy, RateLimitLayer};
    ///
    /// let layer = RateLimitLayer::new(MemoryStore::new(), Policy::new()).on_refused(|refused| {
    ///     let mut response = Response::new(refused.detail());
    ///     *response.status_mut() = refused.status();
    ///     response
    /// });
    /// # let _ = layer;
    /// ```
    pub fn on_refused<F, R>(self, respond: F) -> Self
    where
        F: Fn(&Refused<'_>) -> R + Send + Sync + 'static,
        R: IntoRefusal,
    {
        self.responding(|settings| {
            settings.on_refused = Some(Arc::new(move |refused| respond(refused).into_refusal()))
        })
    }

    /// Answers refused gRPC calls by this closure. Defaults to [`GrpcStatus::of`].
    ///
    /// Return a [`GrpcStatus`], or a `tonic::Status` with the feature `tonic`. See also [`protocol`](Self::protocol).
    pub fn on_refused_grpc<F, G>(self, status: F) -> Self
    where
        F: Fn(&Refused<'_>) -> G + Send + Sync + 'static,
        G: Into<GrpcStatus>,
    {
        self.responding(|settings| {
            settings.on_refused_grpc = Arc::new(move |refused| status(refused).into())
        })
    }

    /// Sets which refusals are gRPC responses. Defaults to [`Protocol::Auto`].
    pub fn protocol(self, protocol: Protocol) -> Self {
        self.responding(|settings| settings.protocol = protocol)
    }

    /// Reports the limits to clients in these header styles.
    ///
    /// Defaults to [`HeaderStyle::Draft11`] and [`HeaderStyle::XRateLimit`] with [`Reset::Epoch`](crate::Reset::Epoch).
    /// If you pass no styles, refusals still have `Retry-After`.
    ///
    /// ```
    /// use tower_quota::{HeaderStyle, MemoryStore, Policy, RateLimitLayer};
    ///
    /// let layer = RateLimitLayer::new(MemoryStore::new(), Policy::new())
    ///     .headers([HeaderStyle::Draft7]);
    /// # let _ = layer;
    /// ```
    ///
    /// # Panics
    /// Panics when two styles write the same field.
    #[track_caller]
    pub fn headers(self, styles: impl IntoIterator<Item = HeaderStyle>) -> Self {
        let styles: Vec<HeaderStyle> = styles.into_iter().collect();
        let is_custom = |style: &HeaderStyle| matches!(style, HeaderStyle::Custom(_));
        let marks_degraded = !styles.iter().all(is_custom);
        let writers = valid(HeaderStyle::writers(styles));
        self.responding(|settings| {
            settings.writers = writers;
            settings.marks_degraded = marks_degraded;
        })
    }

    /// Returns the written header fields that browsers hide from scripts of other origins.
    ///
    /// Pass the fields to an outer `CorsLayer::expose_headers`.
    ///
    /// ```
    /// use tower_quota::{HeaderStyle, MemoryStore, Policy, Protocol, RateLimitLayer};
    ///
    /// let layer = RateLimitLayer::new(MemoryStore::new(), Policy::new())
    ///     .headers([HeaderStyle::Draft11])
    ///     .protocol(Protocol::Http);
    /// assert_eq!(
    ///     layer.exposed_headers(),
    ///     ["retry-after", "www-authenticate", "ratelimit", "ratelimit-policy", "x-ratelimit-policy"]
    /// );
    /// ```
    #[must_use]
    pub fn exposed_headers(&self) -> Vec<HeaderName> {
        self.shared.rules().settings.responses.fields()
    }

    /// Adds a random time of at most this length to the wait of each refused client. Defaults to zero.
    ///
    /// The [`Decision`](crate::Decision) keeps the exact time.
    pub fn retry_jitter(self, most: Duration) -> Self {
        self.responding(|settings| settings.max_jitter = most)
    }

    /// Adds `X-RateLimit-Shadow`, a list of the shadow limits that would have had an effect. Off by default.
    ///
    /// In `"strict", "challenge";flag, "tarpit";wait`, the first limit would have refused the request, the second
    /// would have flagged the request, and the third would have delayed the request.
    pub fn shadow_header(self) -> Self {
        self.responding(|settings| settings.reports_shadows = true)
    }

    /// Sets the domain of `ErrorInfo` for gRPC clients. Defaults to `tower-quota`.
    pub fn grpc_domain(self, domain: impl Into<Name>) -> Self {
        self.responding(|settings| settings.grpc_domain = domain.into())
    }

    fn responding(self, change: impl FnOnce(&mut ResponseSettings)) -> Self {
        self.with(|settings| change(&mut settings.responses))
    }

    fn with(self, change: impl FnOnce(&mut Settings)) -> Self {
        let layer = self.apart();
        layer.shared.change(change);
        layer
    }

    /// Returns the layer with settings of its own, unless the layer is in use.
    fn apart(self) -> Self {
        if self.shared.is_used() || Arc::strong_count(&self.shared) == 1 {
            return self;
        }
        Self {
            shared: Arc::new(self.shared.fork()),
        }
    }
}

/// The service and the request body must be `Send`, for requests that wait, and the service `Clone`. Put a service that is
/// not `Clone` behind tower's `Buffer`.
impl<Svc: Clone, S> Layer<Svc> for RateLimitLayer<S> {
    type Service = RateLimit<Svc, S>;

    fn layer(&self, inner: Svc) -> Self::Service {
        self.shared.use_now();
        RateLimit::new(inner, Arc::clone(&self.shared))
    }
}

/// A clone shares the state and the settings of the original, until a setting changes one of them.
impl<S> Clone for RateLimitLayer<S> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}
