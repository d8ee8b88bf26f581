//! Changes of single clients' counters, with their audit records.

use tower_quota::{ClientKey, HandleError, Key, LimitStatus, Name, RequestHead, Store};

use super::LiveRules;
use crate::live::audit::{Action, AuditRecord};
use crate::live::change::By;
use crate::live::time::Time;

impl<S: Store + 'static> LiveRules<S> {
    /// Resets a client of a limit, see [`RateLimitHandle::reset`](tower_quota::RateLimitHandle::reset).
    ///
    /// # Errors
    /// As those of the handle.
    pub async fn reset<'k>(
        &self,
        limit: &str,
        client: impl Into<ClientKey<'k>>,
        by: impl Into<By>,
    ) -> Result<LimitStatus, HandleError<S::Error>> {
        let client = client.into();
        let before = self.handle().peek(limit, client).await?;
        let after = self.handle().reset(limit, client).await?;
        self.counted(Action::Reset, limit, client, by.into(), [&before, &after]).await;
        Ok(after)
    }

    /// Gives units back to a client of a limit.
    ///
    /// See [`RateLimitHandle::grant`](tower_quota::RateLimitHandle::grant).
    ///
    /// # Errors
    /// As those of the handle.
    pub async fn grant<'k>(
        &self,
        limit: &str,
        client: impl Into<ClientKey<'k>>,
        units: u64,
        by: impl Into<By>,
    ) -> Result<LimitStatus, HandleError<S::Error>> {
        let client = client.into();
        let before = self.handle().peek(limit, client).await?;
        let after = self.handle().grant(limit, client, units).await?;
        self.counted(Action::Grant, limit, client, by.into(), [&before, &after]).await;
        Ok(after)
    }

    async fn counted(&self, what: Action, limit: &str, client: ClientKey<'_>, by: By, statuses: [&LimitStatus; 2]) {
        let [before, after] = statuses.map(|status| Some(format!("{} of {} left", status.remaining(), status.limit)));
        let target = format!("{limit} {}", self.hashed(client));
        let (who, comment) = (by.author, by.comment);
        self.shared.audit(AuditRecord { time: Time::now(), who, what, target, before, after, comment }).await;
    }

    /// Returns the hash of a client's name.
    fn hashed(&self, client: ClientKey<'_>) -> String {
        const TEXT: Name = Name::new("text");
        let hash = |key: &Key<'_>| format!("{:016x}", self.shared.blocks.hash(key));
        match client {
            ClientKey::Text(text) => hash(&Key::new(TEXT, text.as_bytes())),
            ClientKey::Address(address) => hash(&Key::new(TEXT, address.to_string().as_bytes())),
            ClientKey::Key(key) => hash(key),
            ClientKey::Request(head) => self.hashed_request(&head),
            _ => "unknown".to_owned(),
        }
    }

    fn hashed_request(&self, head: &RequestHead<'_>) -> String {
        let keys = self.in_force().map(|in_force| in_force.rules.policy().keys()).unwrap_or_default();
        let key = keys.iter().find_map(|key| key.extract(head));
        key.map_or_else(|| "no key".to_owned(), |key| format!("{:016x}", self.shared.blocks.hash(&key)))
    }
}
