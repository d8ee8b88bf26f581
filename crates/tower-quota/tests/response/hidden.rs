//! Limits that header fields leave out.

use std::time::Duration;

use tower_quota::{HeaderStyle, Limit, Policy, Quota, Reset};

use crate::shared::{Answer, Limited, field, text};

/// Returns the rate limit fields of a response, sorted.
fn fields(response: &Answer) -> Vec<String> {
    let mut fields: Vec<String> = response
        .headers()
        .keys()
        .filter(|name| name.as_str().contains("ratelimit"))
        .map(|name| format!("{name}: {}", field(response, name.as_str()).unwrap()))
        .collect();
    fields.sort();
    fields
}

fn limited(policy: Policy) -> Limited {
    Limited::with(policy, |layer| {
        layer
            .headers([HeaderStyle::Draft11, HeaderStyle::XRateLimit(Reset::Delta)])
            .shadow_header()
    })
}

#[tokio::test]
async fn hidden_limit_is_in_no_field() {
    let policy = Policy::new()
        .limit(Limit::new("inner", Quota::per_hour(3)).hidden())
        .limit(Limit::new("dry", Quota::per_hour(1)).hidden().shadow())
        .limit(Limit::new("minute", Quota::per_minute(100)));
    let limited = limited(policy);
    for left in [99, 98, 97] {
        assert_eq!(
            fields(&limited.get().await),
            [
                String::from("ratelimit-policy: \"minute\";q=100;w=60"),
                format!(
                    "ratelimit: \"minute\";r={left};t={}",
                    (left * 6_u32).div_ceil(10)
                ),
                String::from("x-ratelimit-limit: 100"),
                format!("x-ratelimit-remaining: {left}"),
                format!("x-ratelimit-reset: {}", ((100 - left) * 6).div_ceil(10)),
            ]
        );
    }
    let refused = limited.get().await;
    assert_eq!(refused.status(), 429);
    assert_eq!(field(&refused, "retry-after").as_deref(), Some("1200"));
    assert_eq!(fields(&refused), [""; 0]);
    assert!(
        text(refused)
            .await
            .contains("Over the limit \\\"inner\\\": retry in 1200 seconds.")
    );
}

#[tokio::test]
async fn longer_wait_of_visible_limit_is_reported() {
    let policy = Policy::new()
        .limit(Limit::new("inner", Quota::per_minute(1)).hidden())
        .limit(Limit::new("hour", Quota::per_hour(1)));
    let limited = limited(policy);
    limited.get().await;
    let refused = limited.get().await;
    assert_eq!(field(&refused, "retry-after").as_deref(), Some("3600"));
    assert_eq!(
        field(&refused, "ratelimit").as_deref(),
        Some("\"hour\";r=0;t=3600")
    );
}

#[tokio::test]
async fn only_hidden_limits_write_nothing() {
    let limited = limited(Policy::new().limit(Limit::new("inner", Quota::per_hour(3)).hidden()));
    assert_eq!(fields(&limited.get().await), [""; 0]);
}

#[tokio::test]
async fn concurrency_limit_is_hidden() {
    let policy = Policy::new()
        .limit(Limit::new("streams", Quota::concurrent(1)))
        .limit(Limit::new(
            "hour",
            Quota::new(100, Duration::from_secs(3_600)),
        ));
    let limited = limited(policy);
    let admitted = limited.get().await;
    assert_eq!(
        field(&admitted, "ratelimit").as_deref(),
        Some("\"hour\";r=99;t=3564")
    );
    let refused = limited.get().await;
    assert_eq!(
        (refused.status().as_u16(), fields(&refused)),
        (429, Vec::new())
    );
}
