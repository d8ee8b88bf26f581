//! `/v1/auth`, for gateways that ask before they forward a request.
//!
//! nginx (`auth_request`), Caddy and Traefik (`forward_auth`) and HAProxy send the head of the request of a client, with
//! forwarded fields:
//!
//! | field | value |
//! |---|---|
//! | `X-Forwarded-Method`, `X-Forwarded-Uri`, `X-Forwarded-Host` | the request. Each occurs once |
//! | `X-Forwarded-For` | the client, as the gateway has appended the address or replaced the field |
//! | `Tower-Quota-Token` | the token, if the server has one |
//!
//! The layer decides the request that the fields describe, with the other fields as the client sent them, and with the
//! client as its peer. So a document needs no `client_ip` for the gateway. Conditions on a path match the path as sent, and the
//! plain path without encoded letters, repeated slashes, parameters and dots. Exemptions must match both.
//!
//! | answer | status |
//! |---|---|
//! | the limits admit the request | 204, with the rate limit fields |
//! | the limits refuse the request | 429 or another status of the layer, with the fields and problem details |
//! | a forwarded field is missing, repeated or unreadable | 400 |
//! | the peer is no trusted proxy, or sends no token | 403 |
//!
//! nginx accepts only 2xx, 401 and 403. With `/v1/auth?status=403`, all refusals but 401 have the status 403, with the real
//! status in `Tower-Quota-Status` and the problem details in `Tower-Quota-Problem`.
//!
//! A request that settles keeps its estimate, and a limit `at once` holds nothing after the answer.

mod ask;
mod forwarded;

pub use self::ask::router;
