//! Settling corrects the cost of a request afterwards, and releases held units.
//!
//! A limit that [settles](crate::Limit::settle) charges an estimate, the [cost](crate::Limit::cost), before the handler
//! runs, so concurrent requests cannot spend a quota twice. Afterwards the limit refunds or charges the difference,
//! into debt if necessary.
//!
//! | rule | final cost of a request |
//! |---|---|
//! | [`only_failures`] | 0 if the request succeeds |
//! | [`only_successes`] | 0 if the request fails |
//! | [`cost_header`] | the number in a header of the response |
//! | [`body_bytes`] | the length of the response's body |
//! | [`by_handler`] | the cost that your handler sets by a [`Reservation`] |
//! | a closure, or your own [`Rule`] | your result for the head or the end of the response |
//!
//! A cost from the handler takes precedence.
//!
//! Five failed logins in fifteen minutes, even if all are tried at once:
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
//!     let _ = reservation.settle("tokens", used);
//!     answer
//! }
//! ```
//!
//! # Holds
//!
//! A limit with [`Quota::concurrent`](crate::Quota::concurrent) holds units until the server has dropped the last written
//! bytes of the body, the client disconnects, or the handler panics. An outer layer that keeps the bytes, such as a cache,
//! keeps the unit. The layer renews the hold, up to [`Limit::longest_hold`](crate::Limit::longest_hold) if you set it. If
//! the process dies, the hold expires after the [`ttl`](crate::Quota::ttl).
//!
//! An asynchronous store releases the units in a task, after the last byte. If a client sends the next request at once,
//! the request can arrive before the release. If the release fails, the layer repeats the release until the units
//! would have expired, for the newest 10,000 failures. In an outage, the layer sends one call every half second in total,
//! and renews holds first.
//!
//! If the store has lost the units, because of a restart, a failover or a pause of your process, the next renewal takes the
//! units again, into debt if necessary. The count is right again after a third of the `ttl`. The layer logs a warning, at
//! most once a minute.
//!
//! One task on tokio's timer renews all holds of a layer, on the runtime of the first hold. If that runtime ends, the
//! renewals go on with the next request that holds units. Without a runtime, the layer cannot renew, so the hold of a
//! request expires after the `ttl` even if the request runs on. On a runtime without a timer, the task panics, and the hold
//! expires too.
//!
//! Bound the holds of requests that stall by [`Limit::longest_hold`](crate::Limit::longest_hold).
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
//! The layer settles once the rules have decided and you have dropped the last clone of the [`Reservation`]. Refunds go
//! to the window of the estimate, and have no effect after the window.
//!
//! | event | final cost |
//! |---|---|
//! | the handler, or a task with a clone of the reservation, settled | the last cost |
//! | a response, complete or cut off | the result of the rule, for the sent part of the body |
//! | the handler panicked, failed, or was cancelled with the client | the estimate, or the choice of [`Limit::on_abandoned`] |
//! | the client left before the turn | 0 |
//! | the client left before the store answered | 0 for limits that settle, and for all limits if any may wait. Otherwise the cost, or 0 if the store had not got the call |
//! | the store answered too late | 0 if the limit settles or [refuses](crate::OnStoreFailure::Refuse) |
//! | the store was unavailable, and the limit is [local](crate::OnStoreFailure::Local) | settled in this process |
//! | the store is unavailable when settling | the estimate, but the layer repeats the release of a hold; [`on_store_error`](crate::RateLimitLayer::on_store_error) gets the error |
//!
//! # The longest debt
//!
//! A settlement adds at most the capacity of the quota, and the units that the quota admits in a day, or in its period if
//! the period is longer. A wrong cost, such as a subtraction below zero, therefore locks a client out for about a day
//! instead of years, and the layer logs the mistake as [`ExcessiveCost`](crate::Check::ExcessiveCost).
//!
//! # Caveats
//!
//! * A client that hangs up before the store answers costs a call of the store, and no units of limits that settle. Your
//!   handler does not run. Add a limit that does not settle, by address, against floods of such requests.
//! * An estimate of 0 is admitted even in debt. Estimate at least 1 if quotas must hold.
//! * Stores other than [`MemoryStore`](crate::MemoryStore) settle on the request's tokio runtime. If the runtime has
//!   ended, the estimate stays.
//! * The `RateLimit` fields report the estimate.
//! * On a Redis cluster, a refund may miss a sliding log if your keys are on several nodes.
//!
//! [`Limit::on_abandoned`]: crate::Limit::on_abandoned

mod amount;
mod charge_record;
mod detach;
mod end;
mod grpc_messages;
mod hold;
mod in_flight;
mod meter;
mod reservation;
mod rule;
mod status;
pub(crate) mod store_call;

pub use self::amount::{BodyBytes, body_bytes, cost_header, try_cost_header};
pub(crate) use self::charge_record::{ChargeRecord, Counted, RecordedCharge, Settler};
pub(crate) use self::detach::detach;
pub use self::end::ResponseEnd;
pub(crate) use self::hold::{DroppedRelease, LongestHold, LostHold, release};
pub(crate) use self::in_flight::InFlight;
pub(crate) use self::meter::Meter;
pub use self::reservation::Reservation;
pub(crate) use self::rule::SettleRule;
pub use self::rule::{Rule, Settle, by_handler};
pub use self::status::{only_failures, only_successes};
pub(crate) use self::store_call::{StoreCallError, within};
