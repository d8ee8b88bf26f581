use std::sync::Arc;

use tower_quota_core::{Algorithm, Key, OwnedCharge, Quota};

use super::Limit;
use crate::head::RequestHead;
use crate::key::KeyExtractor;

/// The quota that a limit counts by in an outage. See [`Limit::when_degraded`].
#[derive(Clone)]
pub(crate) struct DegradedQuota {
    pub(super) quota: Quota,
    pub(crate) extractor: Arc<dyn KeyExtractor>,
}

impl DegradedQuota {
    pub(super) fn new(quota: Quota, by: impl KeyExtractor) -> Self {
        Self {
            quota,
            extractor: Arc::new(by),
        }
    }

    pub(super) fn is_hold(&self) -> bool {
        self.quota.algorithm() == Algorithm::Concurrent
    }

    /// Returns the charge of a request with this key of the limit.
    pub(crate) fn charge(
        &self,
        limit: &Limit,
        key: &Key<'_>,
        units: u64,
        head: &RequestHead<'_>,
    ) -> OwnedCharge {
        let quota = limit.for_its_waits(self.quota);
        let scope = self.extractor.scope();
        if scope == key.scope() {
            return OwnedCharge::from(&limit.charge(&quota, key, units));
        }
        let found = self.extractor.extract(head);
        let key = found.unwrap_or_else(|| Key::new(scope, &[]));
        OwnedCharge::from(&limit.charge(&quota, &key, units))
    }
}
