use core::time::Duration;
use std::hash::{BuildHasher, RandomState};

use crate::clock::micros;

/// Returns `shortest * 2^times`, at most `longest`, times a random factor from 0.5 to 1.
pub(crate) fn with_jitter(shortest: Duration, longest: Duration, times: u32) -> Duration {
    let full = shortest
        .saturating_mul(2_u32.saturating_pow(times))
        .min(longest);
    let half = micros(full) / 2;
    // Draw from `RandomState`, the only source of randomness in the standard library. Each state
    // differs from all others.
    Duration::from_micros(half + RandomState::new().hash_one(()) % (half + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_within_bounds() {
        let (shortest, longest) = (Duration::from_millis(100), Duration::from_millis(500));
        for (times, full) in [(0, 100), (1, 200), (2, 400), (3, 500), (u32::MAX, 500)] {
            let full = Duration::from_millis(full);
            let pauses: Vec<Duration> = (0..1_000)
                .map(|_| with_jitter(shortest, longest, times))
                .collect();
            assert!(pauses.iter().all(|pause| (full / 2..=full).contains(pause)));
            let early = pauses.iter().filter(|&&pause| pause < full / 4 * 3).count();
            assert!(
                (300..700).contains(&early),
                "{early} of 1000 in the earlier half"
            );
        }
    }
}
