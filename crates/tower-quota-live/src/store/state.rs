//! The state of a store: which documents are in force, and the blocks.

use std::collections::HashMap;
use std::sync::Arc;

use crate::blocks::Block;
use crate::time::Time;

/// The state of a store at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreState {
    /// A number that rises with every change.
    pub revision: u64,
    /// The first revision. It is later than a known one if the store has lost its data since.
    pub began: u64,
    /// The number of the version in force.
    pub current: Option<u64>,
    /// The number of the shadow document.
    pub shadow: Option<u64>,
    /// The blocks and allowances that have changed since the known revision.
    pub blocks: BlockChanges,
    /// The failure of a part of the store. What that part said before still holds; the rest is as it is now.
    pub failure: Option<String>,
}

/// The blocks and allowances that have changed, ended ones that are remembered included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockChanges {
    /// True if these are all blocks of the store. Others do not exist any more.
    pub is_complete: bool,
    /// The blocks by their ids. `None` stands for a removed block.
    pub changed: HashMap<String, Option<Block>>,
}

impl BlockChanges {
    /// Makes the changes that replace all blocks by these.
    #[must_use]
    pub fn all(blocks: impl IntoIterator<Item = Block>) -> Self {
        let changed = blocks
            .into_iter()
            .map(|block| (block.id.clone(), Some(block)));
        Self {
            is_complete: true,
            changed: changed.collect(),
        }
    }

    /// Changes the blocks that a reader has, and removes forgotten ones.
    pub(crate) fn apply_to(self, blocks: &mut HashMap<String, Arc<Block>>) {
        if self.is_complete {
            blocks.clear();
        }
        for (id, block) in self.changed {
            match block {
                Some(block) => blocks.insert(id, Arc::new(block)),
                None => blocks.remove(&id),
            };
        }
        let now = Time::now();
        blocks.retain(|_, block| block.is_in_force(now));
    }

    /// Returns whether these blocks are among the changes, unless they have ended.
    pub(crate) fn know_all(&self, blocks: &[Block]) -> bool {
        let now = Time::now();
        blocks
            .iter()
            .all(|block| !block.is_in_force(now) || self.changed.contains_key(&block.id))
    }

    /// Makes the change of one block.
    pub(crate) fn one(id: &str, block: Option<Block>) -> Self {
        Self {
            is_complete: false,
            changed: HashMap::from([(id.to_owned(), block)]),
        }
    }
}

impl StoreState {
    /// Makes the state of an empty store.
    #[must_use]
    pub fn empty() -> Self {
        Self::default()
    }

    /// Returns whether the store has lost data since it had this revision.
    pub(crate) fn has_lost(&self, known: Option<u64>) -> bool {
        known.is_some_and(|known| self.began > known || self.revision < known)
    }

    /// Returns the number that the next [`put`](super::RuleStore::put) has to expect.
    ///
    /// If there is a shadow document, it is the number of the shadow document, because a put removes it.
    #[must_use]
    pub fn newest(&self) -> Option<u64> {
        self.shadow.or(self.current)
    }
}
