//! The names of the fields that tell of rate limits.

use http::header::HeaderName;

use super::triple::Triple;

pub(in crate::answer) static RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
pub(in crate::answer) static RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// The three of drafts 3 to 6.
pub(super) static DRAFT: Triple = Triple {
    limit: HeaderName::from_static("ratelimit-limit"),
    remaining: HeaderName::from_static("ratelimit-remaining"),
    reset: HeaderName::from_static("ratelimit-reset"),
};

/// The three that were there before any draft.
pub(super) static X: Triple = Triple {
    limit: HeaderName::from_static("x-ratelimit-limit"),
    remaining: HeaderName::from_static("x-ratelimit-remaining"),
    reset: HeaderName::from_static("x-ratelimit-reset"),
};

pub(super) static X_USED: HeaderName = HeaderName::from_static("x-ratelimit-used");
pub(super) static X_RESOURCE: HeaderName = HeaderName::from_static("x-ratelimit-resource");

/// Says that an answer was given without the store.
pub(super) static X_POLICY: HeaderName = HeaderName::from_static("x-ratelimit-policy");
