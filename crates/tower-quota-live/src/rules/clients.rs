//! Changes counters and quotas of single clients, and records the changes.

use tower_quota::store::BoxStoreError;
use tower_quota::{ClientKey, HandleError, Key, LimitStatus, Quota};
use tower_quota_rules::readable_key;

use super::blocks::MANY_CLIENTS;
use super::{BlockTarget, LiveRules};
use crate::audit::{Action, AuditRecord};
use crate::blocks::{Block, BlockKind, NewBlock, Target};
use crate::change::By;
use crate::error::ChangeError;
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
        let reset = self.handle().reset(limit, client);
        self.counted(Action::Reset, limit, client, by.into(), reset)
            .await
    }

    /// Gives used units of a limit back to a client, up to a full limit.
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
        let grant = self.handle().grant(limit, client, units);
        self.counted(Action::Grant, limit, client, by.into(), grant)
            .await
    }

    /// Gives a client another quota of a limit on all instances, and replaces an earlier override.
    ///
    /// Your override takes precedence over the tiers and overrides of documents, stays when you put
    /// a document, and ends by itself. Other instances apply the override within two
    /// seconds. To sell more units of a window, give the client the larger quota until the window ends.
    ///
    /// # Errors
    /// Returns [`ChangeError`] if the limit cannot count the [client](Self::client_target) by your
    /// quota, if there are too many entries, or if the store fails.
    pub async fn override_quota(
        &self,
        limit: &str,
        client: &Target,
        quota: Quota,
        until: Time,
        by: impl Into<By>,
    ) -> Result<Block, ChangeError> {
        let scope = self.handle().check_quota(limit, quota)?;
        if !self.follows_store() {
            let reason = "the code of this service makes its policy, so it has no overrides here";
            return Err(ChangeError::Refused(reason.to_owned()));
        }
        if let Target::Network(network) = client {
            let reason = format!("{network} is no client of {limit:?}: name a client by its key");
            return Err(ChangeError::Refused(reason));
        }
        let none = self.shared.blocks.hash(&Key::new(scope, b""));
        if client.hash() == Some(none) {
            return Err(ChangeError::Refused(MANY_CLIENTS.to_owned()));
        }
        let kind = BlockKind::Override {
            limit: limit.to_owned(),
            quota: quota.into(),
        };
        let new = NewBlock::of_kind(kind, until, by.into());
        self.block(BlockTarget::Resolved(client), new).await
    }

    /// Returns the stored form of a client of a limit.
    ///
    /// # Errors
    /// Returns [`ChangeError`] if the limit is unknown or cannot read your client, or if the key
    /// belongs to many clients.
    pub fn client_target<'k>(
        &self,
        limit: &str,
        client: impl Into<ClientKey<'k>>,
    ) -> Result<Target, ChangeError> {
        let key = self.handle().key(limit, client)?;
        if key.as_bytes().is_empty() {
            return Err(ChangeError::Refused(MANY_CLIENTS.to_owned()));
        }
        let text = self
            .shared
            .options
            .readable_keys
            .then(|| readable_key(&key));
        Ok(self.shared.blocks.target(&key, text))
    }

    /// Makes a change of a client's counter, and records the units before and after it.
    async fn counted(
        &self,
        what: Action,
        limit: &str,
        client: ClientKey<'_>,
        by: By,
        change: impl Future<Output = Result<LimitStatus, HandleError<BoxStoreError>>>,
    ) -> Result<LimitStatus, HandleError<BoxStoreError>> {
        let key = self.handle().key(limit, client)?;
        let before = self.handle().peek(limit, client).await?;
        let after = change.await?;
        let states = [&before, &after]
            .map(|status| Some(format!("{} of {} left", status.remaining(), status.limit)));
        let target = format!("{limit} {}", self.shared.blocks.hash_text(&key));
        let record = AuditRecord::new(what, by, target, states);
        self.shared.audit(record).await;
        Ok(after)
    }
}
