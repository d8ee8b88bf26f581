use core::error::Error;
use core::time::Duration;

use crate::name::Name;

/// Receives what happens to holds between your calls, for [`Limiter::on_hold_events`](crate::Limiter::on_hold_events).
pub trait HoldEvents: Send + Sync + 'static {
    /// A renewal or a release has failed. The keeper repeats the call.
    fn failed(&self, error: &(dyn Error + 'static)) {
        let _ = error;
    }

    /// The store has lost units in use. Returns whether the keeper takes them again.
    fn lost(&self, limit: Name) -> bool {
        let _ = limit;
        true
    }

    /// The work still holds units after the longest time, so the units have returned.
    fn outlived(&self, limit: Name, longest: Duration) {
        let _ = (limit, longest);
    }

    /// Too many releases wait for the store, so the keeper has dropped the oldest.
    fn dropped(&self) {}

    /// Returns the timeout of calls, at most a third of the `ttl`.
    fn call_timeout(&self) -> Duration {
        Duration::MAX
    }
}

impl HoldEvents for () {}
