//! [`RateLimitLayer::trace_store_calls`](crate::RateLimitLayer::trace_store_calls) lists the fields.

use core::error::Error;
use std::time::Instant;

use tower_quota_core::{Decision, Key, Name};
use tracing::field::{Empty, display};
use tracing::{Span, info_span};

use crate::outcome_label::OutcomeLabel;

#[derive(Clone, Copy, Default)]
pub(crate) struct SpanSettings(Option<[u8; 16]>);

#[derive(Default)]
pub(crate) struct StoreSpan(Option<(Span, Instant)>);

impl SpanSettings {
    pub(crate) const fn new(key_seed: [u8; 16]) -> Self {
        Self(Some(key_seed))
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "a duration for operators, on which no count depends"
    )]
    pub(crate) fn begin(&self, version: Option<u64>, keys: &[(Name, Key<'static>)]) -> StoreSpan {
        if self.0.is_none() {
            return StoreSpan(None);
        }
        let span = info_span!(
            target: "tower_quota::store",
            "rate_limit.check",
            otel.kind = "client",
            otel.status_code = Empty,
            rate_limit.limits = keys.len(),
            rate_limit.keys = self.hashes(keys),
            rate_limit.rules.version = version,
            rate_limit.outcome = Empty,
            rate_limit.limit = Empty,
            rate_limit.store.duration_us = Empty,
            error.kind = Empty,
            error.message = Empty,
        );
        let is_recorded = !span.is_disabled();
        StoreSpan(is_recorded.then(|| (span, Instant::now())))
    }

    /// Returns the same hash as audit records and lists of clients.
    pub(super) fn hash(&self, key: &Key<'_>) -> Option<String> {
        let hash = key.digest(self.0.as_ref()?) >> 64;
        Some(format!("{hash:016x}"))
    }

    fn hashes(&self, keys: &[(Name, Key<'static>)]) -> String {
        let mut hashes = Vec::new();
        for (_, key) in keys {
            let hash = self.hash(key);
            if !hashes.contains(&hash) {
                hashes.push(hash);
            }
        }
        let hashes: Vec<String> = hashes.into_iter().flatten().collect();
        hashes.join(",")
    }
}

impl StoreSpan {
    pub(crate) fn within<T>(&self, work: impl FnOnce() -> T) -> T {
        match &self.0 {
            Some((span, _)) => span.in_scope(work),
            None => work(),
        }
    }

    pub(crate) fn decided(&self, decision: &Decision) {
        let Some((span, start)) = &self.0 else { return };
        let outcome = OutcomeLabel::of(decision.outcome());
        span.record("rate_limit.outcome", outcome.text());
        if let Some(status) = decision.tightest() {
            span.record("rate_limit.limit", status.name.as_str());
        }
        record_duration(span, start);
    }

    pub(crate) fn failed(&self, kind: &'static str, error: &(dyn Error + 'static)) {
        let Some((span, start)) = &self.0 else { return };
        span.record("rate_limit.outcome", "error");
        span.record("otel.status_code", "ERROR");
        span.record("error.kind", kind);
        span.record("error.message", display(error));
        record_duration(span, start);
    }
}

fn record_duration(span: &Span, start: &Instant) {
    let micros = u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX);
    span.record("rate_limit.store.duration_us", micros);
}
