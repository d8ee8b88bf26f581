use std::time::Duration;

use super::sample::{Kind, Sample};
use super::sync::{AtomicU64, Ordering};

/// The requests that completed while one level was in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    /// The length of the window.
    pub(crate) span: Duration,
    /// The requests that completed, failures included.
    pub(crate) completed: u64,
    /// Of these, the requests that failed by overload.
    pub(crate) failed: u64,
    /// Of these, the requests that found the last quarter of the places in use.
    pub(crate) full: u64,
    /// The sum of the requests in progress that each found, itself included.
    pub(crate) in_progress: u64,
    /// The sum of the latencies, in nanoseconds.
    pub(crate) busy: u64,
}

impl Window {
    /// Returns whether the limit was in use. Without refusals, a limit tells nothing about the service.
    pub(crate) const fn binds(&self) -> bool {
        self.full.saturating_mul(2) >= self.completed && self.completed > 0
    }

    pub(crate) const fn answered(&self) -> u64 {
        self.completed.saturating_sub(self.failed)
    }

    /// Returns the mean number of requests that waited for their response.
    pub(crate) fn waiting(&self) -> u128 {
        u128::from(self.busy) / u128::from(nanoseconds(self.span)).max(1)
    }

    /// Returns the mean latency.
    pub(crate) fn latency(&self) -> Option<Duration> {
        let mean = self.busy.checked_div(self.completed)?;
        Some(Duration::from_nanos(mean))
    }
}

/// The counts of the present window.
///
/// Separate atomics suffice, because a sample that is lost between two windows changes no decision.
#[derive(Debug)]
#[repr(align(128))] // Other fields stay out of the cache line that every request writes.
pub(crate) struct Counts {
    /// Completed requests in the upper half, and requests that met a full limit in the lower half.
    requests: AtomicU64,
    failed: AtomicU64,
    in_progress: AtomicU64,
    busy: AtomicU64,
}

/// One completed request in the upper half of [`Counts::requests`].
const COMPLETED: u64 = 1 << 32;
/// Longer latencies and larger counts are cut, so that no sum overflows within a window.
const LONGEST: Duration = Duration::from_secs(600);
const MOST: usize = 1 << 24;

impl Counts {
    pub(crate) fn new() -> Self {
        Self {
            requests: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            in_progress: AtomicU64::new(0),
            busy: AtomicU64::new(0),
        }
    }

    pub(crate) fn add(&self, sample: &Sample, level: usize) {
        let is_full = sample.in_progress >= level - level / 4;
        let request = COMPLETED + u64::from(is_full);
        self.requests.fetch_add(request, Ordering::Relaxed);
        let in_progress = sample.in_progress.min(MOST) as u64;
        self.in_progress.fetch_add(in_progress, Ordering::Relaxed);
        let took = nanoseconds(sample.took.min(LONGEST));
        self.busy.fetch_add(took, Ordering::Relaxed);
        if sample.kind == Kind::Failed {
            self.failed.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns what was counted in a window of this length.
    pub(crate) fn read(&self, span: Duration) -> Window {
        let requests = self.requests.load(Ordering::Relaxed);
        Window {
            span,
            completed: requests / COMPLETED,
            failed: self.failed.load(Ordering::Relaxed),
            full: requests % COMPLETED,
            in_progress: self.in_progress.load(Ordering::Relaxed),
            busy: self.busy.load(Ordering::Relaxed),
        }
    }

    /// Begins the next window.
    pub(crate) fn clear(&self) {
        for count in [&self.requests, &self.failed, &self.in_progress, &self.busy] {
            count.store(0, Ordering::Relaxed);
        }
    }
}

/// Returns the nanoseconds of a duration, up to 500 years.
pub(crate) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
