//! Any store of tower-quota.

use std::time::Duration;

use tower_quota_core::{Charge, Decision, Key, Name, Quota, Store};

use super::{Answer, Path};

const CLIENT: Name = Name::new("client");
const LIMIT: Name = Name::new("requests");
/// For what the store has still to send when it is closed.
const PATIENCE: Duration = Duration::from_secs(1);

/// A store, and the quota of each client.
#[derive(Clone)]
pub(in super::super) struct StorePath<S> {
    store: S,
    quota: Quota,
    lost: fn(&S) -> u64,
}

impl<S: Store + Clone> StorePath<S> {
    pub(in super::super) const fn new(store: S, quota: Quota) -> Self {
        Self {
            store,
            quota,
            lost: |_| 0,
        }
    }

    /// Sets how to read the units that the store has charged and lost.
    pub(in super::super) const fn counting_lost(mut self, lost: fn(&S) -> u64) -> Self {
        self.lost = lost;
        self
    }
}

impl<S: Store + Clone> Path for StorePath<S> {
    fn decide(&self, client: u32) -> impl Future<Output = Answer> + Send + 'static {
        let key = Key::number(CLIENT, client.into());
        let charges = [Charge::new(LIMIT, &self.quota, &key)];
        let mut decision = Decision::default();
        let at_once = self
            .store
            .check_at_once(&charges, &mut decision)
            .then(|| Answer::of(decision.is_allowed()));
        let later = at_once.is_none().then(|| self.store.check(&charges));
        async move {
            match later {
                None => at_once.unwrap_or(Answer::Failed),
                Some(later) => later
                    .await
                    .map_or(Answer::Failed, |decision| Answer::of(decision.is_allowed())),
            }
        }
    }

    async fn close(&self) -> u64 {
        self.store.close(PATIENCE).await;
        (self.lost)(&self.store)
    }
}
