//! The state of a store: which documents are in force, and the blocks.

use serde::{Deserialize, Serialize};

use crate::live::blocks::Block;
use crate::live::rollout::Rollout;

/// The state of a store at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreState {
    /// A number that rises with every change.
    pub revision: u64,
    /// The number of the version in force.
    pub current: Option<u64>,
    /// The document that is rolled out beside it.
    pub candidate: Option<Candidate>,
    /// The blocks and allowances, ended ones that are remembered included.
    pub blocks: Vec<Block>,
    /// The failure of a part of the store. What that part said before still holds; the rest is as it is now.
    pub failure: Option<String>,
}

/// A document that is rolled out beside the one in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candidate {
    /// The number of its version.
    pub number: u64,
    /// The way in which it is rolled out.
    pub rollout: Rollout,
}

impl StoreState {
    /// Makes the state of an empty store.
    #[must_use]
    pub fn empty() -> Self {
        Self::default()
    }

    /// Returns the number that the next [`put`](super::RuleStore::put) has to expect.
    ///
    /// It is that of the candidate if there is one, since a put would end its roll-out.
    #[must_use]
    pub fn newest(&self) -> Option<u64> {
        self.candidate
            .map(|candidate| candidate.number)
            .or(self.current)
    }
}
