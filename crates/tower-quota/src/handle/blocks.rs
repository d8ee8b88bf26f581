//! Blocks clients of a limit in this process.

use core::time::Duration;

use tower_quota_core::{Key, Store};

use super::{ClientKey, HandleError, RateLimitHandle};
use crate::clients::Blocks;

impl<S: Store> RateLimitHandle<S> {
    /// Refuses requests of a client to which this limit applies, with 403, for the given time.
    ///
    /// The block holds in this process, also for requests with a second key. While blocks exist, requests with more
    /// than 64 keys for a limit are refused.
    ///
    /// # Errors
    /// Returns [`HandleError`] if 100,000 blocks exist, or if the key is the empty key of
    /// conflicting values.
    pub fn block<'k>(
        &self,
        limit: &str,
        client: impl Into<ClientKey<'k>>,
        length: Duration,
    ) -> Result<(), HandleError<S::Error>> {
        let (limit, key) = self.client(limit, client.into())?;
        if key.as_bytes().is_empty() && key != Key::EVERYONE {
            return Err(HandleError::UnreadableKey(limit));
        }
        if self
            .shared
            .blocks
            .get_or_init(Blocks::default)
            .insert(limit, &key, length)
        {
            Ok(())
        } else {
            Err(HandleError::TooManyBlocks)
        }
    }

    /// Ends a block. Returns whether the client was blocked.
    pub fn unblock<'k>(
        &self,
        limit: &str,
        client: impl Into<ClientKey<'k>>,
    ) -> Result<bool, HandleError<S::Error>> {
        let (limit, key) = self.client(limit, client.into())?;
        let blocks = self.shared.blocks.get();
        Ok(blocks.is_some_and(|blocks| blocks.remove(limit, &key)))
    }

    /// Returns the remaining time of a [block](Self::block), if the client is blocked.
    pub fn blocked_for<'k>(
        &self,
        limit: &str,
        client: impl Into<ClientKey<'k>>,
    ) -> Result<Option<Duration>, HandleError<S::Error>> {
        let (limit, key) = self.client(limit, client.into())?;
        let blocks = self.shared.blocks.get();
        Ok(blocks.and_then(|blocks| blocks.remaining(limit, &key)))
    }
}
