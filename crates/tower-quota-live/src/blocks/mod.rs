//! Blocks, allowances, overrides and credits of clients and networks, on all instances.
//!
//! They are entries of the [store](super::RuleStore), each with an end, a reason and an author. An instance keeps them
//! in a [`BlockSet`] that every compiled policy reads: a change of blocks compiles nothing.
//!
//! A penalty of a document with the field `block` blocks clients that reach its last step.

mod block;
#[cfg(feature = "openapi")]
mod schema;
mod set;

pub use self::block::{Block, BlockKind, NewBlock, Target};
pub(crate) use self::set::{BlockKeys, BlockSet};
