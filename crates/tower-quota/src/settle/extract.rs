use core::convert::Infallible;

use axum::extract::FromRequestParts;
use http::request::Parts;

use super::Reservation;

impl<S: Send + Sync> FromRequestParts<S> for Reservation {
    type Rejection = Infallible;

    /// Returns the reservation of the request, or an empty reservation.
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(parts.extensions.get().cloned().unwrap_or_default())
    }
}
