//! Records the spans that
//! [`RateLimitLayer::trace_store_calls`](crate::RateLimitLayer::trace_store_calls) describes.

use core::error::Error;
use core::future::Future;
use core::time::Duration;

use tower_quota_core::{Decision, Key, Name};
use tracing::field::{Empty, display};
use tracing::{Instrument, Span, info_span};

use crate::observe::OutcomeLabel;
use crate::settle::StoreCallError;
use crate::traced::KeySeed;

/// The span of a store call.
pub(crate) struct CallSpan(Span);

impl CallSpan {
    pub(crate) fn begin(
        seed: &KeySeed,
        version: Option<u64>,
        keys: &[(Name, Key<'static>)],
    ) -> Self {
        Self(info_span!(
            target: "tower_quota::store",
            "rate_limit.check",
            otel.kind = "client",
            otel.status_code = Empty,
            rate_limit.limits = keys.len(),
            rate_limit.keys = seed.hashes(keys),
            rate_limit.rules.version = version,
            rate_limit.outcome = Empty,
            rate_limit.limit = Empty,
            rate_limit.store.duration_us = Empty,
            error.kind = Empty,
            error.message = Empty,
        ))
    }

    pub(crate) async fn follow<T>(&self, call: impl Future<Output = T>) -> T {
        call.instrument(self.0.clone()).await
    }

    pub(crate) fn end<E: Error + Send + Sync + 'static>(
        &self,
        duration: Duration,
        answer: &Result<Decision, StoreCallError<E>>,
    ) {
        let Self(span) = self;
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        span.record("rate_limit.store.duration_us", micros);
        match answer {
            Ok(decision) => {
                let outcome = OutcomeLabel::of(decision.outcome());
                span.record("rate_limit.outcome", outcome.text());
                if let Some(status) = decision.tightest() {
                    span.record("rate_limit.limit", status.name.as_str());
                }
            }
            Err(failure) => {
                span.record("rate_limit.outcome", "error");
                span.record("otel.status_code", "ERROR");
                span.record("error.kind", failure.kind().label());
                span.record("error.message", display(failure.error()));
            }
        }
    }
}
