use std::collections::HashMap;

use super::Point;
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
    /// The points of the documents and of the blocks, if two stores keep them.
    pub(crate) parts: Option<[Point; 2]>,
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

    /// Compares a complete list with the blocks that an instance has, and with the blocks whose
    /// removal it has seen. Returns the lost changes.
    ///
    /// A block that the instance does not know stays, because an operator may have added it after a failover.
    pub(crate) fn lost(&self, kept: Vec<Block>, removed: &HashMap<String, Block>) -> Self {
        let now = Time::now();
        let mut changed = HashMap::new();
        for (id, stored) in &self.changed {
            if let Some(stored) = stored
                && removed.get(id) == Some(stored)
                && stored.is_in_force(now)
            {
                changed.insert(id.clone(), None);
            }
        }
        for block in kept {
            let stored = self.changed.get(&block.id).and_then(Option::as_ref);
            let is_stored =
                stored.is_some_and(|stored| *stored == block || stored.since > block.since);
            if !is_stored && block.is_in_force(now) {
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
    /// Returns whether a part of the store lacks changes of the known history.
    pub(crate) fn have_left(&self, known: [Point; 2]) -> bool {
        let mut both = self.points().into_iter().zip(known);
        both.any(|(point, known)| point.has_left(known))
    }

    /// Returns the points of the documents and of the blocks.
    pub(crate) fn points(&self) -> [Point; 2] {
        let point = Point {
            began: self.began,
            revision: self.revision,
        };
        self.parts.unwrap_or([point; 2])
    }
}
