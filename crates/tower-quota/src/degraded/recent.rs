use core::error::Error;
use core::time::Duration;

use tower_quota_core::Timestamp;

use super::OnStoreFailure;

const SECONDS: usize = 10;
const MICROS: u64 = 1_000_000;

/// The requests of the last ten seconds that the layer decided without the store.
///
/// Use it in your health check: while requests pass uncounted, nobody is limited.
///
/// ```
/// use tower_quota::{MemoryStore, Policy, RateLimitLayer};
///
/// let handle = RateLimitLayer::new(MemoryStore::new(), Policy::new()).handle();
/// let is_healthy = handle.recent_outage().is_none();
/// assert!(is_healthy);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecentOutage {
    /// Requests that passed uncounted.
    pub uncounted: u64,
    /// Requests refused because of the failure.
    pub refused: u64,
    /// Requests counted by this instance alone, or refused by a refusal that it remembers.
    pub local: u64,
    /// The time in which these requests came, from one to ten seconds.
    pub period: Duration,
    /// The text of a late error of the store.
    pub cause: String,
}

/// Counts these requests by second. The caller passes the time.
#[derive(Default)]
pub(super) struct Recent {
    seconds: [Second; SECONDS],
    cause: String,
}

#[derive(Clone, Copy, Default)]
struct Second {
    number: u64,
    /// The requests in the order of the choices.
    requests: [u64; 3],
}

impl Recent {
    pub(super) fn add(
        &mut self,
        choice: OnStoreFailure,
        error: &(dyn Error + 'static),
        now: Timestamp,
    ) {
        let number = now.as_micros() / MICROS;
        let position = number % SECONDS as u64;
        let second = &mut self.seconds[usize::try_from(position).unwrap_or_default()];
        if second.number != number || second.requests == [0; 3] {
            *second = Second {
                number,
                requests: [0; 3],
            };
            // Write the text once a second, because an outage has many errors.
            self.cause = error.to_string();
        }
        second.requests[choice as usize] += 1;
    }

    pub(super) fn report(&self, now: Timestamp) -> Option<RecentOutage> {
        let last = now.as_micros() / MICROS;
        let is_recent = |second: &&Second| {
            second.requests != [0; 3] && last.saturating_sub(second.number) < SECONDS as u64
        };
        let recent = || self.seconds.iter().filter(is_recent);
        let first = recent().map(|second| second.number).min()?;
        let of = |choice: OnStoreFailure| {
            let requests = recent().map(|second| second.requests[choice as usize]);
            requests.sum()
        };
        Some(RecentOutage {
            uncounted: of(OnStoreFailure::Allow),
            refused: of(OnStoreFailure::Refuse),
            local: of(OnStoreFailure::Local),
            period: Duration::from_secs(last.saturating_sub(first) + 1),
            cause: self.cause.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uncounted_requests_are_past_after_ten_seconds() {
        let mut recent = Recent::default();
        let at = |millis: u64| Timestamp::from_micros(1_000_000_000 + 1_000 * millis);
        let error = core::fmt::Error;
        assert_eq!(recent.report(at(0)), None);
        for request in 0..300 {
            recent.add(OnStoreFailure::Allow, &error, at(10 * request));
        }
        recent.add(OnStoreFailure::Refuse, &error, at(3_000));
        recent.add(OnStoreFailure::Local, &error, at(3_000));
        let report = recent.report(at(3_500)).unwrap();
        assert_eq!(
            (report.uncounted, report.refused, report.local),
            (300, 1, 1)
        );
        assert_eq!(report.period, Duration::from_secs(4));
        assert_eq!(report.cause, error.to_string());
        // The first second leaves, and the last one.
        let report = recent.report(at(10_200)).unwrap();
        assert_eq!((report.uncounted, report.period.as_secs()), (200, 10));
        assert!(recent.report(at(12_900)).is_some());
        assert_eq!(recent.report(at(13_000)), None);

        // A later outage counts from zero.
        recent.add(OnStoreFailure::Allow, &error, at(60_000));
        let report = recent.report(at(60_000)).unwrap();
        assert_eq!((report.uncounted, report.period.as_secs()), (1, 1));
    }
}
