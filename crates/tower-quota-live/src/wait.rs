//! Makes pauses between attempts, and reads the process's clock.

use core::time::Duration;
use std::time::Instant;

const SHORTEST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_millis(800);

/// A series of pauses that double up to a bound, with jitter of at most half.
#[derive(Debug, Default)]
pub(crate) struct Backoff(u32);

impl Backoff {
    pub(crate) fn reset(&mut self) {
        self.0 = 0;
    }

    pub(crate) fn next(&mut self) -> Duration {
        let full = SHORTEST
            .saturating_mul(2_u32.saturating_pow(self.0))
            .min(LONGEST);
        self.0 = self.0.saturating_add(1);
        jittered(full)
    }
}

pub(crate) fn jittered(full: Duration) -> Duration {
    let half = u64::try_from((full / 2).as_micros()).unwrap_or(u64::MAX / 2);
    Duration::from_micros(half + fastrand::u64(0..=half))
}

#[expect(
    clippy::disallowed_methods,
    reason = "pauses of background tasks; no request waits for them"
)]
pub(crate) async fn pause(length: Duration) {
    tokio::time::sleep(length).await;
}

#[expect(clippy::disallowed_methods, reason = "no counter depends on it")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let mut backoff = Backoff::default();
        for full in [50, 100, 200, 400, 800, 800] {
            let pause = backoff.next().as_millis();
            assert!((full / 2..=full).contains(&pause), "{pause} of {full}");
        }
        backoff.reset();
        assert!(backoff.next() <= SHORTEST);
    }
}
