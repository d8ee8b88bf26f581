use std::sync::PoisonError;
use std::time::Duration;

use super::sample::Sample;
use super::search::Search;
use super::settings::LimitSettings;
use super::sync::{AtomicU64, AtomicUsize, Mutex, Ordering};
use super::window::{Counts, nanoseconds};

/// The state of the limit, for metrics and logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LimitSnapshot {
    pub(crate) limit: usize,
    /// The mean latency when it was last measured without a queue.
    pub(crate) base: Option<Duration>,
    /// The mean latency of the last window.
    pub(crate) present: Option<Duration>,
}

/// The limit of requests in progress.
#[derive(Debug)]
pub(crate) struct Limit {
    /// The number that bounds requests now.
    level: AtomicUsize,
    /// The limit, which is the upper one of both levels.
    limit: AtomicUsize,
    /// The start of the window, in nanoseconds.
    opens: AtomicU64,
    /// At this time, in nanoseconds, the window may end.
    closes: AtomicU64,
    counts: Counts,
    /// Locked once a window, by the thread that ends the window.
    search: Mutex<Search>,
}

impl Limit {
    pub(crate) fn new(settings: &LimitSettings) -> Self {
        Self {
            level: AtomicUsize::new(settings.start),
            limit: AtomicUsize::new(settings.start),
            opens: AtomicU64::new(0),
            closes: AtomicU64::new(0),
            counts: Counts::new(),
            search: Mutex::new(Search::new(settings.clone())),
        }
    }

    /// Returns how many requests may be in progress now. While the limit binds, the level alternates between the limit and a
    /// lower number.
    pub(crate) fn get(&self) -> usize {
        self.level.load(Ordering::Relaxed)
    }

    /// Returns the limit, which is at least the level.
    pub(crate) fn most(&self) -> usize {
        self.limit.load(Ordering::Relaxed).max(self.get())
    }

    /// Counts a completed request.
    pub(crate) fn completed(&self, sample: Sample) {
        let ended = nanoseconds(sample.ended);
        if ended < self.opens.load(Ordering::Relaxed) {
            return;
        }
        self.counts.add(&sample, self.get());
        if ended >= self.closes.load(Ordering::Relaxed) {
            self.end_window(ended);
        }
    }

    /// Ends the window, unless another thread does or the window needs more requests.
    fn end_window(&self, now: u64) {
        let Ok(mut search) = self.search.try_lock() else {
            return;
        };
        // Another thread may have ended the window before this thread had the lock.
        if now < self.closes.load(Ordering::Relaxed) {
            return;
        }
        let opened = self.opens.load(Ordering::Relaxed);
        let span = now.saturating_sub(opened);
        let window = self.counts.read(Duration::from_nanos(span));
        let Some(next) = search.step(&window) else {
            // Looks again after an eighth more of the time, so that few requests lock.
            self.closes
                .store(now.saturating_add(span / 8), Ordering::Relaxed);
            return;
        };
        let closes = now.saturating_add(nanoseconds(next.least));
        self.opens.store(now, Ordering::Relaxed);
        self.closes.store(closes, Ordering::Relaxed);
        self.limit.store(search.limit, Ordering::Relaxed);
        self.level.store(next.level, Ordering::Relaxed);
        self.counts.clear();
    }

    pub(crate) fn snapshot(&self) -> LimitSnapshot {
        let search = self.search.lock().unwrap_or_else(PoisonError::into_inner);
        LimitSnapshot {
            limit: search.limit,
            base: search.base,
            present: search.latency,
        }
    }
}
