//! Shadow documents, which are decided in the same step as the document in force, and counted.
//!
//! The limits of a shadow document are [shadows](tower_quota::Policy::dry_run) under names of their own.
//! [`ShadowCounts`] counts how the outcomes differ.

mod counts;
mod total;

pub use self::counts::{LimitCounts, ShadowCounts, ShadowReport};
pub use self::total::ShadowTotal;
