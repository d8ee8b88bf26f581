//! Stands in for the spans of decisions without the feature `trace`: all of it compiles to nothing.

use core::error::Error;

use tower_quota_core::{Decision, Key, Name};

pub(crate) use self::{NoSpanSettings as SpanSettings, NoStoreSpan as StoreSpan};

/// Stands for the settings of spans.
#[derive(Clone, Copy, Default)]
pub(crate) struct NoSpanSettings(());

/// Stands for the span of a decision.
#[derive(Clone, Copy, Default)]
pub(crate) struct NoStoreSpan(());

impl NoSpanSettings {
    #[inline(always)]
    pub(crate) const fn begin(&self, _: Option<u64>, _: &[(Name, Key<'static>)]) -> NoStoreSpan {
        NoStoreSpan(())
    }
}

impl NoStoreSpan {
    #[inline(always)]
    pub(crate) fn within<T>(&self, work: impl FnOnce() -> T) -> T {
        work()
    }

    #[inline(always)]
    pub(crate) const fn decided(&self, _: &Decision) {}

    #[inline(always)]
    pub(crate) const fn failed(&self, _: &'static str, _: &(dyn Error + 'static)) {}
}
