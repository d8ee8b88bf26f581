//! The state of a store: which documents are in force, and the blocks.

use crate::live::blocks::Block;

/// The state of a store at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreState {
    /// A number that rises with every change.
    pub revision: u64,
    /// The number of the version in force.
    pub current: Option<u64>,
    /// The number of the shadow document.
    pub shadow: Option<u64>,
    /// The blocks and allowances, ended ones that are remembered included.
    pub blocks: Vec<Block>,
    /// The failure of a part of the store. What that part said before still holds; the rest is as it is now.
    pub failure: Option<String>,
}

impl StoreState {
    /// Makes the state of an empty store.
    #[must_use]
    pub fn empty() -> Self {
        Self::default()
    }

    /// Returns the number that the next [`put`](super::RuleStore::put) has to expect.
    ///
    /// If there is a shadow document, it is the number of the shadow document, because a put removes it.
    #[must_use]
    pub fn newest(&self) -> Option<u64> {
        self.shadow.or(self.current)
    }
}
