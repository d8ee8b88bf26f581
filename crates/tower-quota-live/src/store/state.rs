use std::collections::HashMap;

use crate::blocks::Block;
use crate::time::Time;

/// The state of a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreState {
    /// A number that rises with every change.
    pub revision: u64,
    /// The first revision. A store that has lost data begins later than a known revision.
    pub began: u64,
    /// The number of the version in force.
    pub current: Option<u64>,
    /// The blocks and allowances changed since the known revision.
    pub blocks: BlockChanges,
    /// Whether the store may have lost changes that the caller knows, for example after a failover.
    pub is_doubtful: bool,
    /// The failure of a part of the store. The previous data of the failed part stays valid.
    pub failure: Option<String>,
}

/// Changed blocks and allowances, with remembered ended blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockChanges {
    /// Whether `changed` contains all blocks, so that missing blocks are removed.
    pub is_complete: bool,
    /// The blocks by id, `None` for a removed block.
    pub changed: HashMap<String, Option<Block>>,
}

impl BlockChanges {
    /// Creates a complete list of blocks.
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

    /// Compares a complete list with the blocks that an instance has. Returns the instance's side
    /// of each difference.
    pub(crate) fn differences(&self, kept: Vec<Block>) -> Self {
        let now = Time::now();
        let mut changed = HashMap::new();
        for (id, stored) in &self.changed {
            if stored.as_ref().is_some_and(|block| block.is_in_force(now)) {
                changed.insert(id.clone(), None);
            }
        }
        for block in kept {
            if matches!(self.changed.get(&block.id), Some(Some(stored)) if *stored == block) {
                changed.remove(&block.id);
            } else if block.is_in_force(now) {
                changed.insert(block.id.clone(), Some(block));
            }
        }
        Self {
            is_complete: false,
            changed,
        }
    }

    pub(crate) fn know_all(&self, ids: &[String]) -> bool {
        ids.iter().all(|id| self.changed.contains_key(id))
    }

    pub(crate) fn one(id: &str, block: Option<Block>) -> Self {
        Self {
            is_complete: false,
            changed: HashMap::from([(id.to_owned(), block)]),
        }
    }
}

impl StoreState {
    pub(crate) fn has_lost(&self, known: Option<u64>) -> bool {
        known.is_some_and(|known| self.began > known || self.revision < known)
    }
}
