//! Counts the effect of shadow documents.
//!
//! The limits of a shadow document are [dry-run limits](tower_quota::Policy::dry_run) with separate
//! names, checked in the same step as the document in force. [`ShadowCounts`] counts the
//! differences.

mod counts;
mod total;

pub use self::counts::{LimitCounts, ShadowCounts, ShadowReport};
pub use self::total::ShadowTotal;
