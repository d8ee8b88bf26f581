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
//! | lost changes | | unchanged | put the newest version and blocks back, and read again |
//! | another history | any number | as for a new number | put nothing back |

mod blocks;
mod compile;
mod fates;
mod held;
mod held_change;
mod in_force;
mod local_copy;
mod put_back;
mod records;
mod refresh;
mod shared;
mod state;

pub(crate) use self::compile::Work;
pub use self::fates::VersionFate;
pub use self::in_force::InForce;
pub(crate) use self::shared::FollowedRules;
pub use self::state::{LiveState, ReloadCounts, VersionState};
