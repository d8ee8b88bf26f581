//! The requests of a connection.

use core::convert::Infallible;
use core::future::Future;
use core::net::SocketAddr;
use core::pin::Pin;
use core::time::Duration;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{Request, Response, StatusCode};
use axum::response::IntoResponse;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::service::Service;
use tonic::Status;
use tower::Service as _;

use super::bounds::Protocol;
use super::places::Requests;

/// The router of a port, for the requests of a connection.
#[derive(Debug)]
pub(super) struct Served {
    pub(super) router: Router,
    pub(super) protocol: Protocol,
    /// The longest time until the head of a response.
    pub(super) longest: Duration,
    pub(super) peer: SocketAddr,
    pub(super) requests: Arc<Requests>,
}

impl Service<Request<Incoming>> for Served {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let running = self.requests.begin();
        let unread = self.requests.begin_body();
        let mut request = request.map(|body| {
            Body::new(body.map_err(move |error| {
                let _ = &unread;
                error
            }))
        });
        // Calls of gRPC have no use for the peer, and are many.
        if self.protocol != Protocol::Grpc {
            request.extensions_mut().insert(ConnectInfo(self.peer));
        }
        let response = self.router.clone().call(request);
        let (protocol, longest) = (self.protocol, self.longest);
        Box::pin(async move {
            let Ok(response) = tokio::time::timeout(longest, response).await else {
                return Ok(too_slow(protocol));
            };
            let response = response?;
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
        })
    }
}

fn too_slow(protocol: Protocol) -> Response<Body> {
    match protocol {
        Protocol::Grpc => Status::deadline_exceeded("the request took too long").into_http(),
        _ => (StatusCode::REQUEST_TIMEOUT, "the request took too long\n").into_response(),
    }
}
