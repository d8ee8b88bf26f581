//! The header styles that a layer chooses from.

use core::fmt;
use std::sync::Arc;

use http::header::HeaderName;
use tower_quota_core::ConfigError;

use super::draft7::Draft7;
use super::draft11::Draft11;
use super::write_headers::WriteHeaders;
use super::x_ratelimit::{Reset, XRateLimit};

/// A convention of header fields that report the status of limits to clients.
///
/// Combine styles that write different fields, such as a draft, [`XRateLimit`](Self::XRateLimit) and your own style.
/// Seconds are rounded up.
///
/// If a service behind the layer has written such fields, the layer adds members to lists and keeps the stricter value of
/// other fields. If the service answers with `Retry-After`, the layer adds no fields.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum HeaderStyle {
    /// `RateLimit: "burst";r=19;t=2` and `RateLimit-Policy: "burst";q=20;w=2`
    /// (draft-ietf-httpapi-ratelimit-headers-11, the same on the wire since draft 8).
    Draft11,
    /// `RateLimit: limit=20, remaining=19, reset=1` of the tightest limit, and `RateLimit-Policy: 20;w=2` (draft 7).
    ///
    /// On a refusal the reset is equal to `Retry-After`.
    Draft7,
    /// `X-RateLimit-Limit: 20`, `X-RateLimit-Remaining: 19` and `X-RateLimit-Reset`, of the tightest limit.
    XRateLimit(Reset),
    /// A custom style, made by [`HeaderStyle::custom`].
    Custom(CustomStyle),
}

/// A custom header style: see [`HeaderStyle::custom`].
#[derive(Clone)]
pub struct CustomStyle(Arc<dyn WriteHeaders>);

impl HeaderStyle {
    /// The newest draft, and the fields that most deployed clients read.
    pub(crate) const DEFAULT: [Self; 2] = [Self::Draft11, Self::XRateLimit(Reset::Epoch)];

    /// Makes a custom style: see [`WriteHeaders`] for an example.
    #[must_use]
    pub fn custom(style: impl WriteHeaders) -> Self {
        Self::Custom(CustomStyle(Arc::new(style)))
    }

    pub(super) fn writer(&self) -> Arc<dyn WriteHeaders> {
        match self {
            Self::Draft11 => Arc::new(Draft11),
            Self::Draft7 => Arc::new(Draft7),
            Self::XRateLimit(reset) => Arc::new(XRateLimit(*reset)),
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

impl fmt::Debug for CustomStyle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CustomStyle")
            .field(&self.0.fields())
            .finish()
    }
}
