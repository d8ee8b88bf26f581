//! Records the spans that
//! [`RateLimitLayer::trace_store_calls`](crate::RateLimitLayer::trace_store_calls) describes.

use core::error::Error;
use core::time::Duration;

use tower_quota_core::{Decision, Key, Name};
use tracing::field::{Empty, display};
use tracing::{Span, info_span};

use crate::outcome_label::OutcomeLabel;

#[derive(Clone, Copy, Default)]
pub(crate) struct SpanSettings(Option<[u8; 16]>);

impl SpanSettings {
    pub(crate) const fn new(key_seed: [u8; 16]) -> Self {
        Self(Some(key_seed))
    }

    pub(crate) fn begin(&self, version: Option<u64>, keys: &[(Name, Key<'static>)]) -> Span {
        if self.0.is_none() {
            return Span::none();
        }
        info_span!(
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
        )
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

pub(crate) fn record_duration(span: &Span, duration: Duration) {
    let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
    span.record("rate_limit.store.duration_us", micros);
}

pub(crate) fn record_decision(span: &Span, decision: &Decision) {
    let outcome = OutcomeLabel::of(decision.outcome());
    span.record("rate_limit.outcome", outcome.text());
    if let Some(status) = decision.tightest() {
        span.record("rate_limit.limit", status.name.as_str());
    }
}

pub(crate) fn record_failure(span: &Span, kind: &'static str, error: &(dyn Error + 'static)) {
    span.record("rate_limit.outcome", "error");
    span.record("otel.status_code", "ERROR");
    span.record("error.kind", kind);
    span.record("error.message", display(error));
}
