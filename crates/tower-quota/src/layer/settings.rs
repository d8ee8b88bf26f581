use core::time::Duration;
use std::sync::Arc;

use tower_quota_core::Key;

use crate::degraded::LocalCounters;
use crate::head::RequestHead;
use crate::observe::{OnDecision, OnRefusal, OnStoreError};
use crate::response::ResponseSettings;
use crate::traced::KeySeed;

pub(crate) type FindClient = dyn Fn(&RequestHead<'_>) -> Option<Key<'static>> + Send + Sync;

#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) responses: ResponseSettings,
    pub(crate) local: Arc<LocalCounters>,
    pub(crate) on_store_error: Option<Arc<OnStoreError>>,
    pub(crate) on_decision: Option<Arc<OnDecision>>,
    pub(crate) on_refusal: Option<Arc<OnRefusal>>,
    pub(crate) store_timeout: Duration,
    pub(crate) attaches_decision: bool,
    #[cfg(feature = "top")]
    pub(crate) counts_busy: bool,
    /// With `n`, the layer traces every refusal and 1 in `n` admissions.
    pub(crate) traced_admissions: Option<u32>,
    /// The seed of the clients' hashes in events and spans.
    pub(crate) key_seed: KeySeed,
    /// Finds the client of a request that no limit has refused.
    pub(crate) find_client: Option<Arc<FindClient>>,
    /// Whether the layer records spans of store calls.
    pub(crate) traces_calls: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            responses: ResponseSettings::default(),
            local: Arc::default(),
            on_store_error: None,
            on_decision: None,
            on_refusal: None,
            store_timeout: Duration::from_secs(5),
            attaches_decision: false,
            #[cfg(feature = "top")]
            counts_busy: false,
            traced_admissions: None,
            key_seed: KeySeed::default(),
            find_client: None,
            traces_calls: false,
        }
    }
}
