//! The places that count and time requests, without the feature `metrics`: all of them compile to nothing.

use tower_quota_core::Decision;

use crate::decided::Decided;
use crate::head::RequestHead;
use crate::limit::Limit;

pub(crate) use self::{NoMetrics as PolicyMetrics, NoStopwatch as Stopwatch};

/// Stands for the counters of a policy.
#[derive(Debug)]
pub(crate) struct NoMetrics;

/// Stands for the start of a wait.
#[derive(Clone, Copy, Default)]
pub(crate) struct NoStopwatch(());

/// The choice for a request that the store could not decide.
#[derive(Clone, Copy)]
pub(crate) enum DegradedChoice {
    Allow,
    Refuse,
    Local,
}

/// The kind of a store's failure.
#[derive(Clone, Copy)]
pub(crate) enum StoreFailureKind {
    Store,
    Timeout,
    Settle,
}

impl NoMetrics {
    pub(crate) fn new<'p>(_: impl Iterator<Item = &'p Limit> + Clone) -> Self {
        Self
    }

    #[inline(always)]
    pub(crate) const fn sample(&self) -> NoStopwatch {
        NoStopwatch(())
    }

    #[inline(always)]
    pub(crate) const fn decided_at_once(&self, _: NoStopwatch, _: &Decision) {}

    #[inline(always)]
    pub(crate) const fn answered(&self, _: NoStopwatch, _: Option<&Decision>) {}

    #[inline(always)]
    pub(crate) const fn admitted(&self, _: &RequestHead<'_>, _: &Decision) {}

    #[inline(always)]
    pub(crate) const fn count(&self, _: &Decided<'_>) {}

    #[inline(always)]
    pub(crate) const fn skipped(&self, _: &RequestHead<'_>) {}

    #[inline(always)]
    pub(crate) const fn store_failed(&self, _: StoreFailureKind) {}

    #[inline(always)]
    pub(crate) const fn degraded(&self, _: DegradedChoice) {}
}

impl NoStopwatch {
    #[inline(always)]
    pub(crate) const fn start() -> Self {
        Self(())
    }
}
