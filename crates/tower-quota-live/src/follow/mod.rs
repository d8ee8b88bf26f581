//! Follows a store: what it says comes into force, and what it cannot say does not.
//!
//! The state of following is `Known`, together with the version in force:
//!
//! | the store | the document | in force | next |
//! |---|---|---|---|
//! | says the known revision | | as before | |
//! | says another revision | has the known number, or is rejected already | as before | |
//! | | has a new number, and is valid | the new document | the local copy is written |
//! | | is invalid, or its own tests fail | the last good document; at a start that of the history | it is rejected, until the number changes |
//! | fails | | as before, or the choice without rules | doubt: all is asked again, and texts are compared |
//! | has lost data | | as before | rules and blocks are put back, and the store is asked again |

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
