//! Writes audit records to the log, and to the store as soon as the store answers.

use std::collections::VecDeque;
use std::sync::{MutexGuard, PoisonError};

use tokio::time::timeout;

use super::held::PATIENCE;
use super::shared::FollowedRules;
use crate::audit::AuditRecord;
use crate::store::{KEPT_RECORDS, RuleStoreError};

impl FollowedRules {
    /// Announces a record, and waits a moment until the store has it.
    pub(crate) async fn audit(&self, record: AuditRecord) {
        self.announce(record);
        if !matches!(timeout(PATIENCE, self.keep_records()).await, Ok(Ok(()))) {
            tracing::warn!("an audit record is in the log only, until the store answers");
        }
    }

    /// Writes a record to the log, and leaves it to the follower to write it to the store.
    pub(super) fn announce(&self, record: AuditRecord) {
        record.announce();
        let mut records = self.records();
        // The store keeps the latest records only.
        if records.len() >= KEPT_RECORDS {
            records.pop_front();
        }
        records.push_back(record);
    }

    /// Writes the announced records to the store, the oldest first.
    pub(super) async fn keep_records(&self) -> Result<(), RuleStoreError> {
        let _alone = self.keeping.lock().await;
        loop {
            let record = self.records().front().cloned();
            let Some(record) = record else {
                return Ok(());
            };
            self.store.record(record).await?;
            self.records().pop_front();
        }
    }

    fn records(&self) -> MutexGuard<'_, VecDeque<AuditRecord>> {
        // A change of the list is a single call, so the list is valid even if a thread panicked.
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
