//! Follows a store: what it says comes into force, and what it cannot say does not.

mod blocks;
mod compile;
mod in_force;
mod local_copy;
mod refresh;
mod shared;
mod state;

pub use self::in_force::InForce;
pub(crate) use self::shared::Shared;
pub use self::state::{LiveState, ReloadCounts, VersionState};
