//! Custom header styles.

use http::header::{HeaderMap, HeaderName, HeaderValue};
use tower_quota::{
    ConfigError, HeaderReport, HeaderStyle, Limit, LimitInfo, MemoryStore, Policy, Quota,
    RateLimitLayer, WriteHeaders,
};

use crate::shared::{Limited, field};

static FIELDS: [HeaderName; 2] = [
    HeaderName::from_static("x-quota"),
    HeaderName::from_static("x-quota-names"),
];

/// A style that writes the remaining units of each limit, and the names of all limits.
#[derive(Default)]
struct Fractions {
    names: Option<HeaderValue>,
}

impl WriteHeaders for Fractions {
    fn fields(&self) -> &'static [HeaderName] {
        &FIELDS
    }

    fn write(&self, report: &HeaderReport<'_>, headers: &mut HeaderMap) {
        let fraction = |limit: tower_quota::LimitReport<'_>| {
            format!("{}/{}", limit.remaining(), limit.capacity())
        };
        let fractions: Vec<String> = report.limits().map(fraction).collect();
        headers.insert(&FIELDS[0], fractions.join(" ").parse().unwrap());
        if let Some(names) = &self.names {
            headers.insert(&FIELDS[1], names.clone());
        }
    }

    fn for_limits(&self, limits: &[LimitInfo]) -> Option<Box<dyn WriteHeaders>> {
        let names: Vec<&str> = limits.iter().map(|limit| limit.name().as_str()).collect();
        Some(Box::new(Self {
            names: names.join(" ").parse().ok(),
        }))
    }
}

#[tokio::test]
async fn custom_style_sees_limits_and_statuses() {
    let policy = Policy::new()
        .limit(Limit::new("two", Quota::per_minute(2)))
        .limit(Limit::new("shadow", Quota::per_minute(1)).shadow())
        .limit(Limit::new("hour", Quota::per_hour(9)));
    let limited = Limited::with(policy, |layer| {
        layer.headers([
            HeaderStyle::Draft11,
            HeaderStyle::custom(Fractions::default()),
        ])
    });
    for (status, fractions) in [(200, "1/2 8/9"), (200, "0/2 7/9"), (429, "0/2 7/9")] {
        let response = limited.get().await;
        assert_eq!(response.status(), status);
        assert_eq!(field(&response, "x-quota").as_deref(), Some(fractions));
        assert_eq!(
            field(&response, "x-quota-names").as_deref(),
            Some("two hour")
        );
        assert!(field(&response, "ratelimit").is_some());
    }
}

#[test]
fn custom_style_shares_no_field() {
    let styles = || {
        [
            HeaderStyle::custom(Fractions::default()),
            HeaderStyle::custom(Fractions::default()),
        ]
    };
    let error = RateLimitLayer::new(MemoryStore::new(), Policy::new())
        .try_headers(styles())
        .unwrap_err();
    assert_eq!(error, ConfigError::SharedField("x-quota"));
}
