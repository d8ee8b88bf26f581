//! Roll-outs of a document beside the one in force.
//!
//! A candidate for a percentage of the clients decides their requests entirely: the policy is
//! [split](tower_quota::Policy::split) by a hash of the client's key, the same on all instances. A dry run decides
//! nothing: the candidate's limits are [shadows](tower_quota::Policy::dry_run) under names of their own, decided in the
//! same step of the store. [`RolloutCounts`] counts how the outcomes differ.

mod chosen;
mod counts;
mod total;

use serde::{Deserialize, Serialize};

pub(crate) use self::chosen::{client_key, is_chosen};
pub use self::counts::{LimitCounts, RolloutCounts, RolloutReport};
pub use self::total::RolloutTotal;

/// The way in which a document runs beside the one in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Rollout {
    /// Decides the requests of this percentage of the clients, 1 to 100, chosen by a hash of their key.
    Percent(u8),
    /// Decides no request: the decisions that it would have made are counted.
    DryRun,
}
