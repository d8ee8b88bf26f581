//! Follows a store, and puts its documents in force.
//!
//! `Known` holds the known state of the store:
//!
//! | store | document | in force | next |
//! |---|---|---|---|
//! | same revision | | unchanged | |
//! | new revision | known or rejected number | unchanged | |
//! | | new and valid | the new document | write the local copy |
//! | | invalid, or failed tests | the last valid document, at a start from the history | reject until the number changes |
//! | failure | | unchanged, or the choice without rules | read everything again, and compare texts |
//! | lost data | | unchanged | restore rules and blocks, and read again |

mod blocks;
mod compile;
mod in_force;
mod local_copy;
mod refresh;
mod shared;
mod state;

pub use self::in_force::InForce;
pub(crate) use self::shared::FollowedRules;
pub use self::state::{LiveState, ReloadCounts, VersionState};
