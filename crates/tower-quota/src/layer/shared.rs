//! The state that a layer, its services and handles share, and its clones until a setting.

use core::error::Error;
use core::fmt;
use core::ops::Deref;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arc_swap::{ArcSwap, Guard};
use tokio::runtime::Handle;
use tower_quota_core::{
    BoxStore, Charge, HoldEvents, HoldId, HoldKeeper, Name, Operation, OwnedCharge, RefusalCache,
    Store, Timestamp,
};

use super::settings::Settings;
use crate::checks::Checks;
use crate::clients::Blocks;
use crate::limit::Limit;
use crate::observe::{Event, StoreFailure, StoreFailureKind};
use crate::policy::Policy;
use crate::request::{Observed, Queue, Rules};
use crate::settle::{Counted, DroppedRelease, LostHold, Settler, detach, within};

pub(crate) struct LayerState<S> {
    pub(crate) store: CachedStore<S>,
    keeper: HoldKeeper<CachedStore<S>>,
    state: Arc<State>,
}

/// The state without the store. Handles over a boxed store share this state.
pub(crate) struct State {
    /// Whether a service or a handle exists, so that settings change in place.
    is_used: AtomicBool,
    /// The rules in force. A request loads them once and keeps them.
    rules: ArcSwap<Rules>,
    /// The lock that a thread holds while it replaces the rules.
    changing: Mutex<()>,
    pub(crate) observed: Observed,
    pub(crate) queue: Arc<Queue>,
    /// The blocked clients, from the first block on. Requests read the map of a layer with blocks only.
    pub(crate) blocks: OnceLock<Blocks>,
}

pub(crate) type CachedStore<S> = RefusalCache<S>;

/// The shortest timeout of refunds and settlements, which no request waits for.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(60);

impl<S: Store> LayerState<S> {
    pub(super) fn new(store: CachedStore<S>, policy: Policy) -> Self {
        Self::with(store, policy, Arc::default(), Checks::default())
    }

    /// Returns new state with the same store, policy and settings.
    pub(super) fn fork(&self) -> Self {
        let rules = self.rules();
        let (policy, settings) = (rules.policy.clone(), Arc::clone(&rules.settings));
        let checks = self.observed.checks.fork();
        let fork = Self::with(self.store.clone(), policy, settings, checks);
        fork.queue.set_capacity(self.queue.capacity());
        fork
    }

    fn with(
        store: CachedStore<S>,
        policy: Policy,
        settings: Arc<Settings>,
        checks: Checks,
    ) -> Self {
        let number = store
            .identity()
            .unwrap_or_else(|| core::ptr::from_ref(store.store()).addr());
        let observed = Observed::new(number, checks);
        let rules = Rules::new(policy, settings, &observed);
        #[cfg(feature = "metrics")]
        crate::metrics::publish_quotas(None, &rules.plan);
        let state = State {
            is_used: AtomicBool::new(false),
            rules: ArcSwap::from_pointee(rules),
            changing: Mutex::default(),
            observed,
            queue: Arc::new(Queue::new(Queue::DEFAULT_CAPACITY)),
            blocks: OnceLock::new(),
        };
        Self::of(store, Arc::new(state))
    }

    fn of(store: CachedStore<S>, state: Arc<State>) -> Self {
        let keeper = HoldKeeper::new(store.clone(), Arc::clone(&state) as Arc<dyn HoldEvents>);
        Self {
            store,
            keeper,
            state,
        }
    }

    pub(crate) fn boxed(&self) -> LayerState<BoxStore> {
        LayerState::of(self.store.boxed(), Arc::clone(&self.state))
    }
}

impl<S> Deref for LayerState<S> {
    type Target = State;

    #[inline]
    fn deref(&self) -> &State {
        &self.state
    }
}

impl State {
    pub(crate) fn use_now(&self) {
        self.is_used.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Relaxed)
    }

    pub(crate) fn replace_policy(&self, policy: Policy) {
        self.replace(|rules| (policy, Arc::clone(&rules.settings)));
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut Settings)) {
        self.replace(|rules| {
            let mut settings = (*rules.settings).clone();
            change(&mut settings);
            (rules.policy.clone(), Arc::new(settings))
        });
    }

    fn replace(&self, new: impl FnOnce(&Rules) -> (Policy, Arc<Settings>)) {
        // Two changes at the same time must not lose one.
        let _alone = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let old = self.rules.load();
        let (policy, settings) = new(&old);
        let rules = Rules::new(policy, settings, &self.observed);
        #[cfg(feature = "metrics")]
        crate::metrics::publish_quotas(Some(&old.plan), &rules.plan);
        self.rules.store(Arc::new(rules));
    }

    #[inline]
    pub(crate) fn rules(&self) -> Guard<Arc<Rules>> {
        self.rules.load()
    }

    pub(crate) fn store_timeout(&self) -> Duration {
        self.rules().settings.store_timeout
    }
}

impl<S: Store> Settler for LayerState<S> {
    fn apply(
        &self,
        counted: &Counted,
        operation: Operation,
        charges: &[Charge<'_>],
        runtime: Option<&Handle>,
    ) {
        if let Counted::Locally(local) = counted {
            local.apply(operation, charges);
            return;
        }
        let rules = self.rules.load_full();
        let mut releases: Vec<OwnedCharge> = Vec::new();
        if matches!(operation, Operation::Refund { .. }) {
            let held = charges.iter().filter(|charge| charge.is_hold());
            releases.extend(held.map(OwnedCharge::from));
        }
        let keeper = self.keeper.clone();
        let answer = within(self.timeout(), self.store.apply(operation, charges));
        let call = async move {
            let Err(error) = answer.await else {
                return;
            };
            report_failure(&rules, StoreFailureKind::Settle, error.error());
            // A release twice is a release once, because its instant identifies the hold.
            if let Operation::Refund { taken_at } = operation {
                for charge in releases {
                    keeper.repeat_release(charge, taken_at);
                }
            }
        };
        detach(call, runtime);
    }

    fn hold(
        &self,
        counted: &Counted,
        charge: OwnedCharge,
        taken_at: Timestamp,
        longest: Option<Duration>,
    ) -> HoldId {
        match counted {
            Counted::Shared => self.keeper.hold(charge, taken_at, longest),
            Counted::Locally(local) => local.keeper.hold(charge, taken_at, longest),
        }
    }

    fn release(&self, counted: &Counted, hold: HoldId) -> Option<Timestamp> {
        match counted {
            Counted::Shared => self.keeper.release(hold),
            Counted::Locally(local) => local.keeper.release(hold),
        }
    }

    fn timeout(&self) -> Duration {
        self.store_timeout().max(SETTLE_TIMEOUT)
    }

    fn failed(&self, error: &(dyn Error + 'static)) {
        report_failure(&self.rules(), StoreFailureKind::Settle, error);
    }

    fn checks(&self) -> &Checks {
        &self.observed.checks
    }

    fn has_limit(&self, name: &str) -> bool {
        self.rules().plan.limit_named(name).is_some()
    }
}

impl HoldEvents for State {
    fn failed(&self, error: &(dyn Error + 'static)) {
        report_failure(&self.rules(), StoreFailureKind::Settle, error);
    }

    fn lost(&self, limit: Name) -> bool {
        let rules = self.rules();
        // After a change of the policy, another algorithm counts the units.
        let is_hold = rules.plan.limit(limit).is_some_and(Limit::is_hold);
        if is_hold {
            report_failure(&rules, StoreFailureKind::LostHold, &LostHold(limit));
        }
        is_hold
    }

    fn outlived(&self, limit: Name, longest: Duration) {
        let rules = self.rules();
        let known = rules.plan.limit(limit);
        if let Some(hold) = known.and_then(|known| known.longest_hold.as_ref()) {
            hold.log(limit, longest);
        }
    }

    fn dropped(&self) {
        report_failure(&self.rules(), StoreFailureKind::Settle, &DroppedRelease);
    }

    fn call_timeout(&self) -> Duration {
        self.store_timeout()
    }
}

/// Reports a failure that decides no request.
fn report_failure(rules: &Rules, kind: StoreFailureKind, error: &(dyn Error + 'static)) {
    let failure = StoreFailure {
        kind,
        error,
        duration: None,
        choice: None,
    };
    rules.observers.notify(&Event::Failed(failure), rules);
}

impl<S: fmt::Debug> fmt::Debug for LayerState<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("store", &self.store)
            .field("policy", &self.rules().policy)
            .finish_non_exhaustive()
    }
}
