//! Second thoughts: what requests turned out to cost.
//!
//! A limit that [settles](crate::Limit::settle) charges an estimate before the handler runs, its
//! [cost](crate::Limit::cost), and corrects it afterwards: what was too much is refunded, what was too little is charged,
//! into debt if need be. Since the estimate is taken first, requests that run at the same time cannot spend a quota twice.
//!
//! | rule | a request ends up costing |
//! |---|---|
//! | [`only_failures`] | nothing, when it succeeds: logins |
//! | [`only_successes`] | nothing, when it fails |
//! | [`only_status`] | nothing, unless its status is one of these |
//! | [`cost_header`] | the number in a header of the response |
//! | [`body_bytes`] | the length of the response's body, counted as it is sent |
//! | [`by_handler`] | what the handler says, by its [`Reservation`] |
//! | a closure | what it makes of the response's head |
//! | a [`Rule`] of your own | what it makes of the head, or of how the body ended |
//!
//! A handler can settle under every rule, and its word goes before the rule's.
//!
//! Five failed logins in fifteen minutes, also when they are tried all at once; those who get in are not counted:
//!
//! ```
//! use std::time::Duration;
//! use tower_quota::{Limit, OnStoreFailure, Quota, key, settle};
//!
//! let login = Limit::new("login", Quota::new(5, Duration::from_secs(900)).sliding_log())
//!     .by(key::client_ip())
//!     .settle(settle::only_failures())
//!     .on_store_failure(OnStoreFailure::Refuse);
//! # let _ = login;
//! ```
//!
//! Tokens of a language model, estimated from the request and settled by the handler:
//!
//! ```
//! use tower_quota::settle::{self, Reservation};
//! use tower_quota::{Limit, Quota, key};
//!
//! let tokens = Limit::new("tokens", Quota::per_minute(50_000))
//!     .by(key::header("x-api-key"))
//!     .cost(2_000)
//!     .settle(settle::by_handler());
//! # let _ = tokens;
//!
//! // With the feature `axum` the reservation is an extractor; else it is in the request's extensions.
//! async fn complete(reservation: Reservation) -> String {
//!     let (answer, used) = (String::from("..."), 1_234);
//!     reservation.settle("tokens", used);
//!     answer
//! }
//! ```
//!
//! # When
//!
//! Settling is done once: when the response has reached the point that its rules wait for, its head or the end of its body,
//! and the last clone of the [`Reservation`] is dropped. It takes one call of the store to refund, and one to charge more,
//! for all limits together. A cost above the estimate is charged at that time; a refund goes to the window that the estimate
//! was taken from, and to nothing if that has passed.
//!
//! | what happened | what the request costs |
//! |---|---|
//! | the handler settled | what it said last |
//! | a response, and the handler did not settle | what the rule says |
//! | a response whose body was cut off, by an error or because the client went away | what the rule says of the head, or of as much of the body as there was |
//! | no response: the handler panicked, was cancelled with its client, or its service failed | the estimate, or what [`Limit::on_abandoned`](crate::Limit::on_abandoned) says |
//! | a task of the handler keeps a clone of the reservation | it is settled when the task drops it; what the task says counts |
//! | the client went away while the request waited for its turn | nothing, whatever the limits say: it never reached the handler |
//! | the client went away before the store had answered | nothing by limits that settle, and nothing at all where one may make it wait; by others, what the store got to count |
//! | the store was unavailable at first, and the limit is [local](crate::OnStoreFailure::Local) | the same, settled in this process |
//! | the store was unavailable at first, and nothing was counted | nothing |
//! | the store is unavailable when it should settle | the estimate; the error goes to [`on_store_error`](crate::RateLimitLayer::on_store_error) |
//!
//! # Caveats
//!
//! * An estimate of 0 only peeks, and passes even where there is a debt. Estimate at least 1 where quotas are to hold.
//! * The store is asked where the last handle is dropped. A [`MemoryStore`](crate::MemoryStore) has then settled; a store
//!   that takes time is waited for in a task of its own on the tokio runtime that the request ran on. Where that runtime
//!   is being shut down, or there is none, the estimate stays.
//! * The `RateLimit` fields of the response speak of the estimate: they are written before the cost is known.
//! * Where the keys of a policy are on several nodes of a Redis cluster, a sliding log may not get back what it was
//!   charged, and a window is chosen by the latest of the nodes' clocks: a decision has one instant, and each node its own.
//! * A reservation that is never dropped is never settled, and the estimate stays.
//! * Rules that wait for the end of the body may run while it is dropped: they must not panic.

mod amount;
mod charge_record;
mod detach;
mod end;
#[cfg(feature = "axum")]
mod extract;
mod grpc_messages;
mod in_flight;
mod meter;
mod reservation;
mod rule;
mod status;

pub use self::amount::{BodyBytes, body_bytes, cost_header, try_cost_header};
pub(crate) use self::charge_record::{ChargeRecord, Counted, RecordedCharge, SettleRule, Settler};
pub(crate) use self::detach::detach;
pub use self::end::ResponseEnd;
pub(crate) use self::in_flight::InFlight;
pub(crate) use self::meter::Meter;
pub use self::reservation::Reservation;
pub use self::rule::{Rule, Settle, by_handler};
pub use self::status::{Status, only_failures, only_status, only_successes};
