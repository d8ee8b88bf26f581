//! The requests of a connection.

use core::convert::Infallible;
use core::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{Request, Response, StatusCode};
use axum::response::IntoResponse;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::service::{Service, service_fn};
use tokio::time::timeout;
use tonic::Status;
use tower::Service as _;

use super::bounds::Protocol;
use super::port::Port;

/// The number of requests that have begun on a connection. Each running request has a clone.
pub(super) type Begun = Arc<AtomicU64>;

/// Answers requests by the router of a port, within the longest time of a request.
pub(super) fn service(
    port: Arc<Port>,
    peer: SocketAddr,
    begun: Begun,
) -> impl Service<Request<Incoming>, Response = Response<Body>, Error = Infallible, Future: Send> {
    service_fn(move |request: Request<Incoming>| {
        begun.fetch_add(1, Ordering::Relaxed);
        let running = Arc::clone(&begun);
        let mut request = request.map(Body::new);
        let protocol = port.protocol;
        // Calls of gRPC have no use for the peer, and are many.
        if protocol != Protocol::Grpc {
            request.extensions_mut().insert(ConnectInfo(peer));
        }
        let response = timeout(port.bounds.request, port.router.clone().call(request));
        async move {
            let Ok(Ok(response)) = response.await else {
                return Ok(too_slow(protocol));
            };
            // Only admins get bodies without an end, which keep a connection busy.
            Ok(match protocol {
                Protocol::Admin => response.map(|body| {
                    Body::new(body.map_err(move |error| {
                        let _ = &running;
                        error
                    }))
                }),
                _ => response,
            })
        }
    })
}

fn too_slow(protocol: Protocol) -> Response<Body> {
    match protocol {
        Protocol::Grpc => Status::deadline_exceeded("the request took too long").into_http(),
        _ => (StatusCode::REQUEST_TIMEOUT, "the request took too long\n").into_response(),
    }
}
