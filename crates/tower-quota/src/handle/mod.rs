//! Operations on a running layer: peek at a client, reset it, grant it units, block it, change the policy, shut down.

mod client;
mod error;

use core::fmt;
use core::time::Duration;
use std::sync::Arc;

use tower_quota_core::{
    Algorithm, Charge, Key, LimitStatus, Limiter, Name, Operation, Quota, RefusalCache,
    RefusalStats, Store,
};

pub use self::client::ClientKey;
pub use self::error::HandleError;
use crate::checks::ChecksReport;
#[cfg(feature = "top")]
use crate::clients::{TopClient, TopWindow};
use crate::head::RequestHead;
use crate::layer::{RateLimitLayer, Shared};
use crate::limit::Limit;
use crate::policy::{Ask, Explained, Plan, Policy};
use crate::request::Rules;
use crate::store_call::within;

/// A handle that operates a running [`RateLimitLayer`], made by [`RateLimitLayer::handle`].
///
/// You name a client by a limit and a [`ClientKey`]: text that the limit's extractor reads (an address, an API key),
/// an address, a [`Key`], or a request of the client. Clones operate the same layer.
///
/// ```
/// use std::time::Duration;
/// use tower_quota::{Limit, MemoryStore, Policy, Quota, RateLimitLayer, key};
///
/// # async fn operate() -> Result<(), Box<dyn std::error::Error>> {
/// let policy = Policy::new().limit(Limit::new("login", Quota::per_minute(5)).by(key::client_ip()));
/// let layer = RateLimitLayer::new(MemoryStore::new(), policy);
/// let handle = layer.handle();
///
/// let status = handle.peek("login", "203.0.113.7").await?;
/// println!("{} of {} left", status.remaining(), status.limit);
/// handle.reset("login", "203.0.113.7").await?;
/// handle.block("login", "198.51.100.9", Duration::from_secs(600))?;
/// # Ok(())
/// # }
/// ```
///
/// In a handler, the request itself names the client:
///
/// ```
/// use axum::extract::State;
/// use http::request::Parts;
/// use tower_quota::{MemoryStore, RateLimitHandle};
///
/// async fn logged_in(State(limits): State<RateLimitHandle<MemoryStore>>, head: Parts) {
///     if let Err(error) = limits.reset("login", &head).await {
///         eprintln!("{error}");
///     }
/// }
/// ```
pub struct RateLimitHandle<S> {
    shared: Arc<Shared<S>>,
}

impl<S: Store> RateLimitLayer<S> {
    /// Returns a handle that operates this layer, its clones, and the services that they make.
    #[must_use]
    pub fn handle(&self) -> RateLimitHandle<S> {
        RateLimitHandle {
            shared: Arc::clone(self.shared()),
        }
    }
}

impl<S: Store> RateLimitHandle<S> {
    /// Returns the names of the policy's limits.
    #[must_use]
    pub fn limits(&self) -> Vec<Name> {
        self.shared
            .rules()
            .plan
            .limits()
            .map(|limit| limit.name)
            .collect()
    }

    /// Returns the key by which a limit counts a client.
    ///
    /// # Errors
    /// [`HandleError`] when there is no such limit, or its extractor cannot read the text.
    pub fn key<'k>(
        &self,
        limit: &str,
        client: impl Into<ClientKey<'k>>,
    ) -> Result<Key<'static>, HandleError<S::Error>> {
        find(&self.shared.rules().plan, limit, client.into()).map(|(_, key)| key)
    }

    /// Returns a limiter on the counters of a limit, to charge units while a request runs.
    ///
    /// Use the limiter for the messages of a stream or a websocket. Count by the [key](Self::key) of the client. The
    /// limiter has the quota of the limit as it is now, not a quota by [request](Limit::quota_with) or by
    /// [key](Limit::quota_of_key), and ignores blocks.
    ///
    /// ```
    /// use http::request::Parts;
    /// use tower_quota::{MemoryStore, RateLimitHandle};
    ///
    /// async fn send_rows(
    ///     limits: RateLimitHandle<MemoryStore>,
    ///     request: Parts,
    /// ) -> Result<(), Box<dyn std::error::Error>> {
    ///     let (rows, client) = (limits.limiter("rows")?, limits.key("rows", &request)?);
    ///     while rows.check(&client).await?.is_allowed() {
    ///         // Send the next row.
    ///     }
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// [`HandleError::UnknownLimit`] when there is no such limit.
    pub fn limiter(&self, limit: &str) -> Result<Limiter<RefusalCache<S>>, HandleError<S::Error>> {
        let rules = self.shared.rules();
        let limit = named(&rules.plan, limit)?;
        let store = self.shared.store().clone();
        let longest_wait = limit.longest_wait.unwrap_or(Limit::DEFAULT_MAX_WAIT);
        // The policy has checked the name.
        Ok(Limiter::new(store, limit.name, limit.quota)
            .scope(limit.extractor.scope())
            .max_wait(longest_wait))
    }

    /// Returns what the policy in force would do with a request, without counting it or calling the store.
    ///
    /// If a [split](Policy::split) decides the request, its policy explains.
    #[must_use]
    pub fn explain(&self, head: &RequestHead<'_>) -> Explained {
        self.shared.rules().of_head(head).plan.explain(head)
    }

    /// Returns what a request of one unit would get from a limit now, without charging it.
    ///
    /// The status does not include a [block](Self::block): see [`blocked_for`](Self::blocked_for). If a request names
    /// the client, the quota of the request counts, such as that of its tier. Otherwise the quota [of the
    /// key](Limit::quota_of_key) or the limit's own counts.
    ///
    /// # Errors
    /// [`HandleError`] when there is no such limit, its extractor cannot read the text, or the store fails.
    pub async fn peek<'k>(
        &self,
        limit: &str,
        client: impl Into<ClientKey<'k>>,
    ) -> Result<LimitStatus, HandleError<S::Error>> {
        self.apply(Operation::Peek, limit, client.into(), 1).await
    }

    /// Deletes the counter, the penalty and the [block](Self::block) of a client of a limit.
    ///
    /// # Errors
    /// As those of [`peek`](Self::peek).
    pub async fn reset<'k>(
        &self,
        limit: &str,
        client: impl Into<ClientKey<'k>>,
    ) -> Result<LimitStatus, HandleError<S::Error>> {
        let client = client.into();
        self.unblock(limit, client)?;
        self.apply(Operation::Reset, limit, client, 1).await
    }

    /// Gives units back to a client, up to a full limit. Returns the new status.
    ///
    /// A sliding window gets back only units that were counted in its present window.
    ///
    /// # Errors
    /// As those of [`peek`](Self::peek), and [`HandleError::NotGranted`] for a sliding log and a concurrency limit.
    pub async fn grant<'k>(
        &self,
        limit: &str,
        client: impl Into<ClientKey<'k>>,
        units: u64,
    ) -> Result<LimitStatus, HandleError<S::Error>> {
        let client = client.into();
        let rules = self.shared.rules();
        let plan = plan_of(&rules, client);
        let (limit, key) = find(plan, limit, client)?;
        let quota = quota_of(plan, limit, client, &key);
        if matches!(
            quota.algorithm(),
            Algorithm::SlidingLog | Algorithm::Concurrent
        ) {
            return Err(HandleError::NotGranted(limit.name));
        }
        // A refund needs an instant of the store's clock, and a counter under this quota: a plain refusal converts it,
        // and counts nothing. A store that leases counts by the limit's own quota only what it never leases.
        let (granted, mut refused) = (
            limit.charge(&quota, &key, units),
            Charge::new(limit.name, &quota, &key),
        );
        if granted.is_exact() || granted.counts_refusals() || granted.penalised_by().is_some() {
            refused = refused.exact();
        }
        let refused = self.shared.store().apply(Operation::Refuse, &[refused]);
        let refused = within(self.shared.store_timeout(), refused).await?;
        self.status(
            Operation::Refund {
                taken_at: refused.at(),
            },
            granted,
        )
        .await
    }

    /// Refuses all requests of a client that this limit applies to, for this time, with 403.
    ///
    /// The block holds in this process only. It refuses each request that sends the client's key for this limit, also
    /// next to another key. While there are blocks, the layer refuses requests that send more than 64 keys for one
    /// limit.
    ///
    /// # Errors
    /// [`HandleError`] when there is no such limit, its extractor cannot read the text, the key is the empty key of clients with conflicting values, or the process has 100,000 blocks.
    pub fn block<'k>(
        &self,
        limit: &str,
        client: impl Into<ClientKey<'k>>,
        length: Duration,
    ) -> Result<(), HandleError<S::Error>> {
        let rules = self.shared.rules();
        let (limit, key) = find(&rules.plan, limit, client.into())?;
        if key.as_bytes().is_empty() && key != Key::EVERYONE {
            return Err(HandleError::UnreadableKey(limit.name));
        }
        if self.shared.blocks().insert(limit.name, &key, length) {
            Ok(())
        } else {
            Err(HandleError::TooManyBlocks)
        }
    }

    /// Ends a block. Returns whether the client was blocked.
    ///
    /// # Errors
    /// [`HandleError`] when there is no such limit, or its extractor cannot read the text.
    pub fn unblock<'k>(
        &self,
        limit: &str,
        client: impl Into<ClientKey<'k>>,
    ) -> Result<bool, HandleError<S::Error>> {
        let rules = self.shared.rules();
        let (limit, key) = find(&rules.plan, limit, client.into())?;
        Ok(self.shared.blocks().remove(limit.name, &key))
    }

    /// Returns the time until the [block](Self::block) of a client ends; `None` if it is not blocked.
    ///
    /// # Errors
    /// As those of [`unblock`](Self::unblock).
    pub fn blocked_for<'k>(
        &self,
        limit: &str,
        client: impl Into<ClientKey<'k>>,
    ) -> Result<Option<Duration>, HandleError<S::Error>> {
        let rules = self.shared.rules();
        let (limit, key) = find(&rules.plan, limit, client.into())?;
        Ok(self.shared.blocks().remaining(limit.name, &key))
    }

    /// Returns the clients that this process has refused most in a window.
    ///
    /// Each client comes with the limit that refused it. The list has at most [`TopClient::MOST`] clients, and no client with
    /// a key above [`TopClient::LONGEST_KEY`].
    ///
    /// ```
    /// use tower_quota::{MemoryStore, Policy, RateLimitLayer, TopWindow};
    ///
    /// let handle = RateLimitLayer::new(MemoryStore::new(), Policy::new()).handle();
    /// for client in handle.top_refused(TopWindow::TenMinutes) {
    ///     println!("{} was refused {} times", client.text().unwrap_or_default(), client.at_least());
    /// }
    /// ```
    #[cfg(feature = "top")]
    #[must_use]
    pub fn top_refused(&self, window: TopWindow) -> Vec<TopClient> {
        self.shared.top_refused.top(window, crate::clients::now())
    }

    /// Returns the clients that sent most requests to this process in a window.
    ///
    /// A client is listed once for every limit that applied. The list is empty unless the layer
    /// [counts](RateLimitLayer::count_busy_clients) busy clients. The numbers are estimates from a sample. For a client with
    /// 3,200 requests the error is about a tenth.
    #[cfg(feature = "top")]
    #[must_use]
    pub fn top_busy(&self, window: TopWindow) -> Vec<TopClient> {
        self.shared.top_busy.top(window, crate::clients::now())
    }

    /// Returns the [version](Policy::version) of the policy in force, if it has one.
    #[must_use]
    pub fn policy_version(&self) -> Option<u64> {
        self.shared.rules().plan.version
    }

    /// Returns figures of the [refusal cache](RateLimitLayer::with_refusal_cache). They are those of this process.
    #[must_use]
    pub fn refusal_stats(&self) -> RefusalStats {
        self.shared.store().stats()
    }

    /// Publishes the metrics of this layer and its clones to the recorder: see [`metrics`](crate::metrics).
    ///
    /// Call it before each scrape, or every few seconds, once for each layer. Without the call, all counters of the recorder
    /// stay 0. The gauges have the label `layer` with this name. The call takes about a microsecond for each series that has
    /// changed, and no request waits for it.
    #[cfg(feature = "metrics")]
    pub fn publish_metrics(&self, layer: impl Into<Name>) {
        let layer = layer.into();
        self.shared.publish_policies();
        crate::metrics::publish_layer(layer, self.waiting(), self.refusal_stats());
        #[cfg(feature = "top")]
        {
            let busy = self.top_busy(TopWindow::Minute);
            let refused = self.top_refused(TopWindow::Minute);
            crate::metrics::publish_clients(layer, busy.first(), refused.len());
        }
    }

    /// Returns the decisions of each limit in this process since the policy in force was set.
    ///
    /// Limits are in the order of the policy, with the limits of its [split](Policy::split) added by name. Limits beyond
    /// [`MAX_LIMITS`](crate::metrics::MAX_LIMITS) are left out.
    ///
    /// ```
    /// use tower_quota::{Limit, MemoryStore, Policy, Quota, RateLimitLayer};
    ///
    /// let policy = Policy::new().limit(Limit::new("minute", Quota::per_minute(100)));
    /// let handle = RateLimitLayer::new(MemoryStore::new(), policy).handle();
    /// assert_eq!(handle.decision_totals()[0].limited, 0);
    /// ```
    #[cfg(feature = "metrics")]
    #[must_use]
    pub fn decision_totals(&self) -> Vec<crate::metrics::DecisionTotals> {
        self.shared.rules().metrics.totals()
    }

    /// Returns the durations of the store's calls in this process since the policy in force was set.
    ///
    /// Decisions that need no call, such as those of a memory store, are not among them.
    #[cfg(feature = "metrics")]
    #[must_use]
    pub fn store_latency(&self) -> crate::metrics::StoreLatency {
        self.shared.rules().metrics.store_latency()
    }

    /// Returns the mistakes in the configuration that requests have shown so far.
    ///
    /// ```
    /// use tower_quota::{Check, MemoryStore, Policy, RateLimitLayer};
    ///
    /// let handle = RateLimitLayer::new(MemoryStore::new(), Policy::new()).handle();
    /// assert_eq!(handle.mistakes().count(Check::NoPeerAddress), 0);
    /// ```
    pub fn mistakes(&self) -> ChecksReport {
        self.shared.checks().report()
    }

    /// Replaces the policy. The old policy decides and answers requests that have begun.
    ///
    /// Limits keep their counters by name, and a changed quota converts them. A raised window takes effect at once. A
    /// bucket keeps the units that are left and refills at the new rate. To release a client now,
    /// [`reset`](Self::reset) it or [`grant`](Self::grant) it units.
    pub fn replace_policy(&self, policy: Policy) {
        self.shared.replace_policy(policy);
    }

    /// Returns the number of requests that wait for their turn in this process, for a gauge.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.shared.queue().waiting()
    }

    /// Refuses the requests that wait for their turn, and those that would have to wait, for shutdown.
    ///
    /// The layer refunds their turns, and answers as if the queue were full.
    pub fn close_queue(&self) {
        self.shared.queue().close();
    }

    async fn apply(
        &self,
        operation: Operation,
        limit: &str,
        client: ClientKey<'_>,
        units: u64,
    ) -> Result<LimitStatus, HandleError<S::Error>> {
        let rules = self.shared.rules();
        let plan = plan_of(&rules, client);
        let (limit, key) = find(plan, limit, client)?;
        let quota = quota_of(plan, limit, client, &key);
        self.status(operation, limit.charge(&quota, &key, units))
            .await
    }

    async fn status(
        &self,
        operation: Operation,
        charge: Charge<'_>,
    ) -> Result<LimitStatus, HandleError<S::Error>> {
        let decision = within(
            self.shared.store_timeout(),
            self.shared.store().apply(operation, &[charge]),
        )
        .await?;
        decision
            .statuses()
            .first()
            .copied()
            .ok_or(HandleError::NoStatus)
    }
}

/// Returns the plan that decides the requests of a client: that of the split only if a request names the client.
fn plan_of<'r>(rules: &'r Arc<Rules>, client: ClientKey<'_>) -> &'r Plan {
    match client {
        ClientKey::Request(head) => &rules.of_head(&head).plan,
        _ => &rules.plan,
    }
}

/// Finds a limit by its name, and the key by which it counts a client.
fn find<'p, E>(
    plan: &'p Plan,
    name: &str,
    client: ClientKey<'_>,
) -> Result<(&'p Limit, Key<'static>), HandleError<E>> {
    let limit = named(plan, name)?;
    let key = client
        .read_by(&*limit.extractor)
        .ok_or(HandleError::UnreadableKey(limit.name))?;
    Ok((limit, key))
}

fn named<'p, E>(plan: &'p Plan, name: &str) -> Result<&'p Limit, HandleError<E>> {
    plan.limit_named(name)
        .ok_or_else(|| HandleError::UnknownLimit {
            name: name.to_owned(),
            known: plan.limits().map(|limit| limit.name).collect(),
        })
}

/// Returns the quota by which a limit counts a client: that of its request, or else of its key.
fn quota_of(plan: &Plan, limit: &Limit, client: ClientKey<'_>, key: &Key<'_>) -> Quota {
    let ClientKey::Request(head) = client else {
        return limit.quota_by_key(key);
    };
    let mut ask = Ask::new(plan);
    // Without a key of some limit, the quotas of those after it are their own.
    let _not_asked = ask.read(&head).err();
    ask.other_quota(limit.name).copied().unwrap_or(limit.quota)
}

impl<S> Clone for RateLimitHandle<S> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<S: fmt::Debug> fmt::Debug for RateLimitHandle<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimitHandle")
            .field("shared", &self.shared)
            .finish()
    }
}
