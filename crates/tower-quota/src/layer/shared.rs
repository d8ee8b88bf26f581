//! The state that a layer, its clones and all their services share.

use core::error::Error;
use core::fmt;
use core::ops::Deref;
use core::time::Duration;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::{ArcSwap, Guard};
use http::Request;
use tokio::runtime::Handle;
use tower_quota_core::{BoxStore, Charge, Operation, RefusalCache, Store};

use super::settings::Settings;
use crate::checks::Checks;
use crate::clients::Blocks;
#[cfg(feature = "top")]
use crate::clients::TopClients;
use crate::decided::Decided;
use crate::degraded::OutageLog;
use crate::head::RequestHead;
#[cfg(feature = "metrics")]
use crate::metrics::ReplacedMetrics;
use crate::metrics::StoreFailureKind;
#[cfg(feature = "top")]
use crate::policy::Ask;
use crate::policy::Policy;
use crate::request::{Queue, RequestContext, Rules, Streaks};
use crate::response::Reason;
use crate::settle::{Counted, Settler, detach};
use crate::store_call::within;
use crate::traced::trace;

pub(crate) struct Shared<S> {
    pub(crate) store: CachedStore<S>,
    state: Arc<State>,
}

/// The state without the store. Handles over a boxed store share this state.
pub(crate) struct State {
    store_number: usize,
    /// The rules in force. A request loads them once and keeps them.
    rules: ArcSwap<Rules>,
    /// The lock that a thread holds while it replaces the rules.
    changing: Mutex<()>,
    pub(crate) checks: Arc<Checks>,
    pub(crate) queue: Arc<Queue>,
    pub(super) streaks: Streaks,
    pub(super) outage: OutageLog,
    pub(crate) blocks: Blocks,
    #[cfg(feature = "top")]
    pub(crate) top_refused: TopClients,
    #[cfg(feature = "top")]
    pub(crate) top_busy: TopClients,
    #[cfg(feature = "metrics")]
    replaced: ReplacedMetrics,
}

pub(crate) type CachedStore<S> = RefusalCache<S>;

/// The shortest timeout of refunds and settlements, which no request waits for.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(60);

/// One request in this number is counted for the busiest clients.
#[cfg(feature = "top")]
const BUSY_SAMPLE: u32 = 32;

impl<S: Store> Shared<S> {
    pub(super) fn new(store: CachedStore<S>, policy: Policy) -> Self {
        let checks = Arc::<Checks>::default();
        let number = store
            .identity()
            .unwrap_or_else(|| core::ptr::from_ref(store.store()).addr());
        let rules = Rules::new(policy, Arc::default(), &checks, number);
        let state = State {
            store_number: number,
            rules: ArcSwap::from_pointee(rules),
            changing: Mutex::default(),
            checks,
            queue: Arc::new(Queue::new(Queue::DEFAULT_CAPACITY)),
            streaks: Streaks::default(),
            outage: OutageLog::default(),
            blocks: Blocks::default(),
            #[cfg(feature = "top")]
            top_refused: TopClients::default(),
            #[cfg(feature = "top")]
            top_busy: TopClients::default(),
            #[cfg(feature = "metrics")]
            replaced: ReplacedMetrics::default(),
        };
        Self {
            store,
            state: Arc::new(state),
        }
    }

    pub(crate) fn boxed(&self) -> Shared<BoxStore> {
        Shared {
            store: self.store.boxed(),
            state: Arc::clone(&self.state),
        }
    }
}

impl<S> Deref for Shared<S> {
    type Target = State;

    #[inline]
    fn deref(&self) -> &State {
        &self.state
    }
}

impl State {
    pub(crate) fn replace_policy(&self, policy: Policy) {
        self.replace(|rules| (policy, Arc::clone(&rules.settings)));
    }

    pub(super) fn change(&self, change: impl FnOnce(&mut Settings)) {
        self.replace(|rules| {
            let mut settings = (*rules.settings).clone();
            change(&mut settings);
            (rules.policy.clone(), Arc::new(settings))
        });
    }

    fn replace(&self, new: impl FnOnce(&Rules) -> (Policy, Arc<Settings>)) {
        // Two changes at the same time must not lose one.
        let _alone = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let (policy, settings) = new(&self.rules.load());
        let rules = Rules::new(policy, settings, &self.checks, self.store_number);
        let replaced = self.rules.swap(Arc::new(rules));
        #[cfg(feature = "metrics")]
        self.replaced.add(&replaced.metrics);
        drop(replaced);
    }

    #[inline]
    pub(crate) fn rules(&self) -> Guard<Arc<Rules>> {
        self.rules.load()
    }

    #[cfg(feature = "metrics")]
    pub(crate) fn publish_policies(&self) {
        self.replaced.publish();
        self.rules().metrics.publish();
    }

    pub(crate) fn store_timeout(&self) -> Duration {
        self.rules().settings.store_timeout
    }

    /// Counts a sample of the requests for the busiest clients.
    #[cfg(feature = "top")]
    #[inline]
    pub(super) fn note_busy(&self, rules: &Rules, ask: &Ask<'_, '_>) {
        if rules.settings.counts_busy && fastrand::u32(..).is_multiple_of(BUSY_SAMPLE) {
            let now = crate::clients::now();
            for (limit, key) in ask.parts() {
                self.top_busy
                    .count(limit, key, u64::from(BUSY_SAMPLE), now, now);
            }
        }
    }

    /// Counts a decision, and calls the listener for decisions, if there is one.
    #[inline]
    pub(super) fn observe<B>(
        &self,
        context: &RequestContext,
        reason: Option<Reason<'_>>,
        request: &Request<B>,
    ) {
        let decided = Decided {
            head: RequestHead::of(request),
            decision: context.report.decision.as_ref(),
            reason,
            is_degraded: context.report.is_degraded(),
            keys: &context.keys,
        };
        self.notify(&context.rules, &decided);
    }

    pub(super) fn notify(&self, rules: &Rules, decided: &Decided<'_>) {
        rules.metrics.count(decided);
        if let Some(one_of) = rules.settings.traced_admissions {
            trace(decided, one_of, &rules.plan, &rules.settings.spans);
        }
        if let Some(listener) = &rules.settings.on_decision {
            listener(decided);
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
        let rules = self.rules.load_full();
        if counted == Counted::Locally {
            rules.settings.local.apply(operation, charges);
            return;
        }
        let answer = within(self.timeout(), self.store.apply(operation, charges));
        let call = async move {
            if let Err(error) = answer.await {
                rules.metrics.store_failed(StoreFailureKind::Settle);
                (rules.settings.on_store_error)(error.error());
            }
        };
        detach(call, runtime);
    }

    fn timeout(&self) -> Duration {
        self.store_timeout().max(SETTLE_TIMEOUT)
    }

    fn failed(&self, error: &(dyn Error + 'static)) {
        let rules = self.rules();
        rules.metrics.store_failed(StoreFailureKind::Settle);
        (rules.settings.on_store_error)(error);
    }
}

impl<S: fmt::Debug> fmt::Debug for Shared<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("store", &self.store)
            .field("policy", &self.rules().policy)
            .finish_non_exhaustive()
    }
}
