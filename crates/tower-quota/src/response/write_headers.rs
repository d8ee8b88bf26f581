use http::header::{HeaderMap, HeaderName};

use super::report::HeaderReport;

/// Writes your own rate limit fields, as a [`HeaderStyle::custom`](crate::HeaderStyle::custom).
///
/// ```
/// use http::header::{HeaderMap, HeaderName, HeaderValue};
/// use tower_quota::{HeaderStyle, MemoryStore, Policy, RateLimitLayer, response::{HeaderReport, WriteHeaders}};
///
/// /// Writes `X-Quota: 19/20` for the tightest limit.
/// struct Fraction;
///
/// // A constant name goes into the map without a clone.
/// const QUOTA: HeaderName = HeaderName::from_static("x-quota");
///
/// impl WriteHeaders for Fraction {
///     fn fields(&self) -> &'static [HeaderName] {
///         static FIELDS: [HeaderName; 1] = [QUOTA];
///         &FIELDS
///     }
///
///     fn write(&self, report: &HeaderReport<'_>, headers: &mut HeaderMap) {
///         let Some(limit) = report.tightest() else { return };
///         let fraction = format!("{}/{}", limit.remaining(), limit.capacity());
///         if let Ok(value) = HeaderValue::try_from(fraction) {
///             headers.insert(QUOTA, value);
///         }
///     }
/// }
///
/// let layer = RateLimitLayer::new(MemoryStore::new(), Policy::new())
///     .headers([HeaderStyle::Draft11, HeaderStyle::custom(Fraction)]);
/// # let _ = layer;
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a header style",
    note = "implement `WriteHeaders` for it: `fields` names the fields, `write` inserts them"
)]
pub trait WriteHeaders: Send + Sync + 'static {
    /// Returns the fields that this style may write.
    ///
    /// Two styles of a layer must not write the same field.
    fn fields(&self) -> &'static [HeaderName];

    /// Writes the fields of a response with limits.
    ///
    /// The layer skips admitted responses that failed with their own `Retry-After`. If your service wrote the same
    /// fields, do not make them more permissive.
    fn write(&self, report: &HeaderReport<'_>, headers: &mut HeaderMap);

    /// Marks a response that the layer decided without the store, also if no fields were written.
    ///
    /// By default your style writes nothing. Other styles write `X-RateLimit-Policy: degraded`.
    fn mark_degraded(&self, headers: &mut HeaderMap) {
        let _ = headers;
    }
}
