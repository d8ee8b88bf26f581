//! Blocks and allowances of clients and networks, on all instances.
//!
//! They are entries of the [store](super::RuleStore), each with an end, a reason and an author. An instance keeps them
//! in a [`BlockSet`] that conditions of every compiled policy read: a change of blocks compiles nothing.
//!
//! The rule `adaptive_block` of a document blocks clients that are refused for long.

mod adaptive;
mod block;
#[cfg(feature = "openapi")]
mod schema;
mod set;

pub(crate) use self::adaptive::{AdaptiveRule, Offence, Tracker};
pub use self::block::{Block, BlockKind, NewBlock, Target};
pub(crate) use self::set::{BlockKeys, BlockSet};
