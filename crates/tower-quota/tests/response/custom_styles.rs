//! Custom header styles.

use http::header::{HeaderMap, HeaderName};
use tower_quota::{
    HeaderStyle, Limit, MemoryStore, Policy, Quota, RateLimitLayer,
    response::{HeaderReport, WriteHeaders},
};

use crate::shared::{Limited, field};

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
}

#[tokio::test]
async fn custom_style_sees_limits_and_statuses() {
    let policy = Policy::new()
        .limit(Limit::new("two", Quota::per_minute(2)))
        .limit(Limit::new("shadow", Quota::per_minute(1)).shadow())
        .limit(Limit::new("hour", Quota::per_hour(9)));
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
        assert_eq!(field(&response, "x-quota").as_deref(), Some(fractions));
        assert!(field(&response, "ratelimit").is_some());
    }
}

#[test]
#[should_panic(expected = "two of the header styles write x-quota")]
fn custom_style_shares_no_field() {
    let styles = [Fractions, Fractions].map(HeaderStyle::custom);
    let _ = RateLimitLayer::new(MemoryStore::new(), Policy::new()).headers(styles);
}
