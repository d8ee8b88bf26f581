//! Replaces the counters without the feature `metrics`.

mod failure;
mod sample;

use core::time::Duration;
use std::time::Instant;

use tower_quota_core::{Decision, Name};

pub(crate) use self::failure::StoreFailureKind;
pub(crate) use self::sample::sample;
use crate::decided::Decided;
use crate::degraded::OnStoreFailure;
use crate::head::RequestHead;

pub(crate) struct PolicyMetrics;

impl PolicyMetrics {
    pub(crate) fn new(_: Vec<Name>) -> Self {
        Self
    }

    pub(crate) const fn decided_at_once(&self, _: Option<Instant>, _: &Decision) {}

    pub(crate) const fn answered(&self, _: Duration, _: Option<&Decision>) {}

    pub(crate) const fn admitted(&self, _: &RequestHead<'_>, _: &Decision) {}

    pub(crate) const fn count(&self, _: &Decided<'_>) {}

    pub(crate) const fn skipped(&self, _: &RequestHead<'_>) {}

    pub(crate) const fn store_failed(&self, _: StoreFailureKind) {}

    pub(crate) const fn degraded(&self, _: OnStoreFailure) {}
}
