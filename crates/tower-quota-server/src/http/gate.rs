//! The layer with the limits of the documents.

use core::convert::Infallible;
use core::time::Duration;
use std::sync::Arc;

use axum::body::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty};
use tower::{Layer, ServiceExt, service_fn};
use tower_quota::explain::Explained;
use tower_quota::settle::Reservation;
use tower_quota::{
    Check, Policy, Protocol, RateLimitHandle, RateLimitLayer, Reason, Refused, RequestHead,
};
use tower_quota_core::{BoxStore, Clock, Decision, MonotonicClock};

use super::problem::Problem;

/// The limits of documents around a service that admits every request.
///
/// Clones share the layer. Start live rules on the [handle](Self::handle).
#[derive(Clone, Debug)]
pub struct Gate {
    layer: RateLimitLayer<BoxStore>,
    clock: Arc<dyn Clock>,
}

impl Gate {
    /// Creates a gate without limits over a store, which answers within the deadline.
    ///
    /// After the deadline, `on_store_failure` of each limit decides. The gate has a refusal cache of its own.
    #[must_use]
    pub fn new(store: BoxStore, deadline: Duration) -> Self {
        Self::with_clock(store, deadline, MonotonicClock::new())
    }

    /// Works like [`new`](Self::new), with a clock that ends reservations.
    #[must_use]
    pub fn with_clock(store: BoxStore, deadline: Duration, clock: impl Clock) -> Self {
        let layer = RateLimitLayer::new(store, Policy::new())
            .store_timeout(deadline)
            // A refusal of gRPC has the status 200, which a gateway takes for an admission.
            .protocol(Protocol::Http)
            .attach_decision()
            // A check without an address gets an error that names the field.
            .without_check(Check::NoPeerAddress)
            // The admin API lists them.
            .count_busy_clients();
        Self {
            layer,
            clock: Arc::new(clock),
        }
    }

    /// Bounds the requests that wait for their turn, which keep their connections. A client takes at most half of the places.
    #[must_use]
    pub fn max_waiting(mut self, requests: usize) -> Self {
        self.layer = self.layer.max_waiting(requests);
        self
    }

    /// Returns the handle of the layer, for live rules.
    #[must_use]
    pub fn handle(&self) -> RateLimitHandle<BoxStore> {
        self.layer.handle()
    }

    pub(crate) fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }

    /// Decides a request, after its wait for a turn. The response to an admitted request has its charges in the extensions.
    pub(crate) async fn decide(&self, request: Request<()>) -> Response<Bytes> {
        let Ok(response) = self.layer.layer(service_fn(admit)).oneshot(request).await;
        let (head, body) = response.into_parts();
        let Ok(body) = body.collect().await;
        Response::from_parts(head, body.to_bytes())
    }

    /// Returns the status that a request would get now, and takes no units.
    pub(crate) async fn peek(
        &self,
        request: &Request<()>,
    ) -> Result<(StatusCode, Option<Decision>), Problem> {
        let (handle, head) = (self.layer.handle(), RequestHead::of(request));
        if let Explained::Refused(reason) = handle.explain(&head) {
            return Ok((status_of(&reason), None));
        }
        let peeked = handle.peek_request(&head).await.map_err(|_| {
            Problem::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "the store of the counters has not answered: ask again later",
            )
        })?;
        let refused = peeked.as_ref().and_then(Refused::of);
        let status = refused.map_or(StatusCode::OK, |refused| refused.status());
        Ok((status, peeked))
    }
}

/// Admits a request, and passes the charges on.
async fn admit(mut request: Request<()>) -> Result<Response<Empty<Bytes>>, Infallible> {
    let charges = request.extensions_mut().remove::<Reservation>();
    let mut response = Response::new(Empty::new());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
        .extensions_mut()
        .insert(charges.unwrap_or_default());
    Ok(response)
}

/// Returns the status of a request that is refused before any count.
const fn status_of(reason: &Reason<'_>) -> StatusCode {
    match reason {
        Reason::Blocked => StatusCode::FORBIDDEN,
        Reason::MissingKey(_) => StatusCode::BAD_REQUEST,
        Reason::Unauthenticated(_) => StatusCode::UNAUTHORIZED,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}
