//! Blocks, allowances and overrides of clients and networks, on all instances.
//!
//! Conditions of every compiled policy read a [`BlockSet`], a copy of the blocks in the
//! [store](super::RuleStore), so a change of blocks compiles no policy.

mod block;
mod entries;
mod listing;
mod set;
mod shards;

pub use self::block::{Block, BlockKind, NewBlock, Target};
pub use self::listing::Listing;
pub(crate) use self::set::{BlockKeys, BlockSet};
