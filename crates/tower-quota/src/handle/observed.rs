//! Returns what the layer has observed, and calls listeners.

use std::sync::Arc;

use tower_quota_core::{Key, RefusalStats, Store, Timestamp};

use super::RateLimitHandle;
use crate::checks::ChecksReport;
#[cfg(feature = "top")]
use crate::clients::{TopClient, TopWindow};
use crate::degraded::RecentOutage;
use crate::head::RequestHead;
use crate::observe::{Decided, OnRefusal};

impl<S: Store> RateLimitHandle<S> {
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
    /// The list is empty unless you [count](crate::RateLimitLayer::count_busy_clients) busy clients. At 3,200 requests the
    /// sample is off by about a tenth.
    #[cfg(feature = "top")]
    #[must_use]
    pub fn top_busy(&self, window: TopWindow) -> Vec<TopClient> {
        let (now, at) = (crate::observe::now(), self.local_now());
        self.shared.observed.busy.0.top(window, now, at)
    }

    /// Returns the [refusal cache](crate::RateLimitLayer::with_refusal_cache) figures of this process.
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

    /// Finds the client of a request that no limit has refused, for [`Decided::client`] and the events of
    /// [`trace_decisions`](crate::RateLimitLayer::trace_decisions).
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
}
