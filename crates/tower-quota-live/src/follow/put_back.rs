//! Puts back what a store has lost in a failover or a restart.

use std::sync::Arc;

use super::shared::{FollowedRules, Known};
use crate::audit::AuditRecord;
use crate::store::{BlockChanges, RuleStoreError, StoreState};

impl FollowedRules {
    /// Puts the version in force and the changes of blocks back that the store has lost, and reads
    /// the store again.
    ///
    /// The newest version of any instance wins. If the store has another history, for example of
    /// another service, nothing is put back.
    pub(super) async fn put_back(
        self: &Arc<Self>,
        known: &Known,
        state: StoreState,
    ) -> Result<StoreState, RuleStoreError> {
        let in_force = self.in_force.load_full();
        let [documents, blocks] = known.points.unwrap_or_default();
        let [now_documents, now_blocks] = state.points();
        let mut newer = in_force
            .map(|in_force| in_force.version.clone())
            .filter(|version| state.current < Some(version.number));
        let is_read = state.failure.is_none() && state.blocks.is_complete;
        let mut lost = match is_read && known.is_doubtful && known.points.is_some() {
            true => {
                let mut kept = self.blocks.all();
                // The store never had the changes that hold on this instance only.
                kept.retain(|block| self.is_shared(&block.id));
                state.blocks.lost(kept, &known.removed)
            }
            false => BlockChanges::default(),
        };
        let is_other = !now_documents.continues(documents);
        let is_other_of_blocks = is_read && !now_blocks.continues(blocks);
        if is_other || is_other_of_blocks {
            let store = self.store.identity();
            tracing::warn!(
                "the store has another history ({store}): this instance takes the store as it is, and puts nothing back"
            );
        }
        if is_other {
            newer = None;
        }
        if is_other_of_blocks {
            lost = BlockChanges::default();
        }
        if newer.is_none() && lost.changed.is_empty() {
            return Ok(state);
        }
        let loss = match (&newer, state.current) {
            (Some(newer), Some(current)) => {
                let newest = newer.number;
                format!("the store went back from version {newest} to version {current}")
            }
            (Some(_), None) => "the store has lost the rules".to_owned(),
            (None, _) => "the store has lost changes of blocks".to_owned(),
        };
        let putting_back = async {
            let is_restored = match &newer {
                Some(version) => self.store.restore(version, documents.revision).await?,
                None => false,
            };
            let blocks = self.store.restore_blocks(blocks.revision, &lost).await?;
            Ok((is_restored, blocks))
        };
        let (is_restored, blocks) = match putting_back.await {
            Err(RuleStoreError::Unavailable { store, source }) => {
                let reason = format!("{loss}, and takes no changes: {source}");
                return Err(RuleStoreError::unavailable(store, reason));
            }
            restored => restored?,
        };
        // Read again, because another instance may have restored a newer document first.
        let again = self.store.state(None).await?.unwrap_or_default();
        let number = newer.as_ref().map(|version| version.number);
        let is_of_another = number.is_some() && !is_restored && again.current >= number;
        // The instance that restored the version speaks for all.
        if (is_restored || !blocks.is_empty()) && !is_of_another {
            tracing::warn!("{loss}. This instance has put the changes back");
            let version = newer.as_ref().filter(|_| is_restored);
            let version = version.map(|version| (state.current, version));
            self.audit(AuditRecord::of_restored(version, &blocks)).await;
        }
        if again.blocks.know_all(&blocks) {
            return Ok(again);
        }
        let reason = "it has lost its data again";
        Err(RuleStoreError::unavailable(self.store.name(), reason))
    }
}
