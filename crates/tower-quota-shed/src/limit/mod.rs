//! The limit of requests in progress.

mod settings;

use core::sync::atomic::{AtomicUsize, Ordering};
use core::time::Duration;

pub use self::settings::LimitSettings;

pub(crate) struct Limit(AtomicUsize);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Answered,
    Failed,
}

#[derive(Clone, Copy, Debug)]
#[allow(dead_code)]
pub(crate) struct Sample {
    pub(crate) ended: Duration,
    pub(crate) took: Duration,
    pub(crate) in_progress: usize,
    pub(crate) kind: Kind,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LimitSnapshot {
    pub(crate) limit: usize,
    pub(crate) base: Option<Duration>,
    pub(crate) present: Option<Duration>,
}

impl Limit {
    pub(crate) fn new(settings: &LimitSettings) -> Self {
        Self(AtomicUsize::new(settings.start))
    }

    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn most(&self) -> usize {
        self.get()
    }

    pub(crate) fn completed(&self, _: Sample) {}

    pub(crate) fn snapshot(&self) -> LimitSnapshot {
        LimitSnapshot {
            limit: self.get(),
            ..LimitSnapshot::default()
        }
    }
}
