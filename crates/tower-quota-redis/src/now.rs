//! This machine's time.

use std::time::Instant;

#[expect(clippy::disallowed_methods, reason = "how long calls and attempts take is a matter of this machine's time")]
pub(crate) fn now() -> Instant {
    Instant::now()
}
