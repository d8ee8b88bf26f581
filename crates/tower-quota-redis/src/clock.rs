//! Reads the clocks of this machine.

use core::time::Duration;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

#[expect(
    clippy::disallowed_methods,
    reason = "calls and attempts to connect take this machine's time"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Returns the microseconds since the Unix epoch.
#[expect(
    clippy::disallowed_methods,
    reason = "operators see the difference from the clock of the server"
)]
pub(crate) fn wall_clock() -> u64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
    micros(since_epoch.unwrap_or_default())
}

pub(crate) fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}
