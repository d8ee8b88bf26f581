use http::Response;

use super::refusal_body::RefusalBody;

/// A response from your [`on_refused`](crate::RateLimitLayer::on_refused) closure.
///
/// Return a `Response` with text, bytes or a [`RefusalBody`]. With the feature `axum`, you can return a status or a
/// tuple such as `(StatusCode, String)`, or call `into_response()`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a refusal",
    note = "return an `http::Response`; with the feature `axum`, call `into_response()`"
)]
pub trait IntoRefusal {
    /// Returns the response.
    fn into_refusal(self) -> Response<RefusalBody>;
}

impl<B: Into<RefusalBody>> IntoRefusal for Response<B> {
    fn into_refusal(self) -> Response<RefusalBody> {
        self.map(Into::into)
    }
}

/// A blanket implementation for `IntoResponse` would overlap.
#[cfg(feature = "axum")]
mod of_axum {
    use axum::response::IntoResponse;
    use http::{Response, StatusCode};

    use super::{IntoRefusal, RefusalBody};

    impl IntoRefusal for StatusCode {
        fn into_refusal(self) -> Response<RefusalBody> {
            self.into_response().into_refusal()
        }
    }

    impl<R> IntoRefusal for (StatusCode, R)
    where
        Self: IntoResponse,
    {
        fn into_refusal(self) -> Response<RefusalBody> {
            self.into_response().into_refusal()
        }
    }

    impl<H, R> IntoRefusal for (StatusCode, H, R)
    where
        Self: IntoResponse,
    {
        fn into_refusal(self) -> Response<RefusalBody> {
            self.into_response().into_refusal()
        }
    }
}
