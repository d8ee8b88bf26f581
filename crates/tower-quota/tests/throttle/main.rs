//! Throttled services: one module per promise.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod failures;
mod fixture;
mod pushbacks;
mod readiness;
mod sockets;
mod waiting;
