//! Custom header styles.

use http::header::{HeaderMap, HeaderName};
use tower::Layer;
use tower_quota::{
    HeaderStyle, MemoryStore, OnStoreFailure, Policy, RateLimitLayer,
    response::{HeaderReport, WriteHeaders},
};

use crate::shared::{
    Inner, Limited, answer_of, assert_field, assert_no_field, failing_store, field, per_hour,
    per_minute, policy_of,
};

static FIELDS: [HeaderName; 1] = [HeaderName::from_static("x-quota")];

/// A style that writes the name and the remaining units of each limit.
struct Fractions;

impl WriteHeaders for Fractions {
    fn fields(&self) -> &'static [HeaderName] {
        &FIELDS
    }

    fn write(&self, report: &HeaderReport<'_>, headers: &mut HeaderMap) {
        let fraction = |limit: tower_quota::response::LimitReport<'_>| {
            format!(
                "{} {}/{}",
                limit.name(),
                limit.remaining(),
                limit.capacity()
            )
        };
        let fractions: Vec<String> = report.limits().map(fraction).collect();
        headers.insert(&FIELDS[0], fractions.join(", ").parse().unwrap());
    }

    fn mark_degraded(&self, headers: &mut HeaderMap) {
        headers.insert(&FIELDS[0], "unknown".parse().unwrap());
    }
}

#[tokio::test]
async fn custom_style_marks_outages_by_its_own_field() {
    for (choice, status) in [(OnStoreFailure::Allow, 200), (OnStoreFailure::Refuse, 503)] {
        let policy = policy_of(per_minute("two", 2)).on_store_failure(choice);
        let layer = RateLimitLayer::new(failing_store(), policy);
        let layer = layer.headers([HeaderStyle::custom(Fractions)]);
        let exposed = layer.exposed_headers();
        assert!(exposed.iter().all(|field| *field != "x-ratelimit-policy"));
        let response = answer_of(&layer.layer(Inner::default())).await;
        assert_eq!(response.status(), status);
        assert_field(&response, "x-quota", "unknown");
        assert_no_field(&response, "x-ratelimit-policy");
    }
}

#[tokio::test]
async fn custom_style_sees_limits_and_statuses() {
    let policy = policy_of(per_minute("two", 2))
        .limit(per_minute("shadow", 1).shadow())
        .limit(per_hour("hour", 9));
    let limited = Limited::with(policy, |layer| {
        layer.headers([HeaderStyle::Draft11, HeaderStyle::custom(Fractions)])
    });
    for (status, fractions) in [
        (200, "two 1/2, hour 8/9"),
        (200, "two 0/2, hour 7/9"),
        (429, "two 0/2, hour 7/9"),
    ] {
        let response = limited.get().await;
        assert_eq!(response.status(), status);
        assert_field(&response, "x-quota", fractions);
        assert!(field(&response, "ratelimit").is_some());
    }
}

#[test]
#[should_panic(expected = "two of the header styles write x-quota")]
fn custom_style_shares_no_field() {
    let styles = [Fractions, Fractions].map(HeaderStyle::custom);
    let _ = RateLimitLayer::new(MemoryStore::new(), Policy::new()).headers(styles);
}
