//! Replaces the counters without the feature `metrics`.

mod failure;
mod stopwatch;

use core::time::Duration;

use tower_quota_core::{Decision, Name};

pub(crate) use self::failure::{DegradedChoice, StoreFailureKind};
pub(crate) use self::stopwatch::Stopwatch;
use crate::decided::Decided;
use crate::head::RequestHead;

pub(crate) struct PolicyMetrics;

impl PolicyMetrics {
    pub(crate) fn new(_: Vec<Name>) -> Self {
        Self
    }

    pub(crate) const fn decided_at_once(&self, _: Stopwatch, _: &Decision) {}

    pub(crate) const fn answered(&self, _: Duration, _: Option<&Decision>) {}

    pub(crate) const fn admitted(&self, _: &RequestHead<'_>, _: &Decision) {}

    pub(crate) const fn count(&self, _: &Decided<'_>) {}

    pub(crate) const fn skipped(&self, _: &RequestHead<'_>) {}

    pub(crate) const fn store_failed(&self, _: StoreFailureKind) {}

    pub(crate) const fn degraded(&self, _: DegradedChoice) {}
}
