//! Operations on a running layer.

mod client;
mod error;

use core::time::Duration;
use std::sync::Arc;

use tower_quota_core::{
    Algorithm, BoxStore, Charge, Decision, Key, LimitStatus, Limiter, Name, Operation, Quota,
    RefusalCache, RefusalStats, Store, Timestamp,
};

pub use self::client::ClientKey;
pub use self::error::HandleError;
use crate::checks::ChecksReport;
use crate::clients::Blocks;
#[cfg(feature = "top")]
use crate::clients::{TopClient, TopWindow};
use crate::degraded::RecentOutage;
use crate::head::RequestHead;
use crate::layer::{LayerState, RateLimitLayer};
use crate::limit::{Limit, Over};
use crate::observe::{Decided, OnRefusal};
use crate::policy::{Charges, Explained, Plan, Policy, RequestCharges};
use crate::settle::within;
use crate::traced::KeySeed;

/// Operates a running layer. Get a handle from [`RateLimitLayer::handle`].
///
/// Name a client by a limit and a [`ClientKey`], such as an address. Operations fail with [`HandleError`] if the limit
/// is unknown or cannot read the client.
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
/// In a handler, name the client by the request:
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
#[derive(Debug)]
pub struct RateLimitHandle<S> {
    shared: Arc<LayerState<S>>,
}

impl<S: Store> RateLimitLayer<S> {
    /// Returns a handle that operates this layer, and the clones that share its settings.
    #[must_use]
    pub fn handle(&self) -> RateLimitHandle<S> {
        self.shared.use_now();
        RateLimitHandle {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<S: Store> RateLimitHandle<S> {
    /// Returns a handle on the same layer with a type that does not name the store.
    #[must_use]
    pub fn boxed(&self) -> RateLimitHandle<BoxStore> {
        RateLimitHandle {
            shared: Arc::new(self.shared.boxed()),
        }
    }

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

    /// Returns the limits that no request has had so far, for example because of a typo in a [path](crate::when::path()).
    ///
    /// The layer looks at the first 10,000 requests after you set the policy. Limits of rare requests may stay in the
    /// list.
    #[must_use]
    pub fn unmet_limits(&self) -> Vec<Name> {
        let rules = self.shared.rules();
        let names: Vec<Name> = rules.plan.limits().map(|limit| limit.name).collect();
        let unmet = rules.watch.unmet();
        unmet
            .filter_map(|position| names.get(position).copied())
            .collect()
    }

    /// Returns the key by which a limit counts a client.
    pub fn key<'k>(
        &self,
        limit: &str,
        client: impl Into<ClientKey<'k>>,
    ) -> Result<Key<'static>, HandleError<S::Error>> {
        self.client(limit, client.into()).map(|(_, key)| key)
    }

    /// Returns the present quota of a client, as [`peek`](Self::peek) counts the client.
    pub fn quota<'k>(
        &self,
        limit: &str,
        client: impl Into<ClientKey<'k>>,
    ) -> Result<Quota, HandleError<S::Error>> {
        let (rules, client) = (self.shared.rules(), client.into());
        find(&rules.plan, limit, client).map(|found| found.quota)
    }

    /// Checks that a limit can count a client by another quota. Returns the scope of the limit's keys.
    ///
    /// # Errors
    /// Returns [`HandleError::InvalidQuota`] if a policy would reject the limit with the quota, or
    /// if the quota turns a concurrency limit into another kind of limit.
    pub fn check_quota(&self, limit: &str, quota: Quota) -> Result<Name, HandleError<S::Error>> {
        let rules = self.shared.rules();
        let limit = named(&rules.plan, limit)?;
        let checked = limit.check_with(quota, rules.plan.instances);
        checked.map_err(|error| HandleError::InvalidQuota(limit.name, error))?;
        Ok(limit.extractor.scope())
    }

    /// Returns what a limit does to requests over the quota.
    pub fn over(&self, limit: &str) -> Result<Over, HandleError<S::Error>> {
        named(&self.shared.rules().plan, limit).map(|limit| limit.over)
    }

    /// Returns a limiter on the counters of a limit, to charge units while a request runs.
    ///
    /// Use the limiter for messages of a stream or websocket, with the [key](Self::key) of the client. The limiter
    /// ignores blocks, later policies, and quotas [by request](Limit::quota_with) or [key](Limit::quota_of_key).
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
    /// Concurrency limits fail with [`HandleError::HeldUnits`]. Keep a clone of the
    /// [`Reservation`](crate::settle::Reservation) instead.
    pub fn limiter(&self, limit: &str) -> Result<Limiter<RefusalCache<S>>, HandleError<S::Error>> {
        let rules = self.shared.rules();
        let limit = named(&rules.plan, limit)?;
        if limit.is_hold() {
            return Err(HandleError::HeldUnits(limit.name));
        }
        let store = self.shared.store.clone();
        let longest_wait = limit.longest_wait.unwrap_or(Limit::DEFAULT_MAX_WAIT);
        // The policy has checked the name.
        Ok(Limiter::new(store, limit.name, limit.quota)
            .scope(limit.extractor.scope())
            .max_wait(longest_wait))
    }

    /// Explains the treatment of a request, without counting or calling the store.
    #[must_use]
    pub fn explain(&self, head: &RequestHead<'_>) -> Explained {
        self.shared.rules().plan.explain(head)
    }

    /// Returns the status of a client for a request of one unit, without charging the unit.
    ///
    /// A client named by a request has the quota of the request, otherwise the quota [of the key](Limit::quota_of_key)
    /// or the limit. For blocks, call [`blocked_for`](Self::blocked_for).
    pub async fn peek<'k>(
        &self,
        limit: &str,
        client: impl Into<ClientKey<'k>>,
    ) -> Result<LimitStatus, HandleError<S::Error>> {
        self.apply(Operation::Peek, limit, client.into(), 1).await
    }

    /// Returns the decision that a request would get now, by all of its limits and costs, without charging units.
    ///
    /// Returns `None` if no limit decides, because of the lists of the policy, or because the request has no limit or lacks
    /// a key. Call [`explain`](Self::explain) for the reason, and [`blocked_for`](Self::blocked_for) for blocks.
    ///
    /// ```
    /// use http::Request;
    /// use tower_quota::{Limit, MemoryStore, Policy, Quota, RateLimitLayer, RequestHead};
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
    /// let policy = Policy::new().limit(Limit::new("minute", Quota::per_minute(9)).cost(5));
    /// let handle = RateLimitLayer::new(MemoryStore::new(), policy).handle();
    /// let request = Request::get("/").body(()).unwrap();
    /// let decision = handle.peek_request(&RequestHead::of(&request)).await.unwrap().unwrap();
    /// assert!(decision.is_allowed());
    /// # });
    /// ```
    pub async fn peek_request(
        &self,
        head: &RequestHead<'_>,
    ) -> Result<Option<Decision>, HandleError<S::Error>> {
        let rules = self.shared.rules();
        let mut asked = RequestCharges::new(&rules.plan);
        if rules.plan.lists.find(head).is_none() {
            asked.read(head);
        }
        if asked.is_empty() || asked.refusal.is_some() {
            return Ok(None);
        }
        let mut charges = Charges::new();
        asked.fill(&mut charges, |waiter| self.shared.queue.has_room(waiter));
        let peeked = self.shared.store.apply(Operation::Peek, &charges);
        drop(charges);
        let decision = within(self.shared.store_timeout(), peeked).await?;
        Ok(Some(decision))
    }

    /// Returns the time until the window of a client ends, by the clock of the store.
    ///
    /// Show it to clients next to the status of [`peek`](Self::peek), for example as the end of their month. Unlike
    /// [`LimitStatus::reset_after`], it is the same for clients who have used nothing. See [`Quota::window_ends`] for the
    /// limits without an end, which return `None`.
    pub async fn until_window_ends<'k>(
        &self,
        limit: &str,
        client: impl Into<ClientKey<'k>>,
    ) -> Result<Option<Duration>, HandleError<S::Error>> {
        let rules = self.shared.rules();
        let Found { limit, key, quota } = find(&rules.plan, limit, client.into())?;
        let charge = plain(limit, &quota, &key);
        let peeked = self.shared.store.apply(Operation::Peek, &[charge]);
        let peeked = within(self.shared.store_timeout(), peeked).await?;
        let now = peeked.at().unmarked();
        Ok(quota.window_ends(now).map(|end| end.since(now)))
    }

    /// Deletes the counter, the penalty and the [block](Self::block) of a client of a limit.
    pub async fn reset<'k>(
        &self,
        limit: &str,
        client: impl Into<ClientKey<'k>>,
    ) -> Result<LimitStatus, HandleError<S::Error>> {
        let client = client.into();
        self.unblock(limit, client)?;
        self.apply(Operation::Reset, limit, client, 1).await
    }

    /// Gives used units back to a client, up to a full limit. Returns the new status.
    ///
    /// [`LimitStatus::taken`] is the number of units that the client really got. To admit more than the quota, give the
    /// client another quota by [`Policy::overrides`].
    ///
    /// A sliding window takes back only units of the present window.
    ///
    /// # Errors
    /// Sliding logs and concurrency limits fail with [`HandleError::NotGranted`].
    pub async fn grant<'k>(
        &self,
        limit: &str,
        client: impl Into<ClientKey<'k>>,
        units: u64,
    ) -> Result<LimitStatus, HandleError<S::Error>> {
        let client = client.into();
        let rules = self.shared.rules();
        let Found { limit, key, quota } = find(&rules.plan, limit, client)?;
        if matches!(
            quota.algorithm(),
            Algorithm::SlidingLog | Algorithm::Concurrent
        ) {
            return Err(HandleError::NotGranted(limit.name));
        }
        // A refusal provides the store's time and a counter under this quota, and counts 0 units.
        let refused = plain(limit, &quota, &key);
        let refused = self.shared.store.apply(Operation::Refuse, &[refused]);
        let refused = within(self.shared.store_timeout(), refused).await?;
        let refund = Operation::Refund {
            taken_at: refused.at(),
        };
        self.status(refund, limit, limit.charge(&quota, &key, units))
            .await
    }

    /// Refuses requests of a client to which this limit applies, with 403, for the given time.
    ///
    /// The block holds in this process, also for requests with a second key. While blocks exist, requests with more
    /// than 64 keys for a limit are refused.
    ///
    /// # Errors
    /// Returns [`HandleError`] if 100,000 blocks exist, or if the key is the empty key of
    /// conflicting values.
    pub fn block<'k>(
        &self,
        limit: &str,
        client: impl Into<ClientKey<'k>>,
        length: Duration,
    ) -> Result<(), HandleError<S::Error>> {
        let (limit, key) = self.client(limit, client.into())?;
        if key.as_bytes().is_empty() && key != Key::EVERYONE {
            return Err(HandleError::UnreadableKey(limit));
        }
        if self
            .shared
            .blocks
            .get_or_init(Blocks::default)
            .insert(limit, &key, length)
        {
            Ok(())
        } else {
            Err(HandleError::TooManyBlocks)
        }
    }

    /// Ends a block. Returns whether the client was blocked.
    pub fn unblock<'k>(
        &self,
        limit: &str,
        client: impl Into<ClientKey<'k>>,
    ) -> Result<bool, HandleError<S::Error>> {
        let (limit, key) = self.client(limit, client.into())?;
        let blocks = self.shared.blocks.get();
        Ok(blocks.is_some_and(|blocks| blocks.remove(limit, &key)))
    }

    /// Returns the remaining time of a [block](Self::block), if the client is blocked.
    pub fn blocked_for<'k>(
        &self,
        limit: &str,
        client: impl Into<ClientKey<'k>>,
    ) -> Result<Option<Duration>, HandleError<S::Error>> {
        let (limit, key) = self.client(limit, client.into())?;
        let blocks = self.shared.blocks.get();
        Ok(blocks.and_then(|blocks| blocks.remaining(limit, &key)))
    }

    /// Returns the clients that this process refused most in a window, with the refusing limits.
    ///
    /// The list holds at most [`TopClient::MOST`] clients, with keys up to 1,024 bytes.
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
        let (now, at) = (crate::observe::now(), self.local_now());
        self.shared.observed.refused.0.top(window, now, at)
    }

    /// Returns the clients that sent most requests to this process in a window, for every limit.
    ///
    /// The list is empty unless you [count](RateLimitLayer::count_busy_clients) busy clients. At 3,200 requests the
    /// sample is off by about a tenth.
    #[cfg(feature = "top")]
    #[must_use]
    pub fn top_busy(&self, window: TopWindow) -> Vec<TopClient> {
        let (now, at) = (crate::observe::now(), self.local_now());
        self.shared.observed.busy.0.top(window, now, at)
    }

    /// Returns the [refusal cache](RateLimitLayer::with_refusal_cache) figures of this process.
    #[must_use]
    pub fn refusal_stats(&self) -> RefusalStats {
        self.shared.store.stats()
    }

    /// Returns the figures of this layer, for [`publish_stats`](crate::metrics::publish_stats).
    #[cfg(feature = "metrics")]
    #[must_use]
    pub fn stats(&self) -> crate::metrics::LayerStats {
        #[cfg(feature = "top")]
        let (busy, refused) = (
            self.top_busy(TopWindow::Minute),
            self.top_refused(TopWindow::Minute),
        );
        crate::metrics::LayerStats {
            waiting: self.waiting(),
            refusal_cache: self.refusal_stats(),
            #[cfg(feature = "top")]
            busiest: busy.first().map_or(0, |client| client.at_least() / 60),
            #[cfg(feature = "top")]
            refused_clients: refused.len(),
            #[cfg(feature = "top")]
            longest_wait: refused
                .iter()
                .map(TopClient::retry_after)
                .max()
                .unwrap_or_default(),
            #[cfg(feature = "top")]
            longest_at_limit: self
                .shared
                .observed
                .refused
                .0
                .longest_unadmitted(self.local_now()),
        }
    }

    /// Returns the decisions of each limit in this process since the policy came into force.
    ///
    /// Limits follow the policy, up to 4,000.
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
        let rules = self.shared.rules();
        rules.metrics.totals(&rules.plan)
    }

    /// Returns the durations of store calls in this process since the policy came into force.
    ///
    /// Decisions in memory do not count.
    #[cfg(feature = "metrics")]
    #[must_use]
    pub fn store_latency(&self) -> crate::metrics::StoreLatency {
        self.shared.rules().metrics.store_latency()
    }

    /// Returns the requests of the last ten seconds that the layer decided without the store, if any.
    #[must_use]
    pub fn recent_outage(&self) -> Option<RecentOutage> {
        self.shared.observed.outage.recent(self.local_now())
    }

    /// Returns the time of the clock of local counters, by which observers count.
    fn local_now(&self) -> Timestamp {
        self.shared.rules().settings.local.now()
    }

    /// Returns the mistakes in your configuration, as shown by requests so far.
    ///
    /// ```
    /// use tower_quota::{Check, MemoryStore, Policy, RateLimitLayer};
    ///
    /// let handle = RateLimitLayer::new(MemoryStore::new(), Policy::new()).handle();
    /// assert_eq!(handle.mistakes().count(Check::NoPeerAddress), 0);
    /// ```
    pub fn mistakes(&self) -> ChecksReport {
        let report = self.shared.observed.checks.report();
        report.under_policy_since(self.shared.rules().since)
    }

    /// Replaces the policy. The old policy finishes the requests that have begun.
    ///
    /// Limits keep their counters by name. A raised window takes effect at once, and a bucket refills at the new rate.
    /// To release a client now, [`reset`](Self::reset) or [`grant`](Self::grant).
    pub fn replace_policy(&self, policy: Policy) {
        self.shared.replace_policy(policy);
    }

    /// Returns the number of requests in the queue of this process.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.shared.queue.waiting()
    }

    /// Refuses queued requests and requests that would queue. Call this method at shutdown.
    ///
    /// The layer refunds the turns, and answers as for a full queue.
    pub fn close_queue(&self) {
        self.shared.queue.close();
    }

    /// Calls this function for each refusal from now on, in place of an earlier function of the handle.
    ///
    /// [`LiveRules`] remembers the last refusals by this function. It runs in the path of the request, so it must not
    /// block.
    ///
    /// [`LiveRules`]: https://docs.rs/tower-quota-live
    pub fn on_refusal(&self, read: impl Fn(&Decided<'_>) + Send + Sync + 'static) {
        let listener = Arc::new(OnRefusal(Box::new(read)));
        self.shared
            .change(|settings| settings.on_refusal = Some(listener));
    }

    /// Sets the secret for the hashes of keys in events and spans, as in
    /// [`trace_store_calls`](RateLimitLayer::trace_store_calls).
    pub fn hash_keys_with(&self, key_seed: [u8; 16]) {
        self.shared
            .change(|settings| settings.key_seed = KeySeed::chosen(key_seed));
    }

    /// Sets the secret like [`hash_keys_with`](Self::hash_keys_with), unless you set another one before.
    pub fn hash_keys_by_default(&self, key_seed: [u8; 16]) {
        self.shared.change(|settings| {
            if settings.key_seed.is_default {
                settings.key_seed.bytes = key_seed;
            }
        });
    }

    /// Returns the secret for the hashes of keys in events and spans. The default is random.
    #[must_use]
    pub fn key_seed(&self) -> [u8; 16] {
        self.shared.rules().settings.key_seed.bytes
    }

    /// Finds the client of a request that no limit has refused, for [`Decided::client`] and the events of
    /// [`trace_decisions`](RateLimitLayer::trace_decisions).
    ///
    /// Such requests are blocked, or have no key for a limit. [`LiveRules`] name the key of the block, or else the first
    /// key of the request.
    ///
    /// [`LiveRules`]: https://docs.rs/tower-quota-live
    pub fn find_clients_with(
        &self,
        find: impl Fn(&RequestHead<'_>) -> Option<Key<'static>> + Send + Sync + 'static,
    ) {
        let find = Arc::new(find);
        self.shared
            .change(|settings| settings.find_client = Some(find));
    }

    fn client(
        &self,
        limit: &str,
        client: ClientKey<'_>,
    ) -> Result<(Name, Key<'static>), HandleError<S::Error>> {
        let rules = self.shared.rules();
        let limit = named(&rules.plan, limit)?;
        Ok((limit.name, key_of(limit, client)?))
    }

    async fn apply(
        &self,
        operation: Operation,
        limit: &str,
        client: ClientKey<'_>,
        units: u64,
    ) -> Result<LimitStatus, HandleError<S::Error>> {
        let rules = self.shared.rules();
        let Found { limit, key, quota } = find(&rules.plan, limit, client)?;
        self.status(operation, limit, limit.charge(&quota, &key, units))
            .await
    }

    async fn status(
        &self,
        operation: Operation,
        limit: &Limit,
        charge: Charge<'_>,
    ) -> Result<LimitStatus, HandleError<S::Error>> {
        let applied = self.shared.store.apply(operation, &[charge]);
        let decision = within(self.shared.store_timeout(), applied).await?;
        let mut status = *decision.statuses().first().ok_or(HandleError::NoStatus)?;
        // The store counts a limit that flags requests like a shadow.
        status.is_shadow = limit.is_dry_run();
        Ok(status)
    }
}

struct Found<'r> {
    limit: &'r Limit,
    key: Key<'static>,
    quota: Quota,
}

fn find<'r, E>(
    plan: &'r Plan,
    limit: &str,
    client: ClientKey<'_>,
) -> Result<Found<'r>, HandleError<E>> {
    let limit = named(plan, limit)?;
    let key = key_of(limit, client)?;
    let quota = match client {
        ClientKey::Request(head) => {
            let mut asked = RequestCharges::new(plan);
            asked.read(&head);
            *asked.quota(limit)
        }
        _ => plan.quota_by_key(limit, &key),
    };
    Ok(Found { limit, key, quota })
}

fn key_of<E>(limit: &Limit, client: ClientKey<'_>) -> Result<Key<'static>, HandleError<E>> {
    client
        .read_by(&*limit.extractor)
        .ok_or(HandleError::UnreadableKey(limit.name))
}

fn named<'r, E>(plan: &'r Plan, name: &str) -> Result<&'r Limit, HandleError<E>> {
    plan.limit_named(name)
        .ok_or_else(|| HandleError::UnknownLimit {
            name: name.to_owned(),
            known: plan.limits().map(|limit| limit.name).collect(),
        })
}

/// Returns a charge of one unit without the options of the limit. A leasing store counts by the limit's own quota only
/// charges that it never leases.
fn plain<'a>(limit: &Limit, quota: &'a Quota, key: &'a Key<'a>) -> Charge<'a> {
    let (charge, plain) = (
        limit.charge(quota, key, 1),
        Charge::new(limit.name, quota, key),
    );
    let is_exact = charge.is_exact() || charge.counts_refusals() || charge.penalised_by().is_some();
    if is_exact { plain.exact() } else { plain }
}

impl<S> Clone for RateLimitHandle<S> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}
