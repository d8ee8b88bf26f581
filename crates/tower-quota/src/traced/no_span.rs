//! Stands in for the spans of decisions without the feature `trace`: all of it compiles to nothing.

use core::error::Error;

use tower_quota_core::{Decision, Key, Name};

/// Stands for the settings of spans.
#[derive(Clone, Copy, Default)]
pub(crate) struct NoSettings(());

/// Stands for the span of a decision.
#[derive(Clone, Copy, Default)]
pub(crate) struct NoSpan(());

impl NoSettings {
    #[inline(always)]
    pub(crate) const fn begin(&self, _: Option<u64>, _: &[(Name, Key<'static>)]) -> NoSpan {
        NoSpan(())
    }
}

impl NoSpan {
    #[inline(always)]
    pub(crate) fn within<T>(&self, work: impl FnOnce() -> T) -> T {
        work()
    }

    #[inline(always)]
    pub(crate) const fn decided(&self, _: &Decision) {}

    #[inline(always)]
    pub(crate) const fn failed(&self, _: &'static str, _: &(dyn Error + 'static)) {}
}
