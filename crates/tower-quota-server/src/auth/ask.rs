//! The route of gateways.

use core::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{ConnectInfo, Request, State};
use axum::routing::any;
use http::request::Parts;
use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use tower_quota::settle::Reservation;

use super::forwarded::Forwarded;
use crate::http::{Gate, HttpOptions, Problem};

const STATUS: HeaderName = HeaderName::from_static("tower-quota-status");
const PROBLEM: HeaderName = HeaderName::from_static("tower-quota-problem");
/// The longest problem in a field, because proxies bound the head of a response, nginx to 4 KiB.
const LONGEST_PROBLEM: usize = 2_048;

struct Door {
    gate: Gate,
    forwarded: Forwarded,
    options: HttpOptions,
}

/// Builds the route `/v1/auth`.
///
/// Serve the router with `into_make_service_with_connect_info::<SocketAddr>()`. Without the address of the peer, the route
/// answers with 403.
pub fn router(gate: &Gate, options: &HttpOptions) -> Router {
    let door = Door {
        gate: gate.clone(),
        forwarded: Forwarded::new(options),
        options: options.clone(),
    };
    Router::new()
        .route("/v1/auth", any(ask))
        .with_state(Arc::new(door))
}

/// Answers without reading the body, which the gateway may still hold back.
async fn ask(State(door): State<Arc<Door>>, request: Request) -> Response<Body> {
    let (head, _) = request.into_parts();
    // Another query may be the query of a client, which Caddy keeps when it rewrites the path.
    let only_403 = head.uri.query() == Some("status=403");
    let mut response = door.decide(head).await.unwrap_or_else(Response::from);
    // The layer may close the connection of a client, which is not the connection of the gateway.
    response.headers_mut().remove(header::CONNECTION);
    if only_403 && !response.status().is_success() {
        refuse_by_403(&mut response);
    }
    response.map(Body::from)
}

fn refuse_by_403(response: &mut Response<Bytes>) {
    let status = response.status();
    let problem = HeaderValue::from_maybe_shared(response.body().clone());
    let headers = response.headers_mut();
    headers.insert(STATUS, status.as_u16().into());
    if let Some(problem) = problem
        .ok()
        .filter(|problem| problem.len() <= LONGEST_PROBLEM)
    {
        headers.insert(PROBLEM, problem);
    }
    if status != StatusCode::UNAUTHORIZED {
        *response.status_mut() = StatusCode::FORBIDDEN;
    }
}

impl Door {
    async fn decide(&self, head: Parts) -> Result<Response<Bytes>, Problem> {
        let gateway = self.gateway(&head)?;
        let request = self.forwarded.rebuild(gateway, head)?;
        let response = self.gate.decide(request).await;
        if let Some(charges) = response.extensions().get::<Reservation>() {
            // The response of the service is unknown, so that a rule of the document cannot decide.
            charges.keep();
        }
        Ok(response)
    }

    /// Returns the address of the gateway, if the server trusts it.
    fn gateway(&self, head: &Parts) -> Result<IpAddr, Problem> {
        let peer = head.extensions.get::<ConnectInfo<SocketAddr>>();
        let peer = peer.map(|ConnectInfo(address)| address.ip().to_canonical());
        let Some(peer) = peer.filter(|peer| self.forwarded.trusts(*peer)) else {
            return Err(Problem::new(
                StatusCode::FORBIDDEN,
                "this gateway is not trusted: add its address to the trusted proxies of the server",
            ));
        };
        match &self.options.token {
            Some(token) if !token.is_of_gateway(&head.headers) => Err(Problem::new(
                StatusCode::FORBIDDEN,
                "this gateway has no valid token: let it set Tower-Quota-Token to the token of the server",
            )),
            _ => Ok(peer),
        }
    }
}
