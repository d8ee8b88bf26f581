//! Clients that spread the remaining units as the fields say.

use std::time::Duration;

use http::header::{HeaderMap, HeaderName};
use proptest::prelude::*;
use tower::{Layer, ServiceExt};
use tower_quota::{
    Algorithm, HeaderStyle, Limit, MemoryStore, Quota, RateLimitLayer,
    response::{HeaderReport, WriteHeaders},
};
use tower_quota_testkit::ManualClock;

use crate::shared::{Inner, policy_of};

static FIELDS: [HeaderName; 2] = [
    HeaderName::from_static("x-left"),
    HeaderName::from_static("x-micros"),
];

/// Writes `r` and `t` of draft 11, without rounding.
struct Exact;

impl WriteHeaders for Exact {
    fn fields(&self) -> &'static [HeaderName] {
        &FIELDS
    }

    fn write(&self, report: &HeaderReport<'_>, headers: &mut HeaderMap) {
        for limit in report.limits() {
            let window = limit.effective_window().unwrap_or_default();
            headers.insert(&FIELDS[0], limit.remaining().into());
            headers.insert(&FIELDS[1], window.as_micros().to_string().parse().unwrap());
        }
    }
}

fn number(headers: &HeaderMap, field: &HeaderName) -> u64 {
    headers[field].to_str().unwrap().parse().unwrap()
}

proptest! {
    #[test]
    fn paced_client_is_admitted_at_the_rate(
        units in 1_u64..50,
        seconds in 1_u64..100,
        algorithm in prop::sample::select(Algorithm::ALL[..6].to_vec()),
        at_once in 1_u64..50,
    ) {
        // A queue has one place per turn.
        let at_once = if algorithm == Algorithm::LeakyBucket { 1 } else { at_once };
        let period = Duration::from_secs(seconds);
        let quota = Quota::new(units, period).try_algorithm(algorithm).unwrap();
        let mut limit = Limit::new("one", quota);
        if algorithm == Algorithm::LeakyBucket {
            limit = limit.max_wait(Duration::ZERO);
        }
        let clock = ManualClock::default();
        let store = MemoryStore::with_clock(10, clock.clone());
        let layer = RateLimitLayer::new(store, policy_of(limit))
            .headers([HeaderStyle::custom(Exact)]);
        let ask = || {
            let answer = layer.layer(Inner::default()).oneshot(http::Request::new(()));
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let response = runtime.block_on(answer).unwrap();
            let headers = response.headers();
            (response.status(), number(headers, &FIELDS[0]), number(headers, &FIELDS[1]))
        };
        let (mut left, mut micros) = (0, 0);
        for _ in 0..at_once.min(units) {
            let (status, remaining, window) = ask();
            prop_assert_eq!(status, 200);
            let unit = u64::try_from(period.as_micros()).unwrap().div_ceil(units);
            let has_windows = !quota.algorithm().is_bucket();
            prop_assert!(window <= remaining.max(1) * unit || has_windows && remaining == 0);
            (left, micros) = (remaining, window);
        }
        for _ in 0..100 {
            clock.advance(Duration::from_micros(micros.div_ceil(left.max(1))));
            let (status, remaining, window) = ask();
            prop_assert_eq!(status, 200, "{} left for {} us", left, micros);
            (left, micros) = (remaining, window);
        }
    }
}
