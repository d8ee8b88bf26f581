//! Settling: limits correct the cost of a request when it is over.
//!
//! A limit that [settles](crate::Limit::settle) charges an estimate before the handler runs, its
//! [cost](crate::Limit::cost), and corrects it afterwards. If the estimate was too high, the difference is refunded. If
//! it was too low, the difference is charged, into debt if necessary. Because the estimate is taken first, concurrent
//! requests cannot spend a quota twice.
//!
//! | rule | final cost of a request |
//! |---|---|
//! | [`only_failures`] | nothing if it succeeds: for logins |
//! | [`only_successes`] | nothing if it fails |
//! | [`only_status`] | nothing unless its status is one of these |
//! | [`cost_header`] | the number in a header of the response |
//! | [`body_bytes`] | the length of the response's body, counted as it is sent |
//! | [`by_handler`] | the cost that the handler sets, by its [`Reservation`] |
//! | a closure | the result for the response's head |
//! | a custom [`Rule`] | the result for the head, or for the end of the body |
//!
//! The final cost is decided in this order:
//!
//! 1. the last cost that the handler set, under any rule;
//! 2. the result of the rule;
//! 3. without a response, the choice of [`Limit::on_abandoned`](crate::Limit::on_abandoned), by default the estimate.
//!
//! By default, the estimate is 1. This limit admits five failed logins in fifteen minutes, even if they are tried all
//! at once. Successful logins are not counted:
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
//! Customised: tokens of a language model, with an estimate that the handler settles:
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
//! // With the feature `axum` the reservation is an extractor. Otherwise read it from the request's extensions.
//! async fn complete(reservation: Reservation) -> String {
//!     let (answer, used) = (String::from("..."), 1_234);
//!     reservation.settle("tokens", used);
//!     answer
//! }
//! ```
//!
//! # Holds
//!
//! A limit with [`Quota::concurrent`](crate::Quota::concurrent) holds its units while a request lasts. The store decides it
//! together with the other limits of the request. The layer renews the hold, and releases it when the body of the response
//! has ended, the client has disconnected, or the handler has panicked. If the process dies, the hold expires after its
//! [`ttl`](crate::Quota::ttl). An upgraded connection, such as a websocket, is held while you keep a clone of the
//! [`Reservation`].
//!
//! ```
//! use tower_quota::{Limit, Policy, Quota, key};
//!
//! let policy = Policy::new()
//!     .limit(Limit::new("streams", Quota::concurrent(2)).by(key::header("x-api-key")))
//!     .limit(Limit::new("minute", Quota::per_minute(100)).by(key::header("x-api-key")));
//! # let _ = policy;
//! ```
//!
//! # Time of settling
//!
//! A request is settled once: when the response has reached the point that its rules wait for (its head or the end of
//! its body) and the last clone of the [`Reservation`] is dropped. For all limits together it takes one call of the
//! store to refund and one to charge more. A cost above the estimate is charged at that time. A refund goes to the
//! window that the estimate was taken from; if that window has ended, it has no effect.
//!
//! | event | final cost |
//! |---|---|
//! | the handler settled | the last cost that it set |
//! | a response, and the handler did not settle | the result of the rule |
//! | a response whose body was cut off, by an error or because the client disconnected | the result of the rule for the head, or for the part of the body that was sent |
//! | no response: the handler panicked, was cancelled with its client, or its service failed | the estimate, or the choice of [`Limit::on_abandoned`](crate::Limit::on_abandoned) |
//! | a task of the handler keeps a clone of the reservation | it is settled when the task drops it, by the cost that the task set |
//! | the client disconnected while the request waited for its turn | nothing: it never reached the handler |
//! | the client disconnected before the store had answered | nothing for limits that settle, and nothing at all if a limit may make it wait; for others, the cost if the store counted it |
//! | the store was unavailable at first, and the limit is [local](crate::OnStoreFailure::Local) | the same, settled in this process |
//! | the store was unavailable at first, and nothing was counted | nothing |
//! | the store is unavailable at the time of settling | the estimate; the error is passed to [`on_store_error`](crate::RateLimitLayer::on_store_error) |
//!
//! # Caveats
//!
//! * An estimate of 0 only peeks, and is admitted even if there is a debt. Estimate at least 1 if quotas must hold.
//! * The store is called when the last handle is dropped. A [`MemoryStore`](crate::MemoryStore) settles at once. Other
//!   stores settle in a task on the tokio runtime of the request. If that runtime is shutting down, or there is none,
//!   the estimate stays.
//! * The `RateLimit` fields of the response report the estimate: they are written before the final cost is known.
//! * If the keys of a policy are on several nodes of a Redis cluster, a refund may not reach a sliding log, and a
//!   window is chosen by the latest of the nodes' clocks: a decision has one instant, and each node has its own clock.
//! * A reservation that is never dropped is never settled, and the estimate stays.
//! * Rules that wait for the end of the body may run while the body is dropped: they must not panic.

mod amount;
mod charge_record;
mod detach;
mod end;
#[cfg(feature = "axum")]
mod extract;
mod grpc_messages;
mod hold;
mod in_flight;
mod meter;
mod reservation;
mod rule;
mod status;

pub use self::amount::{BodyBytes, body_bytes, cost_header, try_cost_header};
pub(crate) use self::charge_record::{ChargeRecord, Counted, RecordedCharge, SettleRule, Settler};
pub(crate) use self::detach::detach;
pub use self::end::ResponseEnd;
pub(crate) use self::hold::release;
pub(crate) use self::in_flight::InFlight;
pub(crate) use self::meter::Meter;
pub use self::reservation::Reservation;
pub use self::rule::{Rule, Settle, by_handler};
pub use self::status::{Status, only_failures, only_status, only_successes};
