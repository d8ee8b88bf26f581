//! Waiting, which only connections and followers may do.

use core::time::Duration;

use tokio::time::Sleep;

#[expect(
    clippy::disallowed_methods,
    reason = "deadlines of connections and intervals of followers are real time"
)]
pub(super) fn sleep(time: Duration) -> Sleep {
    tokio::time::sleep(time)
}
