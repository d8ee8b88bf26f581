use std::array;
use std::time::Duration;

use super::sample::{Kind, Sample};
use super::sync::{AtomicU64, Ordering, STRIPES};

/// The requests that completed while one level was in force.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
/// Each thread counts in one of several stripes, so that few threads write the same cache line. Separate atomics suffice,
/// because a sample that is lost between two windows changes no decision.
#[derive(Debug)]
pub(crate) struct Counts([Stripe; STRIPES]);

#[derive(Debug, Default)]
#[repr(align(128))]
struct Stripe {
    /// Completed requests in the upper half, and requests that met a full limit in the lower half.
    requests: AtomicU64,
    failed: AtomicU64,
    in_progress: AtomicU64,
    busy: AtomicU64,
}

/// One completed request in the upper half of [`Stripe::requests`].
const COMPLETED: u64 = 1 << 32;
/// Longer latencies and larger counts are cut, so that no sum overflows within a window.
const LONGEST: Duration = Duration::from_secs(600);
const MOST: usize = 1 << 24;

thread_local! {
    static STRIPE: usize = {
        static THREADS: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        THREADS.fetch_add(1, Ordering::Relaxed) % STRIPES
    };
}

impl Counts {
    pub(crate) fn new() -> Self {
        Self(array::from_fn(|_| Stripe::default()))
    }

    pub(crate) fn add(&self, sample: &Sample, level: usize) {
        let stripe = &self.0[STRIPE.with(|stripe| *stripe)];
        let is_full = sample.in_progress >= level - level / 4;
        let request = COMPLETED + u64::from(is_full);
        stripe.requests.fetch_add(request, Ordering::Relaxed);
        let in_progress = sample.in_progress.min(MOST) as u64;
        stripe.in_progress.fetch_add(in_progress, Ordering::Relaxed);
        let took = nanoseconds(sample.took.min(LONGEST));
        stripe.busy.fetch_add(took, Ordering::Relaxed);
        if sample.kind == Kind::Failed {
            stripe.failed.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns what was counted in a window of this length.
    pub(crate) fn read(&self, span: Duration) -> Window {
        let mut window = Window {
            span,
            ..Window::default()
        };
        for stripe in &self.0 {
            let requests = stripe.requests.load(Ordering::Relaxed);
            window.completed += requests / COMPLETED;
            window.full += requests % COMPLETED;
            window.failed += stripe.failed.load(Ordering::Relaxed);
            window.in_progress += stripe.in_progress.load(Ordering::Relaxed);
            window.busy += stripe.busy.load(Ordering::Relaxed);
        }
        window
    }

    /// Begins the next window.
    pub(crate) fn clear(&self) {
        for stripe in &self.0 {
            for count in [
                &stripe.requests,
                &stripe.failed,
                &stripe.in_progress,
                &stripe.busy,
            ] {
                count.store(0, Ordering::Relaxed);
            }
        }
    }
}

/// Returns the nanoseconds of a duration, up to 500 years.
pub(crate) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
