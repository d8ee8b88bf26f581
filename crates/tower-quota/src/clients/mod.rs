//! The state of a process about single clients: blocks, and the latest refusals.

mod blocks;
mod recent;

use std::time::Instant;

pub(crate) use self::blocks::Blocks;
pub(crate) use self::recent::RecentRefusals;
pub use self::recent::RefusedClient;

/// Returns the current time for blocks and refusals; no counter depends on it.
#[expect(clippy::disallowed_methods, reason = "operators see it, and no store's clock is at hand")]
pub(crate) fn now() -> Instant {
    Instant::now()
}
