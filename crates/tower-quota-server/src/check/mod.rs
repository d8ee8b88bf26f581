//! Decisions as JSON, for services in any language.
//!
//! `POST /v1/check` decides a request that the caller describes, by the limits of the documents:
//!
//! ```json
//! { "method": "POST", "path": "/v1/orders", "address": "203.0.113.7", "headers": { "x-api-key": "sk_1" }, "cost": 3 }
//! ```
//!
//! The answer has the fields and problem details that the service should send to its client. With `"peek": true`, the
//! answer says what the request would get, and takes no units.
//!
//! With `"reserve": "30s"`, the answer has a reservation. The call takes an estimate, and
//! `POST /v1/check/{id}/commit` with the real `cost` charges or refunds the difference, for limits that
//! [settle](tower_quota::settle). Limits `at once` hold their unit until then. A reservation whose time is over is refunded.
//! The answer to a commit does not wait for the store. If the store fails, the estimate stays.
//! Reservations live in the memory of one instance, so commit at the instance that answered. If the instance crashes, its
//! estimates stay, and its holds end by their `ttl`.
//!
//! `POST /json` is [Envoy's door](crate::envoy) in the JSON of envoyproxy/ratelimit.

mod answer;
mod call;
mod commit;
mod door;
mod json;
mod reservations;

pub use self::door::router;
pub(crate) use self::door::routes;
pub use self::json::json_router;
pub(crate) use self::reservations::Reservations;
