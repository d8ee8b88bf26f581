//! The state that a layer, its clones and all their services share.

use core::error::Error;
use core::fmt;
use core::time::Duration;
use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};
use http::Request;
use tokio::runtime::Handle;
use tower_quota_core::{Charge, Decision, Key, Name, Operation, RefusalCache, Store};

use crate::checks::{CheckSet, Checks};
use crate::clients::{Blocks, References, TopClients};
use crate::decided::Decided;
use crate::degraded::{LocalCounters, OutageLog};
use crate::head::RequestHead;
use crate::metrics::StoreFailureKind;
use crate::policy::{Ask, Policy};
use crate::request::{Queue, Rules};
use crate::response::{Reason, ResponseSettings};
use crate::settle::{Counted, Settler, detach};
use crate::store_call::within;
use crate::traced::{SpanSettings, trace};

/// The state that a layer, its clones and all their services share.
pub(crate) struct Shared<S> {
    pub(super) store: CachedStore<S>,
    pub(super) settings: Settings,
    /// The rules in force. A request loads them once and keeps them.
    rules: ArcSwap<Rules>,
    checks: Checks,
    pub(super) outage: OutageLog,
    blocks: Blocks,
    top_refused: TopClients,
    top_busy: TopClients,
    references: References,
}

/// The store of a layer behind its refusal cache.
pub(crate) type CachedStore<S> = RefusalCache<S>;

/// The settings of a layer.
#[derive(Clone)]
pub(super) struct Settings {
    pub(super) policy: Policy,
    pub(super) responses: ResponseSettings,
    pub(super) local: Arc<LocalCounters>,
    pub(super) on_store_error: Arc<OnStoreError>,
    pub(super) on_decision: Option<Arc<OnDecision>>,
    pub(super) queue: Arc<Queue>,
    pub(super) store_timeout: Duration,
    /// True if requests and responses carry the decision.
    pub(super) attaches_decision: bool,
    /// The name of this instance, if refusals carry a reference.
    pub(super) references_of: Option<Name>,
    /// True if the busiest clients are counted.
    pub(super) counts_busy: bool,
    /// One of so many admissions is traced, and every refusal; nothing without it.
    pub(super) traced_admissions: Option<u32>,
    pub(super) spans: SpanSettings,
    /// The checks that are turned off.
    pub(super) checks_off: CheckSet,
}

/// The shortest timeout of refunds and settlements, which no request waits for.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(60);

/// One of so many requests is counted for the busiest clients.
const BUSY_SAMPLE: u32 = 32;

/// A listener that is called with every failure of the store.
pub(super) type OnStoreError = dyn Fn(&(dyn Error + 'static)) + Send + Sync;

/// A listener that is called with every decision.
pub(super) type OnDecision = dyn Fn(&Decided<'_>) + Send + Sync;

impl<S: Store> Shared<S> {
    pub(super) fn new(store: CachedStore<S>, settings: Settings) -> Self {
        let checks = Checks::new(settings.checks_off);
        let rules = rules(settings.policy.clone(), &settings, &checks, &store);
        let (rules, blocks) = (ArcSwap::from_pointee(rules), Blocks::default());
        let (top_refused, top_busy) = (TopClients::default(), TopClients::default());
        let references = References::default();
        Self {
            store,
            settings,
            rules,
            checks,
            outage: OutageLog::default(),
            blocks,
            top_refused,
            top_busy,
            references,
        }
    }

    /// Replaces the policy in force.
    pub(crate) fn replace_policy(&self, policy: Policy) {
        self.rules.store(Arc::new(rules(
            policy,
            &self.settings,
            &self.checks,
            &self.store,
        )));
    }
}

/// Compiles a policy.
fn rules<S: Store>(
    policy: Policy,
    settings: &Settings,
    checks: &Checks,
    store: &CachedStore<S>,
) -> Rules {
    let number = store
        .identity()
        .unwrap_or_else(|| core::ptr::from_ref(store.store()).addr());
    let has_listener = settings.on_decision.is_some() || settings.traced_admissions.is_some();
    Rules::new(
        policy,
        &settings.responses,
        settings.attaches_decision,
        has_listener,
        checks,
        number,
    )
}

impl<S> Shared<S> {
    /// Returns the rules in force.
    #[inline]
    pub(crate) fn rules(&self) -> Guard<Arc<Rules>> {
        self.rules.load()
    }

    pub(crate) const fn checks(&self) -> &Checks {
        &self.checks
    }

    pub(crate) const fn store(&self) -> &CachedStore<S> {
        &self.store
    }

    pub(crate) const fn store_timeout(&self) -> Duration {
        self.settings.store_timeout
    }

    pub(crate) fn queue(&self) -> &Queue {
        &self.settings.queue
    }

    #[inline]
    pub(crate) const fn blocks(&self) -> &Blocks {
        &self.blocks
    }

    pub(crate) const fn top_refused(&self) -> &TopClients {
        &self.top_refused
    }

    pub(crate) const fn top_busy(&self) -> &TopClients {
        &self.top_busy
    }

    pub(crate) const fn references(&self) -> &References {
        &self.references
    }

    /// Counts a sample of the requests for the busiest clients.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "a call would take as long as the sample"
    )]
    pub(super) fn note_busy(&self, ask: &Ask<'_, '_>) {
        if self.settings.counts_busy && fastrand::u32(..).is_multiple_of(BUSY_SAMPLE) {
            let now = crate::clients::now();
            for (limit, key) in ask.parts() {
                self.top_busy
                    .count(limit, key, u64::from(BUSY_SAMPLE), now, now);
            }
        }
    }

    /// Counts a decision, and calls the listener for decisions, if there is one.
    #[inline]
    pub(super) fn notify<B>(
        &self,
        rules: &Rules,
        decision: Option<&Decision>,
        reason: Option<Reason<'_>>,
        degraded: bool,
        keys: &[(Name, Key<'static>)],
        request: &Request<B>,
    ) {
        let decided = Decided {
            head: RequestHead::of(request),
            decision,
            reason,
            degraded,
            keys,
        };
        rules.metrics.count(&decided);
        if let Some(one_of) = self.settings.traced_admissions {
            trace(&decided, one_of);
        }
        if let Some(listener) = &self.settings.on_decision {
            listener(&decided);
        }
    }
}

impl<S: Store> Settler for Shared<S> {
    fn apply(
        &self,
        counted: Counted,
        operation: Operation,
        charges: &[Charge<'_>],
        runtime: Option<&Handle>,
    ) {
        if counted == Counted::Locally {
            self.settings.local.apply(operation, charges);
            return;
        }
        let on_store_error = Arc::clone(&self.settings.on_store_error);
        let answer = within(self.timeout(), self.store.apply(operation, charges));
        let rules = self.rules.load_full();
        let call = async move {
            if let Err(error) = answer.await {
                rules.metrics.store_failed(StoreFailureKind::Settle);
                on_store_error(error.error());
            }
        };
        detach(call, runtime);
    }

    fn timeout(&self) -> Duration {
        self.settings.store_timeout.max(SETTLE_TIMEOUT)
    }

    fn failed(&self, error: &(dyn Error + 'static)) {
        self.rules().metrics.store_failed(StoreFailureKind::Settle);
        (self.settings.on_store_error)(error);
    }
}

impl<S: fmt::Debug> fmt::Debug for Shared<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let policy = &self.settings.policy;
        f.debug_struct("Shared")
            .field("store", &self.store)
            .field("policy", policy)
            .finish_non_exhaustive()
    }
}
