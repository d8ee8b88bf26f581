//! The handle of live rules.

mod blocks;
mod clients;
mod documents;

use core::fmt;
use core::future::Future;
use core::time::Duration;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::task::JoinHandle;
use tower_quota::{BoxStore, RateLimitHandle, Store};
use tracing::Instrument;

pub use self::blocks::BlockTarget;
use super::error::StartError;
use super::follow::{InForce, LiveState, Shared};
use super::metrics;
use super::options::LiveOptions;
use super::store::{MemoryRules, RuleStore, RuleStoreError};
use super::wait::now;

/// Puts the documents of a [`RuleStore`] in force on a layer, and changes them.
///
/// It follows the store in tasks of the runtime on which it was started, until it is [closed](Self::close); clones
/// are the same. Each change is written to the tracing target `tower_quota::audit` and to the store's audit log.
#[derive(Clone)]
pub struct LiveRules {
    shared: Arc<Shared>,
    tasks: Arc<Mutex<Vec<JoinHandle<()>>>>,
}

impl LiveRules {
    /// Follows a store from now on, and waits for its first document.
    ///
    /// If the store does not answer before the [deadline](LiveOptions::start_deadline), the local copy is in force.
    ///
    /// # Errors
    /// [`StartError`] if no rules are in force then, unless you have chosen what holds
    /// [without rules](LiveOptions::without_rules).
    pub async fn start<S: Store>(
        handle: RateLimitHandle<S>,
        store: impl RuleStore,
        options: LiveOptions,
    ) -> Result<Self, StartError> {
        Self::start_shared(handle, Arc::new(store), options).await
    }

    /// Does what [`start`](Self::start) does, with a store that was chosen at run time.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub async fn start_shared<S: Store>(
        handle: RateLimitHandle<S>,
        store: Arc<dyn RuleStore>,
        options: LiveOptions,
    ) -> Result<Self, StartError> {
        let shared = Arc::new(Shared::new(handle.boxed(), store, options, true));
        // What is announced from here on is not missed.
        let changes = shared.store.changes();
        let prepared = shared.prepare().await;
        prepared.map_err(|invalid| StartError::Fallback(invalid.to_string()))?;
        // A refresh that is late goes on to its end: half of one must not overtake the next.
        let first = tokio::spawn({
            let shared = Arc::clone(&shared);
            async move { shared.refresh().await }.in_current_span()
        });
        let first = tokio::time::timeout(shared.options.start, first).await;
        if shared.in_force.load().is_none() {
            let error = shared.start_error(first.is_err());
            if let StartError::Empty { store } = &error {
                metrics::record_reload(None);
                shared.warn(&format!("{store} is empty"));
            }
            if shared.options.without_rules.is_none() {
                return Err(error);
            }
        }
        let tasks = vec![
            tokio::spawn(Arc::clone(&shared).follow(changes)),
            tokio::spawn(Arc::clone(&shared).block_penalised()),
            #[cfg(feature = "redis")]
            tokio::spawn(Arc::clone(&shared).share_top()),
        ];
        Ok(Self {
            shared,
            tasks: Arc::new(Mutex::new(tasks)),
        })
    }

    /// Returns whether a document, the local copy or a policy of your code is in force, for the readiness probe of your service.
    ///
    /// It is false while the choice for the time [without rules](LiveOptions::without_rules) holds.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.shared.in_force.load().is_some() || !self.shared.follows_store
    }

    /// Returns whether the live rules follow a store. Otherwise your code makes the policy.
    #[must_use]
    pub fn follows_store(&self) -> bool {
        self.shared.follows_store
    }

    /// Returns the state of this instance: for its health check and its statistics.
    #[must_use]
    pub fn state(&self) -> LiveState {
        self.shared.state()
    }

    /// Returns the documents in force on this instance; `None` until there is a first one.
    #[must_use]
    pub fn in_force(&self) -> Option<Arc<InForce>> {
        self.shared.in_force.load_full()
    }

    /// Returns the handle of the layer.
    #[must_use]
    pub fn handle(&self) -> &RateLimitHandle<BoxStore> {
        &self.shared.handle
    }

    pub(super) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Returns the store.
    #[must_use]
    pub fn store(&self) -> &dyn RuleStore {
        &*self.shared.store
    }

    /// Asks the store now. Returns whether it answered.
    pub async fn refresh(&self) -> bool {
        let shared = Arc::clone(&self.shared);
        self.to_its_end(async move { shared.refresh().await })
            .await
            .unwrap_or(false)
    }

    /// Runs a change in a task, which goes on to its end if the caller is dropped.
    ///
    /// Half a change would lose its audit record, and a later document could come into force before it.
    async fn to_its_end<T: Send + 'static>(
        &self,
        change: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, RuleStoreError> {
        let ended = tokio::spawn(change.in_current_span()).await;
        ended.map_err(|error| RuleStoreError::unavailable(self.shared.store.name(), error))
    }

    /// Stops following the store. What is in force stays. Returns whether the tasks ended before the deadline.
    pub async fn close(&self, deadline: Duration) -> bool {
        self.shared.closing.send_replace(true);
        let until = now() + deadline;
        let mut tasks =
            core::mem::take(&mut *self.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        let mut has_ended = true;
        for task in &mut tasks {
            let ended =
                tokio::time::timeout(until.saturating_duration_since(now()), &mut *task).await;
            if ended.is_err() {
                task.abort();
                has_ended = false;
            }
        }
        has_ended
    }
}

impl<S: Store> From<RateLimitHandle<S>> for LiveRules {
    /// Operates a layer with a policy that your code makes, and follows no store.
    ///
    /// Resets and grants get audit records, which this process keeps in memory. The policy stays in force, so blocks of
    /// these live rules have no effect.
    fn from(handle: RateLimitHandle<S>) -> Self {
        let store = Arc::new(MemoryRules::new());
        let shared = Shared::new(handle.boxed(), store, LiveOptions::new(), false);
        Self {
            shared: Arc::new(shared),
            tasks: Arc::default(),
        }
    }
}

impl fmt::Debug for LiveRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveRules")
            .field("store", &self.shared.store)
            .field("options", &self.shared.options)
            .finish_non_exhaustive()
    }
}
