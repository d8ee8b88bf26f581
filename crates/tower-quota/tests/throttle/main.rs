//! Tests of throttled services, one module per topic.
#![cfg(feature = "throttle")]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

mod failures;
mod fixture;
mod pushbacks;
mod readiness;
mod retries;
mod sockets;
mod waiting;
