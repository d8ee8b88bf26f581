//! Defines the styles of header fields, each in a file.

mod draft11;
mod draft6;
mod draft7;
mod x_ratelimit;

use core::fmt;
use std::sync::Arc;

use http::header::HeaderName;
use tower_quota_core::ConfigError;

use self::draft6::Draft6;
use self::draft7::Draft7;
use self::draft11::Draft11;
pub use self::x_ratelimit::Reset;
use self::x_ratelimit::XRateLimit;
use super::write_headers::WriteHeaders;

/// A convention of header fields that report limits to clients.
///
/// Combine styles that write different fields. Seconds are rounded up. If your service writes such fields, the layer
/// keeps stricter values. If your service fails with a `Retry-After`, the layer adds no fields.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum HeaderStyle {
    /// `RateLimit: "burst";r=19;t=2` and `RateLimit-Policy: "burst";q=20;w=2` of draft 8 to 11.
    Draft11,
    /// `RateLimit: limit=20, remaining=19, reset=1` and `RateLimit-Policy: 20;w=2` of draft 7.
    ///
    /// The fields report the tightest limit. The reset of a refusal is the time to retry.
    Draft7,
    /// `RateLimit-Limit: 20`, `RateLimit-Remaining: 19`, `RateLimit-Reset: 1` and `RateLimit-Policy: 20;w=2` of draft 6.
    ///
    /// The tightest limit, and `Retry-After` as the reset of a refusal. The first three fields are also draft 3, which
    /// Envoy and limitador write.
    Draft6,
    /// `X-RateLimit-Limit: 20`, `X-RateLimit-Remaining: 19` and `X-RateLimit-Reset` of the tightest limit.
    XRateLimit(Reset),
    /// Your own style, from [`HeaderStyle::custom`].
    Custom(Arc<dyn WriteHeaders>),
}

impl HeaderStyle {
    /// The newest draft, and the fields that most clients read.
    pub(crate) const DEFAULT: [Self; 2] = [Self::Draft11, Self::XRateLimit(Reset::Epoch)];

    /// Makes your own style. [`WriteHeaders`] has an example.
    #[must_use]
    pub fn custom(style: impl WriteHeaders) -> Self {
        Self::Custom(Arc::new(style))
    }

    pub(super) fn writer(&self) -> Arc<dyn WriteHeaders> {
        match self {
            Self::Draft11 => Arc::new(Draft11),
            Self::Draft7 => Arc::new(Draft7),
            Self::Draft6 => Arc::new(Draft6),
            Self::XRateLimit(reset) => Arc::new(XRateLimit(*reset)),
            Self::Custom(style) => Arc::clone(style),
        }
    }

    /// Returns the writers of the styles, which must write different fields.
    pub(crate) fn writers(
        styles: impl IntoIterator<Item = Self>,
    ) -> Result<Vec<Arc<dyn WriteHeaders>>, ConfigError> {
        let mut taken: Vec<&'static HeaderName> = Vec::new();
        let mut writers = Vec::new();
        for style in styles {
            let writer = style.writer();
            let fields = writer.fields();
            if let Some(shared) = fields.iter().find(|field| taken.contains(field)) {
                return Err(ConfigError::SharedField(shared.as_str()));
            }
            taken.extend(fields);
            writers.push(writer);
        }
        Ok(writers)
    }
}

impl fmt::Debug for dyn WriteHeaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WriteHeaders").field(&self.fields()).finish()
    }
}
