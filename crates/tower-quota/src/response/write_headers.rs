//! The trait of header styles.

use http::header::{HeaderMap, HeaderName};

use super::header_report::HeaderReport;

/// Writes rate limit header fields in one convention: a header style.
///
/// Implement it for fields of your own, and pass them to [`HeaderStyle::custom`](crate::HeaderStyle::custom):
///
/// ```
/// use http::header::{HeaderMap, HeaderName, HeaderValue};
/// use tower_quota::{HeaderReport, HeaderStyle, MemoryStore, Policy, RateLimitLayer, WriteHeaders};
///
/// /// Writes `X-Quota: 19/20` for the tightest limit.
/// struct Fraction;
///
/// static FIELDS: [HeaderName; 1] = [HeaderName::from_static("x-quota")];
///
/// impl WriteHeaders for Fraction {
///     fn fields(&self) -> &'static [HeaderName] {
///         &FIELDS
///     }
///
///     fn write(&self, report: &HeaderReport<'_>, headers: &mut HeaderMap) {
///         let Some(limit) = report.tightest() else { return };
///         let fraction = format!("{}/{}", limit.remaining(), limit.capacity());
///         if let Ok(value) = HeaderValue::try_from(fraction) {
///             headers.insert(&FIELDS[0], value);
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
    /// Returns the names of all fields that this style may write.
    ///
    /// A layer refuses two styles that write the same field:
    /// [`ConfigError::SharedField`](crate::ConfigError::SharedField).
    fn fields(&self) -> &'static [HeaderName];

    /// Writes the fields of one response.
    ///
    /// The layer calls it for refusals and for admitted requests, also if the store is unavailable: see
    /// [`HeaderReport::is_local`]. It does not call it if no limit applied, or if an admitted response has a
    /// `Retry-After` of its own. A service behind the layer may have written fields of the same names. Do not make them
    /// more permissive.
    fn write(&self, report: &HeaderReport<'_>, headers: &mut HeaderMap);
}
