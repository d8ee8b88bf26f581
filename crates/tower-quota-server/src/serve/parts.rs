//! What the doors of a server share.

use core::error::Error;
use core::time::Duration;
use std::sync::Arc;

use tower_quota_core::BoxStore;
use tower_quota_live::{
    FileRules, LiveOptions, LiveRules, RedisRules, RuleStore, StartError, WithoutRules,
};

use crate::envoy::EnvoyDoor;
use crate::http::{Gate, advice, read_rules};
use crate::options::RulesFlags;
use crate::store::ServerStore;

/// The parts of a server, for the routers of its doors.
#[derive(Clone, Debug)]
pub(super) struct Parts {
    pub(super) store: ServerStore,
    pub(super) envoy: Option<EnvoyDoor<BoxStore>>,
    pub(super) documents: Option<Documents>,
}

/// The gate of the HTTP doors, and the documents that it follows.
#[derive(Clone, Debug)]
pub(super) struct Documents {
    pub(super) gate: Gate,
    pub(super) live: LiveRules,
}

impl Documents {
    /// Follows the document of the flags, if there is one.
    pub(super) async fn open(
        flags: &RulesFlags,
        store: &ServerStore,
        deadline: Duration,
        connections: u32,
    ) -> Result<Option<Self>, Box<dyn Error + Send + Sync>> {
        let Some(path) = &flags.rules else {
            return Ok(None);
        };
        let mut options = LiveOptions::new();
        if let Some(redis) = store.redis() {
            options = LiveOptions::from_store(redis)?.blocks_in(RedisRules::from_store(redis)?);
        }
        let rules: Arc<dyn RuleStore> = match store.redis().filter(|_| flags.are_in_redis()) {
            Some(redis) => {
                // The first document may come by the admin API. Requests get 503 until then.
                options = options.without_rules(WithoutRules::Refuse);
                Arc::new(RedisRules::from_store(redis)?)
            }
            None => Arc::new(FileRules::new(path)?),
        };
        if let Some(copy) = &flags.rules_copy {
            options = options.local_copy(copy);
        }
        let options = options.read_with(read_rules).on_document(|document| {
            for line in advice(document) {
                tracing::warn!("{line}");
            }
        });
        // The other half of the connections is for requests without a wait, and for health checks.
        let gate = Gate::new(store.store().clone(), deadline).max_waiting(connections as usize / 2);
        let started = LiveRules::start_shared(gate.handle(), rules, options).await;
        let live = started.map_err(|error| match error {
            // The reason names the store.
            StartError::Unavailable { reason, .. } => {
                format!("{reason}: check the path and its permissions")
            }
            other => other.to_string(),
        })?;
        Ok(Some(Self { gate, live }))
    }
}
