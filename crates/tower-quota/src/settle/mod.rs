//! Settling: limits correct the cost of a request when it is over, and release what it holds.
//!
//! A limit that [settles](crate::Limit::settle) charges an estimate before the handler runs, its
//! [cost](crate::Limit::cost). Afterwards it refunds or charges the difference, into debt if necessary. Because the estimate
//! is taken first, concurrent requests cannot spend a quota twice.
//!
//! | rule | final cost of a request |
//! |---|---|
//! | [`only_failures`] | 0 if it succeeds: for logins |
//! | [`only_successes`] | 0 if it fails |
//! | [`only_status`] | 0 unless your closure accepts its status |
//! | [`cost_header`] | the number in a header of the response |
//! | [`body_bytes`] | the length of the response's body, counted as it is sent |
//! | [`by_handler`] | the cost that the handler sets by its [`Reservation`] |
//! | a closure, or your own [`Rule`] | the result for the head of the response, or for the end of the body |
//!
//! A cost that the handler sets takes precedence over the rule. Without a response, [`Limit::on_abandoned`] decides.
//!
//! This limit admits five failed logins in fifteen minutes, even if all are tried at once, and does not count successes:
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
//! The handler settles the tokens of a language model:
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
//! The layer settles a request once, when its rules have decided (at the head of the response or at the end of the body)
//! and you have dropped the last clone of the [`Reservation`]. One call of the store refunds, and one charges more. A refund
//! goes to the window of the estimate, and has no effect if that window has ended.
//!
//! | event | final cost |
//! |---|---|
//! | the handler settled | the last cost that it set |
//! | a response, complete or cut off | the result of the rule, for the part of the body that was sent |
//! | the handler panicked, was cancelled with its client, or its service failed | the estimate, or the choice of [`Limit::on_abandoned`] |
//! | a task keeps a clone of the reservation | the cost that the task set, when it drops the clone |
//! | the client left before its turn | 0 |
//! | the client left before the store answered | 0 for limits that settle, and for all limits if one may make it wait |
//! | the store answered too late, and the limit settles or [refuses](crate::OnStoreFailure::Refuse) then | 0 |
//! | the store was unavailable, and the limit is [local](crate::OnStoreFailure::Local) | settled in this process |
//! | the store is unavailable at the time of settling | the estimate; [`on_store_error`](crate::RateLimitLayer::on_store_error) gets the error |
//!
//! # Caveats
//!
//! * An estimate of 0 only peeks, and is admitted even if there is a debt. Estimate at least 1 if quotas must hold.
//! * A [`MemoryStore`](crate::MemoryStore) settles at once. Other stores settle in a task on the tokio runtime of the
//!   request. If the runtime has ended, the estimate stays.
//! * The `RateLimit` fields report the estimate, because they are written before the final cost is known.
//! * If the keys of a policy are on several nodes of a Redis cluster, a refund may miss a sliding log, because each node has
//!   its own clock.
//! * Rules that wait for the end of the body may run while the body is dropped: they must not panic.
//!
//! [`Limit::on_abandoned`]: crate::Limit::on_abandoned

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
