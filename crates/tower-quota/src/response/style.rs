//! The header styles that a layer chooses from.

use core::fmt;
use core::iter::{Once, once};
use std::sync::Arc;

use http::header::{HeaderName, RETRY_AFTER, WWW_AUTHENTICATE};
use tower_quota_core::ConfigError;

use super::draft11::Draft11;
use super::older_drafts::{Draft3, Draft6, Draft7};
use super::write_headers::WriteHeaders;
use super::x_ratelimit::{GitHub, PerWindow, Reset, XRateLimit};

/// A convention of header fields that report the status of limits to clients.
///
/// A layer can use several styles, but no two that write the same field: one of [`Draft11`](Self::Draft11),
/// [`Draft7`](Self::Draft7) and [`Draft6`](Self::Draft6), and one of [`XRateLimit`](Self::XRateLimit),
/// [`GitHub`](Self::GitHub) and [`Draft3`](Self::Draft3). [`PerWindow`](Self::PerWindow) can be added to all. Numbers
/// have at most 15 digits, and seconds are rounded up.
///
/// If a service behind the layer has written such fields, the response does not become more permissive. Members are
/// added to lists. For other fields, the stricter one is kept. A field of the same name in another convention is kept
/// too. If that service answers with `Retry-After`, only its fields are kept, because they belong to its refusal.
///
/// A style is also an iterator over itself, so a single style can be passed instead of several:
///
/// ```
/// use tower_quota::{HeaderStyle, MemoryStore, Policy, RateLimitLayer};
///
/// let layer = RateLimitLayer::new(MemoryStore::new(), Policy::new()).headers(HeaderStyle::Draft7);
/// # let _ = layer;
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum HeaderStyle {
    /// `RateLimit: "burst";r=19;t=2` and `RateLimit-Policy: "burst";q=20;w=2`
    /// (draft-ietf-httpapi-ratelimit-headers-11, the same on the wire since draft 8).
    Draft11,
    /// `RateLimit: limit=20, remaining=19, reset=1` and `RateLimit-Policy: 20;w=2` (draft 7). The first reports the
    /// tightest limit, and `reset` equals `Retry-After` if there is one.
    Draft7,
    /// `RateLimit-Limit: 20`, `RateLimit-Remaining: 19`, `RateLimit-Reset: 1` and `RateLimit-Policy: 20;w=2` (draft 6).
    /// The first three report the tightest limit, and the reset equals `Retry-After` if there is one.
    Draft6,
    /// `X-RateLimit-Limit: 20, 20;w=2;name="burst"`, `X-RateLimit-Remaining: 19` and `X-RateLimit-Reset: 1`, as Envoy's
    /// `DRAFT_VERSION_03`.
    Draft3,
    /// `X-RateLimit-Limit: 20`, `X-RateLimit-Remaining: 19` and `X-RateLimit-Reset`, of the tightest limit.
    XRateLimit(Reset),
    /// The same with [`Reset::Epoch`], `X-RateLimit-Used: 1` and `X-RateLimit-Resource: burst`, as GitHub's API.
    GitHub,
    /// `X-RateLimit-Limit-Minute: 100` and `X-RateLimit-Remaining-Minute: 99`, and the same with `-Second`, `-Hour` and
    /// `-Day`. Limits of other windows are left out; a bucket's window is the time in which an empty one fills up.
    PerWindow,
    /// A custom style, made by [`HeaderStyle::custom`].
    Custom(CustomStyle),
}

/// A custom header style: see [`HeaderStyle::custom`].
#[derive(Clone)]
pub struct CustomStyle(Arc<dyn WriteHeaders>);

impl HeaderStyle {
    /// The style of draft 8, which is the same on the wire as draft 11.
    #[expect(
        non_upper_case_globals,
        reason = "it is written where a variant would be"
    )]
    pub const Draft8: Self = Self::Draft11;

    /// The default styles of a layer: the newest draft, and the fields that most deployed clients read.
    pub(crate) const DEFAULT: [Self; 2] = [Self::Draft11, Self::XRateLimit(Reset::Epoch)];

    /// The built-in styles, one of each kind.
    const BUILT_IN: [Self; 7] = [
        Self::Draft11,
        Self::Draft7,
        Self::Draft6,
        Self::Draft3,
        Self::XRateLimit(Reset::Epoch),
        Self::GitHub,
        Self::PerWindow,
    ];

    /// Makes a custom style: see [`WriteHeaders`] for an example.
    #[must_use]
    pub fn custom(style: impl WriteHeaders) -> Self {
        Self::Custom(CustomStyle(Arc::new(style)))
    }

    /// Returns the writer of this style's fields.
    pub(super) fn writer(&self) -> Arc<dyn WriteHeaders> {
        match self {
            Self::Draft11 => Arc::new(Draft11::default()),
            Self::Draft7 => Arc::new(Draft7),
            Self::Draft6 => Arc::new(Draft6),
            Self::Draft3 => Arc::new(Draft3),
            Self::XRateLimit(reset) => Arc::new(XRateLimit(*reset)),
            Self::GitHub => Arc::new(GitHub),
            Self::PerWindow => Arc::new(PerWindow),
            Self::Custom(CustomStyle(style)) => Arc::clone(style),
        }
    }

    /// Returns an error if two of these styles write the same field.
    pub(crate) fn check(styles: &[Self]) -> Result<(), ConfigError> {
        let mut taken: Vec<&'static HeaderName> = Vec::new();
        for style in styles {
            let fields = style.writer().fields();
            if let Some(shared) = fields.iter().find(|field| taken.contains(field)) {
                return Err(ConfigError::SharedField(shared.as_str()));
            }
            taken.extend(fields);
        }
        Ok(())
    }
}

impl IntoIterator for HeaderStyle {
    type Item = Self;
    type IntoIter = Once<Self>;

    /// Returns the style itself, once.
    fn into_iter(self) -> Self::IntoIter {
        once(self)
    }
}

impl fmt::Debug for CustomStyle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CustomStyle")
            .field(&self.0.fields())
            .finish()
    }
}

/// Returns the header fields that scripts in browsers can read only if CORS exposes them.
///
/// These are the fields of all built-in [styles](HeaderStyle), of refusals and of gRPC-Web. Pass them to
/// `CorsLayer::expose_headers` of tower-http, together with those of a custom style, and put that layer outside this
/// one.
///
/// ```
/// let exposed = tower_quota::exposed_headers();
/// assert!(exposed.contains(&http::header::RETRY_AFTER));
/// ```
#[must_use]
pub fn exposed_headers() -> Vec<HeaderName> {
    let mut fields = vec![RETRY_AFTER, WWW_AUTHENTICATE];
    fields.extend(
        [
            "x-ratelimit-policy",
            "x-ratelimit-shadow",
            "x-ratelimit-reference",
            "grpc-status",
            "grpc-message",
            "grpc-status-details-bin",
            "grpc-retry-pushback-ms",
        ]
        .map(HeaderName::from_static),
    );
    for field in HeaderStyle::BUILT_IN
        .iter()
        .flat_map(|style| style.writer().fields())
    {
        if !fields.contains(field) {
            fields.push(field.clone());
        }
    }
    fields
}
