use std::sync::Arc;

use ipnet::IpNet;
use tower_quota::Key;
use tower_quota::key::KeyExtractor;
use tower_quota_rules::Network;

use super::LiveRules;
use crate::blocks::{Block, NewBlock, Target};
use crate::change::By;
use crate::error::ChangeError;

pub(super) const MANY_CLIENTS: &str =
    "this counter counts many clients: name a network or a single key";

/// The clients of a new block.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum BlockTarget<'a> {
    /// A network or an address such as `203.0.113.0/24`, or a key, if only a single scope accepts
    /// the text.
    Text(&'a str),
    /// A client by its key in a scope, such as `header x-api-key`.
    Scoped {
        /// The scope.
        scope: &'a str,
        /// The key.
        text: &'a str,
    },
    /// A client by its key, such as the key of a [refused client](tower_quota::TopClient::key).
    Key(&'a Key<'a>),
    /// A client by the hash of its key, from a list or an audit record.
    Hash {
        /// The scope of the key.
        scope: &'a str,
        /// The hash, 16 hexadecimal digits.
        hash: &'a str,
    },
    /// All clients with an address in a network.
    Network(IpNet),
    /// A result of [`LiveRules::block_target`].
    Resolved(&'a Target),
}

impl LiveRules {
    /// Blocks or allows clients on all instances that [share](Self::blocks_are_shared) their blocks.
    /// Replaces an earlier block of the same clients.
    ///
    /// The block is in force here at once, and on other instances within two seconds. If the store does not answer
    /// within a second, the block holds on this instance only, see [`is_shared`](Self::is_shared). If the document
    /// allows a client, a block has no effect.
    ///
    /// # Errors
    /// Returns the errors of [`block_target`](Self::block_target), and an error if there are too many blocks.
    pub async fn block(
        &self,
        target: BlockTarget<'_>,
        new: NewBlock,
    ) -> Result<Block, ChangeError> {
        let (shared, block) = (
            Arc::clone(&self.shared),
            Block::new(self.block_target(target)?, new),
        );
        Ok(self
            .to_its_end(async move { shared.put_block(block).await })
            .await??)
    }

    /// Returns whether blocks, allowances and overrides hold on all instances.
    #[must_use]
    pub fn blocks_are_shared(&self) -> bool {
        self.shared.store.shares_blocks()
    }

    /// Returns whether the store has the last change of a block, an allowance or an override by this instance.
    ///
    /// If not, the change holds on this instance only. The instance writes the change to the store as soon as the store
    /// answers. A newer block in the store wins.
    #[must_use]
    pub fn is_shared(&self, id: &str) -> bool {
        self.shared.is_shared(id)
    }

    /// Removes an entry by its [id](Block::id) here at once, and on other instances like [`block`](Self::block).
    /// Returns the removed entry, if any.
    ///
    /// # Errors
    /// Returns [`ChangeError::Store`] if this instance does not know the entry, and the store does not answer within a second.
    pub async fn unblock(&self, id: &str, by: impl Into<By>) -> Result<Option<Block>, ChangeError> {
        let (shared, id, by) = (Arc::clone(&self.shared), id.to_owned(), by.into());
        let change = async move { shared.remove_block(&id, by).await };
        Ok(self.to_its_end(change).await??)
    }

    /// Returns the hash of a key, the name of the client in blocks, lists and audit records.
    #[must_use]
    pub fn key_hash(&self, key: &Key<'_>) -> String {
        self.shared.blocks.hash_text(key)
    }

    /// Returns the scopes of the limits in force that count single clients.
    #[must_use]
    pub fn scopes(&self) -> Vec<String> {
        let everyone = Key::EVERYONE.scope();
        let scopes = self.keys().into_iter().map(|key| key.scope());
        scopes
            .filter(|scope| *scope != everyone)
            .map(|scope| scope.as_str().to_owned())
            .collect()
    }

    /// Returns the blocks and allowances in force on this instance, ordered by their end.
    #[must_use]
    pub fn blocks(&self) -> Vec<Block> {
        self.listed(false)
    }

    /// Returns the overrides in force on this instance, ordered by their end.
    #[must_use]
    pub fn overrides(&self) -> Vec<Block> {
        self.listed(true)
    }

    fn listed(&self, of_limits: bool) -> Vec<Block> {
        let mut blocks = self.shared.blocks.in_force(of_limits);
        blocks.sort_unstable_by(|one, other| (one.until, &one.id).cmp(&(other.until, &other.id)));
        blocks.iter().map(|block| Block::clone(block)).collect()
    }

    /// Returns the keys of all limits, with the limits from your code.
    pub(super) fn keys(&self) -> Vec<Arc<dyn KeyExtractor>> {
        let Some(in_force) = self.in_force() else {
            return Vec::new();
        };
        (self.shared.options.with_policy)(in_force.rules.policy()).keys()
    }

    /// Returns the stored form of a target. Its [id](Target::id) is the id of a block.
    ///
    /// # Errors
    /// Returns [`ChangeError::Refused`] if no scope accepts the key, if several scopes accept it,
    /// or if the counter counts many clients.
    pub fn block_target(&self, target: BlockTarget<'_>) -> Result<Target, ChangeError> {
        let (scope, text) = match target {
            BlockTarget::Network(network) => {
                let compared = network.to_string().parse::<Network>();
                let network = compared.map_or_else(|_| network.trunc(), |text| text.to_net());
                return Ok(Target::Network(network));
            }
            BlockTarget::Key(key) => {
                let hash = self.key_hash(key);
                return self.hashed(key.scope().as_str(), &hash);
            }
            BlockTarget::Hash { scope, hash } => {
                let scopes = self.scopes();
                if !scopes.is_empty() && !scopes.iter().any(|known| known == scope) {
                    let scopes = scopes.join(", ");
                    let reason = format!("no limit counts by {scope:?}: give one of {scopes}");
                    return Err(ChangeError::Refused(reason));
                }
                return self.hashed(scope, hash);
            }
            BlockTarget::Resolved(target) => return Ok(target.clone()),
            BlockTarget::Text(text) => match text.parse::<Network>() {
                Ok(network) => return Ok(Target::Network(network.to_net())),
                Err(_) => (None, text),
            },
            BlockTarget::Scoped { scope, text } => (Some(scope), text),
        };
        let keys = self.keys();
        let mut read: Vec<Key<'_>> = keys
            .iter()
            .filter_map(|key| key.parse(text))
            .filter(|key| !key.as_bytes().is_empty())
            .filter(|key| scope.is_none_or(|scope| key.scope().as_str() == scope))
            .collect();
        // Remove repeated keys, because several extractors may read the same key.
        read.sort_unstable_by(|a, b| (a.scope(), a.as_bytes()).cmp(&(b.scope(), b.as_bytes())));
        read.dedup();
        match read.as_slice() {
            [key] => {
                let text = self.shared.options.readable_keys.then(|| text.to_owned());
                Ok(self.shared.blocks.target(key, text))
            }
            [] => Err(ChangeError::Refused(format!(
                "no limit counts by a key that can be written so: they count by {}",
                self.scopes().join(", ")
            ))),
            several => {
                let mut scopes: Vec<&str> =
                    several.iter().map(|key| key.scope().as_str()).collect();
                scopes.dedup();
                Err(ChangeError::Refused(format!(
                    "keys of several scopes can be written so: give one of {}",
                    scopes.join(", ")
                )))
            }
        }
    }

    fn hashed(&self, scope: &str, hash: &str) -> Result<Target, ChangeError> {
        let is_digits = hash.bytes().all(|byte| byte.is_ascii_hexdigit());
        let (true, 16, Ok(number)) = (is_digits, hash.len(), u64::from_str_radix(hash, 16)) else {
            let reason = format!("{hash:?} is not a hash of a key: give its 16 hexadecimal digits");
            return Err(ChangeError::Refused(reason));
        };
        let keys = self.keys();
        let of_none = |key: &Arc<dyn KeyExtractor>| {
            let none = Key::new(key.scope(), b"");
            key.scope().as_str() == scope && self.shared.blocks.hash(&none) == number
        };
        if scope == Key::EVERYONE.scope().as_str() || keys.iter().any(of_none) {
            return Err(ChangeError::Refused(MANY_CLIENTS.to_owned()));
        }
        Ok(Target::Key {
            scope: scope.to_owned(),
            hash: format!("{number:016x}"),
            text: None,
        })
    }
}
