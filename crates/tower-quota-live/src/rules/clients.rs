//! Changes of counters, with their audit records.

use tower_quota::store::BoxStoreError;
use tower_quota::{ClientKey, HandleError, Key, LimitStatus};

use super::LiveRules;
use crate::audit::{Action, AuditRecord};
use crate::change::By;
use crate::time::Time;

impl LiveRules {
    /// Resets a client of a limit, see
    /// [`RateLimitHandle::reset`](tower_quota::RateLimitHandle::reset).
    ///
    /// # Errors
    /// See the handle.
    pub async fn reset<'k>(
        &self,
        limit: &str,
        client: impl Into<ClientKey<'k>>,
        by: impl Into<By>,
    ) -> Result<LimitStatus, HandleError<BoxStoreError>> {
        let client = client.into();
        let key = self.handle().key(limit, client)?;
        let before = self.handle().peek(limit, client).await?;
        let after = self.handle().reset(limit, client).await?;
        self.counted(Action::Reset, limit, &key, by.into(), [&before, &after])
            .await;
        Ok(after)
    }

    /// Gives units back to a client of a limit.
    ///
    /// See [`RateLimitHandle::grant`](tower_quota::RateLimitHandle::grant).
    ///
    /// # Errors
    /// See the handle.
    pub async fn grant<'k>(
        &self,
        limit: &str,
        client: impl Into<ClientKey<'k>>,
        units: u64,
        by: impl Into<By>,
    ) -> Result<LimitStatus, HandleError<BoxStoreError>> {
        let client = client.into();
        let key = self.handle().key(limit, client)?;
        let before = self.handle().peek(limit, client).await?;
        let after = self.handle().grant(limit, client, units).await?;
        self.counted(Action::Grant, limit, &key, by.into(), [&before, &after])
            .await;
        Ok(after)
    }

    async fn counted(
        &self,
        what: Action,
        limit: &str,
        key: &Key<'_>,
        by: By,
        statuses: [&LimitStatus; 2],
    ) {
        let [before, after] =
            statuses.map(|status| Some(format!("{} of {} left", status.remaining(), status.limit)));
        let target = format!("{limit} {}", self.shared.blocks.hash_text(key));
        let (who, comment) = (by.author, by.comment);
        self.shared
            .audit(AuditRecord {
                time: Time::now(),
                who,
                what,
                target,
                before,
                after,
                comment,
            })
            .await;
    }
}
