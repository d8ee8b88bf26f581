use core::time::Duration;

use tokio::time::Instant;

/// Returns the time since the layer was built. In tests, tokio's paused time moves the clock.
pub(crate) struct Clock(Instant);

impl Clock {
    pub(crate) fn start() -> Self {
        Self(now())
    }

    pub(crate) fn now(&self) -> Duration {
        now().saturating_duration_since(self.0)
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the only place that reads the time"
)]
fn now() -> Instant {
    Instant::now()
}
