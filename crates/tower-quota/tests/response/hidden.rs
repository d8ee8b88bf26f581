//! Limits that header fields leave out.

use tower_quota::{HeaderStyle, Limit, Policy, Quota, Reset};

use crate::shared::{
    Answer, Limited, assert_field, field, per_hour, per_minute, policy_of, secs, text,
};

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
    let policy = policy_of(per_hour("inner", 3).hidden())
        .limit(per_hour("dry", 1).hidden().shadow())
        .limit(per_minute("minute", 100));
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
    assert_field(&refused, "retry-after", "1200");
    assert_eq!(fields(&refused), [""; 0]);
    assert!(
        text(refused)
            .await
            .contains("Over the limit \\\"inner\\\": retry in 1200 seconds.")
    );
}

#[tokio::test]
async fn longer_wait_of_visible_limit_is_reported() {
    let policy = policy_of(per_minute("inner", 1).hidden()).limit(per_hour("hour", 1));
    let limited = limited(policy);
    limited.get().await;
    let refused = limited.get().await;
    assert_field(&refused, "retry-after", "3600");
    assert_field(&refused, "ratelimit", "\"hour\";r=0;t=3600");
}

#[tokio::test]
async fn only_hidden_limits_write_nothing() {
    let limited = limited(policy_of(per_hour("inner", 3).hidden()));
    assert_eq!(fields(&limited.get().await), [""; 0]);
}

#[tokio::test]
async fn concurrency_limit_is_hidden() {
    let policy = policy_of(Limit::new("streams", Quota::concurrent(1)))
        .limit(Limit::new("hour", Quota::new(100, secs(3_600))));
    let limited = limited(policy);
    let admitted = limited.get().await;
    assert_field(&admitted, "ratelimit", "\"hour\";r=99;t=3564");
    let refused = limited.get().await;
    assert_eq!(
        (refused.status().as_u16(), fields(&refused)),
        (429, Vec::new())
    );
}
