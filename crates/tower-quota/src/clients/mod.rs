//! Keeps the blocked clients, and the clients with the most requests.

mod blocks;
#[cfg(feature = "top")]
mod top;

use std::time::Instant;

pub(crate) use self::blocks::Blocks;
#[cfg(feature = "top")]
pub(crate) use self::top::{BusyClients, RefusedClients};
#[cfg(feature = "top")]
pub use self::top::{TopClient, TopWindow};

/// No counter depends on this time.
#[expect(
    clippy::disallowed_methods,
    reason = "operators see it, and no store's clock is at hand"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}
