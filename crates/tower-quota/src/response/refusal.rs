use core::fmt;
use std::sync::Arc;

use http::Response;
use http::header::{CACHE_CONTROL, HeaderMap, HeaderValue, RETRY_AFTER};

use super::into_refusal::IntoRefusal;
use super::refusal_body::RefusalBody;
use super::refused::Refused;

pub(super) const TYPICAL_FIELDS: usize = 12;

/// Answers refused HTTP requests. The default is [`ProblemDetails`](crate::response::ProblemDetails).
///
/// Pass closures to [`on_refused`](crate::RateLimitLayer::on_refused), and types to
/// [`refusal`](crate::RateLimitLayer::refusal). The layer adds rate limit fields, and missing `Retry-After`,
/// `Cache-Control: no-store` and `WWW-Authenticate`. Responses to `HEAD` lose their body.
///
/// ```
/// use http::Response;
/// use tower_quota::{MemoryStore, Policy, RateLimitLayer, Refusal, Refused, response::RefusalBody};
///
/// struct Sorry {
///     contact: &'static str,
/// }
///
/// impl Refusal for Sorry {
///     fn respond(&self, refused: &Refused<'_>) -> Response<RefusalBody> {
///         let mut response = Response::new(format!("{} Ask {}.\n", refused.detail(), self.contact).into());
///         *response.status_mut() = refused.status();
///         response
///     }
/// }
///
/// let sorry = Sorry { contact: "support@example.com" };
/// let layer = RateLimitLayer::new(MemoryStore::new(), Policy::new()).refusal(sorry);
/// # let _ = layer;
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a refusal",
    note = "give closures to `RateLimitLayer::on_refused`, or implement `Refusal`"
)]
pub trait Refusal: Send + Sync + 'static {
    /// Returns the response to a refused request.
    fn respond(&self, refused: &Refused<'_>) -> Response<RefusalBody>;
}

impl<R: Refusal + ?Sized> Refusal for Box<R> {
    fn respond(&self, refused: &Refused<'_>) -> Response<RefusalBody> {
        (**self).respond(refused)
    }
}

impl<R: Refusal + ?Sized> Refusal for Arc<R> {
    fn respond(&self, refused: &Refused<'_>) -> Response<RefusalBody> {
        (**self).respond(refused)
    }
}

pub(crate) struct OnRefused<F>(pub(crate) F);

impl<F, R> Refusal for OnRefused<F>
where
    F: Fn(&Refused<'_>) -> R + Send + Sync + 'static,
    R: IntoRefusal,
{
    fn respond(&self, refused: &Refused<'_>) -> Response<RefusalBody> {
        (self.0)(refused).into_refusal()
    }
}

pub(super) fn add_missing(refused: &Refused<'_>, headers: &mut HeaderMap) {
    headers
        .entry(CACHE_CONTROL)
        .or_insert(const { HeaderValue::from_static("no-store") });
    if let Some(seconds) = refused.retry_after_secs() {
        headers.entry(RETRY_AFTER).or_insert_with(|| seconds.into());
    }
}

impl fmt::Debug for dyn Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("dyn Refusal")
    }
}
