//! Extractors of axum.

mod request_decision;

use core::convert::Infallible;

use axum::extract::FromRequestParts;
use http::request::Parts;

pub use self::request_decision::RequestDecision;
use crate::limit::Flagged;
use crate::settle::Reservation;

macro_rules! extractors {
    ($($extractor:ty = $of_extension:expr;)*) => {$(
        impl<S: Sync> FromRequestParts<S> for $extractor {
            type Rejection = Infallible;

            async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
                Ok($of_extension(parts.extensions.get().cloned()))
            }
        }
    )*};
}

extractors! {
    Flagged = Option::unwrap_or_default;
    RequestDecision = RequestDecision;
    Reservation = Option::unwrap_or_default;
}
