//! The layer around services, in virtual time where time matters.

#![expect(clippy::panic, clippy::unwrap_used, reason = "tests may panic")]

mod classes;
#[cfg(feature = "tonic")]
mod grpc;
#[cfg(feature = "metrics")]
mod metrics;
mod places;
mod queue;
mod refusals;
mod server;
mod service;
