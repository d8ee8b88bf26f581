//! The layer around services, in virtual time where time matters.

mod classes;
#[cfg(feature = "tonic")]
mod grpc;
mod log;
mod places;
mod queue;
mod refusals;
mod server;
mod service;
