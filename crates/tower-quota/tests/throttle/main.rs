//! Tests of throttled services, one module per topic.
#![cfg(feature = "throttle")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

mod failures;
mod fixture;
mod holds;
#[path = "../checks/log.rs"]
#[allow(dead_code, reason = "throttles record no spans")]
mod log;
mod pushbacks;
mod rates;
mod readiness;
mod retries;
mod sockets;
mod waiting;
