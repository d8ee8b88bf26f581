//! What browsers hide from scripts unless they are told not to.

use http::header::{HeaderName, RETRY_AFTER};

/// The headers that scripts in browsers cannot read unless CORS exposes them, of every [style](crate::HeaderStyle) and of
/// gRPC-Web: give them to `CorsLayer::expose_headers` of tower-http, and put that layer outside this one.
pub const EXPOSED_HEADERS: [HeaderName; 25] = [
    RETRY_AFTER,
    HeaderName::from_static("ratelimit"),
    HeaderName::from_static("ratelimit-policy"),
    HeaderName::from_static("x-ratelimit-limit"),
    HeaderName::from_static("x-ratelimit-remaining"),
    HeaderName::from_static("x-ratelimit-reset"),
    HeaderName::from_static("x-ratelimit-policy"),
    HeaderName::from_static("x-ratelimit-used"),
    HeaderName::from_static("x-ratelimit-resource"),
    HeaderName::from_static("x-ratelimit-shadow"),
    HeaderName::from_static("ratelimit-limit"),
    HeaderName::from_static("ratelimit-remaining"),
    HeaderName::from_static("ratelimit-reset"),
    HeaderName::from_static("x-ratelimit-limit-second"),
    HeaderName::from_static("x-ratelimit-remaining-second"),
    HeaderName::from_static("x-ratelimit-limit-minute"),
    HeaderName::from_static("x-ratelimit-remaining-minute"),
    HeaderName::from_static("x-ratelimit-limit-hour"),
    HeaderName::from_static("x-ratelimit-remaining-hour"),
    HeaderName::from_static("x-ratelimit-limit-day"),
    HeaderName::from_static("x-ratelimit-remaining-day"),
    HeaderName::from_static("grpc-status"),
    HeaderName::from_static("grpc-message"),
    HeaderName::from_static("grpc-status-details-bin"),
    HeaderName::from_static("grpc-retry-pushback-ms"),
];
