//! Blocks and allowances.

use std::sync::Arc;

use ipnet::IpNet;
use tower_quota::{Key, Store, when};

use super::LiveRules;
use crate::live::audit::{Action, AuditRecord};
use crate::live::blocks::{Block, NewBlock, Target};
use crate::live::change::By;
use crate::live::error::ChangeError;
use crate::live::store::BlockChanges;
use crate::live::time::Time;

/// The clients of a block, as operators name them.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum BlockTarget<'a> {
    /// A network or an address such as `203.0.113.0/24`; otherwise the text of a key.
    ///
    /// It is read as the first key that can be written so.
    Text(&'a str),
    /// A client by the text of its key in a scope, such as `header x-api-key`.
    Scoped {
        /// The scope.
        scope: &'a str,
        /// The text.
        text: &'a str,
    },
    /// A client by its key, such as that of a [refused client](tower_quota::TopClient::key).
    Key(&'a Key<'a>),
    /// All clients whose address is in a network.
    Network(IpNet),
}

impl<S: Store + 'static> LiveRules<S> {
    /// Blocks or allows clients on all instances, in place of an earlier entry for the same ones.
    ///
    /// It is in force here when this returns, and on the others within two seconds. Lists of the document go first: a
    /// client that it allows is not blocked. A block ends a growth of adaptive blocks.
    ///
    /// # Errors
    /// [`ChangeError`] if no limit counts by such a key, there are too many blocks, or the store fails.
    pub async fn block(
        &self,
        target: BlockTarget<'_>,
        new: NewBlock,
    ) -> Result<Block, ChangeError> {
        let (shared, block) = (
            Arc::clone(&self.shared),
            Block::new(self.target(target)?, new),
        );
        Ok(self
            .to_its_end(async move { shared.put_block(block).await })
            .await??)
    }

    /// Removes a block or an allowance by its [id](Block::id), with its growth. Returns it; `None` if there is none.
    ///
    /// # Errors
    /// [`ChangeError::Store`] if the store fails.
    pub async fn unblock(&self, id: &str, by: impl Into<By>) -> Result<Option<Block>, ChangeError> {
        let (shared, id, by) = (Arc::clone(&self.shared), id.to_owned(), by.into());
        let change = async move {
            let known = shared.known.lock().await;
            let removed = shared.store.remove_block(&id).await?;
            shared.blocks.apply(BlockChanges::one(&id, None));
            drop(known);
            if let Some(block) = &removed {
                let record = AuditRecord {
                    time: Time::now(),
                    who: by.author,
                    what: Action::Unblock,
                    target: block.target.to_string(),
                    before: Some(format!("until {}", block.until)),
                    after: None,
                    comment: by.comment,
                };
                shared.audit(record).await;
            }
            Ok(removed)
        };
        self.to_its_end(change).await?
    }

    /// Returns the id of an entry for these clients, whether there is one or not.
    ///
    /// # Errors
    /// [`ChangeError::Refused`] if no limit counts by such a key.
    pub fn block_id(&self, target: BlockTarget<'_>) -> Result<String, ChangeError> {
        Ok(self.target(target)?.id())
    }

    /// Returns the blocks and allowances in force on this instance, in the order of their ends.
    #[must_use]
    pub fn blocks(&self) -> Vec<Block> {
        let now = Time::now();
        let mut blocks = self.shared.blocks.all();
        blocks.retain(|block| block.is_in_force(now));
        blocks.sort_unstable_by(|one, other| (one.until, &one.id).cmp(&(other.until, &other.id)));
        blocks
    }

    fn target(&self, target: BlockTarget<'_>) -> Result<Target, ChangeError> {
        let (scope, text) = match target {
            BlockTarget::Network(network) => {
                let compared = compared_network(&network.to_string());
                return Ok(Target::Network(compared.unwrap_or_else(|| network.trunc())));
            }
            BlockTarget::Key(key) => return Ok(self.shared.blocks.target(key, None)),
            BlockTarget::Text(text) => match compared_network(text) {
                Some(network) => return Ok(Target::Network(network)),
                None => (None, text),
            },
            BlockTarget::Scoped { scope, text } => (Some(scope), text),
        };
        let in_force = self.in_force();
        let keys = in_force
            .map(|in_force| in_force.rules.policy().keys())
            .unwrap_or_default();
        let mut read = keys
            .iter()
            .filter_map(|key| key.parse(text))
            .filter(|key| !key.as_bytes().is_empty());
        match read.find(|key| scope.is_none_or(|scope| key.scope().as_str() == scope)) {
            Some(key) => {
                let text = self.shared.options.readable_keys.then(|| text.to_owned());
                Ok(self.shared.blocks.target(&key, text))
            }
            None => {
                let scopes: Vec<&str> = keys.iter().map(|key| key.scope().as_str()).collect();
                let reason = format!(
                    "no limit counts by a key that can be written so: they count by {}",
                    scopes.join(", ")
                );
                Err(ChangeError::Refused(reason))
            }
        }
    }
}

/// Returns the network that a text names, in the family in which clients' addresses are compared.
fn compared_network(text: &str) -> Option<IpNet> {
    let (first, last) = when::try_network_range(text).ok()?;
    let mut networks = core::iter::successors(Some(IpNet::from(first)), IpNet::supernet);
    networks.find(|network| network.contains(&last))
}
