mod blocks;
mod clients;
mod document_keys;
mod documents;
mod reasons;

use core::fmt;
use core::future::Future;
use core::time::Duration;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::task::JoinHandle;
use tower_quota::{BoxStore, RateLimitHandle, Store};
use tracing::Instrument;

pub use self::blocks::BlockTarget;
pub(crate) use self::document_keys::refuse_hidden_keys;
pub use self::documents::VersionDifferences;
use super::error::StartError;
use super::follow::{FollowedRules, InForce, LiveState};
use super::metrics;
use super::options::LiveOptions;
use super::store::{MemoryRules, RuleStore, RuleStoreError};

/// Puts the documents of a [`RuleStore`] in force on a layer, and changes them.
///
/// Background tasks follow the store until you [close](Self::close) the rules. Clones share the
/// tasks. Changes are logged to the tracing target `tower_quota::audit` and to the store's audit
/// log.
///
/// Start live rules once for each layer. Live rules that you start later on the same layer replace its policy, remember
/// its refusals, and set the seed of its hashes, in place of the earlier ones.
#[derive(Clone)]
pub struct LiveRules {
    shared: Arc<FollowedRules>,
    tasks: Arc<Mutex<Vec<JoinHandle<()>>>>,
}

impl LiveRules {
    /// Follows a store, and waits for its first document.
    ///
    /// If the store does not answer before the [deadline](LiveOptions::start_deadline), the local
    /// copy is in force.
    ///
    /// # Errors
    /// Returns [`StartError`] if no rules are in force, unless you use
    /// [`without_rules`](LiveOptions::without_rules).
    pub async fn start<S: Store>(
        handle: RateLimitHandle<S>,
        store: impl RuleStore,
        options: LiveOptions,
    ) -> Result<Self, StartError> {
        Self::start_shared(handle, Arc::new(store), options).await
    }

    /// Starts like [`start`](Self::start), with a store chosen at run time.
    ///
    /// # Errors
    /// See [`start`](Self::start).
    pub async fn start_shared<S: Store>(
        handle: RateLimitHandle<S>,
        store: Arc<dyn RuleStore>,
        options: LiveOptions,
    ) -> Result<Self, StartError> {
        let shared = Arc::new(FollowedRules::new(handle.boxed(), store, options, true));
        // Subscribe before the first reading, to miss no announcement.
        let changes = shared.store.changes();
        let prepared = shared.prepare().await;
        prepared.map_err(|invalid| StartError::Fallback(invalid.to_string()))?;
        let first = tokio::time::timeout(shared.options.start, shared.begin_refresh()).await;
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

    /// Returns whether rules are in force, for the readiness probe of your service.
    ///
    /// A document, the local copy or a policy from your code counts. The answer [without
    /// rules](LiveOptions::without_rules) does not count.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.shared.in_force.load().is_some() || !self.shared.follows_store
    }

    /// Returns whether the live rules follow a store. Otherwise your code makes the policy.
    #[must_use]
    pub fn follows_store(&self) -> bool {
        self.shared.follows_store
    }

    /// Returns the state of this instance, for your health check.
    #[must_use]
    pub fn state(&self) -> LiveState {
        self.shared.state()
    }

    /// Returns the documents in force on this instance, if any.
    #[must_use]
    pub fn in_force(&self) -> Option<Arc<InForce>> {
        self.shared.in_force.load_full()
    }

    /// Returns the handle of the layer.
    #[must_use]
    pub fn handle(&self) -> &RateLimitHandle<BoxStore> {
        &self.shared.handle
    }

    pub(super) fn shared(&self) -> &FollowedRules {
        &self.shared
    }

    /// Returns the store.
    #[must_use]
    pub fn store(&self) -> &dyn RuleStore {
        &*self.shared.store
    }

    /// Reads the store now. Returns whether the store answered.
    pub async fn refresh(&self) -> bool {
        self.shared.begin_refresh().await.unwrap_or(false)
    }

    /// Runs a change to its end in a task, even if the caller is dropped.
    ///
    /// A partial change would lose its audit record, and a later document could overtake it.
    async fn to_its_end<T: Send + 'static>(
        &self,
        change: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, RuleStoreError> {
        let ended = tokio::spawn(change.in_current_span()).await;
        ended.map_err(|error| RuleStoreError::unavailable(self.shared.store.name(), error))
    }

    /// Stops following the store. The rules stay in force. Returns whether the tasks ended in time.
    pub async fn close(&self, deadline: Duration) -> bool {
        self.shared.closing.send_replace(true);
        let mut tasks =
            core::mem::take(&mut *self.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        let ended = tokio::time::timeout(deadline, async {
            for task in &mut tasks {
                task.await.ok();
            }
        });
        let has_ended = ended.await.is_ok();
        tasks.iter().for_each(JoinHandle::abort);
        has_ended
    }
}

impl<S: Store> From<RateLimitHandle<S>> for LiveRules {
    /// Operates a layer with a policy from your code, without a store.
    ///
    /// Audit records of resets and grants stay in the memory of this process. Blocks have no effect. Hashes of keys use
    /// the seed of the layer, which is random, and differs between processes, until you call
    /// [`hash_keys_with`](RateLimitHandle::hash_keys_with).
    fn from(handle: RateLimitHandle<S>) -> Self {
        let store = Arc::new(MemoryRules::new());
        let options = LiveOptions::new().key_seed(handle.key_seed());
        let shared = FollowedRules::new(handle.boxed(), store, options, false);
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
