use std::sync::Arc;
use std::time::Instant;

use tower_quota::metrics::StoreLatency;

/// The last snapshot of an instance.
#[derive(Default)]
pub(crate) struct LastSnapshot {
    pub(crate) made: Option<Instant>,
    pub(crate) json: Arc<str>,
    pub(crate) latency: StoreLatency,
}
